"""A packet's way through a network and back, hop by hop.

Each hop says what decides and what that rests on. A drop is certain; what is not known makes a hop unknown, never a
fault, and the walk goes on where the way does not depend on it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ghost.net.address_matching import HOST_ADDRESS, METADATA_ADDRESS, is_address
from ghost.net.address_sets import public_spans
from ghost.net.balancing import (
    Balanced,
    Entrance,
    Target,
    balance,
    closed_by_default,
    of_each,
    public_entrance,
)
from ghost.net.departure import Origin, leave
from ghost.net.firewall import AzureFirewall, back_through_firewall, through_firewall
from ghost.net.gate_hops import gates, platform
from ghost.net.gateways import Gateway, out_by_gateway, through_gateway
from ghost.net.guest import State
from ghost.net.guest_hops import INPUT, OUTPUT, guest_of
from ghost.net.hops import Hop, Walk
from ghost.net.machine_hops import forwarding, guest, interfaces_of_machine, is_itself, machine, to_itself
from ghost.net.named_addresses import addresses_named
from ghost.net.names.private_links import answer, answers_itself, arrival, inbound
from ghost.net.network import Network, Unread
from ghost.net.resources import EffectiveGroups, Interface, key, name_of
from ghost.net.route_hops import Exit, crossing, routed
from ghost.net.security import Flow
from ghost.net.senders import comes_from_outside, is_public, no_packet, sender
from ghost.net.services import PublicService, admits, agreed, service_with_id

MAX_APPLIANCES: Final = 8
"""Appliances on one way; more are a loop."""
MAX_CHOICES: Final = 3
"""Load balancers on one way with several members, each of which is walked."""


@dataclass
class _Way:
    """Where a packet came to on one leg: an interface, or out of the virtual networks."""

    flow: Flow
    """As it is there: load balancers and appliances translate addresses."""
    interface: Interface | None = None
    origin: Origin | None = None
    members: Mapping[str, str] = field(default_factory=dict)
    """Of each choice of a load balancer, the member that this walk is by."""
    fork: Balanced | None = None
    """Where the way ended, since any of several members may take the packet."""
    restored: Flow | None = None
    """Of an answer: as the machine that asked sees it, since the platform undoes what it translated."""
    appliances: tuple[str, ...] = ()
    passed: dict[str, Flow] = field(default_factory=dict)
    """Of each Azure Firewall, and appliance that translates, the flow as it came there: by that it knows the answer."""
    may_translate: str | None = None
    """An appliance that was passed and may have changed the addresses: its packet filter was not read."""


_BY_ADDRESS: Final = {
    "security_rule", "peering_forwarded", "route_none", "route_missing", "balancer_no_rule", "balancer_pool_empty",
    "balancer_no_healthy_member", "balancer_hairpin", "public_address_unattached", "public_without_group",
    "nat_inbound", "routing_loop", "service_firewall", "service_endpoint_missing", "admin_rule", "azure_firewall",
    "firewall_asymmetric", "address_unused", "peering_not_synced", "gateway_not_used", "gateway_disconnected",
    "guest_firewall", "guest_route", "peering_no_access",
}  # fmt: skip
"""Faults that another source or destination address would not meet."""


def walk(network: Network, flow: Flow, *, source: str | None = None, service: str | None = None) -> Walk:
    """Return the way of a first packet from socket to socket, and of its answer.

    `source`: id of the interface that sends, where several have the flow's source address.
    `service`: id of the service whose public endpoint the destination is; the flow then may name its host.
    """
    if service is not None:
        return _walk_to_service(network, flow, source, service)
    return _walk(network, flow, source, {})


def _walk(network: Network, flow: Flow, source: str | None, members: Mapping[str, str]) -> Walk:
    if reason := no_packet(flow):
        return Walk(flow, (Hop("interface", "", "unknown", reason),))
    here = sender(network, flow, source)
    if isinstance(here, Interface) and is_itself(network, here, flow.destination_address):
        return Walk(flow, tuple(to_itself(network, here, flow)))
    forward = back = _Way(flow, members=members)
    if isinstance(here, Hop):
        if is_public(flow.source_address) and is_public(flow.destination_address):
            here = Hop("internet", "", "pass", f"{flow.source_address} is on the internet")
        hops = [here, *_arrival(network, forward)]
    else:
        hops = list(_doubted(network, _leg(network, here, forward), forward))
    there = forward.interface
    if there is not None and not any(hop.stops for hop in hops) and answers_itself(network, there):
        translated = forward.flow.source_address != flow.source_address
        hops += answer(there, () if translated else forward.appliances)
        if isinstance(here, Interface):
            answered = guest(network, here, flow.reversed(), INPUT, "ESTABLISHED")
            hops += [replace(hop, leg="return") for hop in answered]
    elif there is not None and not any(hop.stops for hop in hops):
        back = _Way(
            forward.flow.reversed(),
            members=members,
            restored=flow.reversed(),
            passed=forward.passed,
            may_translate=forward.may_translate,
        )
        answered = _doubted(network, _leg(network, there, back, is_answer=True), back)
        hops += [*(replace(hop, leg="return") for hop in answered), *_asymmetry(forward, back)]
    fork = forward.fork or back.fork
    if fork is None:
        return Walk(flow, tuple(hops))
    if len(members) == MAX_CHOICES:
        reason = f"behind more than {MAX_CHOICES} load balancers, not every path is walked"
        return Walk(flow, (*hops, Hop("load_balancer", fork.hops[0].resource, "unknown", reason)))
    ways = [_walk(network, flow, source, {**members, fork.choice: each.member}) for each in fork.targets]
    return of_each(fork, ways)


def _walk_to_service(network: Network, flow: Flow, source: str | None, service: str) -> Walk:
    """Return the way to a public endpoint: if its address is not known, what all possible addresses agree about."""
    try:
        found = service_with_id(network, service)
    except Unread as unread:
        return Walk(flow, (Hop("service", service, "unknown", unread.reason, missing=unread.missing),))
    if comes_from_outside(network, flow.source_address):
        arrived = Origin(addresses=(flow.source_address,))
        return Walk(flow, tuple(admits(network, found, arrived, flow.destination_port)))
    if is_address(flow.destination_address):
        return walk(replace(network, toward=PublicService(found, None)), flow, source=source)
    network = replace(network.without(EffectiveGroups), toward=PublicService(found, flow.destination_address))
    spans = public_spans(addresses_named(network))
    flows = (replace(flow, destination_address=span.address) for span in spans)
    return agreed(flow, found.tag or "AzureCloud", [walk(network, each, source=source) for each in flows])


def _doubted(network: Network, hops: Iterable[Hop], way: _Way) -> Iterator[Hop]:
    """Yield the hops; behind an appliance that may translate addresses, what depends on them stops nothing for sure."""
    for hop in hops:
        if way.may_translate is not None and hop.fault in _BY_ADDRESS:
            reason = f"{hop.reason}, unless {way.may_translate} translates addresses"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None)
        yield hop
        if hop.kind == "guest" and hop.verdict == "unknown":
            way.may_translate = name_of(hop.resource)
        if hop.kind == "appliance":
            appliance = network.get(Interface, hop.resource)
            inside = guest_of(network, appliance) if appliance is not None else None
            if inside is None or inside.packet_filter is None:
                way.may_translate = name_of(hop.resource)


def _arrival(network: Network, way: _Way) -> Iterator[Hop]:
    """Yield what a packet from outside meets at its destination, whichever way it came."""
    flow = way.flow
    if is_public(flow.destination_address):
        if is_public(flow.source_address):
            yield from _at_public_address(network, way, None)
        return
    there = network.interfaces_with(flow.destination_address)
    outside = Interface in network.complete and not network.interfaces_with(flow.source_address)
    if outside and len(there) == 1:
        way.interface = there[0]
        yield from inbound(network, there[0], flow)
        yield from machine(network, there[0], flow)
        yield from guest(network, there[0], flow, INPUT)
        yield from arrival(network, there[0], flow)


def _leg(network: Network, here: Interface, way: _Way, *, is_answer: bool = False) -> Iterator[Hop]:
    """Yield the hops of one leg, from an interface to the destination's; `way` tells where it came to."""
    state: State = "ESTABLISHED" if is_answer else "NEW"
    yield from machine(network, here, way.flow)
    for hop in guest(network, here, way.flow, OUTPUT, state):
        yield hop
        way.flow = hop.flow or way.flow
    if way.flow.destination_address in (HOST_ADDRESS, METADATA_ADDRESS):
        yield from platform(network, here, way.flow, is_answer=is_answer)
        return
    if not is_answer and (gateway := network.get(Gateway, here.id)):
        yield through_gateway(network, gateway, way.flow.source_address)
    while True:
        if not is_answer:
            yield from gates(network, here, way.flow, "Outbound")
        try:
            chosen = routed(network, here, way.flow.destination_address)
        except Unread as unread:
            yield Hop("route", here.id, "unknown", unread.reason, missing=unread.missing)
            return
        yield _doubted_route(chosen.hop, here, way, is_answer=is_answer)
        if chosen.leaves_by is not None:
            yield from _departure(network, here, way, chosen.leaves_by, is_answer=is_answer)
            return
        there = chosen.next_interface
        arrives = there is not None and there.has(way.flow.destination_address)
        if chosen.entrance is not None:
            arrives = chosen.entrance.front_end.address == way.flow.destination_address
            there = yield from _member(network, chosen.entrance, here, way)
        if there is None:
            return
        yield from crossing(network, here, there, way.flow)
        if not is_answer:
            yield from inbound(network, there, way.flow)
        firewall = network.get(AzureFirewall, there.id)
        if is_answer and firewall is None and key(there.id) in way.passed:
            way.flow, arrives = way.passed.pop(key(there.id)).reversed(), False
        if arrives and firewall is None:
            way.interface = there
            yield from machine(network, there, way.restored or way.flow)
            yield from guest(network, there, way.restored or way.flow, INPUT, state)
            yield from arrival(network, there, way.flow)
            return
        if key(there.id) in way.appliances or len(way.appliances) == MAX_APPLIANCES:
            reason = f"{there.name} is passed twice: the routes form a loop"
            yield Hop("appliance", there.id, "drop", reason, fault="routing_loop")
            return
        way.appliances = (*way.appliances, key(there.id))
        if firewall is None:
            if not (yield from _through_appliance(network, there, way, state)):
                return
        else:
            hop = _at_firewall(network, firewall, way, is_answer=is_answer)
            yield hop
            if hop.stops or way.flow.destination_address == firewall.address:
                return
        here = there


