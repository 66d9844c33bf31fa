"""What the guest of a machine does with a packet of a walk: its packet filter, and its listening sockets.

A guest that was not read says nothing: configuration in Azure does not show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Literal

from ghost.net.guest import FORWARD, INPUT, OUTPUT, Hook, Packet, State, evaluate
from ghost.net.guest.listeners import listeners_at
from ghost.net.guest.routes import REJECTS, GuestRoute, select_guest_route
from ghost.net.network import Network
from ghost.net.resources import Guest, Interface
from ghost.net.security import Flow

__all__ = ["FORWARD", "INPUT", "OUTPUT", "GuestDecision", "guest_decisions", "guest_of"]
ECHO_REQUEST = (8, 128)
"""Of ICMP, and for IPv6."""


@dataclass(frozen=True)
class GuestDecision:
    verdict: Literal["pass", "drop", "reject", "rewrite", "unknown"]
    reason: str
    rule: str | None
    fault: str | None
    reference: str
    flow: Flow | None = None
    """Of a rewrite: the packet as it goes on."""
    device: str | None = None
    """Of a route: the guest's interface by which it leaves."""


def guest_of(network: Network, interface: Interface) -> Guest | None:
    return network.get(Guest, interface.machine)


def guest_decisions(
    guest: Guest, flow: Flow, hooks: Sequence[Hook], state: State, *, own: str, loopback: bool = False
) -> Iterator[GuestDecision]:
    """Yield what the filter decides on `hooks`, and for a new packet that comes in, whether something listens.

    `own`: the interface's address, to which masquerading translates.
    """
    device = "lo" if loopback else None
    six = ":" in flow.destination_address
    is_echo = flow.protocol.casefold() == "icmp"
    packet = Packet(
        "icmpv6" if six and is_echo else flow.protocol.casefold(),
        ip_address(flow.source_address),
        ip_address(flow.destination_address),
        flow.source_port,
        flow.destination_port,
        icmp_type=ECHO_REQUEST[six] if is_echo and state == "NEW" else None,
        in_interface="" if "output" in hooks else device,
        out_interface="" if "input" in hooks else device,
    )
    port = flow.destination_port
    if guest.routes is not None and "input" not in hooks and not loopback:
        routed = _routed(guest, guest.routes, flow, made_here="output" in hooks)
        yield routed
        if routed.verdict in ("drop", "reject"):
            return
        packet = replace(packet, out_interface=routed.device)
    if guest.packet_filter is not None:
        addresses = {packet.out_interface or "": (ip_address(own),)}
        found = evaluate(guest.packet_filter, hooks, packet, state, addresses=addresses)
        rule = str(found.decisive) if found.decisive else None
        direction = "out of" if "output" in hooks else "into" if "input" in hooks else "through"
        reason = f"{rule or 'no chain'} {direction} {guest.name}{f': {found.detail}' if found.detail else ''}"
        if found.verdict == "accept":
            port = found.packet.destination_port
            yield _accepted(GuestDecision("pass", reason, rule, None, guest.reference), flow, packet, found.packet)
        else:
            fault = None if found.verdict == "unknown" else "guest_firewall"
            yield GuestDecision(found.verdict, reason, rule, fault, guest.reference)
            return
    if guest.listeners is not None and "input" in hooks and state == "NEW" and flow.has_ports and port is not None:
        protocol = flow.protocol.casefold()
        sockets = [listener for of, listener in guest.listeners if of == protocol]
        heard = listeners_at(sockets, ip_address(flow.destination_address), port)
        what = f"{protocol} port {port} of {guest.name}"
        if heard:
            yield GuestDecision(
                "pass", f"{heard[0].process or 'a socket'} listens on {what}", None, None, guest.reference
            )
        else:
            yield GuestDecision("reject", f"nothing listens on {what}", None, "not_listening", guest.reference)


def _accepted(decision: GuestDecision, flow: Flow, packet: Packet, left: Packet) -> GuestDecision:
    """Return the decision about a packet as its translation left it."""
    if left == packet:
        return decision
    if left.source is None or left.destination is None:
        reason = f"{decision.reason}: to which address it translates is not known"
        return replace(decision, verdict="unknown", reason=reason)
    ends = (str(left.source), left.source_port, str(left.destination), left.destination_port)
    return replace(decision, verdict="rewrite", flow=Flow(flow.protocol, *ends))


def _routed(guest: Guest, routes: Sequence[GuestRoute], flow: Flow, *, made_here: bool) -> GuestDecision:
    """Return whether the guest sends a packet on at all; where it goes then, Azure's routes decide."""
    destination, source = ip_address(flow.destination_address), ip_address(flow.source_address)
    chosen = select_guest_route(routes, destination, guest.routing_rules, source=source)
    by_interface = not made_here and any(rule.in_interface for rule in guest.routing_rules)
    if chosen.kind == "unknown" or by_interface:
        return GuestDecision("unknown", f"which route of {guest.name} leads to {destination} is open", None, None,
                             guest.reference)  # fmt: skip
    if chosen.kind in ("none", *REJECTS):
        what = "no route" if chosen.kind == "none" else f"{chosen.kind} {chosen.route.network if chosen.route else ''}"
        reason = f"{guest.name} does not send to {destination}: {what}"
        return GuestDecision("reject", reason, what, "guest_route", guest.reference)
    hop = chosen.hops[0] if chosen.hops else None
    via = f" via {hop.gateway}" if hop and hop.gateway else ""
    mtu = f", MTU {chosen.route.mtu}" if chosen.route and chosen.route.mtu else ""
    reason = f"{guest.name} sends to {destination} by {hop.device if hop else chosen.kind}{via}{mtu}"
    return GuestDecision("pass", reason, None, None, guest.reference, device=hop.device if hop else None)
