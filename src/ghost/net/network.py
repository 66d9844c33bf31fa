"""A network as data: what Azure was read to hold, each resource with the reference of its read.

What was not read is unknown, not absent: a look-up returns the resource, None where a whole list was read without it,
or raises `Unread`, which says what to read. Ids are compared without case, as Azure does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import ip_address
from typing import Any, Literal, TypeVar

from ghost.net.address_matching import parse_network
from ghost.net.guest.listeners import Listener
from ghost.net.guest.ruleset import Ruleset
from ghost.net.routes import Route
from ghost.net.security import SecurityGroup, SecurityRule

Kind = Literal["interfaces", "virtual_networks", "security_groups", "route_tables", "machines"]
OfInterface = Literal["effective_groups", "effective_routes"]
"""What Azure computes for one interface."""


@dataclass(frozen=True)
class Missing:
    """What must be read to go on: one resource, what Azure computes for an interface, or the list of all interfaces."""

    kind: Kind | OfInterface
    resource: str = ""

    def __str__(self) -> str:
        what = self.kind.replace("_", " ")
        return f"{what}: {name_of(self.resource)}" if self.resource else what


class Unread(Exception):  # noqa: N818 - an answer, not a failure: the walk turns it into an unknown hop
    def __init__(self, missing: Missing | None, reason: str) -> None:
        super().__init__(reason)
        self.missing = missing
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Resource:
    id: str
    """As Azure writes it; `/subscriptions/...`."""
    reference: str = ""
    """Where it was read: opaque, the caller's (an audit id)."""

    @property
    def name(self) -> str:
        return name_of(self.id)


@dataclass(frozen=True, kw_only=True)
class Peering:
    """One side of a peering: what its network lets the remote one do."""

    name: str
    remote: str
    """Id of the remote network."""
    state: str = "Connected"
    """Initiated, Connected or Disconnected."""
    remote_prefixes: tuple[str, ...] = ()
    allow_access: bool = True
    """Whether the tag VirtualNetwork holds the remote network."""
    allow_forwarded: bool = False
    """Whether packets from outside the remote network are let in."""
    allow_gateway_transit: bool = False
    use_remote_gateways: bool = False

    @property
    def is_connected(self) -> bool:
        return self.state.casefold() == "connected"


@dataclass(frozen=True, kw_only=True)
class Subnet(Resource):
    prefixes: tuple[str, ...]
    security_group: str | None = None
    route_table: str | None = None
    nat_gateway: str | None = None
    service_endpoints: tuple[str, ...] = ()
    """`Microsoft.Storage`, ..."""


@dataclass(frozen=True, kw_only=True)
class VirtualNetwork(Resource):
    prefixes: tuple[str, ...]
    subnets: tuple[Subnet, ...] = ()
    peerings: tuple[Peering, ...] = ()
    dns_servers: tuple[str, ...] = ()

    @cached_property
    def subnet_ids(self) -> dict[str, Subnet]:
        return {key(subnet.id): subnet for subnet in self.subnets}

    def holds(self, address: str) -> bool:
        return within(self.prefixes, address)


@dataclass(frozen=True)
class IpConfiguration:
    address: str
    public_address: str | None = None
    """Id of the public address."""
    application_groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Interface(Resource):
    subnet: str
    """Id of the subnet."""
    configurations: tuple[IpConfiguration, ...]
    security_group: str | None = None
    machine: str | None = None
    """Id of the virtual machine; None where it belongs to none (a private endpoint, a platform service)."""
    ip_forwarding: bool = False

    @property
    def address(self) -> str:
        return self.configurations[0].address

    def has(self, address: str) -> bool:
        return any(configuration.address == address for configuration in self.configurations)


@dataclass(frozen=True, kw_only=True)
class RuleSet(Resource):
    """The rules of a network security group, wherever it is associated."""

    rules: tuple[SecurityRule, ...]


@dataclass(frozen=True, kw_only=True)
class RouteTable(Resource):
    routes: tuple[Route, ...]
    propagates_bgp: bool = True
    """Whether routes that gateways learn reach the subnet."""


@dataclass(frozen=True, kw_only=True)
class Machine(Resource):
    power: str | None = None
    """`running`, `deallocated`, ...; None if it was not read."""


@dataclass(frozen=True, kw_only=True)
class Guest(Resource):
    """The inside of a machine; `id` is the machine's. None: not read."""

    packet_filter: Ruleset | None = None
    listeners: tuple[tuple[str, Listener], ...] | None = None
    """Each with its protocol, `tcp` or `udp`."""
    forwards: bool | None = None
    """Whether it routes what is not for it (net.ipv4.ip_forward)."""


Known = TypeVar("Known", bound=Resource)


