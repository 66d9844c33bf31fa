"""The whole investigation: symptom, scope, one stage per layer, the wire, the conclusion.

A stage concerns only its own layer and the next one always follows, so that two faults give two findings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ghost.brain.offline import complaint
from ghost.brain.offline.capture_verdict import examine_wire
from ghost.brain.offline.case import Case, ask
from ghost.brain.offline.complaint import StatedEnds
from ghost.brain.offline.conclusion import (
    conclude,
    conclude_name,
    conclude_same,
    conclude_unresolved,
    conclude_without_port,
)
from ghost.brain.offline.dns_resolution import check_name, look_up, with_address
from ghost.brain.offline.endpoint_resolution import find_ends, nobody
from ghost.brain.offline.endpoints import inspect_ends, settle_presence
from ghost.brain.offline.hypothesis_catalogue import register_all
from ghost.brain.offline.local_probe import probe
from ghost.brain.offline.routing import check_peering, check_routes
from ghost.brain.offline.security_rules import check_gates, settle_gates
from ghost.brain.offline.service_endpoints import check_service
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Symptom, parse_symptom, with_service
from ghost.brain.offline.tenant import read_tenant
from ghost.net import Flow


def investigate(text: str, suspected: Sequence[str] = (), stated: StatedEnds | None = None) -> Steps[None]:
    """Run the investigation. `suspected`: layers named by memory, most likely first; decides which of two independent
    stages runs first.
    """
    symptom = parse_symptom(f"{text} {stated or ''}".strip())
    case = Case(symptom.text)
    case.say(f"I understand the symptom as {symptom.flow_name}, {symptom.kind}.")
    if symptom.invalid_port:
        symptom = yield from _valid_port(case, symptom)

    tenant = yield from read_tenant(case, symptom)
    if symptom.invalid_port:
        yield from conclude_without_port(case, symptom, tenant)
        return
    name = yield from look_up(case, symptom, tenant)
    if name is not None and name.nowhere and symptom.kind == "dns":
        yield from conclude_name(case, symptom, name, tenant)
        return
    ends = yield from find_ends(case, with_address(symptom, name), tenant)
    if ends.missing and name is not None and name.nowhere:
        yield from conclude_name(case, symptom, name, tenant)
        return
    if ends.same:
        yield from conclude_same(case, symptom, ends.same, tenant)
        return
    if ends.missing:
        yield from conclude_unresolved(case, symptom, ends, tenant)
        return
    symptom = yield from _port(case, symptom, ends.destination.label)

    case.ends = ends.source.label, ends.destination.label
    register_all(case, symptom, ends.source.label, ends.destination.label)
    yield from probe(case, ends.source, ends.destination)
    source, destination = yield from inspect_ends(case, ends.source, ends.destination)
    tags = yield from check_peering(case, source, destination)
    if _routes_first(case, suspected):
        yield from check_routes(case, tenant, source, destination)
        yield from check_gates(case, symptom, source, destination, tags)
    else:
        yield from check_gates(case, symptom, source, destination, tags)
        yield from check_routes(case, tenant, source, destination)
    check_name(case, name, source, destination)
    settle_presence(case, source, destination)
    yield from check_service(case, destination)

    if not case.causes or symptom.kind == "degraded":
        here, there = (
            complaint.End(end.label, end.address, end.machine_id, end.interface.text if end.interface else "")
            for end in (source, destination)
        )
        flow = Flow(symptom.protocol, here.address, None, there.address, symptom.port)
        asked = complaint.Candidate(flow, here, there, port_origin="stated" if symptom.port_decides else "")
        kind: complaint.Kind = "slow" if symptom.kind == "degraded" else "unreachable"
        yield from examine_wire(case, complaint.Complaint(text, kind, ((asked,),)), asked)
    settle_gates(case)
    yield from conclude(case, symptom)


def _routes_first(case: Case, suspected: Sequence[str]) -> bool:
    """Return whether routes are read before rules. Both are always read; each takes Azure seconds."""
    likely = [layer for layer in suspected if layer in ("routes", "nsg_outbound", "nsg_inbound")]
    if likely[:1] == ["routes"]:
        case.say("Memory (not evidence) names routing in the most similar earlier incident: I check routes first.")
        return True
    return False


def _valid_port(case: Case, symptom: Symptom) -> Steps[Symptom]:
    answer = yield from ask(
        case, f"{symptom.invalid_port} is not a port: ports are 1 to 65535. Which port is meant? For example: 443."
    )
    return symptom if nobody(answer) else with_service(symptom, answer)


def _port(case: Case, symptom: Symptom, destination: str) -> Steps[Symptom]:
    """Return the symptom with a port, asking for it if neither stated nor implied, since rules depend on it."""
    if symptom.port is not None or symptom.protocol == "Icmp":
        return symptom
    implied = with_service(symptom, destination)
    if implied.port is not None:
        return implied
    if symptom.kind == "dns":
        return symptom
    answer = yield from ask(case, f"Which port of {destination} is affected? For example: 443, or udp 53.")
    return symptom if nobody(answer) else with_service(symptom, answer)
