"""What Azure itself says of a rule or a route that is about to be named: IP flow verify and next hop.

Asked only where an answer tells something: of TCP and UDP over IPv4 at a running machine that has the rule or the
route. No answer changes nothing; another one than the walk's makes a cause a likely one.
https://learn.microsoft.com/azure/network-watcher/ip-flow-verify-overview
https://learn.microsoft.com/azure/network-watcher/network-watcher-next-hop-overview
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ghost import net
from ghost.brain.offline.azure_reads import Read, Reading, az, resource_id
from ghost.brain.offline.case import Case, Cause, read
from ghost.brain.offline.steps import Steps
from ghost.net import Flow, Hop, Interface, Machine, Network, Route, VirtualNetwork, Walk, key

MAX_QUESTIONS: Final = 2
ANY_SOURCE_PORT: Final = 60000
ROUTE_KINDS: Final = {
    "route_none",
    "route_missing",
    "address_unused",
    "routing_loop",
    "firewall_asymmetric",
    "peering_disconnected",
    "peering_not_synced",
}
SAME_HOP: Final = {"vnetlocal": "virtualnetwork", "vnetpeering": "virtualnetworkpeering"}
"""What next hop calls otherwise than effective routes."""


@dataclass(frozen=True)
class _Question:
    cause: Cause
    words: tuple[str, ...]
    walked: str
    """What the walk says, as a clause."""
    expected: tuple[str, ...]
    """Answers that agree."""


def ask_azure(case: Case, causes: Iterable[Cause]) -> Steps[tuple[Cause, ...]]:
    """Return the causes with Azure's own opinion; those in `case.causes` are replaced there as well."""
    causes = list(causes)
    asked = {question.words: question for cause in causes for question in _questions(case.network, cause)}
    questions = list(asked.values())[:MAX_QUESTIONS]
    if questions:
        purpose = "Before I name a cause, I ask Azure's own diagnosis for its verdict."
        reads = [Read(each.words, f"Azure's own verdict on {_flow_of(each.cause)[:150]}.") for each in questions]
        readings = yield from read(case, purpose, *reads)
        for question, reading in zip(questions, readings, strict=True):
            opinion = _opinion(case, question, reading)
            causes = [opinion if each is question.cause else each for each in causes]
            case.causes = [opinion if each is question.cause else each for each in case.causes]
    return tuple(causes)


def _flow_of(cause: Cause) -> str:
    return cause.text.partition(" does not get through")[0]


def _opinion(case: Case, question: _Question, reading: Reading) -> Cause:
    """Return the cause after the answer, which is stated; as it was without one."""
    answer, cause = _answer(reading.row()), question.cause
    if answer is None:
        case.notes.append("Azure's own diagnosis gave no answer: the verdict rests on the walk alone.")
        return cause
    asked = "IP flow verify" if "test-ip-flow" in question.words else "next hop"
    if answer.casefold() in question.expected:
        case.state(f"Azure's own {asked} agrees with the walk: {answer}.", *reading.audit_ids)
        if reading in case.earlier.values():
            return cause
        return replace(cause, audit_ids=tuple(dict.fromkeys((*cause.audit_ids, *reading.audit_ids))))
    case.state(
        f"Azure's own {asked} disagrees: it says {answer}, but according to the walk {question.walked}. "
        "The cause is therefore only likely.",
        *reading.audit_ids,
        *cause.audit_ids,
    )
    return replace(cause, likely=True)


def _answer(row: dict[str, Any]) -> str | None:
    """Return `Deny close-legacy-ports` or `VirtualAppliance 10.0.1.4`."""
    if row.get("access"):
        rule = str(row.get("ruleName") or "").rpartition("/")[2]
        return f"{row['access']} {rule.removeprefix('UserRule_').removeprefix('DefaultRule_')}".strip()
    if row.get("nextHopType"):
        return f"{row['nextHopType']} {row.get('nextHopIpAddress') or ''}".strip()
    return None


