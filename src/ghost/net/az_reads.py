"""How each type of resource is read with `az`: the command for one, that for all there are, and the reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ghost.net import azure_resources
from ghost.net.admin_rules import AdminRules, NetworkManager, network_managers, read_admin_rules
from ghost.net.azure_json import groups_from_effective_nsg, routes_from_effective_table
from ghost.net.balancing import (
    LoadBalancer,
    NatGateway,
    PublicAddress,
    PublicPrefix,
    ScaleSetInterfaces,
    azure_balancing,
)
from ghost.net.firewall import (
    AzureFirewall,
    FirewallPolicy,
    IpGroup,
    RuleCollectionGroup,
    azure_firewalls,
    firewall_policies,
    ip_groups,
    rule_collection_groups,
)
from ghost.net.gateways import (
    CONNECTION_QUERY,
    Gateway,
    GatewayConnections,
    Site,
    gateway_connections,
    read_gateways,
    sites,
)
from ghost.net.listed_resources import LISTED_FIELDS, ListedResource, read_listing
from ghost.net.names import azure_names
from ghost.net.names.records import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    ZoneGroups,
    ZoneLinks,
    ZoneRecords,
)
from ghost.net.network import Missing
from ghost.net.resources import (
    EffectiveGroups,
    EffectiveRoutes,
    Interface,
    Machine,
    Resource,
    RouteTable,
    RuleSet,
    ScaleSetMachines,
    SubscriptionInterfaces,
    VirtualNetwork,
    key,
    name_of,
    segment_after,
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
    azure_services,
)

Reader = Callable[[Any, str], list[Any]]
"""From an answer and its reference to resources. Raises `ValueError`."""


@dataclass(frozen=True)
class AzRead:
    one: str
    """The command that reads one, without its name; empty if only all are read."""
    read: Reader | None = None
    every: str = ""
    """The command that reads all of a subscription; empty if there is none."""
    name: str = "-n"
    """The option that takes the name, with `-g` before it; `--ids` takes the whole id and `--subscription` that of the
    subscription, without `-g`."""
    query: str = ""
    """What `--query` leaves of the answer, where the whole of it would show a secret."""
    read_of: Callable[[str, Any, str], Resource] | None = None
    """In place of `read`, where an answer does not name the resource that it is about: takes its id first."""


AZ_READS: Final[Mapping[type[Resource], AzRead]] = {
    ListedResource: AzRead("", read_listing, "resource list", query=LISTED_FIELDS),
    Interface: AzRead("network nic show", azure_resources.interfaces, "network nic list"),
    SubscriptionInterfaces: AzRead(
        "network nic list",
        name="--subscription",
        read_of=lambda of, answer, reference: SubscriptionInterfaces(
            id=of, interfaces=tuple(azure_resources.interfaces(answer, reference)), reference=reference
        ),
    ),
    VirtualNetwork: AzRead("network vnet show", azure_resources.virtual_networks, "network vnet list"),
    NetworkManager: AzRead(
        "resource show", network_managers, "resource list --resource-type Microsoft.Network/networkManagers", "--ids"
    ),
    AdminRules: AzRead(
        "network manager list-effective-security-admin-rule", name="--virtual-network-name", read_of=read_admin_rules
    ),
    Gateway: AzRead("network vnet-gateway show", read_gateways),
    GatewayConnections: AzRead(
        "network vpn-connection list", name="--vnet-gateway", query=CONNECTION_QUERY, read_of=gateway_connections
    ),
    Site: AzRead("network local-gateway show", sites),
    AzureFirewall: AzRead("resource show", azure_firewalls, name="--ids"),
    FirewallPolicy: AzRead("resource show", firewall_policies, name="--ids"),
    RuleCollectionGroup: AzRead("resource show", rule_collection_groups, name="--ids"),
    IpGroup: AzRead("resource show", ip_groups, name="--ids"),
    RuleSet: AzRead("network nsg show", azure_resources.security_groups),
    RouteTable: AzRead("network route-table show", azure_resources.route_tables),
    Machine: AzRead("vm get-instance-view", azure_resources.machines),
    EffectiveGroups: AzRead(
        "network nic list-effective-nsg",
        read_of=lambda of, answer, reference: EffectiveGroups(
            id=of, groups=groups_from_effective_nsg(answer), reference=reference
        ),
    ),
    EffectiveRoutes: AzRead(
        "network nic show-effective-route-table",
        read_of=lambda of, answer, reference: EffectiveRoutes(
            id=of, routes=routes_from_effective_table(answer), reference=reference
        ),
    ),
    LoadBalancer: AzRead("network lb show", azure_balancing.load_balancers, "network lb list"),
    PublicAddress: AzRead("network public-ip show", azure_balancing.public_addresses, "network public-ip list"),
    PublicPrefix: AzRead("network public-ip prefix show", azure_balancing.public_prefixes),
    NatGateway: AzRead("network nat gateway show", azure_balancing.nat_gateways),
    ScaleSetInterfaces: AzRead("vmss nic list", name="--vmss-name", read_of=azure_balancing.scale_set_interfaces),
    ScaleSetMachines: AzRead("vmss list-instances --expand instanceView", read_of=azure_balancing.scale_set_machines),
    StorageAccount: AzRead("storage account show", azure_services.storage_accounts, "storage account list"),
    KeyVault: AzRead("keyvault show", azure_services.key_vaults),
    KeyVaultName: AzRead("", azure_services.key_vault_names, "keyvault list"),
    SqlServer: AzRead("sql server show", azure_services.sql_servers, "sql server list"),
    SqlSubnetRules: AzRead("sql server vnet-rule list", name="-s", read_of=azure_services.sql_subnet_rules),
    SqlAddressRules: AzRead("sql server firewall-rule list", name="-s", read_of=azure_services.sql_address_rules),
    RedisCache: AzRead("redis show", azure_services.redis_caches, "redis list"),
    RedisAddressRules: AzRead("redis firewall-rules list", read_of=azure_services.redis_address_rules),
    PrivateEndpoint: AzRead(
        "network private-endpoint show", azure_names.private_endpoints, "network private-endpoint list"
    ),
    ZoneGroups: AzRead(
        "network private-endpoint dns-zone-group list", name="--endpoint-name", read_of=azure_names.zone_groups
    ),
    PrivateZones: AzRead("network private-dns zone list", name="--subscription", read_of=azure_names.private_zones),
    ZoneLinks: AzRead("network private-dns link vnet list", name="-z", read_of=azure_names.zone_links),
    ZoneRecords: AzRead("network private-dns record-set list", name="-z", read_of=azure_names.zone_records),
    ForwardingRulesets: AzRead(
        "resource list --resource-type Microsoft.Network/dnsForwardingRulesets",
        name="--subscription",
        read_of=azure_names.forwarding_rulesets,
    ),
}


READ_TOGETHER: Final = frozenset({RuleSet, RouteTable, Machine, FirewallPolicy, RuleCollectionGroup, IpGroup})
"""Several of these are one command, whose answers tell which is which; az must not ask for them at once
(AZURE_CORE_DISABLE_CONCURRENT_IDS, which the shell sets): its generated commands mix up their answers."""
MOST_TOGETHER: Final = 20


def argv_of(missing: Missing, home: str = "") -> tuple[str, ...]:
    """Return the command that reads what is missing. `home`: the login's own subscription, which needs no option."""
    how = AZ_READS[missing.of]
    query = ("--query", how.query) if how.query else ()
    if not missing.resource:
        return ("az", *how.every.split(), *query, "-o", "json")
    subscription = subscription_of(missing.resource)
    if how.name == "--ids" or missing.others:
        where: tuple[str, ...] = ("--ids", missing.resource, *missing.others)
    elif how.name == "--subscription":
        where = ("--subscription", subscription)
    else:
        where = (
            "-g",
            segment_after(missing.resource, "resourcegroups") or "unknown",
            how.name,
            name_of(missing.resource),
        )
        if home and subscription and key(subscription) != key(home):
            where = (*where, "--subscription", subscription)
    return ("az", *how.one.split(), *where, *query, "-o", "json")


def is_readable(missing: Missing) -> bool:
    """Return whether a command reads it: none tells what Azure computed for an instance of a scale set, and no resource
    of Azure has a name that `az` would take for an option, or that no terminal shows.
    """
    if "/-" in f"/{missing.resource}" or not missing.resource.isprintable():
        return False
    computed = missing.of in (EffectiveGroups, EffectiveRoutes)
    return not computed or "/virtualmachinescalesets/" not in missing.resource.casefold()


def resources_of(missing: Missing, answer: Any, reference: str) -> list[Resource]:
    """Return what an answer tells. Raises `ValueError` if it does not have the shape of what was asked for."""
    how = AZ_READS[missing.of]
    if how.read_of is not None:
        return [how.read_of(missing.resource, answer, reference)]
    return how.read(answer, reference) if how.read is not None else []
