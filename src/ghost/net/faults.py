"""The faults of a walk, each with its counterfactual: the change is applied and the packet walked again.

A second, independent fault is found by walking on as if the first were mended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ghost.net.changes import (
    AddRule,
    AllowForwarded,
    ConnectPeering,
    EnableForwarding,
    RemoveAdminRule,
    RemoveRoute,
    RemoveRule,
    StartMachine,
)
from ghost.net.firewall import AzureFirewall
from ghost.net.hops import Hop, Mend, Outcome, Walk
from ghost.net.names.changes import ApproveEndpoint
from ghost.net.names.records import PrivateEndpoint
from ghost.net.network import Network, Unread
from ghost.net.resources import EffectiveGroups, Interface, RouteTable, RuleSet, VirtualNetwork, key
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Flow, SecurityRule
from ghost.net.walks import walk

MAX_FAULTS: Final = 10
MIN_PRIORITY, MAX_PRIORITY = 100, 4096
DERIVED: Final = {"balancer_no_healthy_member"}
"""Faults that follow from those before them in a walk."""
UNLED: Final = {"route_none", "route_missing", "peering_disconnected", "peering_not_synced", "gateway_not_used"}
"""Faults of a packet that no route leads on."""


@dataclass(frozen=True)
class Fault:
    hop: Hop
    """What stops the packet."""
    mend: Mend | None
    """The change with which the packet passes this hop; None if none is known."""
    outcome: Outcome
    """Of the walk with this change and those of the faults before it."""
    derived: tuple[str, ...] = ()
    """Kinds of fault in the same walk that only follow from this one."""
    route: tuple[str, str] | None = None
    """Of a fault of a table's route: the id of the table, and the name of the route."""

    @property
    def kind(self) -> str:
        return self.hop.fault or self.hop.kind

    @property
    def resource(self) -> str:
        """The id of what is to be corrected: of a route of a table, the table, wherever the packet met it."""
        return self.route[0] if self.route else self.hop.resource

    @property
    def rule(self) -> str:
        """The rule, route or setting of it; empty without one."""
        return self.route[1] if self.route else self.hop.rule or ""


def explain(network: Network, flow: Flow, *, source: str | None = None) -> list[Fault]:
    """Return the faults in the order in which the packet meets them; empty if it passes or nothing certain stops it."""
    faults: list[Fault] = []
    walked = walk(network, flow, source=source)
    while (blocker := _blocker(walked)) is not None and len(faults) < MAX_FAULTS:
        derived = tuple(hop.fault for hop in walked.hops if hop is not blocker and hop.fault in DERIVED and hop.fault)
        mended, route = next(_mended(network, walked, blocker, flow, source), None), _route_of_table(network, blocker)
        if mended is None:
            faults.append(Fault(blocker, None, walked.outcome, derived, route))
            break
        change, changed, walked = mended
        faults.append(Fault(_waiting(network, blocker, change), change, walked.outcome, derived, route))
        network = changed
    return faults


def _waiting(network: Network, blocker: Hop, change: Mend) -> Hop:
    """Return what stops the packet; of the closed public way, the endpoint whose approval opens another one."""
    if not isinstance(change, ApproveEndpoint) or blocker.fault != "service_public_access_disabled":
        return blocker
    endpoint = network.one(PrivateEndpoint, change.endpoint)
    references = tuple(dict.fromkeys((*blocker.references, endpoint.reference)))
    fault, state = "private_endpoint_not_approved", ", ".join(endpoint.statuses)
    return replace(blocker, fault=fault, resource=endpoint.id, rule=state, references=references)


def _blocker(walked: Walk) -> Hop | None:
    """Return what stops the packet first; of a default rule, what it follows from.

    VirtualNetwork holds what routes lead to: the default rules deny a packet on its way out that none leads on.
    https://learn.microsoft.com/azure/virtual-network/service-tags-overview
    """
    stop = walked.first_stop
    if stop is None or stop.fault != "security_rule" or not stop.is_default_rule or stop.direction != "Outbound":
        return stop
    after = itertools.dropwhile(lambda hop: hop is not stop, walked.hops)
    led = next((hop for hop in after if hop.kind != "security_group"), stop)
    return led if led.fault in UNLED else stop


