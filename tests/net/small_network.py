"""Small networks for tests, written as few words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ghost.net.guest import Ruleset
from ghost.net.network import Network
from ghost.net.resources import (
    EffectiveRoutes,
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


def described(lines: Iterable[str]) -> Network:
    """Return a completely read network from lines; a later line of the same resource changes what it gives.

        vnet NAME PREFIXES                  subnet NETWORK/NAME PREFIX [nsg=G] [table=T] [endpoints=SERVICES]
        vm NAME ADDRESS SUBNET [nsg=G] [asg=GROUPS] [forwards=yes: without translating addresses]
        peering OWNER REMOTE [state=Initiated] [access=no] [forwarded=yes] [transit=yes] [gateway=yes]
        nsg NAME       rule GROUP RULE      table NAME [bgp=no]     route TABLE ROUTE
        effective VM PREFIX TYPE SOURCE [state=Invalid] [hop=ADDRESS] [name=ROUTE]

    An empty setting (`nsg=`) takes it away, a line `no KIND NAME` the resource; lists with commas.
    """
    places: dict[tuple[str, ...], tuple[list[str], dict[str, str]]] = {}
    texts: dict[str, list[str]] = {}
    for line in lines:
        kind, *words = line.split()
        if kind in ("rule", "route"):
            texts.setdefault(f"{kind} {words[0]}", []).append(" ".join(words[1:]))
            continue
        if kind == "no":
            del places[tuple(words)]
            continue
        names = [word for word in words if "=" not in word]
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        place = (kind, *(names if kind == "effective" else names[: 2 if kind == "peering" else 1]))
        known_names, known_settings = places.get(place, ([], {}))
        places[place] = (names if len(names) >= len(known_names) else known_names, {**known_settings, **settings})
    of: dict[str, list[tuple[list[str], dict[str, str]]]] = {}
    for (kind, *_), described_as in places.items():
        of.setdefault(kind, []).append(described_as)
    prefixes = {names[0]: tuple(names[1].split(",")) for names, _ in of["vnet"]}
    subnets = [
        replace(
            subnet(names[0], names[1], nsg=settings.get("nsg") or None, table=settings.get("table") or None),
            service_endpoints=tuple(settings.get("endpoints", "").split()),
        )
        for names, settings in of["subnet"]
    ]
    peerings = {
        owner: tuple(
            peering(
                names[1],
                *prefixes[names[1]],
                state=settings.get("state", "Connected"),
                allow_access=settings.get("access") != "no",
                allow_forwarded=settings.get("forwarded") == "yes",
                allow_gateway_transit=settings.get("transit") == "yes",
                use_remote_gateways=settings.get("gateway") == "yes",
            )
            for names, settings in of.get("peering", ())
            if names[0] == owner
        )
        for owner in prefixes
    }
    networks = [
        VirtualNetwork(
            id=vnet_id(name),
            reference=f"read-{name}",
            prefixes=prefixes[name],
            subnets=tuple(each for each in subnets if each.id.startswith(f"{vnet_id(name)}/")),
            peerings=peerings[name],
        )
        for name in prefixes
    ]
    nics = []
    for names, settings in of["vm"]:
        made = nic(*names, nsg=settings.get("nsg") or None, forwards=settings.get("forwards") == "yes")
        groups = tuple(settings["asg"].split(",")) if settings.get("asg") else ()
        nics.append(replace(made, configurations=(IpConfiguration(made.address, application_groups=groups),)))
    effective: dict[str, tuple[Route, ...]] = {}
    for (vm, prefix, hop, source), settings in of.get("effective", ()):
        route = Route(
            prefix, hop, settings.get("hop"), source, settings.get("state", "Active"), name=settings.get("name")
        )
        effective[vm] = (*effective.get(vm, ()), route)
    made = network(
        *networks,
        *nics,
        *(Guest(id=nic.machine or "", packet_filter=Ruleset()) for nic in nics if nic.ip_forwarding),
        *(rules(names[0], *texts.get(f"rule {names[0]}", ())) for names, _ in of.get("nsg", ())),
        *(
            table(names[0], *texts.get(f"route {names[0]}", ()), bgp=settings.get("bgp") != "no")
            for names, settings in of.get("table", ())
        ),
    )
    routes = [
        EffectiveRoutes(id=nic_id(vm), routes=computed, reference="read-routes") for vm, computed in effective.items()
    ]
    return made.with_resources(EffectiveRoutes, routes)
