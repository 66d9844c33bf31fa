"""Effective security groups and routes of a running interface, in Azure's format.

`ghost.net.groups_from_effective_nsg` and `routes_from_effective_table` parse them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from ipaddress import IPv4Network, collapse_addresses, ip_network
from typing import Any

from ghost.lab.tenant.gateway_routes import learned_prefixes
from ghost.lab.world import World
from ghost.net import (
    HOST_ADDRESS,
    EffectiveRoutes,
    Interface,
    Network,
    Route,
    RuleSet,
    SecurityRule,
    ServiceTags,
    groups_of,
    key,
    parse_ports,
)

NOT_INTERNET = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    f"{HOST_ADDRESS}/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "224.0.0.0/3",
)


def effective_groups(world: World, network: Network, nic: Interface) -> dict[str, Any]:
    """Return the groups of the interface and of its subnet, as the walk meets them."""
    _, subnet = network.subnet_of(nic)
    places = [(nic.security_group, "networkInterface", nic.id), (subnet.security_group, "subnet", subnet.id)]
    tags = _tags(world, network, nic)
    return {
        "value": [
            {
                "networkSecurityGroup": {"id": group_id},
                "association": {place: {"id": own_id}},
                "effectiveSecurityRules": [
                    _effective_rule(world, tags, rule) for rule in network.one(RuleSet, group_id).rules
                ],
                "tagMap": _tag_map(world, tags, network.one(RuleSet, group_id).rules),
            }
            for group_id, place, own_id in places
            if group_id is not None
        ]
    }


def effective_routes(network: Network, nic: Interface) -> dict[str, Any]:
    return {"value": [_effective_route(route) for route in network.one(EffectiveRoutes, nic.id).routes]}


def _tags(world: World, network: Network, nic: Interface) -> ServiceTags:
    """Return the tags with what gateways taught, which VirtualNetwork holds too."""
    tags = groups_of(network, nic, as_configured=True).tags
    learned = learned_prefixes(world, network, network.subnet_of(nic)[0])
    return replace(tags, virtual_network=tuple(dict.fromkeys((*tags.virtual_network, *learned))))


def _effective_rule(world: World, tags: ServiceTags, rule: SecurityRule) -> dict[str, Any]:
    sources, destinations = (
        tuple(each for prefix in prefixes for each in _members(tags, prefix))
        for prefixes in (rule.source_prefixes, rule.destination_prefixes)
    )
    ports = {"source": list(map(_ports, rule.source_ports)), "destination": list(map(_ports, rule.destination_ports))}
    addresses = {"source": list(map(_prefix, sources)), "destination": list(map(_prefix, destinations))}
    expanded = {"Source": expand(world, tags, sources), "Destination": expand(world, tags, destinations)}
    return {
        "name": f"{'defaultSecurityRules' if rule.is_default else 'securityRules'}/{rule.name}",
        "protocol": "All" if rule.protocol == "*" else rule.protocol,
        **{f"{end}PortRange": values[0] for end, values in ports.items() if len(values) == 1},
        **{f"{end}PortRanges": values for end, values in ports.items()},
        **{f"{end}AddressPrefix": values[0] for end, values in addresses.items() if len(values) == 1},
        **{f"{end}AddressPrefixes": values for end, values in addresses.items()},
        **{f"expanded{end}AddressPrefix": values for end, values in expanded.items() if values},
        "access": rule.access,
        "priority": rule.priority,
        "direction": rule.direction,
    }


def _tag_map(world: World, tags: ServiceTags, rules: tuple[SecurityRule, ...]) -> dict[str, list[str]]:
    """Return the prefixes of each tag that the rules name."""
    named = dict.fromkeys(each for rule in rules for each in (*rule.source_prefixes, *rule.destination_prefixes))
    return {name: prefixes for name in named if (prefixes := expand(world, tags, (name,)))}


def _members(tags: ServiceTags, prefix: str) -> tuple[str, ...]:
    """Return the addresses of an application security group; any other prefix itself."""
    if not prefix.startswith("/"):
        return (prefix,)
    members = (address for group, own in tags.others.items() if key(group) == key(prefix) for address in own)
    return tuple(f"{address}/32" for address in members)


def expand(world: World, tags: ServiceTags, prefixes: tuple[str, ...]) -> list[str]:
    """Return the prefixes of the service tags among `prefixes`."""
    known = {name.casefold(): stated for name, stated in world.service_tags.items()}
    expanded: list[str] = []
    for prefix in map(str.casefold, prefixes):
        match prefix:
            case "virtualnetwork":
                expanded += tags.virtual_network
            case "azureloadbalancer":
                expanded.append(f"{HOST_ADDRESS}/32")
            case "internet":
                expanded += _internet(tags.virtual_network)
            case _:
                expanded += known.get(prefix, ())
    return expanded


@cache
def _internet(virtual_network: tuple[str, ...]) -> tuple[str, ...]:
    """Return all IPv4 prefixes except private and special ones and those of the network itself."""
    holes = [ip_network(prefix) for prefix in (*NOT_INTERNET, *virtual_network)]
    remaining = [IPv4Network("0.0.0.0/0")]
    for hole in collapse_addresses(hole for hole in holes if isinstance(hole, IPv4Network)):
        remaining = [
            piece
            for network in remaining
            for piece in (network.address_exclude(hole) if hole.subnet_of(network) else [network])
        ]
    return tuple(str(network) for network in sorted(remaining))


def _effective_route(route: Route) -> dict[str, Any]:
    return {
        **({"name": route.name} if route.name else {}),
        "disableBgpRoutePropagation": False,
        "source": route.source,
        "state": route.state,
        "hasBgpOverride": False,
        "addressPrefix": [route.prefix],
        "nextHopType": route.next_hop_type,
        "nextHopIpAddress": [route.next_hop_ip] if route.next_hop_ip else [],
        "destinationServiceTags": [],
        "tagMap": {},
    }


def _prefix(prefix: str) -> str:
    return "0.0.0.0/0" if prefix == "*" else prefix


def _ports(text: str) -> str:
    low, high = parse_ports(text)
    return f"{low}-{high}"
