"""What Azure holds, as types: each resource with the reference of its read.

Ids are compared without case, as Azure does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from itertools import pairwise
from typing import ClassVar

from ghost.net.address_matching import parse_network
from ghost.net.guest.listeners import Listener
from ghost.net.guest.routes import DEFAULT_RULES, GuestRoute, RoutingRule
from ghost.net.guest.ruleset import Ruleset
from ghost.net.routes import Route
from ghost.net.security import SecurityGroup, SecurityRule


@dataclass(frozen=True, kw_only=True)
class Resource:
    kind: ClassVar[str]
    """What a person calls one."""

    id: str
    """As Azure writes it; `/subscriptions/...`."""
    reference: str = ""
    """Where it was read: opaque, the caller's (an audit id)."""

    @property
    def name(self) -> str:
        return name_of(self.id)

    @property
    def parts(self) -> tuple[Resource, ...]:
        """Resources that were read along with it."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Peering:
    """One side of a peering: what its network lets the remote one do."""

    name: str
    remote: str
    """Id of the remote network."""
    state: str = "Connected"
    """Initiated, Connected or Disconnected."""
    remote_prefixes: tuple[str, ...] = ()
    """As it was when the peering was last synced."""
    current_prefixes: tuple[str, ...] = ()
    """As the remote network has it now; empty where Azure did not tell."""
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
    kind = "subnet"

    prefixes: tuple[str, ...]
    security_group: str | None = None
    route_table: str | None = None
    nat_gateway: str | None = None
    service_endpoints: tuple[str, ...] = ()
    """`Microsoft.Storage`, ..."""
    occupants: tuple[str, ...] = ()
    """Ids of the ip configurations in it: of interfaces, front ends, gateways, firewalls."""
    is_shared: bool = False
    """Whether a service of Azure has addresses in it that `occupants` does not tell."""
    endpoint_policies: tuple[str, ...] = ()
    """Ids of the policies that say to which storage accounts its service endpoints lead."""
    private_endpoint_policies: str = "Disabled"
    """What applies to private endpoints: Disabled, NetworkSecurityGroupEnabled, RouteTableEnabled or Enabled."""
    default_outbound: bool = True
    """False: a private subnet, without default outbound access."""

    @property
    def is_for_gateways(self) -> bool:
        return self.name.casefold() == "gatewaysubnet"

    @property
    def groups_reach_endpoints(self) -> bool:
        return self.private_endpoint_policies.casefold() in ("enabled", "networksecuritygroupenabled")

    @property
    def routes_reach_endpoints(self) -> bool:
        return self.private_endpoint_policies.casefold() in ("enabled", "routetableenabled")

    def holds(self, address: str) -> bool:
        return within(self.prefixes, address)


@dataclass(frozen=True, kw_only=True)
class VirtualNetwork(Resource):
    kind = "virtual network"

    prefixes: tuple[str, ...]
    subnets: tuple[Subnet, ...] = ()
    peerings: tuple[Peering, ...] = ()
    dns_servers: tuple[str, ...] = ()
    location: str = ""
    """The region, as Azure writes it; empty if it was not told."""
    nat_gateway: str | None = None
    """Of every subnet that names none."""

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
    names: tuple[str, ...] = ()
    """Of a private endpoint: the names that should lead to it."""
    name: str = ""
    pools: tuple[str, ...] = ()
    """Ids of the pools of load balancers that it is in."""
    nat_rules: tuple[str, ...] = ()
    """Ids of the inbound NAT rules that lead to it."""


@dataclass(frozen=True, kw_only=True)
class Interface(Resource):
    kind = "interface"

    subnet: str
    """Id of the subnet."""
    configurations: tuple[IpConfiguration, ...]
    security_group: str | None = None
    machine: str | None = None
    """Id of the virtual machine; None where it belongs to none (a private endpoint, a platform service)."""
    ip_forwarding: bool = False
    dns_servers: tuple[str, ...] = ()
    """In place of the network's; empty: the network's."""

    @property
    def address(self) -> str:
        return self.configurations[0].address

    @property
    def is_read(self) -> bool:
        """Whether Azure tells its routes and groups; not where a firewall or gateway stands in its subnet."""
        return "/networkinterfaces/" in key(self.id)

    def has(self, address: str) -> bool:
        return any(configuration.address == address for configuration in self.configurations)


@dataclass(frozen=True, kw_only=True)
class SubscriptionInterfaces(Resource):
    """All interfaces of another subscription than the login's own; `id` is the subscription's."""

    kind = "interfaces of the subscription"

    interfaces: tuple[Interface, ...]

    @property
    def parts(self) -> tuple[Resource, ...]:
        return self.interfaces


@dataclass(frozen=True, kw_only=True)
class RuleSet(Resource):
    """The rules of a network security group, wherever it is associated."""

    kind = "security group"

    rules: tuple[SecurityRule, ...]


@dataclass(frozen=True, kw_only=True)
class RouteTable(Resource):
    kind = "route table"

    routes: tuple[Route, ...]
    propagates_bgp: bool = True
    """Whether routes that gateways learn reach the subnet."""


@dataclass(frozen=True, kw_only=True)
class Machine(Resource):
    kind = "machine"

    power: str | None = None
    """`running`, `deallocated`, ...; None if it was not read."""
    os: str = ""
    """`Linux` or `Windows`; empty if it was not told."""
    scale_set: str | None = None
    """Id of the flexible scale set that it is of."""


@dataclass(frozen=True, kw_only=True)
class ScaleSetMachines(Resource):
    """The instances of a scale set; `id` is the scale set's."""

    kind = "instances of scale set"

    machines: tuple[Machine, ...]

    @property
    def parts(self) -> tuple[Resource, ...]:
        return self.machines