def _through_appliance(network: Network, there: Interface, way: _Way, state: State) -> Generator[Hop, None, bool]:
    """Yield what an appliance does with a packet that is not for it; return whether it is known where it goes then."""
    for hop in forwarding(network, there, way.flow, state):
        yield hop
        if hop.flow is not None:
            way.passed[key(there.id)], way.flow = way.flow, hop.flow
    number = interfaces_of_machine(network, there)
    if number > 1:
        reason = f"Azure does not show through which of its {number} interfaces {name_of(there.machine or '')} forwards"
        yield Hop("appliance", there.id, "unknown", reason)
    return number <= 1


def _doubted_route(hop: Hop, here: Interface, way: _Way, *, is_answer: bool) -> Hop:
    """Return the hop of a route, unknown where its drop is not certain.

    An appliance may carry a packet on itself; and an answer goes to who sent, so that somebody has the address.
    """
    if not hop.stops:
        return hop
    reason = ""
    if way.appliances and here.is_read:
        reason = f"{hop.reason}, unless {here.name} carries it on itself, as in a tunnel"
    elif is_answer and hop.fault == "address_unused":
        reason = f"{hop.reason} in what was read"
    return replace(hop, verdict="unknown", reason=reason, fault=None) if reason else hop


def _member(network: Network, entrance: Entrance, here: Interface, way: _Way) -> Generator[Hop, None, Interface | None]:
    """Yield what a load balancer does; return the member that takes the packet."""
    balanced = balance(network, entrance, way.flow, here if here.has(way.flow.source_address) else None)
    yield from balanced.hops
    target = _target(way, balanced)
    if target is None:
        return None
    way.flow = target.flow
    return target.interface


