"""A whole network from the bodies that Azure Resource Manager has of a tenant's resources: nothing of it is unread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ghost.net.admin_rules import NetworkManager
from ghost.net.az_reads import resources_of
from ghost.net.balancing import LoadBalancer, NatGateway, PublicAddress, PublicPrefix, ScaleSetInterfaces
from ghost.net.firewall import AzureFirewall, FirewallPolicy, IpGroup, RuleCollectionGroup
from ghost.net.gateways import Gateway, GatewayConnections, Site
from ghost.net.names.records import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    ZoneGroups,
    ZoneLinks,
    ZoneRecords,
)
from ghost.net.network import Missing, Network
from ghost.net.resources import (
    Interface,
    Machine,
    Resource,
    RouteTable,
    RuleSet,
    ScaleSetMachines,
    VirtualNetwork,
    key,
    subscription_of,
)
from ghost.net.services import (
    KeyVault,
    KeyVaultName,
    RedisAddressRules,
    RedisCache,
    SqlAddressRules,
    SqlServer,
    SqlSubnetRules,
    StorageAccount,
)

Body = Mapping[str, Any]

LISTED: Final[Mapping[type[Resource], str]] = {
    Interface: "microsoft.network/networkinterfaces",
    VirtualNetwork: "microsoft.network/virtualnetworks",
    RuleSet: "microsoft.network/networksecuritygroups",
    RouteTable: "microsoft.network/routetables",
    Machine: "microsoft.compute/virtualmachines",
    LoadBalancer: "microsoft.network/loadbalancers",
    PublicAddress: "microsoft.network/publicipaddresses",
    PublicPrefix: "microsoft.network/publicipprefixes",
    NatGateway: "microsoft.network/natgateways",
    AzureFirewall: "microsoft.network/azurefirewalls",
    FirewallPolicy: "microsoft.network/firewallpolicies",
    RuleCollectionGroup: "microsoft.network/firewallpolicies/rulecollectiongroups",
    IpGroup: "microsoft.network/ipgroups",
    Gateway: "microsoft.network/virtualnetworkgateways",
    Site: "microsoft.network/localnetworkgateways",
    StorageAccount: "microsoft.storage/storageaccounts",
    KeyVault: "microsoft.keyvault/vaults",
    KeyVaultName: "microsoft.keyvault/vaults",
    SqlServer: "microsoft.sql/servers",
    RedisCache: "microsoft.cache/redis",
    PrivateEndpoint: "microsoft.network/privateendpoints",
    NetworkManager: "microsoft.network/networkmanagers",
}
"""The Azure type of each type of resource that is listed by itself."""

OWNED: Final[Mapping[type[Resource], tuple[str, str]]] = {
    ScaleSetMachines: ("microsoft.compute/virtualmachinescalesets", "virtualmachines"),
    ScaleSetInterfaces: ("microsoft.compute/virtualmachinescalesets", "virtualmachines/networkinterfaces"),
    SqlSubnetRules: ("microsoft.sql/servers", "virtualnetworkrules"),
    SqlAddressRules: ("microsoft.sql/servers", "firewallrules"),
    RedisAddressRules: ("microsoft.cache/redis", "firewallrules"),
    ZoneGroups: ("microsoft.network/privateendpoints", "privatednszonegroups"),
    ZoneLinks: ("microsoft.network/privatednszones", "virtualnetworklinks"),
    ZoneRecords: ("microsoft.network/privatednszones", "a aaaa cname"),
}
"""Of each type that tells the parts of another resource: that one's Azure type, and the types of the parts."""


def network_of(bodies: Iterable[Body], told: Mapping[tuple[type[Resource], str], Any]) -> Network:
    """Return the complete network of a tenant, each body with its `id` and `type`.

    `told`: what Azure computes, by type and id of what it is about (the effective routes of an interface), as its
    answer. Raises `ValueError` for a body that Azure would not have.
    """
    of_type: dict[str, list[Body]] = {}
    for body in bodies:
        of_type.setdefault(str(body["type"]).casefold(), []).append(body)
    network = Network()
    for kind, name in LISTED.items():
        network = network.with_resources(kind, resources_of(Missing(kind), of_type.get(name, []), ""), complete=True)
    for kind, (owner_type, part_types) in OWNED.items():
        parts = [body for part in part_types.split() for body in of_type.get(f"{owner_type}/{part}", [])]
        of_owner = {str(owner["id"]): _below(str(owner["id"]), parts) for owner in of_type.get(owner_type, [])}
        network = _told(network, kind, of_owner)
    network = _told(network, GatewayConnections, _connections(of_type))
    for kind, name in ((PrivateZones, "privatednszones"), (ForwardingRulesets, "dnsforwardingrulesets")):
        network = _told(network, kind, _by_subscription(of_type.get(f"microsoft.network/{name}", []), of_type))
    computed: dict[type[Resource], dict[str, Any]] = {}
    for (kind, of), answer in told.items():
        computed.setdefault(kind, {})[of] = answer
    for kind, answers in computed.items():
        network = _told(network, kind, answers)
    return network


def _told(network: Network, kind: type[Resource], answers: Mapping[str, Any]) -> Network:
    found = [each for of, answer in answers.items() for each in resources_of(Missing(kind, of), answer, "")]
    network = network.with_resources(kind, found, complete=True)
    parts = [part for resource in found for part in resource.parts]
    for of in dict.fromkeys(map(type, parts)):
        network = network.with_resources(of, [part for part in parts if type(part) is of])
    return network


def _below(owner: str, bodies: Iterable[Body]) -> list[Body]:
    return [body for body in bodies if key(str(body["id"])).startswith(f"{key(owner)}/")]


def _connections(of_type: Mapping[str, list[Body]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each gateway's connections, as the query of its read leaves them."""
    rows: dict[str, list[dict[str, Any]]] = {
        str(gateway["id"]): [] for gateway in of_type.get("microsoft.network/virtualnetworkgateways", [])
    }
    for connection in of_type.get("microsoft.network/connections", []):
        properties = connection["properties"]
        own = key(properties["virtualNetworkGateway1"]["id"])
        row = {
            "id": connection["id"],
            "connectionStatus": properties.get("connectionStatus"),
            "enableBgp": properties.get("enableBgp"),
            "site": (properties.get("localNetworkGateway2") or {}).get("id"),
        }
        next((rows[gateway] for gateway in rows if key(gateway) == own), []).append(row)
    return rows


def _by_subscription(bodies: Iterable[Body], of_type: Mapping[str, list[Body]]) -> dict[str, list[Body]]:
    every = (str(body["id"]) for bodies_of in of_type.values() for body in bodies_of)
    found: dict[str, list[Body]] = {f"/subscriptions/{subscription_of(each)}": [] for each in every}
    for body in bodies:
        found[f"/subscriptions/{subscription_of(str(body['id']))}"].append(body)
    return found
