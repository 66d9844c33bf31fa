"""A packet's way through a network and back, hop by hop.

Each hop says what decides and what that rests on. A drop is certain; what is not known makes a hop unknown, never a
fault, and the walk goes on where the way does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ghost.net.address_matching import HOST_ADDRESS, METADATA_ADDRESS
from ghost.net.effective import groups_of, missing_groups, missing_routes, routes_of
from ghost.net.guest import Hook, State
from ghost.net.guest_hops import FORWARD, INPUT, OUTPUT, guest_decisions, guest_of
from ghost.net.hops import Hop, Walk
from ghost.net.network import Interface, Missing, Network, Peering, Unread, VirtualNetwork, key, name_of, within
from ghost.net.routes import Route
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Direction, Flow, SecurityGroup, SecurityRule, evaluate_gates

MAX_APPLIANCES: Final = 8
"""Appliances on one way; more are a loop."""
PLATFORM_TAGS: Final = {
    (HOST_ADDRESS, 53): "AzurePlatformDNS",
    (HOST_ADDRESS, 67): None,
    (HOST_ADDRESS, 80): None,
    (HOST_ADDRESS, 32526): None,
    (METADATA_ADDRESS, 80): "AzurePlatformIMDS",
}
"""Services of the host, and the tag by which alone a security rule can deny one."""


@dataclass
class _Way:
    """Where a packet came to on one leg."""

    interface: Interface | None = None
    appliances: tuple[str, ...] = ()
    may_translate: str | None = None
    """An appliance that was passed and may have changed the addresses: its packet filter was not read."""


_BY_ADDRESS: Final = {"security_rule", "peering_forwarded", "route_none", "route_missing"}
"""Faults that another source or destination address would not meet."""


def walk(network: Network, flow: Flow, *, source: str | None = None) -> Walk:
    """Return the way of a first packet from socket to socket, and of its answer.

    `source`: id of the interface that sends, where several have the flow's source address.
    """
    here = _sender(network, flow, source)
    forward, back = _Way(), _Way()
    if isinstance(here, Hop):
        hops = [here, *_arrival(network, flow, forward)]
    else:
        hops = list(_doubted(network, _leg(network, here, flow, forward), forward))
    if forward.interface is not None and not any(hop.stops for hop in hops):
        answer = Flow(
            flow.protocol, flow.destination_address, flow.destination_port, flow.source_address, flow.source_port
        )
        back.may_translate = forward.may_translate
        answered = _doubted(network, _leg(network, forward.interface, answer, back, is_answer=True), back)
        hops += [*(replace(hop, leg="return") for hop in answered), *_asymmetry(forward, back)]
    return Walk(flow, tuple(hops))


def _doubted(network: Network, hops: Iterable[Hop], way: _Way) -> Iterator[Hop]:
    """Yield the hops; behind an appliance that may translate addresses, what depends on them stops nothing for sure."""
    for hop in hops:
        if way.may_translate is not None and hop.fault in _BY_ADDRESS:
            reason = f"{hop.reason}, unless {way.may_translate} translates addresses"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None)
        yield hop
        if hop.kind == "appliance":
            guest = guest_of(network, network.interfaces[key(hop.resource)])
            if guest is None or guest.packet_filter is None:
                way.may_translate = name_of(hop.resource)


def _sender(network: Network, flow: Flow, source: str | None) -> Interface | Hop:
    found = [i for i in network.interfaces_with(flow.source_address) if source is None or key(i.id) == key(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(interface.name for interface in found))
        return Hop("interface", "", "unknown", f"{flow.source_address} is the address of {names}: say which one sends")
    missing = Missing("interfaces")
    if "interfaces" in network.complete:
        return Hop("interface", "", "unknown", f"no interface has {flow.source_address}: it is not in what was read")
    reason = network.failed.get(missing) or f"no interface that was read has {flow.source_address}"
    return Hop("interface", "", "unknown", reason, missing=None if missing in network.failed else missing)


def _arrival(network: Network, flow: Flow, way: _Way) -> Iterator[Hop]:
    """Yield what a packet from outside meets at its destination, whichever way it came."""
    there = network.interfaces_with(flow.destination_address)
    outside = "interfaces" in network.complete and not network.interfaces_with(flow.source_address)
    if outside and len(there) == 1:
        way.interface = there[0]
        yield from _gates(network, there[0], flow, "Inbound")
        yield from _machine(network, there[0])
        yield from _guest(network, there[0], flow, INPUT)


def _leg(network: Network, here: Interface, flow: Flow, way: _Way, *, is_answer: bool = False) -> Iterator[Hop]:
    """Yield the hops of one leg, from an interface to the destination's; `way` tells where it came to."""
    state: State = "ESTABLISHED" if is_answer else "NEW"
    yield from _machine(network, here)
    yield from _guest(network, here, flow, OUTPUT, state)
    if flow.destination_address in (HOST_ADDRESS, METADATA_ADDRESS):
        yield from _platform(network, here, flow, is_answer=is_answer)
        return
    while True:
        if not is_answer:
            yield from _gates(network, here, flow, "Outbound")
        try:
            routed = _routed(network, here, flow.destination_address)
        except Unread as unread:
            yield Hop("route", here.id, "unknown", unread.reason, missing=unread.missing)
            return
        hop = routed.hop
        if way.appliances and hop.stops:
            reason = f"{hop.reason}, unless {here.name} carries it on itself, as in a tunnel"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None)
        yield hop
        if routed.next_interface is None:
            return
        yield from _crossing(network, here, routed.next_interface, flow)
        there = routed.next_interface
        if not is_answer:
            yield from _gates(network, there, flow, "Inbound")
        if there.has(flow.destination_address):
            way.interface = there
            yield from _machine(network, there)
            yield from _guest(network, there, flow, INPUT, state)
            return
        if key(there.id) in way.appliances or len(way.appliances) == MAX_APPLIANCES:
            yield Hop(
                "appliance",
                there.id,
                "drop",
                f"{there.name} is passed twice: the routes form a loop",
                fault="routing_loop",
            )
            return
        way.appliances = (*way.appliances, key(there.id))
        yield from _forwarding(network, there, flow, state)
        here = there


