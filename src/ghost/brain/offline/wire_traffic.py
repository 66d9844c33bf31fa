"""What of a capture is about the traffic that is complained about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Candidate, Complaint, End
from ghost.brain.offline.guest_inspection import arrivals, walks_of
from ghost.brain.offline.wire_captures import Captured, Row
from ghost.net import Flow, Interface, Network, is_address, key, name_of

ATTEMPTS: Final = frozenset(("syn_unanswered", "refused", "port_unreachable", "admin_prohibited", "no_answer"))
"""Findings about who asks: in them `who.src` is the client."""
Direction = Literal["forward", "back"]


@dataclass(frozen=True)
class Traffic:
    """The traffic of a candidate as a capture at one machine sees it: before or behind what translates addresses."""

    flows: tuple[Flow, ...]
    port_decides: bool
    """False: nobody stated the port, so that every one between the ends may be meant."""
    protocol: str
    """`tcp`, `udp` or `icmp`; empty: nobody stated it."""
    any_source: bool = False

    def of_ends(self, row: Row) -> Direction | None:
        """Return which way between the two ends a conversation, or the `who` of a finding, goes."""
        source, destination = str(row.get("src")), str(row.get("dst"))
        for flow in self.flows:
            if destination == flow.destination_address and (self.any_source or source == flow.source_address):
                return "forward"
            if source == flow.destination_address and (self.any_source or destination == flow.source_address):
                return "back"
        return None

    def holds(self, finding: Row) -> bool:
        """Return whether a finding is about this traffic. One of the path without a port concerns every port."""
        who, protocol = who_of(finding), str(finding.get("protocol") or "").casefold()
        direction = self.of_ends(who)
        if direction is None or (finding.get("kind") in ATTEMPTS and direction == "back"):
            return False
        if self.protocol == "icmp":
            return protocol not in ("tcp", "udp") and who.get("port") is None
        if {protocol, self.protocol} == {"tcp", "udp"}:
            return False
        return not self.port_decides or port_of(finding) in (None, *(flow.destination_port for flow in self.flows))

    def conversations(self, captured: Captured) -> list[Row]:
        """Return the conversations of this traffic, opened by its source."""
        ports = {flow.destination_port for flow in self.flows}
        return [
            row
            for row in captured.conversations
            if self.of_ends(row) == "forward"
            and self.protocol in ("", str(row.get("protocol")).casefold())
            and (not self.port_decides or self.protocol == "icmp" or row.get("port") in ports)
        ]


@dataclass(frozen=True)
class Wire:
    """What is judged: the traffic of one candidate in one capture."""

    case: Case
    complaint: Complaint
    candidate: Candidate
    captured: Captured
    traffic: Traffic
    there: tuple[str, ...]
    """Ids of the machines to which the traffic is addressed."""

    @property
    def is_translated(self) -> bool:
        """Whether other traffic between the same two machines looks the same here: behind a load balancer."""
        at_source = key(self.captured.machine) == key(self.candidate.source.machine)
        return not at_source and self.candidate.flow not in self.traffic.flows

    @property
    def at_destination(self) -> bool:
        return key(self.captured.machine) in map(key, self.there)

    def end_of(self, finding: Row, *, sends: bool) -> tuple[str, str]:
        """Return label and resource of the end that sends, or receives, the packets of a finding.

        No resource: it is no machine, or one of several behind a load balancer that this capture does not tell.
        """
        forward = self.traffic.of_ends(who_of(finding)) == "forward"
        if forward is sends:
            return self.candidate.source.label, self.candidate.source.machine
        if self.at_destination:
            return self.captured.label, self.captured.machine
        return self.candidate.destination.label, self.there[0] if len(self.there) == 1 else ""


def judged(case: Case, complaint: Complaint, candidate: Candidate, captured: Captured) -> Wire:
    """Return what is judged in a capture; of a source that was not named, the traffic of a client that is seen."""
    network = case.network
    traffic = traffic_at(network, candidate, captured.machine, any_source=not complaint.source_known)
    if traffic.any_source and (client := _client(traffic, captured)) is not None:
        candidate = _from_client(network, candidate, client)
        traffic = traffic_at(network, candidate, captured.machine)
    return Wire(case, complaint, candidate, captured, traffic, arrivals(network, candidate))


def _client(traffic: Traffic, captured: Captured) -> str | None:
    """Return the address of the client that fares worst: one of a finding, then by attempts without an answer."""
    worse = {str(who_of(each).get("src")) for each in captured.findings if traffic.holds(each)}
    rows = traffic.conversations(captured)

    def fares(row: Row) -> tuple[bool, int, int]:
        return str(row.get("src")) in worse, int(row.get("unanswered") or 0), int(row.get("packets") or 0)

    worst = max(rows, key=fares, default=None)
    return None if worst is None else str(worst.get("src"))


def _from_client(network: Network, candidate: Candidate, address: str) -> Candidate:
    found = network.interfaces_with(address)
    machine, interface = (found[0].machine or "", found[0].id) if len(found) == 1 else ("", "")
    source = End(name_of(machine) or address, address, machine, interface, "seen in a capture")
    return replace(candidate, source=source, flow=replace(candidate.flow, source_address=address))


def traffic_at(network: Network, candidate: Candidate, machine: str, *, any_source: bool = False) -> Traffic:
    """Return a candidate's traffic as the guest of a machine meets it, by its walk; by its own addresses where the walk
    does not come there.
    """
    flows = list(dict.fromkeys(_sights(network, candidate, machine)))
    if not flows:
        own = candidate.flow, *(_to_machine(network, candidate, machine))
        flows = [flow for flow in own if is_address(flow.destination_address)]
    protocol = candidate.flow.protocol.casefold()
    decides = candidate.flow.has_ports and not candidate.port_guessed
    stated = candidate.protocol_stated or decides or protocol == "icmp"
    return Traffic(tuple(flows), decides, protocol if stated else "", any_source)


def _sights(network: Network, candidate: Candidate, machine: str) -> Iterator[Flow]:
    for way in walks_of(network, candidate):
        for hop in way.hops:
            if hop.sight is not None and hop.kind == "machine" and key(hop.resource) == key(machine):
                flow = hop.sight.flow if hop.leg == "forward" else hop.sight.flow.reversed()
                if is_address(flow.destination_address):
                    yield flow


def _to_machine(network: Network, candidate: Candidate, machine: str) -> Iterator[Flow]:
    flow = candidate.flow
    if key(machine) == key(candidate.destination.machine):
        for interface in network.all(Interface).values():
            if key(interface.machine or "") == key(machine) and interface.configurations:
                ends = flow.source_address, flow.source_port, interface.address, flow.destination_port
                yield Flow(flow.protocol, *ends)


def who_of(finding: Row) -> Row:
    who = finding.get("who")
    return who if isinstance(who, dict) else {}


def port_of(finding: Row) -> int | None:
    port = who_of(finding).get("port")
    return int(port) if isinstance(port, int) or (isinstance(port, str) and port.isdigit()) else None
