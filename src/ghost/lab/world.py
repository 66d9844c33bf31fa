"""The simulated world: one Azure subscription, the traffic in it, its faults, and the engineer's own machine.

A `World` is a tree of frozen dataclasses that round-trips through a dict (`World.from_dict(world.to_dict()) == world`),
so that a scenario is a file and a variation of it a pure function. Resources name each other by name, within the one
subscription; a resource lives in its group's location. Nothing here decides anything: `effective.py` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Literal, TypeVar

from ghost.errors import LabError
from ghost.lab.local_machine import LocalMachine
from ghost.lab.tree import from_dict, to_dict
from ghost.net import Network, SecurityRule, parse_ports

AGENT_EXTENSIONS = ("NetworkWatcherAgentLinux", "NetworkWatcherAgentWindows", "AzureNetworkWatcherExtension")


@dataclass(frozen=True)
class Subscription:
    id: str
    name: str
    tenant: str
    user: str


@dataclass(frozen=True)
class ResourceGroup:
    name: str
    location: str


@dataclass(frozen=True)
class Subnet:
    name: str
    prefix: str
    security_group: str | None = None
    route_table: str | None = None


@dataclass(frozen=True)
class Peering:
    name: str
    remote: str
    """The other virtual network; a working peering is stated on both sides."""
    state: Literal["Connected", "Disconnected", "Initiated"] = "Connected"
    allow_access: bool = True
    allow_forwarded: bool = False


@dataclass(frozen=True)
class VirtualNetwork:
    name: str
    resource_group: str
    prefixes: tuple[str, ...]
    subnets: tuple[Subnet, ...]
    peerings: tuple[Peering, ...] = ()


@dataclass(frozen=True)
class SecurityGroup:
    """Custom rules only; `ghost.net` adds the default rules."""

    name: str
    resource_group: str
    rules: tuple[SecurityRule, ...] = ()


@dataclass(frozen=True)
class UserRoute:
    name: str
    prefix: str
    next_hop_type: Literal["VirtualAppliance", "VnetLocal", "Internet", "VirtualNetworkGateway", "None"]
    next_hop_address: str | None = None


@dataclass(frozen=True)
class RouteTable:
    name: str
    resource_group: str
    routes: tuple[UserRoute, ...] = ()


@dataclass(frozen=True)
class NetworkInterface:
    name: str
    resource_group: str
    network: str
    subnet: str
    address: str
    mac: str
    """As Azure shows it: 00-0D-3A-1B-2C-3D."""
    security_group: str | None = None
    ip_forwarding: bool = False


@dataclass(frozen=True)
class Listener:
    """A socket on which a machine accepts connections or datagrams."""

    port: int
    process: str
    protocol: Literal["Tcp", "Udp"] = "Tcp"
    address: str = "0.0.0.0"  # noqa: S104 - what a simulated socket shows


@dataclass(frozen=True)
class Machine:
    """A virtual machine."""

    name: str
    resource_group: str
    interface: str
    size: str = "Standard_D2s_v5"
    os: Literal["Linux", "Windows"] = "Linux"
    power: Literal["running", "stopped", "deallocated"] = "running"
    tags: dict[str, str] = field(default_factory=dict)
    listeners: tuple[Listener, ...] = ()
    extensions: tuple[str, ...] = ()
    """Types of the extensions installed, such as NetworkWatcherAgentLinux."""

    @property
    def has_capture_agent(self) -> bool:
        return any(extension in AGENT_EXTENSIONS for extension in self.extensions)


@dataclass(frozen=True)
class ScaleSet:
    """A uniform scale set. Its machines, and their interfaces, are listed nowhere else; the first is instance 0."""

    name: str
    resource_group: str
    machines: tuple[str, ...]


@dataclass(frozen=True)
class StorageAccount:
    name: str
    resource_group: str
    containers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watcher:
    """A network watcher; captures need one in the machine's location."""

    name: str
    resource_group: str


Resource = (
    Machine | ScaleSet | NetworkInterface | VirtualNetwork | SecurityGroup | RouteTable | StorageAccount | Watcher
)


@dataclass(frozen=True)
class Traffic:
    """What a client does to a server, again and again: connects, asks, is answered, closes."""

    client: str
    server: str
    port: int
    protocol: Literal["Tcp", "Udp"] = "Tcp"
    connections_per_minute: float = 30.0
    request_bytes: int = 400
    response_bytes: int = 2000


@dataclass(frozen=True)
class WireFault:
    """Loss of `loss` (0 to 1) of the packets on the way from one machine to another, in this direction only."""

    source: str
    destination: str
    loss: float