@dataclass(frozen=True)
class _Routed:
    hop: Hop
    next_interface: Interface | None = None


def _routed(network: Network, here: Interface, destination: str) -> _Routed:
    """Return the hop of the route that a packet takes, and the interface it leads to. Raises `Unread`."""
    table = routes_of(network, here)
    route = table.select(destination)
    if doubt := table.doubt(route, destination):
        network.need(missing_routes(here), f"{here.name}: {doubt}")
    home, _ = network.subnet_of(here)
    hop = Hop("route", here.id, "pass", f"{destination} follows {route}", str(route), references=table.references)
    if route is None or route.next_hop_type.casefold() == "none":
        return _Routed(_unrouted(hop, here, home, destination, route))
    match route.next_hop_type.casefold():
        case "vnetlocal" | "virtualnetwork":
            return _delivered(network, hop, destination, [home])
        case "vnetpeering" | "vnetglobalpeering":
            remotes = [network.virtual_network(p.remote) for p in home.peerings if p.is_connected]
            return _delivered(network, hop, destination, [remote for remote in remotes if remote.holds(destination)])
        case "virtualappliance":
            peers = [network.virtual_network(p.remote) for p in home.peerings if p.is_connected]
            next_hop = route.next_hop_ip or ""
            return _delivered(network, hop, next_hop, [n for n in (home, *peers) if next_hop and n.holds(next_hop)])
        case other:
            return _Routed(
                replace(hop, verdict="unknown", reason=f"{destination} follows {route}: {other} is not walked yet")
            )


