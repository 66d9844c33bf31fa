"""Readers from what `az` prints, or Azure's API answers, to services and their rules.

    az storage account list, az keyvault show, az sql server list, az redis list      the services
    az keyvault list                                                                  names of key vaults alone
    az sql server vnet-rule list, az sql server firewall-rule list,
    az redis firewall-rules list                                                      rules, read for each

Raise `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ghost.net.azure_shapes import Fields, folded, id_of, lifted, list_of, object_of, objects_of, resources_in, text_of
from ghost.net.services.service_resources import (
    AddressRange,
    FirewallRules,
    KeyVault,
    KeyVaultName,
    RedisAddressRules,
    RedisCache,
    SqlAddressRules,
    SqlServer,
    SqlSubnetRules,
    StorageAccount,
    SubnetRule,
)


def storage_accounts(answer: Any, reference: str = "") -> list[StorageAccount]:
    return [
        StorageAccount(
            **_common(fields, reference),
            hosts=_hosts(fields, "primaryendpoints") + _hosts(fields, "secondaryendpoints"),
            location=str(fields.get("primarylocation") or text_of(fields, "location")),
            secondary_location=str(fields.get("secondarylocation") or "") if fields.get("secondaryendpoints") else "",
            minimum_tls=_optional(fields, "minimumtlsversion"),
            rules=_rules(object_of(fields, _rules_name(fields), {})),
            bypass=str(object_of(fields, _rules_name(fields), {}).get("bypass") or ""),
        )
        for fields in resources_in(answer)
    ]


def key_vaults(answer: Any, reference: str = "") -> list[KeyVault]:
    return [
        KeyVault(
            **_common(fields, reference),
            hosts=(_host(text_of(fields, "vaulturi")),),
            location=text_of(fields, "location"),
            rules=_rules(object_of(fields, "networkacls", {})),
        )
        for fields in resources_in(answer)
    ]


def key_vault_names(answer: Any, reference: str = "") -> list[KeyVaultName]:
    return [KeyVaultName(id=text_of(fields, "id"), reference=reference) for fields in resources_in(answer)]


def sql_servers(answer: Any, reference: str = "") -> list[SqlServer]:
    return [
        SqlServer(
            **_common(fields, reference),
            hosts=(text_of(fields, "fullyqualifieddomainname").casefold(),),
            location=text_of(fields, "location"),
            minimum_tls=_optional(fields, "minimaltlsversion"),
        )
        for fields in resources_in(answer)
    ]


def sql_subnet_rules(of: str, answer: Any, reference: str = "") -> SqlSubnetRules:
    rules = tuple(
        SubnetRule(text_of(fields, "virtualnetworksubnetid"), _optional(fields, "state")) for fields in _items(answer)
    )
    return SqlSubnetRules(id=of, reference=reference, rules=rules)


def sql_address_rules(of: str, answer: Any, reference: str = "") -> SqlAddressRules:
    return SqlAddressRules(id=of, reference=reference, ranges=_ranges(answer, "startipaddress", "endipaddress"))


def redis_caches(answer: Any, reference: str = "") -> list[RedisCache]:
    return [
        RedisCache(
            **_common(fields, reference),
            hosts=(text_of(fields, "hostname").casefold(),),
            location=text_of(fields, "location"),
            minimum_tls=_optional(fields, "minimumtlsversion"),
            subnet=_optional(fields, "subnetid"),
            closed_ports=(6379,) if fields.get("enablenonsslport") is False else (),
        )
        for fields in resources_in(answer)
    ]


def redis_address_rules(of: str, answer: Any, reference: str = "") -> RedisAddressRules:
    return RedisAddressRules(id=of, reference=reference, ranges=_ranges(answer, "startip", "endip"))


def _common(fields: Fields, reference: str) -> dict[str, Any]:
    approved = []
    for connection in objects_of(fields, "privateendpointconnections"):
        state = object_of(connection, "privatelinkserviceconnectionstate", {})
        endpoint = id_of(connection, "privateendpoint")
        if endpoint and str(state.get("status")).casefold() == "approved":
            approved.append(endpoint)
    return {
        "id": text_of(fields, "id"),
        "reference": reference,
        "public_access": str(fields.get("publicnetworkaccess") or "Enabled"),
        "private_endpoints": tuple(approved),
    }


def _rules_name(fields: Fields) -> str:
    """Return what the rules of a storage account are called: by `az`, or by the API."""
    return "networkruleset" if fields.get("networkruleset") else "networkacls"


def _rules(fields: Fields) -> FirewallRules:
    return FirewallRules(
        default_allows=str(fields.get("defaultaction") or "Allow").casefold() == "allow",
        subnets=tuple(
            SubnetRule(
                text_of(rule, "virtualnetworkresourceid" if "virtualnetworkresourceid" in rule else "id"),
                _optional(rule, "state"),
            )
            for rule in objects_of(fields, "virtualnetworkrules")
        ),
        ranges=tuple(
            AddressRange.of(text_of(rule, "ipaddressorrange" if "ipaddressorrange" in rule else "value"))
            for rule in objects_of(fields, "iprules")
        ),
    )


def _ranges(answer: Any, first: str, last: str) -> tuple[AddressRange, ...]:
    return tuple(AddressRange.of(f"{text_of(fields, first)}-{text_of(fields, last)}") for fields in _items(answer))


def _items(answer: Any) -> list[Fields]:
    """Return the rules of a list; not a single object, which would be no list."""
    if not isinstance(answer, list) and not (isinstance(answer, dict) and isinstance(answer.get("value"), list)):
        raise ValueError("expected a list of rules")
    return [folded(lifted(item)) for item in list_of(answer)]


def _hosts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(_host(str(url)) for url in object_of(fields, name, {}).values() if isinstance(url, str))


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").casefold()


def _optional(fields: Fields, name: str) -> str | None:
    return str(fields[name]) if fields.get(name) else None