@dataclass(frozen=True)
class Network:
    """A snapshot. `complete`: the kinds whose whole list was read, so that what is not in it does not exist."""

    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    """By folded id (`key`), like all that follow."""
    virtual_networks: Mapping[str, VirtualNetwork] = field(default_factory=dict)
    security_groups: Mapping[str, RuleSet] = field(default_factory=dict)
    route_tables: Mapping[str, RouteTable] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    guests: Mapping[str, Guest] = field(default_factory=dict)
    """By the folded id of the machine."""
    effective_groups: Mapping[str, EffectiveGroups] = field(default_factory=dict)
    effective_routes: Mapping[str, EffectiveRoutes] = field(default_factory=dict)
    complete: frozenset[Kind] = frozenset()
    failed: Mapping[Missing, str] = field(default_factory=dict)
    """Reads that were tried and told nothing, with the reason: they are not asked for again."""

    @cached_property
    def _by_address(self) -> dict[str, list[Interface]]:
        found: dict[str, list[Interface]] = {}
        for interface in self.interfaces.values():
            for configuration in interface.configurations:
                found.setdefault(configuration.address, []).append(interface)
        return found

    @cached_property
    def derived(self) -> dict[tuple[str, str], Any]:
        """What was derived for interfaces, by kind and id: kept, since a network does not change."""
        return {}

    def with_resources(self, kind: Kind, resources: Iterable[Resource], *, complete: bool = False) -> Network:
        """Return the network with these resources added or replaced. `complete`: they are all there are of the kind."""
        known = {**getattr(self, kind), **{key(resource.id): resource for resource in resources}}
        now_complete = self.complete | {kind} if complete else self.complete
        return replace(self, **{kind: known, "complete": now_complete})  # type: ignore[arg-type]

    def interface_at(self, address: str, networks: Iterable[VirtualNetwork]) -> Interface | None:
        """Return the interface that has `address` in one of `networks`. Raises `Unread`."""
        places = [network.subnet_ids for network in networks]
        for interface in self.interfaces_with(address):
            if any(key(interface.subnet) in ids for ids in places):
                return interface
        if "interfaces" not in self.complete:
            self.need(Missing("interfaces"), f"no interface that was read has {address}")
        return None

    def interfaces_with(self, address: str) -> list[Interface]:
        """Return the interfaces that have `address`, in any network: address spaces may overlap."""
        return self._by_address.get(address, [])

    def subnet_of(self, interface: Interface) -> tuple[VirtualNetwork, Subnet]:
        """Return the interface's network and subnet. Raises `Unread`."""
        home = self.virtual_network(interface.subnet.partition("/subnets/")[0])
        subnet = home.subnet_ids.get(key(interface.subnet))
        if subnet is None:
            raise Unread(
                None, f"{home.name} has no subnet {name_of(interface.subnet)}, where {interface.name} should be"
            )
        return home, subnet

    def virtual_network(self, network_id: str) -> VirtualNetwork:
        return self._one(self.virtual_networks, "virtual_networks", network_id)

    def security_group(self, group_id: str) -> RuleSet:
        return self._one(self.security_groups, "security_groups", group_id)

    def route_table(self, table_id: str) -> RouteTable:
        return self._one(self.route_tables, "route_tables", table_id)

    def machine(self, machine_id: str) -> Machine:
        return self._one(self.machines, "machines", machine_id)

    def need(self, missing: Missing, reason: str) -> None:
        """Raise `Unread`: what to read, or why it could not be read."""
        if missing in self.failed:
            raise Unread(None, f"{reason} ({self.failed[missing]})")
        raise Unread(missing, reason)

    def _one(self, known: Mapping[str, Known], kind: Kind, resource_id: str) -> Known:
        found = known.get(key(resource_id))
        if found is None:
            what = f"{name_of(resource_id)} of the {kind.replace('_', ' ')}"
            if kind not in self.complete:
                self.need(Missing(kind, resource_id), f"{what} was not read")
            raise Unread(None, f"{what} does not exist, or this login may not read it")
        return found


@dataclass(frozen=True)
class EffectiveGroups:
    """The groups of one interface as Azure computed them, with the prefixes of their tags."""

    groups: tuple[SecurityGroup, ...]
    reference: str = ""


@dataclass(frozen=True)
class EffectiveRoutes:
    routes: tuple[Route, ...]
    reference: str = ""


def key(resource_id: str) -> str:
    """Return an id as it is compared: Azure ignores case."""
    return resource_id.casefold().rstrip("/")


def name_of(resource_id: str) -> str:
    return resource_id.rstrip("/").rpartition("/")[2]


def within(prefixes: Iterable[str], address: str) -> bool:
    parsed = ip_address(address)
    return any(network is not None and parsed in network for network in map(parse_network, prefixes))