def _target(way: _Way, balanced: Balanced) -> Target | None:
    """Return the member that takes the packet; None without one, and where each of several must be walked."""
    if any(hop.stops for hop in balanced.hops):
        return None
    if len(balanced.targets) < 2:
        return next(iter(balanced.targets), None)
    member = way.members.get(balanced.choice)
    target = next((each for each in balanced.targets if each.member == member), None)
    way.fork = balanced if target is None else None
    return target


def _departure(network: Network, here: Interface, way: _Way, leaves_by: Exit, *, is_answer: bool) -> Iterator[Hop]:
    """Yield what a packet meets that leaves the virtual networks: at a public address, it may come back to one."""
    if leaves_by == "gateway":
        hop, way.interface = out_by_gateway(network, here, way.flow.destination_address)
        if is_answer and is_public(way.flow.destination_address):
            reason = f"the answer leaves by a gateway, not as the packet came: {hop.reason}"
            hop = replace(hop, verdict="unknown" if hop.verdict == "pass" else hop.verdict, reason=reason)
        yield hop
        return
    to_public = leaves_by == "internet" and is_public(way.flow.destination_address)
    if is_answer and to_public:
        way.origin = Origin()
        yield Hop("internet", here.id, "pass", "the answer leaves as the packet came: by the same public address")
        return
    left, way.origin = leave(network, here, way.flow, leaves_by)
    yield from left
    if network.toward is not None:
        stopped = any(each.stops for each in left)
        yield from () if stopped else admits(network, network.toward.service, way.origin, way.flow.destination_port)
        return
    if to_public and way.origin is not None:
        yield from _at_public_address(network, way, here)


