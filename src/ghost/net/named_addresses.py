"""The addresses that rules and routes name: where these cut address space, packets may fare differently."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.net.admin_rules import AdminRules
from ghost.net.firewall import AzureFirewall, IpGroup, RuleCollection, RuleCollectionGroup
from ghost.net.network import Network
from ghost.net.resources import EffectiveGroups, EffectiveRoutes, Resource, RouteTable, RuleSet
from ghost.net.security import SecurityRule
from ghost.net.services import KeyVault, RedisAddressRules, SqlAddressRules, StorageAccount


def addresses_named(network: Network) -> Iterator[str]:
    """Yield prefixes, ranges and tags."""
    for resource in resources_of(network):
        yield from _addresses_named(resource)


def resources_of(network: Network) -> Iterator[Resource]:
    for known in network.resources.values():
        yield from known.values()


def _addresses_named(resource: Resource) -> Iterator[str]:
    for rule in security_rules_of(resource):
        yield from (*rule.source_prefixes, *rule.destination_prefixes)
    for collection in collections_of(resource):
        for firewall_rule in collection.rules:
            yield from (*firewall_rule.sources, *firewall_rule.destinations)
    match resource:
        case RouteTable() | EffectiveRoutes():
            yield from (route.prefix for route in resource.routes)
        case IpGroup():
            yield from resource.addresses
        case StorageAccount() | KeyVault():
            yield from (f"{each.first}-{each.last}" for each in resource.rules.ranges)
        case SqlAddressRules() | RedisAddressRules():
            yield from (f"{each.first}-{each.last}" for each in resource.ranges)


def security_rules_of(resource: Resource) -> Iterator[SecurityRule]:
    match resource:
        case RuleSet():
            yield from resource.rules
        case EffectiveGroups():
            yield from (rule for group in resource.groups for rule in group.rules)
        case AdminRules():
            yield from (rule.matches for rule in resource.rules)


def collections_of(resource: Resource) -> Iterator[RuleCollection]:
    match resource:
        case AzureFirewall() | RuleCollectionGroup():
            yield from resource.collections
