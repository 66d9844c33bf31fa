"""Where a packet goes from an interface: the route it takes, what that leads to, and the peering it crosses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final, Literal

from ghost.net.address_matching import parse_address, parse_network
from ghost.net.balancing import Entrance, front_end_at, interface_at
from ghost.net.changes import AllowAccess, SyncPeering, UseRemoteGateway
from ghost.net.effective import computed_for, groups_of, missing_routes, routes_of
from ghost.net.firewall import firewall_at
from ghost.net.gateways import Gateway, may_teach, unused_gateway
from ghost.net.hops import Hop, Mend
from ghost.net.names.private_links import endpoint_route
from ghost.net.network import Network, Unread
from ghost.net.resources import (
    EffectiveRoutes,
    Interface,
    Peering,
    Subnet,
    VirtualNetwork,
    key,
    name_of,
    owner_in,
    prefixes_around,
    within,
)
from ghost.net.routes import Route
from ghost.net.security import Flow
from ghost.net.services import direct_route

Exit = Literal["internet", "service", "gateway"]
"""Where a packet leaves the virtual networks: for the service, by a service endpoint."""
RESERVED: Final = 4
"""Addresses at the start of each subnet that Azure keeps."""
EXITS: Final[Mapping[str, Exit]] = {
    "internet": "internet",
    "virtualnetworkserviceendpoint": "service",
    "virtualnetworkgateway": "gateway",
}


@dataclass(frozen=True)
class Routed:
    hop: Hop
    next_interface: Interface | None = None
    entrance: Entrance | None = None
    """The front end of a load balancer that it leads to."""
    leaves_by: Exit | None = None
    """Where the packet leaves the virtual networks."""


def routed(network: Network, here: Interface, destination: str) -> Routed:
    """Return the hop of the route that a packet takes, and the interface it leads to. Raises `Unread`."""
    try:
        home, subnet = network.subnet_of(here)
    except Unread as unread:
        return _dropped_as_computed(network, here, destination, unread)
    if network.toward is not None and ip_address(destination).is_global:
        direct = direct_route(network.toward, here, home, subnet)
        if direct is not None:
            return Routed(direct, leaves_by="service")
    table = routes_of(network, here)
    route = table.select(destination)
    to_endpoint = None if table.computed else endpoint_route(network, home, destination, route)
    if to_endpoint is not None:
        route = to_endpoint
    elif doubt := table.doubt(route, destination):
        if here.is_read:
            network.need(missing_routes(here), f"{here.name}: {doubt}")
        if not within(prefixes_around(home), destination) and may_teach(network, home, destination):
            raise Unread(None, f"{here.name}: {doubt}, and Azure does not show its routes")
    hop = Hop("route", here.id, "pass", f"{destination} follows {route}", str(route), references=table.references)
    if route is None or route.next_hop_type.casefold() == "none":
        return Routed(_unrouted(network, hop, here, home, destination, route))
    match route.next_hop_type.casefold():
        case "vnetlocal" | "virtualnetwork":
            return _delivered(network, hop, destination, [home])
        case "vnetpeering" | "vnetglobalpeering" | "interfaceendpoint" as kind:
            places = [network.one(VirtualNetwork, p.remote) for p in home.peerings if p.is_connected]
            places += [home] if kind == "interfaceendpoint" else []
            return _delivered(network, hop, destination, [place for place in places if place.holds(destination)])
        case "virtualappliance":
            peers = [network.one(VirtualNetwork, p.remote) for p in home.peerings if p.is_connected]
            next_hop = route.next_hop_ip or ""
            places = [n for n in (home, *peers) if next_hop and n.holds(next_hop)]
            severed = _severed(network, hop, home, next_hop) if next_hop and not places else None
            return Routed(severed) if severed is not None else _delivered(network, hop, next_hop, places)
        case other:
            if other in EXITS:
                return Routed(hop, leaves_by=EXITS[other])
            return Routed(
                replace(
                    hop, verdict="unknown", reason=f"{destination} follows {route}: the type of this route is not known"
                )
            )


def _dropped_as_computed(network: Network, here: Interface, destination: str, unread: Unread) -> Routed:
    """Return the drop by a route that Azure computed, where this login may not read the virtual network.

    Where a packet comes to by another route is not known then. Raises `Unread`.
    """
    computed = computed_for(network, EffectiveRoutes, here, unread)
    route = routes_of(network, here).select(destination)
    if network.toward is not None or route is None or route.next_hop_type.casefold() != "none":
        raise unread
    hop = Hop("route", here.id, "drop", f"{destination} is dropped by {route}", str(route), "route_none")
    doubt = f"a peering or a gateway may be missing that should lead there: {unread.reason}"
    return Routed(replace(hop, references=(computed.reference,), doubt=doubt if route.source == "Default" else ""))


def _unrouted(
    network: Network, hop: Hop, here: Interface, home: VirtualNetwork, destination: str, route: Route | None
) -> Hop:
    """Return the drop of a packet without a route: by the table, or since a peering that held its network is not
    connected.
    """
    if route is None or route.source == "Default":
        severed = _severed(network, hop, home, destination)
        if severed is not None:
            return severed
        try:
            unused = unused_gateway(network, home, destination)
        except Unread as unread:
            hop = replace(hop, missing=unread.missing)  # the drop is certain; what is missing tells why
        else:
            if unused is not None:
                owner = name_of(unused.remote)
                reason = f"{unused.name} of {home.name} does not use the gateway of {owner}, which knows {destination}"
                mend = UseRemoteGateway(home.id, unused.remote)
                return _by_peering(hop, home, unused, reason, "gateway_not_used", mend)
    if route is None:
        reason = f"no route of {here.name} covers {destination}"
        return replace(hop, verdict="drop", reason=reason, rule=None, fault="route_missing")
    return replace(hop, verdict="drop", reason=f"{destination} is dropped by {route}", fault="route_none")


def _severed(network: Network, hop: Hop, home: VirtualNetwork, address: str) -> Hop | None:
    """Return the drop of a packet since the peering that would carry it to an address does not; None without one."""
    for peering in home.peerings:
        if not peering.is_connected and within(peering.remote_prefixes, address):
            reason = f"the peering {peering.name} of {home.name}, which holds {address}, is {peering.state}"
            return _by_peering(hop, home, peering, reason, "peering_disconnected")
        if peering.is_connected and within(peering.current_prefixes, address):
            reason = (
                f"{peering.name} of {home.name} does not know {address}: it has not been synced since that was added"
            )
            return _by_peering(hop, home, peering, reason, "peering_not_synced", SyncPeering(home.id, peering.remote))
    for other in network.all(VirtualNetwork).values():
        far = _peering(other, home) if other.holds(address) else None
        if far is not None and not far.is_connected and _peering(home, other) is None:
            reason = f"{home.name} has no peering to {other.name}, whose {far.name} is {far.state}"
            return _by_peering(hop, other, far, reason, "peering_disconnected")
    return None


def _by_peering(hop: Hop, home: VirtualNetwork, peering: Peering, reason: str, fault: str, *mends: Mend) -> Hop:
    """Return the drop of a packet that a peering of its network would carry."""
    hop = replace(hop, kind="peering", resource=home.id, verdict="drop", reason=reason, rule=peering.name)
    return replace(hop, fault=fault, mends=mends)


def _delivered(network: Network, hop: Hop, address: str, networks: list[VirtualNetwork]) -> Routed:
    """Return the interface or the front end that a route leads to; without one the hop is unknown."""
    there = interface_at(network, address, networks) if networks else None
    if there is None and (firewall := firewall_at(network, address, networks)):
        there = firewall.interface
    if there is not None:
        return Routed(hop, there)
    if networks and (entrance := front_end_at(network, address, networks)):
        return Routed(hop, entrance=entrance)
    where = " and ".join(n.name for n in networks) or "the network and those connected to it"
    if networks and all(_is_free(network, home, address) for home in networks):
        reason = f"{hop.reason}, but nothing in {where} has {address}"
        return Routed(replace(hop, verdict="drop", reason=reason, fault="address_unused"))
    return Routed(
        replace(hop, verdict="unknown", reason=f"{hop.reason}: no interface in {where} has {address or 'it'}")
    )


def _is_free(network: Network, home: VirtualNetwork, address: str) -> bool:
    """Return whether surely nothing has an address of a network: all in its subnet was read, and has another."""
    number = parse_address(address)
    for subnet in home.subnets:
        for prefix in map(parse_network, subnet.prefixes):
            if prefix is not None and number in prefix:
                reserved = int(number) - int(prefix.network_address) < RESERVED or number == prefix[-1]
                if reserved or subnet.is_shared or not _is_told(network, subnet):
                    return False
    return number.version == 4


def _is_told(network: Network, subnet: Subnet) -> bool:
    """Return whether the occupants of a subnet are all that is in it, and the address of each was read."""
    inside = {of for of, interface in network.all(Interface).items() if key(interface.subnet) == key(subnet.id)}
    owners = set()
    for occupant in subnet.occupants:
        if not any(owner_in(occupant, kind) for kind in ("loadBalancers", "azureFirewalls")):
            owners.add(key(owner_in(occupant, "networkInterfaces") or occupant))
    return owners == inside


def crossing(network: Network, here: Interface, there: Interface, flow: Flow) -> Iterator[Hop]:
    """Yield the peering between two interfaces of different networks: what its far side lets in."""
    try:
        home, away = network.subnet_of(here)[0], network.subnet_of(there)[0]
    except Unread as unread:
        yield Hop("peering", there.id, "unknown", unread.reason, missing=unread.missing)
        return
    if key(home.id) == key(away.id):
        return
    far = _peering(away, home)
    hop = Hop("peering", away.id, "pass", f"{away.name} is connected to {home.name}", references=(away.reference,))
    if far is None or not far.is_connected:
        state = f"is {far.state}" if far else "does not exist"
        reason = f"the peering of {away.name} to {home.name} {state}"
        yield replace(hop, verdict="drop", reason=reason, rule=far.name if far else None, fault="peering_disconnected")
    elif not home.holds(flow.source_address) and not far.allow_forwarded and not _transits(network, here, far):
        reason = (
            f"{far.name} of {away.name} allows no forwarded traffic, and {flow.source_address} is not in {home.name}"
        )
        yield replace(hop, verdict="drop", reason=reason, rule=far.name, fault="peering_forwarded")
    else:
        near = _peering(home, away) or far
        yield _by_access(network, ((here, home, near), (there, away, far)), replace(hop, rule=far.name))


def _by_access(network: Network, sides: tuple[tuple[Interface, VirtualNetwork, Peering], ...], hop: Hop) -> Hop:
    """Return the hop of a packet over a peering, by whether the sides give access to each other.

    Without access the tag VirtualNetwork lacks the remote network, and rules decide. Where no group has rules, Azure's
    own connection check found two networks unreachable that both gave no access; of one side alone nothing is told.
    """
    closed = [(interface, home) for interface, home, peering in sides if not peering.allow_access]
    try:
        bare = [home for interface, home in closed if not groups_of(network, interface).groups]
    except Unread as unread:
        return replace(hop, verdict="unknown", reason=unread.reason, missing=unread.missing)
    if not bare:
        return hop
    if len(bare) < len(sides):
        reason = (
            f"{bare[0].name} gives its peer no access and has no security group here: Azure does not show what passes"
        )
        return replace(hop, verdict="unknown", reason=reason)
    reason = f"{bare[0].name} and {bare[1].name} give each other no access, and no security group allows the packet"
    mends = (AllowAccess((bare[0].id, bare[1].id)),)
    return replace(hop, verdict="drop", reason=reason, fault="peering_no_access", mends=mends)


def _transits(network: Network, here: Interface, far: Peering) -> bool:
    """Return whether a packet comes from a gateway that the far side uses."""
    return far.use_remote_gateways and network.get(Gateway, here.id) is not None


def _peering(owner: VirtualNetwork, remote: VirtualNetwork) -> Peering | None:
    return next((peering for peering in owner.peerings if key(peering.remote) == key(remote.id)), None)