@dataclass(frozen=True)
class World:
    subscription: Subscription
    groups: tuple[ResourceGroup, ...]
    local: LocalMachine
    networks: tuple[VirtualNetwork, ...] = ()
    security_groups: tuple[SecurityGroup, ...] = ()
    route_tables: tuple[RouteTable, ...] = ()
    interfaces: tuple[NetworkInterface, ...] = ()
    machines: tuple[Machine, ...] = ()
    scale_sets: tuple[ScaleSet, ...] = ()
    storage_accounts: tuple[StorageAccount, ...] = ()
    watchers: tuple[Watcher, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    faults: tuple[WireFault, ...] = ()
    forbidden_actions: tuple[str, ...] = ()
    """What the engineer's role does not allow, such as Microsoft.Network/networkWatchers/packetCaptures/*."""
    rtt_ms: float = 1.2
    """Round trip between any two machines of the tenant."""
    seed: int = 1
    """Of all randomness in the world; captures taken at once at both ends agree because of it."""

    def to_dict(self) -> dict[str, Any]:
        return to_dict(self)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> World:
        """Raises `LabError` where a field is unknown, missing or of the wrong kind, or names what is not there."""
        world = from_dict(cls, value, "world")
        check(world)
        return world

    def resources(self) -> tuple[Resource, ...]:
        """What is listed as a resource of its own."""
        return (
            *self.single_machines(),
            *self.scale_sets,
            *self.single_interfaces(),
            *self.networks,
            *self.security_groups,
            *self.route_tables,
            *self.storage_accounts,
            *self.watchers,
        )

    def single_machines(self) -> tuple[Machine, ...]:
        """Those of no scale set."""
        members = {name for item in self.scale_sets for name in item.machines}
        return tuple(vm for vm in self.machines if vm.name not in members)

    def single_interfaces(self) -> tuple[NetworkInterface, ...]:
        """Those of no machine of a scale set."""
        single = self.single_machines()
        of_sets = {vm.interface for vm in self.machines if vm not in single}
        return tuple(nic for nic in self.interfaces if nic.name not in of_sets)

    # Look-ups by name. Each raises `LabError` for a name that is not there; Azure's names ignore case.

    def group(self, name: str) -> ResourceGroup:
        return _named(self.groups, name, "resource group")

    def network(self, name: str) -> VirtualNetwork:
        return _named(self.networks, name, "virtual network")

    def security_group(self, name: str) -> SecurityGroup:
        return _named(self.security_groups, name, "network security group")

    def route_table(self, name: str) -> RouteTable:
        return _named(self.route_tables, name, "route table")

    def interface(self, name: str) -> NetworkInterface:
        return _named(self.interfaces, name, "network interface")

    def machine(self, name: str) -> Machine:
        return _named(self.machines, name, "machine")

    def interface_of(self, machine: str) -> NetworkInterface:
        return self.interface(self.machine(machine).interface)

    def subnet_of(self, interface: NetworkInterface) -> Subnet:
        return _named(self.network(interface.network).subnets, interface.subnet, f"subnet of {interface.network}")

    def address_of(self, machine: str) -> str:
        return self.interface_of(machine).address

    def machine_at(self, address: str) -> Machine | None:
        """The machine whose interface has this private address."""
        return next((m for m in self.machines if self.address_of(m.name) == address), None)

    def location_of(self, resource_group: str) -> str:
        return self.group(resource_group).location

    def loss(self, source: str, destination: str) -> float:
        """The part of the packets lost on the way from machine `source` to machine `destination`."""
        kept = 1.0
        for fault in self.faults:
            if (fault.source, fault.destination) == (source, destination):
                kept *= 1.0 - fault.loss
        return 1.0 - kept

    def resource_id(self, kind: str, resource_group: str, *names: str) -> str:
        """`kind` as Azure types are written, `Microsoft.Network/virtualNetworks/subnets`, with one name a level."""
        provider, *types = kind.split("/")
        path = "/".join(part for pair in zip(types, names, strict=True) for part in pair)
        return f"{self.group_id(resource_group)}/providers/{provider}/{path}"

    def group_id(self, resource_group: str) -> str:
        return f"/subscriptions/{self.subscription.id}/resourceGroups/{self.group(resource_group).name}"


Named = TypeVar(
    "Named",
    ResourceGroup,
    VirtualNetwork,
    Subnet,
    SecurityGroup,
    RouteTable,
    NetworkInterface,
    Machine,
    StorageAccount,
    Watcher,
)


def _named(items: Iterable[Named], name: str, what: str) -> Named:
    known = tuple(items)
    for item in known:
        if item.name.casefold() == name.casefold():
            return item
    raise LabError(f"the world has no {what} {name!r}; it has {', '.join(item.name for item in known) or 'none'}")


def check(world: World) -> None:
    """Raises `LabError` where the world contradicts itself: a name that is not there, an address outside its subnet."""
    for resource in (*world.resources(), *world.machines, *world.interfaces):
        world.group(resource.resource_group)
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
    for machine in world.machines:
        world.interface(machine.interface)
    for name in (name for item in world.scale_sets for name in item.machines):
        world.machine(name)
    for traffic in world.traffic:
        world.machine(traffic.client), world.machine(traffic.server)
    for fault in world.faults:
        world.machine(fault.source), world.machine(fault.destination)
        if not 0.0 <= fault.loss <= 1.0:
            raise LabError(f"loss from {fault.source} to {fault.destination} is {fault.loss}: give 0 to 1")
    _network(world.local.address.partition("/")[0])


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
        world.network(peering.remote)


def _check_rules(group: SecurityGroup) -> None:
    """Two rules of one direction may not share a priority, in Azure neither."""
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


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise LabError(f"{text!r} is no address and no prefix: {error}") from error
