"""Validation of a world: names exist, addresses are inside their subnets, rule priorities are unique."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from math import isfinite
from typing import Any

from ghost.errors import LabError
from ghost.lab.wire.conditions import ANYWHERE
from ghost.lab.world import SecurityGroup, VirtualNetwork, World, named
from ghost.net import Prefix, is_address, parse_ports
from ghost.policy import from_dict, to_dict

LARGEST_AMOUNT = 10_000_000
MOST = {
    "loss": 1,
    "reordered": 1,
    "duplicated": 1,
    "share": 1,
    "connections_per_minute": 6_000,
    "port": 65_535,
    "ttl": 255,
    "device_ttl": 255,
    "hops": 64,
}
GUEST_TEXTS = {"iptables", "nft", "routes"}
"""Fields of a machine that hold what its tools print, on several lines."""


def world_from_dict(value: Mapping[str, Any]) -> World:
    """Return the validated world. Raises `LabError` for a wrong field, type or name."""
    world = from_dict(World, value, "world", LabError)
    check_world(world)
    return world


def check_world(world: World) -> None:
    """Raise `LabError` if the world contradicts itself: an unknown name, an address outside its subnet."""
    _check_values(to_dict(world), "world")
    placed = (world.machines, world.interfaces, world.networks, world.security_groups, world.route_tables)
    for name in (item.resource_group for items in placed for item in items):
        world.group(name)
    for kind in (
        world.scale_sets,
        world.groups,
        world.machines,
        world.interfaces,
        world.networks,
        world.security_groups,
    ):
        _check_unique([item.name for item in kind])
    for network in world.networks:
        _check_network(world, network)
    for group in world.security_groups:
        _check_rules(group)
    for interface in world.interfaces:
        if interface.security_group is not None:
            world.security_group(interface.security_group)
        if not _inside(interface.address, world.subnet_of(interface).prefix):
            raise LabError(f"interface {interface.name} {interface.address} lies outside its subnet {interface.subnet}")
    holders: dict[tuple[str, str], str] = {}
    for interface in world.interfaces:
        other = holders.setdefault((interface.network, interface.address), interface.name)
        if other != interface.name:
            raise LabError(f"interfaces {other} and {interface.name} have one address: {interface.address}")
    for machine in world.machines:
        world.interface(machine.interface)
    for name in (name for item in world.scale_sets for name in item.machines):
        world.machine(name)
    _check_services(world)
    _check_amounts(world)
    outside = {host.name for host in world.outside}
    for host in _hosts_named(world):
        if host not in outside and host != ANYWHERE and not is_address(host):
            world.machine(host)
    _network(world.local.address.partition("/")[0])


def _hosts_named(world: World) -> Iterator[str]:
    """Yield the machines and addresses that traffic and conditions are about."""
    yield from (host for traffic in world.traffic for host in (traffic.client, traffic.server))
    yield from (host for fault in world.faults for host in (fault.source, fault.destination))
    yield from (service.machine for service in world.services)
    yield from (clock.machine for clock in world.clocks)


def _check_amounts(world: World) -> None:
    """Refuse times, shares and sizes below zero, or beyond what a capture of a minute can show."""
    stated = [("world.rtt_ms", "rtt_ms", world.rtt_ms)]
    for kind in ("traffic", "faults", "services", "outside"):
        for number, item in enumerate(getattr(world, kind)):
            stated += [(f"world.{kind}[{number}].{name}", name, value) for name, value in vars(item).items()]
    for place, name, value in stated:
        most = MOST.get(name, LARGEST_AMOUNT)
        if isinstance(value, int | float) and not 0 <= value <= most:
            raise LabError(f"{place}: {value} is not 0 to {most:,}")


def _check_values(value: Any, place: str) -> None:
    """Refuse what JSON has not, and control characters: a line feed in a name would add a setting to az's files."""
    if not isinstance(value, str | int | float | dict | list | None) or (
        isinstance(value, float) and not isfinite(value)
    ):
        raise LabError(f"{place}: {value} is not a JSON value: give a number, or write it as text")
    if isinstance(value, str) and not value.isprintable():
        raise LabError(f"{place} {value!r} holds invisible characters: remove them")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_values(name, place)
            lines = item.splitlines() if name in GUEST_TEXTS and isinstance(item, str) else item
            _check_values(lines, f"{place}.{name}")
    if isinstance(value, list):
        for item in value:
            _check_values(item, place)


def _check_services(world: World) -> None:
    for name in (name for item in world.load_balancers for name in item.members):
        world.interface(name)
    for balancer in world.load_balancers:
        subnet = named(
            world.virtual_network(balancer.network).subnets, balancer.subnet, f"subnet of {balancer.network}"
        )
        if not _inside(balancer.address, subnet.prefix):
            raise LabError(f"load balancer {balancer.name} {balancer.address} lies outside its subnet {subnet.name}")
    for address in world.public_addresses:
        _network(address.address)
        if address.interface is not None:
            world.interface(address.interface)
    for endpoint in world.private_endpoints:
        world.interface(endpoint.interface)
        world.storage_account(endpoint.storage_account)
    for name in (name for zone in world.private_zones for name in zone.networks):
        world.virtual_network(name)


def _check_network(world: World, network: VirtualNetwork) -> None:
    _check_unique([subnet.name for subnet in network.subnets])
    for subnet in network.subnets:
        if subnet.security_group is not None:
            world.security_group(subnet.security_group)
        if subnet.route_table is not None:
            for route in world.route_table(subnet.route_table).routes:
                _network(route.prefix)
        if not any(_inside(subnet.prefix, prefix) for prefix in network.prefixes):
            raise LabError(f"subnet {subnet.name} {subnet.prefix} lies outside its network {network.name}")
    for peering in network.peerings:
        world.virtual_network(peering.remote)


def _check_rules(group: SecurityGroup) -> None:
    """Require unique priorities per direction, as in Azure."""
    _check_unique([f"{rule.direction} priority {rule.priority} in {group.name}" for rule in group.rules])
    for rule in group.rules:
        if not 100 <= rule.priority <= 4096:
            raise LabError(f"rule {rule.name} of {group.name} has priority {rule.priority}: give 100 to 4096")
        for text in (*rule.source_ports, *rule.destination_ports):
            try:
                parse_ports(text)
            except ValueError as error:
                raise LabError(f"rule {rule.name} of {group.name}: {error}") from error


def _check_unique(names: list[str]) -> None:
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise LabError(f"the world has {name!r} twice: resources name each other by name alone")


def _inside(inner: str, outer: str) -> bool:
    within, around = _network(inner), _network(outer)
    return within.version == around.version and within.subnet_of(around)  # type: ignore[arg-type]


def _network(text: str) -> Prefix:
    try:
        return ip_network(text)
    except ValueError as error:
        raise LabError(f"{text!r} is neither an address nor a prefix: {error}") from error