def _at_public_address(network: Network, way: _Way, sender: Interface | None) -> Iterator[Hop]:
    """Yield what a packet from the internet meets at its destination, if that is a public address of ours."""
    flow, where = way.flow, sender.id if sender else ""
    try:
        balanced = public_entrance(network, flow, sender)
    except Unread as unread:
        yield Hop("internet", where, "unknown", unread.reason, missing=unread.missing)
        return
    if balanced is None:
        reason = f"{flow.destination_address} is not a public address that was read"
        beyond = f"{reason}: Azure does not show what lies beyond the internet"
        yield Hop("internet", where, "pass" if sender else "unknown", beyond if sender else reason)
        return
    yield from balanced.hops
    target = _target(way, balanced)
    if target is None:
        return
    if way.origin is not None:
        addresses = way.origin.addresses or ()
        if len(addresses) != 1:
            reason = f"the address with which it reaches {target.interface.name} is not known"
            yield Hop("public_address", where, "unknown", reason)
            return
        target = replace(target, flow=replace(target.flow, source_address=addresses[0]))
    if (firewall := network.get(AzureFirewall, target.interface.id)) is not None:
        way.flow = target.flow
        yield from _into_firewall(network, firewall, way)
        return
    way.interface, way.flow = target.interface, target.flow
    if closed := closed_by_default(network, target):
        yield closed
    yield from inbound(network, target.interface, target.flow)
    yield from machine(network, target.interface, target.flow)
    yield from guest(network, target.interface, target.flow, INPUT)


def _at_firewall(network: Network, firewall: AzureFirewall, way: _Way, *, is_answer: bool) -> Hop:
    """Return what an Azure Firewall decides; the way remembers what came, and has the flow as it leaves."""
    if is_answer:
        hop, way.flow = back_through_firewall(network, firewall, way.flow, way.passed)
        return hop
    way.passed[key(firewall.id)] = way.flow
    hop, way.flow = through_firewall(network, firewall, way.flow)
    return hop


def _into_firewall(network: Network, firewall: AzureFirewall, way: _Way) -> Iterator[Hop]:
    """Yield the way of a packet that came to a public address of a firewall: where its rules translate it to."""
    way.passed[key(firewall.id)] = way.flow
    hop, way.flow = through_firewall(network, firewall, way.flow, inbound=True)
    yield hop
    if hop.verdict == "rewrite":
        way.appliances, way.origin = (*way.appliances, key(firewall.id)), None
        yield from _leg(network, firewall.interface, way)


def _asymmetry(forward: _Way, back: _Way) -> Iterator[Hop]:
    """Yield the appliances that see one direction only: a stateful one drops what it did not see begin."""
    for interface in sorted({*forward.appliances} ^ {*back.appliances}):
        if back.interface is not None or back.origin is not None:
            seen = (
                "the packet but not its answer" if interface in forward.appliances else "the answer but not the packet"
            )
            reason = f"{name_of(interface)} sees {seen}: it drops it if it keeps state, which Azure does not show"
            yield Hop("appliance", interface, "unknown", reason, leg="return")