def _unrouted(hop: Hop, here: Interface, home: VirtualNetwork, destination: str, route: Route | None) -> Hop:
    """Return the drop of a packet without a route: by the table, or since a peering that held its network is not
    connected.
    """
    if route is None or route.source == "Default":
        for peering in home.peerings:
            if not peering.is_connected and within(peering.remote_prefixes, destination):
                reason = f"the peering {peering.name} of {home.name}, which holds {destination}, is {peering.state}"
                return replace(
                    hop,
                    kind="peering",
                    resource=home.id,
                    verdict="drop",
                    reason=reason,
                    rule=peering.name,
                    fault="peering_disconnected",
                )
    if route is None:
        reason = f"no route of {here.name} covers {destination}"
        return replace(hop, verdict="drop", reason=reason, rule=None, fault="route_missing")
    return replace(hop, verdict="drop", reason=f"{destination} is dropped by {route}", fault="route_none")


def _delivered(network: Network, hop: Hop, address: str, networks: list[VirtualNetwork]) -> _Routed:
    """Return the interface that a route leads to. Without one the hop is unknown: front ends of load balancers and
    instances of scale sets are no interfaces of the list.
    """
    there = network.interface_at(address, networks) if networks else None
    if there is not None:
        return _Routed(hop, there)
    where = " and ".join(n.name for n in networks) or "the network and those connected to it"
    return _Routed(
        replace(hop, verdict="unknown", reason=f"{hop.reason}: no interface in {where} has {address or 'it'}")
    )


def _platform(network: Network, here: Interface, flow: Flow, *, is_answer: bool) -> Iterator[Hop]:
    """Yield what stands before a service of the host: no route, and of the groups only rules for the service's tag."""
    served = is_answer or (flow.destination_address, flow.destination_port) in PLATFORM_TAGS
    tag = PLATFORM_TAGS.get((flow.destination_address, flow.destination_port or 0))
    if tag is not None and not is_answer:
        yield from _gates(network, here, flow, "Outbound", platform_tag=tag)
    if served:
        reason = f"{flow.destination_address} is the host, to which neither routes nor other rules apply"
        yield Hop("platform", here.id, "pass", reason)
    else:
        yield Hop("platform", here.id, "unknown", f"Azure names no service of the host at {flow}")


def _targeting(groups: Iterable[SecurityGroup], tag: str) -> Iterator[SecurityGroup]:
    """Yield the groups with rules for a tag of the platform, with these rules alone; what they do not match passes."""
    for group in groups:
        named = [r for r in group.rules if tag.casefold() in map(str.casefold, r.destination_prefixes)]
        if named:
            passing = SecurityRule("no rule of the tag", FIRST_DEFAULT_PRIORITY - 1, "Outbound", "Allow")
            yield replace(group, rules=(*named, passing))


def _gates(
    network: Network, interface: Interface, flow: Flow, direction: Direction, *, platform_tag: str | None = None
) -> Iterator[Hop]:
    """Yield a hop for each group that a packet meets; a fresh flow only, since groups let answers pass."""
    try:
        effective = groups_of(network, interface, as_configured=platform_tag is not None)
    except Unread as unread:
        yield Hop("security_group", interface.id, "unknown", unread.reason, direction=direction, missing=unread.missing)
        return
    groups, tags = effective.groups, effective.tags
    if platform_tag is not None:
        groups = tuple(_targeting(groups, platform_tag))
        tags = replace(tags, others={**tags.others, platform_tag: (flow.destination_address,)})
    for gate in evaluate_gates(groups, flow, direction, tags).gates:
        hop = Hop(
            "security_group",
            gate.group.name,
            "pass" if gate.allowed else "drop",
            f"{gate.rule or 'no rule'} of {name_of(gate.group.name)} at the {gate.gate}, {direction.lower()}",
            gate.rule.name if gate.rule else None,
            None if gate.allowed else "security_rule",
            direction,
            gate.rule.priority if gate.rule else None,
            effective.references,
        )
        if not gate.certain:
            unclear = ", ".join(rule.name for rule in gate.undecided)
            missing = missing_groups(interface)
            ask = not effective.computed and missing not in network.failed
            reason = f"{unclear} of {name_of(gate.group.name)} may match too: the prefixes of a tag are not known"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None, missing=missing if ask else None)
        yield hop


