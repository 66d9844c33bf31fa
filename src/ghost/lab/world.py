"""The simulated world: one Azure subscription, its traffic, its faults, and the engineer's own machine.

A `World` is a tree of frozen dataclasses that round-trips through a dict (`world_from_dict(world.to_dict()) == world`),
so a scenario is a file and a variation a pure function. Resources refer to each other by name within the subscription;
a resource is in its group's location. `effective_configuration.py` evaluates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ghost.errors import LabError
from ghost.lab.edits import Edit
from ghost.lab.local_machine import LocalMachine
from ghost.lab.network_services import LoadBalancer, PrivateEndpoint, PrivateZone, PublicAddress
from ghost.lab.tenant_facts import Activity, AzureSays, Fleet
from ghost.lab.wire.conditions import ClockFault, Conditions, OutsideHost, ServiceFault, Traffic, WireFault
from ghost.net import SecurityRule
from ghost.policy import to_dict

if TYPE_CHECKING:
    from ghost.lab.tenant import Documents
    from ghost.net import Network

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
    service_endpoints: tuple[str, ...] = ()
    """`Microsoft.Storage`, ..."""


@dataclass(frozen=True)
class Peering:
    name: str
    remote: str
    """The other virtual network; a working peering is stated on both sides."""
    state: Literal["Connected", "Disconnected", "Initiated"] = "Connected"
    allow_access: bool = True
    allow_forwarded: bool = False
    allow_gateway_transit: bool = False
    use_remote_gateways: bool = False


@dataclass(frozen=True)
class VirtualNetwork:
    name: str
    resource_group: str
    prefixes: tuple[str, ...]
    subnets: tuple[Subnet, ...]
    peerings: tuple[Peering, ...] = ()
    dns_servers: tuple[str, ...] = ()


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
    dns_servers: tuple[str, ...] = ()
    """In place of the network's."""
    application_groups: tuple[str, ...] = ()
    """Names of application security groups of its resource group."""


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
    iptables: str = ""
    """What `iptables-save` prints; empty: nothing is filtered."""
    nft: str = ""
    """What `nft -j list ruleset` prints."""
    routes: str = ""
    """What `ip -j route show table all` prints; empty: the routes that DHCP gives."""
    forwards: bool = False
    """Whether it routes what is not for it (net.ipv4.ip_forward)."""
    extensions: tuple[str, ...] = ()
    """Types of the extensions installed, such as NetworkWatcherAgentLinux."""

    @property
    def has_capture_agent(self) -> bool:
        return any(extension in AGENT_EXTENSIONS for extension in self.extensions)