@dataclass(frozen=True, kw_only=True)
class Guest(Resource):
    """The inside of a machine; `id` is the machine's. None: not read."""

    kind = "guest"

    packet_filter: Ruleset | None = None
    listeners: tuple[tuple[str, Listener], ...] | None = None
    """Each with its protocol, `tcp` or `udp`."""
    routes: tuple[GuestRoute, ...] | None = None
    routing_rules: tuple[RoutingRule, ...] = DEFAULT_RULES
    forwards: bool | None = None
    """Whether it routes what is not for it (net.ipv4.ip_forward)."""


@dataclass(frozen=True, kw_only=True)
class EffectiveGroups(Resource):
    """The groups of one interface as Azure computed them, with the prefixes of their tags; `id` is the interface's."""

    kind = "effective groups"

    groups: tuple[SecurityGroup, ...]


@dataclass(frozen=True, kw_only=True)
class EffectiveRoutes(Resource):
    """The routes of one interface as Azure computed them; `id` is the interface's."""

    kind = "effective routes"

    routes: tuple[Route, ...]


def key(resource_id: str) -> str:
    """Return an id as it is compared: Azure ignores case."""
    return resource_id.casefold().rstrip("/")


def name_of(resource_id: str) -> str:
    """Return the name in an id; of an instance of a scale set, which has but a number, `SET_NUMBER`."""
    owner, _, name = resource_id.rstrip("/").rpartition("/")
    return f"{owner.split('/')[-2]}_{name}" if name.isdecimal() and owner.count("/") > 1 else name


def subscription_of(resource_id: str) -> str:
    return segment_after(resource_id, "subscriptions")


def segment_after(resource_id: str, name: str) -> str:
    """Return the segment of an id that follows `name`, in any case; empty without one."""
    parts = resource_id.split("/")
    return next((after for before, after in pairwise(parts) if before.casefold() == name), "")


def owner_in(part_id: str, kind: str) -> str | None:
    """Return the id of the resource of a kind (`azureFirewalls`) that a part belongs to; None if it is of another."""
    parts = part_id.split("/")
    kinds = [part.casefold() for part in parts]
    return "/".join(parts[: kinds.index(kind.casefold()) + 2]) if kind.casefold() in kinds else None


def prefixes_around(home: VirtualNetwork) -> list[str]:
    """Return the address space of a network and of its peers."""
    return [*home.prefixes, *(prefix for peering in home.peerings for prefix in peering.remote_prefixes)]


def within(prefixes: Iterable[str], address: str) -> bool:
    parsed = ip_address(address)
    return any(network is not None and parsed in network for network in map(parse_network, prefixes))
