"""Whom the firewall of a storage account admits.

https://learn.microsoft.com/azure/storage/common/storage-network-security
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from ghost.lab.tenant import Body, folded


def admits_address(account: Body, address: str) -> bool:
    """Return whether a public address is admitted, such as that of the engineer's machine."""
    if _is_open(account):
        return True
    rules = account["properties"]["networkAcls"].get("ipRules") or []
    return _is_public(account) and any(ip_address(address) in ip_network(rule["value"]) for rule in rules)


def admits_subnet(account: Body, subnet_id: str) -> bool:
    """Return whether a machine in the subnet can store there: by a rule, or a private endpoint of the account."""
    if _is_open(account) or account["properties"].get("privateEndpointConnections"):
        return True
    rules = account["properties"]["networkAcls"].get("virtualNetworkRules") or []
    return _is_public(account) and folded(subnet_id) in [folded(rule["id"]) for rule in rules]


def _is_public(account: Body) -> bool:
    return str(account["properties"].get("publicNetworkAccess", "Enabled")).casefold() == "enabled"


def _is_open(account: Body) -> bool:
    return _is_public(account) and account["properties"].get("networkAcls", {}).get("defaultAction") != "Deny"