def _mended(
    network: Network, stopped: Walk, blocker: Hop, flow: Flow, source: str | None
) -> Iterator[tuple[Mend, Network, Walk]]:
    """Yield the changes with which the packet is no longer stopped at this place, the smallest first."""
    for change in _changes(network, blocker, stopped.flow):
        try:
            changed = change.applied(network)
        except Unread:
            continue
        walked = walk(changed, flow, source=source)
        stop = _blocker(walked)
        if stop is None or not (_place(stop) == _place(blocker) or _replaces(network, change, stop)):
            yield change, changed, walked


def _replaces(network: Network, change: Mend, stop: Hop) -> bool:
    """Return whether a packet is stopped for want of the route that was removed: it must be corrected, not removed."""
    if not isinstance(change, RemoveRoute) or stop.kind not in ("route", "peering"):
        return False
    others = [str(route) for route in network.one(RouteTable, change.table).routes]
    return key(_table_at(network, stop) or "") == key(change.table) and stop.rule not in others


def _place(hop: Hop) -> tuple[str, ...]:
    return hop.leg, hop.kind, key(hop.resource), hop.direction or "", hop.fault or ""


def _changes(network: Network, hop: Hop, flow: Flow) -> Iterator[Mend]:
    yield from hop.mends
    match hop.fault:
        case "security_rule":
            if hop.rule is not None and not hop.is_default_rule:
                yield RemoveRule(hop.resource, hop.rule)
            priority = _free_priority(network, hop)
            if priority is not None:
                yield AddRule(hop.resource, _allowing(hop, flow, priority))
        case "admin_rule":
            yield RemoveAdminRule(hop.resource)
        case "route_none" | "route_missing" | "address_unused":
            if (route := _route_of_table(network, hop)) is not None:
                yield RemoveRoute(*route)
        case "peering_disconnected":
            home = network.one(VirtualNetwork, hop.resource)
            for peering in home.peerings:
                if not peering.is_connected or peering.name == hop.rule:
                    yield ConnectPeering((home.id, peering.remote))
        case "peering_forwarded":
            home = network.one(VirtualNetwork, hop.resource)
            yield from (AllowForwarded(home.id, p.remote) for p in home.peerings if p.name == hop.rule)
        case "ip_forwarding_off":
            yield EnableForwarding(hop.resource)
        case "dns_server_unreachable":
            asked = Flow("Udp", flow.source_address, None, hop.rule or "", 53)
            for stop in (each for each in walk(network, asked, source=hop.resource).hops if each.stops):
                yield from _changes(network, stop, asked)
        case "machine_stopped":
            yield StartMachine(hop.resource)


def _route_of_table(network: Network, hop: Hop) -> tuple[str, str] | None:
    """Return the table's id and the route's name, where a route of the subnet's table decided."""
    table = _table_at(network, hop)
    try:
        routes = network.one(RouteTable, table).routes if table else ()
    except Unread:
        return None
    for route in routes:
        if hop.rule == str(route) and route.name:
            return table or "", route.name
    return None


def _table_at(network: Network, hop: Hop) -> str | None:
    """Return the id of the route table where a packet is routed; None without one, or if it is not known."""
    found = network.get(Interface, hop.resource) or network.get(AzureFirewall, hop.resource)
    interface = found.interface if isinstance(found, AzureFirewall) else found
    try:
        return network.subnet_of(interface)[1].route_table if interface is not None else None
    except Unread:
        return None


def _free_priority(network: Network, hop: Hop) -> int | None:
    """Return the last priority before the rule that denies that Azure takes and no rule of the direction has."""
    known = network.get(RuleSet, hop.resource)
    groups = [known.rules] if known is not None else [
        group.rules for computed in network.all(EffectiveGroups).values() for group in computed.groups
        if key(group.name) == key(hop.resource)
    ]  # fmt: skip
    taken = {rule.priority for rules in groups for rule in rules if rule.direction == hop.direction}
    before = min(hop.priority or FIRST_DEFAULT_PRIORITY, MAX_PRIORITY + 1)
    return next((each for each in range(before - 1, MIN_PRIORITY - 1, -1) if each not in taken), None)


def _allowing(hop: Hop, flow: Flow, priority: int) -> SecurityRule:
    """Return a rule that lets exactly this flow pass; one that is translated to any of the group's machines, since it
    may be for each member of a pool.
    """
    to = flow.destination_address if hop.flow in (None, flow) else "*"
    flow = hop.flow or flow
    port = "*" if flow.destination_port is None else str(flow.destination_port)
    return SecurityRule(
        "allow-flow",
        priority,
        hop.direction or "Inbound",
        "Allow",
        flow.protocol,
        source_prefixes=(flow.source_address,),
        destination_prefixes=(to,),
        destination_ports=(port,),
    )
