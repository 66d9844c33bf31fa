"""What becomes of a conversation's packets: where captures see them and as what, and what ends them.

`ghost.net.walk` decides. What it cannot know, the world tells: who is outside, and what its listeners do. Captures run
in guests, inside all security groups: what a group denies is seen at its source, what a guest's own filter drops on
its way in is seen there, what it drops on its way out is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, get_args

from ghost.lab.wire.conditions import Conditions, OutsideHost, ServiceFault, WireFault
from ghost.lab.wire.refusals import Refusal, refusal_of
from ghost.net import HOST_ADDRESS, Flow, Hop, Interface, Network, Walk, is_address, name_of, walk

Outcome = Literal["accepted", "refused", "rejected", "dropped", "answer lost"]
Experience = Literal["works", "slow", "lossy", "broken", "refused", "blocked"]
"""From good to bad."""

IN_A_GUEST = {"machine", "guest", "appliance", "interface"}
UNTOLD = {"internet", "gateway", "interface", "nat"}
"""Kinds of hop with which a way ends where nothing of Azure's answers."""
NOTICED_LOSS = 0.005
NOTICED_SHARE = 0.02
"""Of packets that are overtaken or come twice."""
NOTICED_DELAY_MS = 100.0


@dataclass(frozen=True)
class Sighting:
    """A packet at an interface of a machine."""

    interface: str
    """The id; of the machine too."""
    machine: str
    flow: Flow
    """As the packet is there."""
    outgoing: bool

    @property
    def name(self) -> str:
        return name_of(self.machine)

    def mirrored(self) -> Sighting:
        return replace(self, flow=self.flow.reversed(), outgoing=not self.outgoing)


@dataclass(frozen=True)
class Passage:
    """The way of a first packet and its answer.

    `refused`: nothing listens; `rejected`: a packet filter says no; `answer lost`: it arrives, the answer does not.
    """

    flow: Flow
    outcome: Outcome
    reason: str
    hop: Hop | None = None
    """What ends it."""
    forward: tuple[Sighting, ...] = ()
    backward: tuple[Sighting, ...] = ()
    answers_with: str = ""
    """Of a refusal or rejection, as packet filters name it: `tcp reset`, `icmp admin-prohibited`."""
    far: OutsideHost | None = None
    """The destination, where it is outside."""
    refusal: Refusal | None = None
    """With what a platform service refuses, after it accepted the connection."""

    def seen_by(self, machine: str) -> bool:
        return any(sighting.name == machine for sighting in (*self.forward, *self.backward))

    @property
    def host(self) -> str:
        """Return who gets the packets: a machine by name, an outside host by address."""
        return next(reversed(self.parties(self.forward)), "")

    @property
    def port(self) -> int | None:
        """Return the port at which that host gets them: behind a load balancer another one than was asked for."""
        return (self.forward[-1].flow if self.forward else self.flow).destination_port

    def parties(self, ways: Sequence[Sighting]) -> tuple[str, ...]:
        """Return the hosts of one direction in order: machines by name, outside hosts by address."""
        met = [sighting.name for sighting in ways]
        if ways and not ways[0].outgoing:
            met.insert(0, self.far.address if self.far and ways is self.backward else ways[0].flow.source_address)
        if ways and ways[-1].outgoing:
            met.append(self.far.address if self.far and ways is self.forward else ways[-1].flow.destination_address)
        return tuple(dict.fromkeys(met))

    def links(self, ways: Sequence[Sighting], conditions: Conditions) -> tuple[WireFault, ...]:
        """Return what befalls packets on each link of one direction."""
        names = self.parties(ways)
        return tuple(conditions.on_wire(name, names[at + 1 :]) for at, name in enumerate(names[:-1]))


def ways_of(network: Network, flow: Flow, conditions: Conditions, *, source: str | None = None) -> tuple[Passage, ...]:
    """Return what becomes of a flow: one passage, or one for each member of a pool that may take a connection.

    `source`: id of the interface that sends, where several have its address.
    """
    walked = walk(network, flow, source=source)
    return tuple(_passage(network, _as_sent(way), conditions) for way in _ways(walked))