def _crossing(network: Network, here: Interface, there: Interface, flow: Flow) -> Iterator[Hop]:
    """Yield the peering between two interfaces of different networks: what its far side lets in."""
    home, _ = network.subnet_of(here)
    away, _ = network.subnet_of(there)
    if key(home.id) == key(away.id):
        return
    far = _peering(away, home)
    hop = Hop("peering", away.id, "pass", f"{away.name} is connected to {home.name}", references=(away.reference,))
    if far is None or not far.is_connected:
        state = f"is {far.state}" if far else "does not exist"
        reason = f"the peering of {away.name} to {home.name} {state}"
        yield replace(hop, verdict="drop", reason=reason, rule=far.name if far else None, fault="peering_disconnected")
    elif not home.holds(flow.source_address) and not far.allow_forwarded:
        reason = (
            f"{far.name} of {away.name} lets no forwarded traffic in, and {flow.source_address} is not of {home.name}"
        )
        yield replace(hop, verdict="drop", reason=reason, rule=far.name, fault="peering_forwarded")
    else:
        yield replace(hop, rule=far.name)


def _peering(owner: VirtualNetwork, remote: VirtualNetwork) -> Peering | None:
    return next((peering for peering in owner.peerings if key(peering.remote) == key(remote.id)), None)


def _forwarding(network: Network, appliance: Interface, flow: Flow, state: State) -> Iterator[Hop]:
    """Yield what an appliance does with a packet that is not for it."""
    yield from _machine(network, appliance)
    hop = Hop("appliance", appliance.id, "pass", f"{appliance.name} forwards", references=(appliance.reference,))
    if not appliance.ip_forwarding:
        reason = f"IP forwarding is off at {appliance.name}: Azure drops what is not addressed to it"
        yield replace(hop, verdict="drop", reason=reason, rule="enableIPForwarding", fault="ip_forwarding_off")
        return
    guest = guest_of(network, appliance)
    if guest is None or guest.forwards is None:
        yield replace(hop, verdict="unknown", reason=f"what {appliance.name} forwards is not told by Azure")
    elif not guest.forwards:
        reason = f"{guest.name} forwards nothing (net.ipv4.ip_forward is 0)"
        yield replace(hop, verdict="drop", reason=reason, rule="net.ipv4.ip_forward", fault="guest_not_forwarding")
    else:
        yield hop
        yield from _guest(network, appliance, flow, FORWARD, state)


def _guest(
    network: Network, interface: Interface, flow: Flow, hooks: Sequence[Hook], state: State = "NEW"
) -> Iterator[Hop]:
    """Yield what the guest decides, where it was read."""
    guest = guest_of(network, interface)
    for decided in guest_decisions(guest, flow, hooks, state) if guest is not None else ():
        yield Hop(
            "guest",
            interface.machine or interface.id,
            decided.verdict,
            decided.reason,
            decided.rule,
            decided.fault,
            references=(decided.reference,),
        )


def _machine(network: Network, interface: Interface) -> Iterator[Hop]:
    if interface.machine is None:
        return
    hop = Hop("machine", interface.machine, "pass", f"{name_of(interface.machine)} runs")
    try:
        machine = network.machine(interface.machine)
    except Unread as unread:
        yield replace(hop, verdict="unknown", reason=unread.reason, missing=unread.missing)
        return
    hop = replace(hop, references=(machine.reference,))
    if machine.power is None:
        yield replace(hop, verdict="unknown", reason=f"the power state of {machine.name} was not read")
    elif machine.power != "running":
        yield replace(hop, verdict="drop", reason=f"{machine.name} is {machine.power}", fault="machine_stopped")
    else:
        yield hop


def _asymmetry(forward: _Way, back: _Way) -> Iterator[Hop]:
    """Yield the appliances that see one direction only: a stateful one drops what it did not see begin."""
    for interface in sorted({*forward.appliances} ^ {*back.appliances}):
        if back.interface is not None:
            seen = (
                "the packet but not its answer" if interface in forward.appliances else "the answer but not the packet"
            )
            reason = f"{name_of(interface)} sees {seen}: it drops it if it keeps state, which Azure does not tell"
            yield Hop("appliance", interface, "unknown", reason, leg="return")
