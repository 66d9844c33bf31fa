"""Changes that are more than one request or one body: records, a peering's sync, rules of storage accounts."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, NAME, command
from ghost.lab.az_cli.output_shape import flattened
from ghost.lab.az_cli.storage_commands import ACCOUNT, account_shape, group_of_account
from ghost.lab.directory import LabDirectory

PEERINGS = "Microsoft.Network/virtualNetworks/virtualNetworkPeerings"
_KEPT_FLAGS = ("allowVirtualNetworkAccess", "allowForwardedTraffic", "allowGatewayTransit", "useRemoteGateways")
_RECORD = (GROUP, "--zone-name -z !", "--record-set-name -n !", "--ipv4-address -a !")
_NETWORK_RULE = (IN_GROUP, "--account-name -n !", "--ip-address *", "--subnet")


@command("network vnet peering sync", GROUP, "--vnet-name !", NAME, ids=("vnet_name", "name"))
def peering_sync(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = client.path(options.resource_group, PEERINGS, options.vnet_name, options.name)
    known = client.get(path)["properties"]
    properties = {name: known[name] for name in ("remoteVirtualNetwork", *_KEPT_FLAGS) if name in known}
    return flattened(client.put(path, {"properties": {**properties, "peerCompleteVnets": True}}))


@command("network private-dns record-set a add-record", *_RECORD)
def add_record(lab: LabDirectory, options: Namespace) -> Any:
    """Add an address to a record set, which is created if there is none."""
    client, path = _record_set(lab, options)
    try:
        known = client.get(path)["properties"]
    except AzError:
        known = {"ttl": 3600}
    records = [*known.get("aRecords", []), {"ipv4Address": options.ipv4_address}]
    return flattened(client.put(path, {"properties": {"ttl": known["ttl"], "aRecords": records}}))


@command("network private-dns record-set a remove-record", *_RECORD, "--keep-empty-record-set ?")
def remove_record(lab: LabDirectory, options: Namespace) -> Any:
    client, path = _record_set(lab, options)
    known = client.get(path)["properties"]
    records = [each for each in known.get("aRecords", []) if each["ipv4Address"] != options.ipv4_address]
    if len(records) == len(known.get("aRecords", [])):
        raise AzError(f"Record {{'ipv4_address': '{options.ipv4_address}'}} not found.")
    if not records and not options.keep_empty_record_set:
        return client.delete(path)
    return flattened(client.put(path, {"properties": {"ttl": known["ttl"], "aRecords": records}}))


def _record_set(lab: LabDirectory, options: Namespace) -> tuple[ArmClient, str]:
    client, kind = ArmClient(lab), "Microsoft.Network/privateDnsZones/A"
    return client, client.path(options.resource_group, kind, options.zone_name, options.record_set_name)


@command("storage account update", IN_GROUP, NAME, "--default-action", "--public-network-access", ids=("name",))
def account_update(lab: LabDirectory, options: Namespace) -> Any:
    changes: dict[str, Any] = {}
    client, path, known = _account(lab, options.resource_group, options.name)
    if options.default_action is not None:
        changes["networkAcls"] = {**known["networkAcls"], "defaultAction": options.default_action}
    if options.public_network_access is not None:
        changes["publicNetworkAccess"] = options.public_network_access
    return account_shape(client.patch(path, {"properties": changes}))


@command("storage account network-rule add", *_NETWORK_RULE)
def add_network_rule(lab: LabDirectory, options: Namespace) -> Any:
    client, path, known = _account(lab, options.resource_group, options.account_name)
    rules = _without(known["networkAcls"], [], options.subnet)
    there = {each["value"] for each in rules["ipRules"]}
    if options.subnet is not None:
        rules["virtualNetworkRules"].append({"id": options.subnet, "action": "Allow"})
    rules["ipRules"] += [{"value": each, "action": "Allow"} for each in options.ip_address or [] if each not in there]
    return account_shape(client.patch(path, {"properties": {"networkAcls": rules}}))


@command("storage account network-rule remove", *_NETWORK_RULE)
def remove_network_rule(lab: LabDirectory, options: Namespace) -> Any:
    client, path, known = _account(lab, options.resource_group, options.account_name)
    rules = _without(known["networkAcls"], options.ip_address or [], options.subnet)
    return account_shape(client.patch(path, {"properties": {"networkAcls": rules}}))


def _account(lab: LabDirectory, group: str | None, name: str) -> tuple[ArmClient, str, dict[str, Any]]:
    client = ArmClient(lab)
    path = client.path(group_of_account(client, group, name), ACCOUNT, name)
    return client, path, client.get(path)["properties"]


def _without(rules: dict[str, Any], addresses: list[str], subnet: str | None) -> dict[str, Any]:
    subnets = [each for each in rules["virtualNetworkRules"] if each["id"].casefold() != (subnet or "").casefold()]
    return {
        **rules,
        "virtualNetworkRules": subnets,
        "ipRules": [each for each in rules["ipRules"] if each["value"] not in addresses],
    }
