"""Lines of a described network for services with public endpoints.

storage|vault|sql|redis NAME REGION [access=Disabled] [default=Deny] [subnets=SUBNETS] [state=Failed]
        [addresses=RANGES] [secondary=REGION] [inside=SUBNET: of a cache] [closed=PORT]
region NETWORK REGION               policy SUBNET NAME: of its service endpoints
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ghost.net.network import Network
from ghost.net.resources import VirtualNetwork
from ghost.net.services import (
    AddressRange,
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
from ghost.net.services.service_resources import FirewallRules
from tests.net.small_network import subnet_id

GROUP = "/subscriptions/s/resourceGroups/rg/providers"
SERVICES = {
    "storage": (f"{GROUP}/Microsoft.Storage/storageAccounts/", "blob.core.windows.net"),
    "vault": (f"{GROUP}/Microsoft.KeyVault/vaults/", "vault.azure.net"),
    "sql": (f"{GROUP}/Microsoft.Sql/servers/", "database.windows.net"),
    "redis": (f"{GROUP}/Microsoft.Cache/Redis/", "redis.cache.windows.net"),
}


def service_id(kind: str, name: str) -> str:
    return SERVICES[kind][0] + name


def add_services(network: Network, of: Mapping[str, list[tuple[list[str], dict[str, str]]]]) -> Network:
    places = {names[0]: names[1] for names, _ in of.get("region", ())}
    policies = {subnet_id(names[0]): (names[1],) for names, _ in of.get("policy", ())}
    homes = [
        replace(
            home,
            location=places.get(home.name, ""),
            subnets=tuple(replace(each, endpoint_policies=policies.get(each.id, ())) for each in home.subnets),
        )
        for home in network.all(VirtualNetwork).values()
    ]
    network = network.with_resources(VirtualNetwork, homes)
    made: dict[type[Any], list[Any]] = {}
    for kind in SERVICES:
        for names, settings in of.get(kind, ()):
            for resource in _service(kind, names[0], names[1], settings):
                made.setdefault(type(resource), []).append(resource)
    types = (StorageAccount, KeyVault, KeyVaultName, SqlServer, SqlSubnetRules, SqlAddressRules, RedisCache)
    for each in (*types, RedisAddressRules):
        network = network.with_resources(each, made.get(each, []), complete=True)
    return network


def _service(kind: str, name: str, region: str, settings: dict[str, str]) -> list[Any]:
    places = filter(None, settings.get("subnets", "").split(","))
    subnets = tuple(SubnetRule(subnet_id(place), settings.get("state")) for place in places)
    ranges = tuple(map(AddressRange.of, filter(None, settings.get("addresses", "").split(","))))
    common: dict[str, Any] = {
        "id": service_id(kind, name),
        "reference": f"read-{name}",
        "hosts": (f"{name}.{SERVICES[kind][1]}",),
        "location": region,
        "public_access": settings.get("access", "Enabled"),
    }
    rules = FirewallRules(settings.get("default") != "Deny", subnets, ranges)
    match kind:
        case "storage":
            return [StorageAccount(**common, rules=rules, secondary_location=settings.get("secondary", ""))]
        case "vault":
            return [KeyVault(**common, rules=rules), KeyVaultName(id=common["id"])]
        case "sql":
            of_subnets = SqlSubnetRules(id=common["id"], rules=subnets)
            return [SqlServer(**common), of_subnets, SqlAddressRules(id=common["id"], ranges=ranges)]
    inside = subnet_id(settings["inside"]) if "inside" in settings else None
    closed = tuple(map(int, filter(None, settings.get("closed", "").split(","))))
    cache = RedisCache(**common, subnet=inside, closed_ports=closed)
    return [cache, RedisAddressRules(id=common["id"], ranges=ranges)]