def experience(ways: Sequence[Passage], conditions: Conditions, lookup: Sequence[Passage] = ()) -> Experience:
    """Return what people say about connections, of which each takes one of the ways.

    `lookup`: the ways to the DNS server that is asked first.
    """
    asked = _said(lookup, conditions) if lookup else "works"
    return max(_said(ways, conditions), asked, key=get_args(Experience).index)


def _said(ways: Sequence[Passage], conditions: Conditions) -> Experience:
    said = {_said_of(way, conditions) for way in ways}
    if len(said) > 1 and said & {"blocked", "refused"}:
        return "broken" if said - {"blocked", "refused"} else "blocked"
    return max(said, key=get_args(Experience).index)


def _said_of(way: Passage, conditions: Conditions) -> Experience:
    if way.outcome != "accepted" or way.refusal is not None:
        return "refused" if way.answers_with in ("tcp reset", PORT_UNREACHABLE) else "blocked"
    links = [*way.links(way.forward, conditions), *way.links(way.backward, conditions)]
    served = conditions.of_service(way.host, way.port)
    if any(_breaks(link) for link in links) or (served is not None and _fails(served)):
        return "broken"
    if any(link.loss >= NOTICED_LOSS for link in links):
        return "lossy"
    waits = sum(link.delay_ms + link.jitter_ms for link in links)
    late = served is not None and (served.answers_after_ms >= NOTICED_DELAY_MS or served.reads_bytes is not None)
    spread = any(max(link.reordered, link.duplicated) >= NOTICED_SHARE for link in links)
    return "slow" if late or spread or waits >= NOTICED_DELAY_MS else "works"


def _breaks(link: WireFault) -> bool:
    stuck = link.mtu is not None and not link.mtu_told
    return stuck or link.idle_seconds is not None or bool(link.resets_on) or link.snat_ports is not None


def _fails(service: ServiceFault) -> bool:
    hangs = service.reads_bytes is not None and service.reads_again_after_seconds is None
    return hangs or bool(service.ends or service.tls or service.dns or (service.http_status or 0) >= 500)


# ------------------------------------------------------------------------------------------------------- one way


def dns_server(network: Network, interface: Interface) -> str:
    """Return the server that a machine asks first."""
    servers = interface.dns_servers or network.subnet_of(interface)[0].dns_servers
    return next(iter(servers), HOST_ADDRESS)


def _ways(walked: Walk) -> Iterator[Walk]:
    yield walked
    for other in walked.others:
        yield from _ways(other)


def _passage(network: Network, walked: Walk, conditions: Conditions) -> Passage:
    forward, stop = _sightings(network, (hop for hop in walked.hops if hop.leg == "forward"))
    flow = walked.flow
    if stop is not None:
        refusal = refusal_of(stop, flow.destination_port) if flow.protocol.casefold() == "tcp" else None
        if refusal is not None and forward and forward[-1].outgoing:
            met = _to_outside(walked, forward, None, conditions)
            if met.outcome == "accepted":
                return replace(met, reason=stop.reason, hop=stop, refusal=refusal)
        outcome: Outcome = "dropped"
        if stop.verdict == "reject":
            outcome = "refused" if stop.fault == "not_listening" else "rejected"
        with_what = _answer_of(stop, flow) if stop.verdict == "reject" else ""
        forward = _sent_to(forward, flow.destination_address)
        return Passage(flow, outcome, stop.reason, stop, forward, _mirrored(forward), with_what)
    answer = [hop for hop in walked.hops if hop.leg == "return"]
    back, stop = _sightings(network, answer)
    if not any(hop.sight for hop in answer):  # A private endpoint answers, which no guest sees.
        back = _mirrored(forward)
    if forward and forward[-1].outgoing:
        return _to_outside(walked, forward, stop, conditions)
    if stop is not None:
        return Passage(flow, "answer lost", stop.reason, stop, forward, back)
    if forward and forward[0].outgoing and not any(each.interface == forward[0].interface for each in back):
        back = (*back, forward[0].mirrored())
    return Passage(flow, "accepted", "answered", None, forward, back)


