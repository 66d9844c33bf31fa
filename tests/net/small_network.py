"""Small networks for tests, written as few words."""

from __future__ import annotations

from ghost.net.admin_rules import NetworkManager
from ghost.net.network import Network
from ghost.net.resources import (
    Guest,
    Interface,
    IpConfiguration,
    Machine,
    Peering,
    RouteTable,
    RuleSet,
    Subnet,
    VirtualNetwork,
)
from ghost.net.routes import Route
from ghost.net.security import Flow, SecurityRule

PROVIDER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network"


def vnet_id(name: str) -> str:
    return f"{PROVIDER}/virtualNetworks/{name}"


def subnet_id(place: str) -> str:
    """`hub/web` for the subnet `web` of the network `hub`."""
    network, _, subnet = place.partition("/")
    return f"{vnet_id(network)}/subnets/{subnet}"


def nsg_id(name: str) -> str:
    return f"{PROVIDER}/networkSecurityGroups/{name}"


def table_id(name: str) -> str:
    return f"{PROVIDER}/routeTables/{name}"


def nic_id(name: str) -> str:
    return f"{PROVIDER}/networkInterfaces/{name}-nic"


def machine_id(name: str) -> str:
    return f"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/{name}"


def peering(remote: str, *prefixes: str, **settings: object) -> Peering:
    return Peering(name=f"to-{remote}", remote=vnet_id(remote), remote_prefixes=prefixes, **settings)  # type: ignore[arg-type]


def vnet(name: str, prefix: str, *subnets: Subnet, peerings: tuple[Peering, ...] = ()) -> VirtualNetwork:
    return VirtualNetwork(
        id=vnet_id(name), reference=f"read-{name}", prefixes=(prefix,), subnets=subnets, peerings=peerings
    )


def subnet(place: str, prefix: str, *, nsg: str | None = None, table: str | None = None) -> Subnet:
    return Subnet(
        id=subnet_id(place),
        prefixes=(prefix,),
        security_group=nsg and nsg_id(nsg),
        route_table=table and table_id(table),
    )


def nic(name: str, address: str, place: str, *, nsg: str | None = None, forwards: bool = False) -> Interface:
    return Interface(
        id=nic_id(name),
        reference="read-nics",
        subnet=subnet_id(place),
        configurations=(IpConfiguration(address),),
        security_group=nsg and nsg_id(nsg),
        machine=machine_id(name),
        ip_forwarding=forwards,
    )


def rule(text: str) -> SecurityRule:
    """`NAME PRIORITY Inbound|Outbound Allow|Deny PROTOCOL SOURCES[:PORTS] DESTINATIONS:PORTS`, lists with commas."""
    name, priority, direction, access, protocol, source, destination = text.split()
    source, _, source_ports = source.partition(":")
    destination, _, ports = destination.rpartition(":")
    return SecurityRule(
        name,
        int(priority),
        direction,  # type: ignore[arg-type]
        access,  # type: ignore[arg-type]
        protocol,
        tuple(source.split(",")),
        tuple((source_ports or "*").split(",")),
        tuple(destination.split(",")),
        tuple(ports.split(",")),
    )


def rules(name: str, *texts: str) -> RuleSet:
    return RuleSet(id=nsg_id(name), reference=f"read-{name}", rules=tuple(map(rule, texts)))


def table(name: str, *routes: str, bgp: bool = True) -> RouteTable:
    """Each route: `NAME PREFIX TYPE [NEXT-HOP]`."""
    split = [(*text.split(), None) for text in routes]
    made = tuple(Route(prefix, hop, address, "User", "Active", called) for called, prefix, hop, address, *_ in split)
    return RouteTable(id=table_id(name), reference=f"read-{name}", routes=made, propagates_bgp=bgp)


def network(*resources: object, stopped: tuple[str, ...] = ()) -> Network:
    """A network that was read completely; every machine but those `stopped` runs."""
    nics = [r for r in resources if isinstance(r, Interface)]
    machines = [
        Machine(
            id=nic.machine or "", reference="read-vms", power="deallocated" if nic.name[:-4] in stopped else "running"
        )
        for nic in nics
    ]
    made = Network()
    made = made.with_resources(Interface, nics, complete=True)
    made = made.with_resources(Machine, machines, complete=True)
    made = made.with_resources(NetworkManager, [], complete=True)
    made = made.with_resources(Guest, [r for r in resources if isinstance(r, Guest)])
    for of in (VirtualNetwork, RuleSet, RouteTable):
        made = made.with_resources(of, [r for r in resources if isinstance(r, of)], complete=True)
    return made


def flow(text: str) -> Flow:
    """`Tcp 10.0.0.4 10.0.1.4:443`, or with a source port `Tcp 10.0.0.4:5000 10.0.1.4:443`."""
    protocol, source, destination = text.split()
    source, _, source_port = source.partition(":")
    destination, _, port = destination.partition(":")
    return Flow(protocol, source, int(source_port) if source_port else None, destination, int(port) if port else None)
