"""Load balancers, public addresses, NAT gateways and scale sets, as Azure holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ghost.net.resources import Interface, Resource, key


@dataclass(frozen=True)
class FrontEnd:
    id: str
    address: str | None = None
    """Its private address; None for a public front end."""
    subnet: str | None = None
    public_address: str | None = None
    public_prefix: str | None = None
    gateway_balancer: str | None = None
    """A gateway load balancer, through whose appliances packets go first."""

    @property
    def is_public(self) -> bool:
        return self.public_address is not None or self.public_prefix is not None


@dataclass(frozen=True)
class Member:
    """One of a pool: an IP configuration by its id, or an address in a network."""

    configuration: str | None = None
    address: str | None = None
    network: str | None = None
    admin_state: str = "none"
    """`up` and `down` override the probe."""


@dataclass(frozen=True)
class Pool:
    id: str
    members: tuple[Member, ...] = ()

    @property
    def by_address(self) -> bool:
        return any(member.address is not None for member in self.members)


@dataclass(frozen=True)
class Probe:
    id: str
    protocol: str
    """Tcp, Http or Https."""
    port: int
    path: str | None = None
    all_up_if_none: bool = False
    """Whether every member gets packets where the probe of none passes."""


@dataclass(frozen=True)
class BalancingRule:
    name: str
    front_end: str
    protocol: str
    """Tcp, Udp or All (HA ports)."""
    port: int
    """0 with All: every port, kept as it is."""
    backend_port: int
    pools: tuple[str, ...]
    probe: str | None = None
    floating_ip: bool = False
    idle_timeout_minutes: int = 4
    outbound_snat: bool = True

    def takes(self, protocol: str, port: int) -> bool:
        everything = self.protocol.casefold() == "all"
        return (everything or self.protocol.casefold() == protocol.casefold()) and self.port in (port, 0)


@dataclass(frozen=True)
class InboundNatRule:
    """Of one IP configuration; or of a pool, where each port of the range leads to one member that is not known."""

    name: str
    front_end: str
    protocol: str
    ports: tuple[int, int]
    backend_port: int
    configuration: str | None = None
    pool: str | None = None
    floating_ip: bool = False

    def takes(self, protocol: str, port: int) -> bool:
        same = self.protocol.casefold() in ("all", protocol.casefold())
        return same and self.ports[0] <= port <= self.ports[1]


@dataclass(frozen=True)
class OutboundRule:
    name: str
    protocol: str
    front_ends: tuple[str, ...]
    pool: str
    allocated_ports: int = 0
    """SNAT ports of each member; 0: by the size of the pool."""


@dataclass(frozen=True, kw_only=True)
class LoadBalancer(Resource):
    kind = "load balancer"

    sku: str = "Standard"
    tier: str = "Regional"
    front_ends: tuple[FrontEnd, ...] = ()
    pools: tuple[Pool, ...] = ()
    probes: tuple[Probe, ...] = ()
    rules: tuple[BalancingRule, ...] = ()
    nat_rules: tuple[InboundNatRule, ...] = ()
    outbound_rules: tuple[OutboundRule, ...] = ()

    @cached_property
    def front_end_ids(self) -> Mapping[str, FrontEnd]:
        return {key(front_end.id): front_end for front_end in self.front_ends}

    @cached_property
    def pool_ids(self) -> Mapping[str, Pool]:
        return {key(pool.id): pool for pool in self.pools}

    @property
    def is_standard(self) -> bool:
        return self.sku.casefold() != "basic"


@dataclass(frozen=True, kw_only=True)
class PublicAddress(Resource):
    kind = "public address"

    address: str | None = None
    """None while a dynamic one is not allocated."""
    sku: str = "Standard"
    attached_to: str | None = None
    """Id of the IP configuration or front end."""
    nat_gateway: str | None = None

    @property
    def is_standard(self) -> bool:
        return self.sku.casefold() != "basic"


@dataclass(frozen=True, kw_only=True)
class PublicPrefix(Resource):
    kind = "public prefix"

    prefix: str


@dataclass(frozen=True, kw_only=True)
class NatGateway(Resource):
    kind = "NAT gateway"

    public_addresses: tuple[str, ...] = ()
    public_prefixes: tuple[str, ...] = ()
    """Ids, as those of the addresses."""
    idle_timeout_minutes: int = 4
    zones: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScaleSetInterfaces(Resource):
    """The interfaces of a scale set's instances, which no list of interfaces has; `id` is the scale set's."""

    kind = "interfaces of scale set"

    interfaces: tuple[Interface, ...]

    @property
    def parts(self) -> tuple[Resource, ...]:
        return self.interfaces