def _as_sent(walked: Walk) -> Walk:
    """Return the way of the packets that a machine sends to a wrong address, where a name leads to one."""
    if not any(hop.sight for hop in walked.hops):
        return walked
    return replace(walked, hops=tuple(hop for hop in walked.hops if hop.kind != "zone"))


def _sightings(network: Network, hops: Iterable[Hop]) -> tuple[tuple[Sighting, ...], Hop | None]:
    """Return where a leg's packet is seen, and the hop that stops it."""
    seen: list[Sighting] = []
    leaving: Sighting | None = None
    for hop in hops:
        if leaving is not None and hop.kind not in IN_A_GUEST:
            seen.append(leaving)
            leaving = None
        if hop.stops:
            if hop.fault == "ip_forwarding_off":  # Azure drops it before the guest.
                seen.pop()
            return tuple(seen), hop
        if hop.sight is not None:
            leaving = Sighting(hop.sight.interface, hop.resource, hop.sight.flow, outgoing=True)
            sender = network.get(Interface, hop.sight.interface)
            if sender is None or not sender.has(hop.sight.flow.source_address):
                seen.append(replace(leaving, outgoing=False))
    return tuple(seen), None


def _mirrored(ways: Sequence[Sighting]) -> tuple[Sighting, ...]:
    return tuple(each.mirrored() for each in reversed(ways))


def _sent_to(forward: tuple[Sighting, ...], name: str, address: str = "") -> tuple[Sighting, ...]:
    """Return the sightings with an address in place of the one that stood for that of a public name."""
    if is_address(name):
        return forward
    to = address or public_address(name)
    return tuple(replace(each, flow=replace(each.flow, destination_address=to)) for each in forward)


def _to_outside(walked: Walk, forward: tuple[Sighting, ...], stop: Hop | None, conditions: Conditions) -> Passage:
    """Return the passage to a host that is none of the interfaces; its answers come as the packets went."""
    flow, last = walked.flow, [hop for hop in walked.hops if hop.leg == "forward"][-1]
    far = conditions.outside_host(flow.destination_address) or conditions.outside_host(
        forward[-1].flow.destination_address
    )
    if far is None and last.kind not in UNTOLD:  # A service of Azure's: what admits a packet, answers it.
        known = flow.destination_address
        address = known if is_address(known) else public_address(known)
        far = OutsideHost(address, known, (flow.destination_port or 0,), hops=9, delay_ms=1.2)
    if far is None:
        reason = f"nobody is at {flow.destination_address}"
        return Passage(flow, "dropped", reason, last, forward)
    forward = _sent_to(forward, flow.destination_address, far.address)
    back = _mirrored(forward)
    if stop is not None:
        return Passage(flow, "answer lost", stop.reason, stop, forward, back, far=far)
    if flow.destination_port is None or flow.destination_port in far.ports:
        return Passage(flow, "accepted", f"{far.name or far.address} answers", None, forward, back, far=far)
    reason = f"{far.name or far.address} does not serve port {flow.destination_port}"
    with_what = ("tcp reset" if flow.protocol.casefold() == "tcp" else PORT_UNREACHABLE) * (far.others == "refused")
    return Passage(flow, far.others, reason, last, forward, back, with_what, far)


PORT_UNREACHABLE = "icmp port-unreachable"


def _answer_of(stop: Hop, flow: Flow) -> str:
    """Return what a reject sends back. A packet filter's is the end of its reason."""
    if stop.fault == "not_listening":
        return "tcp reset" if flow.protocol.casefold() == "tcp" else PORT_UNREACHABLE
    if stop.fault == "guest_route":
        return "icmp host-unreachable"
    return stop.reason.rpartition(": ")[2]


def public_address(name: str) -> str:
    """Return an address for a name that nobody gave one."""
    third, fourth = sha256(name.encode()).digest()[:2]
    return f"20.60.{third}.{max(fourth, 1) % 255}"