@dataclass(frozen=True)
class ScaleSet:
    """A uniform scale set. Its machines and interfaces are listed only here; the first is instance 0."""

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
    load_balancers: tuple[LoadBalancer, ...] = ()
    public_addresses: tuple[PublicAddress, ...] = ()
    private_endpoints: tuple[PrivateEndpoint, ...] = ()
    private_zones: tuple[PrivateZone, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    faults: tuple[WireFault, ...] = ()
    """Of the wire."""
    services: tuple[ServiceFault, ...] = ()
    outside: tuple[OutsideHost, ...] = ()
    clocks: tuple[ClockFault, ...] = ()
    edits: tuple[Edit, ...] = ()
    """Changes to its resources in Azure's own words, in their order: those that no table above tells, too."""
    learned_prefixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What a gateway, by name, learned by BGP."""
    service_tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Prefixes of the tags that rules name beyond VirtualNetwork, Internet and AzureLoadBalancer."""
    admin_rules: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    """Security admin rules in effect on a network, by its name, in Azure's own words."""
    activity: tuple[Activity, ...] = ()
    """What was done in the tenant before the lab was started."""
    azure_says: tuple[AzureSays, ...] = ()
    """Flows for which IP flow verify answers something else than the rules."""
    fleet: tuple[Fleet, ...] = ()
    """Machines in number, which a lab adds when it runs."""
    forbidden_actions: tuple[str, ...] = ()
    """What the engineer's role does not allow, such as Microsoft.Network/networkWatchers/packetCaptures/*."""
    rtt_ms: float = 1.2
    """Round trip between any two machines of the tenant."""
    seed: int = 1
    """Seed of all randomness, so that simultaneous captures at both ends agree."""

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = to_dict(self)
        return content

    @cached_property
    def documents(self) -> Documents:
        """The bodies of its resources, as Azure Resource Manager has them. Raises `LabError`."""
        from ghost.lab.tenant import documents_of

        with _bodies_are_read():
            return documents_of(self)

    @cached_property
    def network(self) -> Network:
        """What `ghost.net.walk` takes packets through. Raises `LabError`."""
        from ghost.lab.tenant.compiled_network import network_of_world

        with _bodies_are_read():
            return network_of_world(self)

    @property
    def conditions(self) -> Conditions:
        """What is wrong on the wire and with services."""
        return Conditions(self.faults, self.services, self.outside, self.clocks)

    def single_machines(self) -> tuple[Machine, ...]:
        """Return the machines outside scale sets."""
        members = {name for item in self.scale_sets for name in item.machines}
        return tuple(vm for vm in self.machines if vm.name not in members)

    def single_interfaces(self) -> tuple[NetworkInterface, ...]:
        """Return the interfaces of machines outside scale sets."""
        single = self.single_machines()
        of_sets = {vm.interface for vm in self.machines if vm not in single}
        return tuple(nic for nic in self.interfaces if nic.name not in of_sets)

    # Look-ups by name. Each raises `LabError` for a name that is not there; Azure's names ignore case.

    def group(self, name: str) -> ResourceGroup:
        return named(self.groups, name, "resource group")

    def virtual_network(self, name: str) -> VirtualNetwork:
        return named(self.networks, name, "virtual network")

    def security_group(self, name: str) -> SecurityGroup:
        return named(self.security_groups, name, "network security group")

    def route_table(self, name: str) -> RouteTable:
        return named(self.route_tables, name, "route table")

    def interface(self, name: str) -> NetworkInterface:
        return named(self.interfaces, name, "network interface")

    def storage_account(self, name: str) -> StorageAccount:
        return named(self.storage_accounts, name, "storage account")

    def machine(self, name: str) -> Machine:
        return named(self.machines, name, "machine")

    def interface_of(self, machine: str) -> NetworkInterface:
        return self.interface(self.machine(machine).interface)

    def subnet_of(self, interface: NetworkInterface) -> Subnet:
        return named(
            self.virtual_network(interface.network).subnets, interface.subnet, f"subnet of {interface.network}"
        )

    def address_of(self, machine: str) -> str:
        return self.interface_of(machine).address

    def location_of(self, resource_group: str) -> str:
        return self.group(resource_group).location

    def resource_id(self, kind: str, resource_group: str, *names: str) -> str:
        """Return the id; `kind` is an Azure type, `Microsoft.Network/virtualNetworks/subnets`, with one name per
        level.
        """
        provider, *types = kind.split("/")
        path = "/".join(part for pair in zip(types, names, strict=True) for part in pair)
        return f"{self.group_id(resource_group)}/providers/{provider}/{path}"

    def group_id(self, resource_group: str) -> str:
        return f"/subscriptions/{self.subscription.id}/resourceGroups/{self.group(resource_group).name}"


@contextmanager
def _bodies_are_read() -> Iterator[None]:
    """Raise `LabError` for what a body in Azure's words, which anybody may have written, does to its readers."""
    try:
        yield
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LabError(f"the world is not valid in Azure: {type(error).__name__}: {error}") from error


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


def named(items: Iterable[Named], name: str, what: str) -> Named:
    known = tuple(items)
    for item in known:
        if item.name.casefold() == name.casefold():
            return item
    raise LabError(f"the world has no {what} {name!r}; it has {', '.join(item.name for item in known) or 'none'}")