def _questions(network: Network, cause: Cause) -> Iterator[_Question]:
    if cause.flow is None or ":" in cause.flow.source_address + cause.flow.destination_address:
        return
    walked = net.walk(network, cause.flow)
    for each in (walked, *walked.others):
        stop = next((hop for hop in each.hops if hop.stops and hop.fault == cause.kind), None)
        if stop is None:
            continue
        if cause.kind == "security_rule" and key(stop.resource) == key(cause.resource):
            yield from _about_rule(network, cause, each, stop)
        elif cause.kind in ROUTE_KINDS:
            yield from _about_route(network, cause, each, stop)
        return


def _about_rule(network: Network, cause: Cause, walked: Walk, stop: Hop) -> Iterator[_Question]:
    met = stop.flow or walked.flow
    inbound = stop.direction == "Inbound"
    ports = (met.source_port or ANY_SOURCE_PORT, met.destination_port)
    ends = (f"{met.source_address}:{ports[0]}", f"{met.destination_address}:{ports[1]}")
    near = met.destination_address if inbound else met.source_address
    nic = next((each for each in network.interfaces_with(near) if _has_group(network, each, stop.resource)), None)
    machine = _machine(network, nic)
    if machine is None or not met.has_ports or ports[1] is None:
        return
    local, remote = ends[::-1] if inbound else ends
    words = ("network", "watcher", "test-ip-flow", *machine, "--direction", stop.direction or "Inbound")
    words = az(*words, "--protocol", met.protocol.upper(), "--local", local, "--remote", remote)
    rules = {f"deny {hop.rule}".casefold() for hop in walked.hops if hop.stops and hop.direction == stop.direction}
    yield _Question(cause, words, f"{stop.rule} denies {met}", ("deny", *rules))


def _about_route(network: Network, cause: Cause, walked: Walk, stop: Hop) -> Iterator[_Question]:
    """Ask for the last route that a machine chose before the stop."""
    chosen = None
    for hop in walked.hops:
        if hop.kind == "route" and hop.leg == stop.leg and _machine(network, network.get(Interface, hop.resource)):
            chosen = hop
        if hop is stop:
            break
    nic = network.get(Interface, chosen.resource) if chosen is not None else None
    machine = _machine(network, nic)
    if chosen is None or nic is None or machine is None:
        return
    flow: Flow = walked.flow.reversed() if stop.leg == "return" else walked.flow
    if not net.is_address(flow.destination_address):
        return
    route = net.routes_of(network, nic).select(flow.destination_address)
    if route is not None and chosen.rule != str(route):
        return  # Another destination was looked up: the packet had been translated.
    ends = ("--source-ip", nic.address, "--dest-ip", flow.destination_address)
    words = az("network", "watcher", "show-next-hop", *machine, *ends)
    yield _Question(cause, words, f"{nic.name} sends it to {route or 'nothing'}", (_next_hop(route),))


def _next_hop(route: Route | None) -> str:
    if route is None:
        return "none"
    kind = SAME_HOP.get(route.next_hop_type.casefold(), route.next_hop_type.casefold())
    return f"{kind} {route.next_hop_ip or ''}".strip()


def _machine(network: Network, nic: Interface | None) -> tuple[str, ...] | None:
    """Return the options that name the running machine of an interface; None where Azure answers for none."""
    owner = resource_id(nic.machine) if nic is not None else None
    if nic is None or owner is None or len(owner.names) != 1:
        return None
    known = network.get(Machine, owner.text)
    if known is not None and known.power not in (None, "running"):
        return None
    home = resource_id(next(iter(network.all(Interface).values())).id)
    elsewhere = home is not None and key(home.subscription) != key(owner.subscription)
    several = sum(key(each.machine or "") == key(owner.text) for each in network.all(Interface).values()) > 1
    return (
        *("-g", owner.group, "--vm", owner.name),
        *(("--nic", nic.name) if several else ()),
        *(("--subscription", owner.subscription) if elsewhere else ()),
    )


def _has_group(network: Network, nic: Interface, group: str) -> bool:
    home = network.get(VirtualNetwork, nic.subnet.partition("/subnets/")[0])
    subnet = home.subnet_ids.get(key(nic.subnet)) if home is not None else None
    return key(group) in (key(nic.security_group or ""), key((subnet and subnet.security_group) or ""))
