"""Effective security groups and routes of a running interface, in Azure's format.

`ghost.net.groups_from_effective_nsg` and `routes_from_effective_table` parse them.
"""

from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses, ip_network
from typing import Any

from ghost.lab import effective_configuration
from ghost.lab.arm import bodies
from ghost.lab.world import NetworkInterface, SecurityGroup, World
from ghost.net import HOST_ADDRESS, Route, SecurityRule, default_rules, parse_ports

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


def effective_groups(world: World, nic: NetworkInterface) -> dict[str, Any]:
    subnet = world.subnet_of(nic)
    found = []
    if nic.security_group is not None:
        association = {"networkInterface": bodies.reference(world, nic)}
        found.append(_effective_group(world, nic, world.security_group(nic.security_group), association))
    if subnet.security_group is not None:
        network = world.network(nic.network)
        place = {"id": bodies.part_id(world, network, "subnets", subnet.name)}
        found.append(_effective_group(world, nic, world.security_group(subnet.security_group), {"subnet": place}))
    return {"value": found}


def effective_routes(world: World, nic: NetworkInterface) -> dict[str, Any]:
    return {"value": [_effective_route(route) for route in effective_configuration.effective_routes(world, nic)]}


def _effective_group(
    world: World, nic: NetworkInterface, group: SecurityGroup, association: dict[str, Any]
) -> dict[str, Any]:
    return {
        "association": association,
        "effectiveSecurityRules": [_effective_rule(world, nic, rule) for rule in (*group.rules, *default_rules())],
        "networkSecurityGroup": bodies.reference(world, group),
        "tagMap": {},
    }


def _effective_rule(world: World, nic: NetworkInterface, rule: SecurityRule) -> dict[str, Any]:
    sources, destinations = rule.source_prefixes, rule.destination_prefixes
    return {
        "access": rule.access,
        "direction": rule.direction,
        "expandedDestinationAddressPrefix": expand(world, nic, destinations),
        "expandedSourceAddressPrefix": expand(world, nic, sources),
        "name": f"{'defaultSecurityRules' if rule.is_default else 'securityRules'}/{rule.name}",
        "priority": rule.priority,
        "protocol": "All" if rule.protocol == "*" else rule.protocol,
        **_single_and_list("sourceAddressPrefix", "sourceAddressPrefixes", list(map(_prefix, sources))),
        **_single_and_list("sourcePortRange", "sourcePortRanges", list(map(_ports, rule.source_ports))),
        **_single_and_list("destinationAddressPrefix", "destinationAddressPrefixes", list(map(_prefix, destinations))),
        **_single_and_list("destinationPortRange", "destinationPortRanges", list(map(_ports, rule.destination_ports))),
    }


def expand(world: World, nic: NetworkInterface, prefixes: tuple[str, ...]) -> list[str]:
    """Return the prefixes of the service tags among `prefixes`, for this interface."""
    virtual_network = effective_configuration.service_tags(world, nic).virtual_network
    expanded: list[str] = []
    for prefix in prefixes:
        match prefix.casefold():
            case "virtualnetwork":
                expanded += virtual_network
            case "azureloadbalancer":
                expanded.append(f"{HOST_ADDRESS}/32")
            case "internet":
                expanded += _internet(virtual_network)
    return expanded


def _internet(virtual_network: tuple[str, ...]) -> list[str]:
    """Return all IPv4 prefixes except private and special ones and those of the network itself."""
    holes = [ip_network(prefix) for prefix in (*NOT_INTERNET, *virtual_network)]
    remaining = [IPv4Network("0.0.0.0/0")]
    for hole in collapse_addresses(hole for hole in holes if isinstance(hole, IPv4Network)):
        remaining = [
            piece
            for network in remaining
            for piece in (network.address_exclude(hole) if hole.subnet_of(network) else [network])
        ]
    return [str(network) for network in sorted(remaining)]


def _effective_route(route: Route) -> dict[str, Any]:
    return {
        "addressPrefix": [route.prefix],
        "disableBgpRoutePropagation": False,
        **({"name": route.name} if route.name else {}),
        "nextHopIpAddress": [route.next_hop_ip] if route.next_hop_ip else [],
        "nextHopType": route.next_hop_type,
        "source": route.source,
        "state": route.state,
    }


def _single_and_list(singular: str, plural: str, values: list[str]) -> dict[str, Any]:
    return {**({singular: values[0]} if len(values) == 1 else {}), plural: values}


def _prefix(prefix: str) -> str:
    return "0.0.0.0/0" if prefix == "*" else prefix


def _ports(text: str) -> str:
    low, high = parse_ports(text)
    return f"{low}-{high}"
