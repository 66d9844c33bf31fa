"""Verdict of a capture about a candidate's traffic: direction and place of packet loss, other faults, or that it works.

A capture is tier 1: where it shows the traffic working, it overrules what configuration says of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ghost.brain.offline.captured_loss import overtaken, report_loss
from ghost.brain.offline.case import Case, Cause, Layer, confirm, refute
from ghost.brain.offline.complaint import Candidate, Complaint, End
from ghost.brain.offline.guest_inspection import arrivals, inspect_guests, walks_of
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.silent_attempts import judge_unanswered
from ghost.brain.offline.steps import Call, Steps
from ghost.brain.offline.understanding.tenant_names import end_of
from ghost.brain.offline.wire_captures import (
    BRIEF_SECONDS,
    LONG_SECONDS,
    Captured,
    Row,
    Uncaptured,
    capture_at,
    capture_ends,
    known_capture,
)
from ghost.brain.offline.wire_traffic import ATTEMPTS, Wire, judged, port_of, traffic_at, who_of
from ghost.net import Flow, Guest, dns_name, explain, key, kinds_seen_as, known_kinds, name_of
from ghost.text import one_line

LOSS: Final = {"loss", "rto_loss"}
HARMLESS: Final = {"LOW", "INFO"}
AT_AN_END: Final = {"server_application", "server_host", "client"}
"""The `blame` values of a finding that is not about the path."""
DEGRADED: Final = {"slow", "intermittent", "reset"}
"""Complaints about traffic that passes."""
ONE_END_SETTLES: Final = {"refused", "dns"}
"""Complaints that a capture at the source explains. For others it does not tell where packets or answers get lost."""
MAX_PORTS: Final = 3
"""Ports seen in a capture that are walked."""


def examine_wire(case: Case, complaint: Complaint, candidate: Candidate) -> Steps[tuple[Candidate, ...]]:
    """Capture at both ends where directions matter, else at the source, or at the destination if the source is outside
    the tenant or not known; judge.

    Causes of slow transfers may be visible only at the other end: losses of acknowledgements, for example. Returns
    candidates to be walked again: with ports that only the capture shows, or with guests read in place of a capture.
    """
    source = [candidate.source.machine] if candidate.source.machine else []
    there = list(arrivals(case.network, candidate))
    places = [*there[:1], *source] if not complaint.source_known else [*source, *there[:1]]
    if not places:
        case.not_verified("wire", "neither end is a machine of the tenant, so no capture is possible")
        return ()
    if not traffic_at(case.network, candidate, places[0]).flows:
        unknown = f"the address of {candidate.destination.label} is not known, so a capture cannot show its traffic"
        case.not_verified("wire", unknown)
        return ()
    seconds = LONG_SECONDS if complaint.kind in ("intermittent", "reset") else BRIEF_SECONDS
    at_both = complaint.source_known and len(there) == 1 and complaint.kind not in ONE_END_SETTLES
    here, others, captured = yield from _capture(case, candidate, places, seconds, at_both=at_both)
    if not isinstance(captured, Captured):
        if complaint.kind not in DEGRADED and not any(case.network.get(Guest, each) for each in there):
            case.say("Without a capture, the guests of the machines may show the cause.")
            yield from inspect_guests(case, complaint, [candidate])
            return (candidate,)
        return ()
    if seconds < LONG_SECONDS and _needs_longer(judged(case, complaint, candidate, captured)):
        case.say(
            "Requests unanswered at the end of the capture may be answered later, or belong to a connection that a "
            "device on the path no longer tracks: a longer capture shows which."
        )
        longer = yield from capture_at(case, here, str(candidate), LONG_SECONDS)
        captured = longer if isinstance(longer, Captured) else captured
    wire = judged(case, complaint, candidate, captured)
    observed = _observed(wire)
    if any(explain(case.network, each.flow, source=each.source.interface or None) for each in observed):
        return observed
    clean = yield from judge_capture(wire, others)
    if clean and complaint.kind in DEGRADED and others:
        if known_capture(case, others[0], seconds) is None:
            case.say("A clean capture at one end does not prove a clean path, so I capture at the other end too.")
        again = yield from capture_at(case, others[0], str(candidate), seconds)
        if isinstance(again, Captured):
            clean = yield from judge_capture(judged(case, complaint, candidate, again), [])
    causes = [cause for cause in case.causes if cause.hypothesis == LOST]
    layer = case.layers.get("wire")
    if causes:
        confirm(case, LOST, [audit_id for cause in causes for audit_id in cause.audit_ids])
    elif clean and layer is not None and layer.status == "cleared":
        refute(case, LOST, layer.audit_ids)
    return observed


def _capture(
    case: Case, candidate: Candidate, places: Sequence[str], seconds: int, *, at_both: bool
) -> Steps[tuple[str, list[str], Captured | Uncaptured]]:
    """Capture at the first place, at the second too if told so, or in its stead where the first has no capture.

    Returns where it was captured, the places left, and the capture.
    """
    here, *others = places
    if at_both and others:
        captured = yield from capture_ends(case, here, others[0], str(candidate), seconds)
    else:
        captured = yield from capture_at(case, here, str(candidate), seconds)
    if isinstance(captured, Captured) or not others:
        return here, others, captured
    instead = known_capture(case, others[0], seconds)
    if captured.denied and not isinstance(instead, Captured) and not _names(captured.reason, others[0]):
        return here, others, captured
    if instead is None:
        case.say(f"I capture at {name_of(others[0])} instead.")
    return others[0], [], (yield from capture_at(case, others[0], str(candidate), seconds))


def _names(reason: str, machine: str) -> bool:
    """Return whether a person who denied a capture named this machine: as where to capture, since it is the other."""
    return re.search(rf"(?<![\w-]){re.escape(name_of(machine))}(?![\w-])", reason, re.IGNORECASE) is not None


def _needs_longer(wire: Wire) -> bool:
    """Return whether requests have no answer when the capture ends, and none was late."""
    return any(_never_answered(each) for each in wire.captured.findings if wire.traffic.holds(each))


def _never_answered(finding: Row) -> bool:
    return finding.get("kind") == "slow_application" and (finding.get("measured") or {}).get("slow") == 0


def judge_capture(wire: Wire, others: list[str]) -> Steps[bool]:
    """Return whether a capture holds the traffic and shows nothing that explains the complaint. `others`: machines at
    the other end, where it may be captured too.
    """
    clean, besides = True, False
    for finding in wire.captured.findings:
        kind, slight = finding.get("kind"), finding.get("severity") in HARMLESS
        if slight and not (kind in LOSS and wire.complaint.kind in DEGRADED):
            continue
        if kind in LOSS and overtaken(wire, finding):
            continue
        if not wire.traffic.holds(finding):
            if wire.traffic.of_ends(who_of(finding)) is not None:
                _observe(wire, finding)
                besides = True
            continue
        if kind in LOSS and finding.get("blame") not in AT_AN_END:
            report_loss(wire, finding)
        elif kind == "syn_unanswered":
            yield from judge_unanswered(wire, finding, others)
        else:
            _report_fault(wire, finding)
        clean = False
    if not clean:
        return False
    return _report_clean(wire, besides=besides)


# ------------------------------------------------------------------------------- ports that only the capture shows


def _observed(wire: Wire) -> tuple[Candidate, ...]:
    """Return the candidate with the names that have no address, or with the ports that the capture shows, if nobody
    stated one: those without an answer, or the only one.
    """
    asked = wire.candidate
    if named := tuple(_asked_in_vain(wire)):
        return named
    if wire.traffic.port_decides or not asked.flow.has_ports or wire.is_translated:
        return ()
    rows = [row for row in wire.traffic.conversations(wire.captured) if isinstance(row.get("port"), int)]
    unanswered = [row for row in rows if row.get("unanswered")]
    found = []
    for row in (unanswered or (rows if len(rows) == 1 else []))[:MAX_PORTS]:
        protocol = str(row.get("protocol")).capitalize()
        wire.case.say(
            f"No port was stated; the capture shows {protocol.upper()} port {row['port']} between the two ends, so I "
            "walk that."
        )
        flow = replace(asked.flow, protocol=protocol, destination_port=row["port"])
        found.append(replace(asked, flow=flow, port_origin="observed"))
    return tuple(found)


def _asked_in_vain(wire: Wire) -> Iterator[Candidate]:
    """Yield the captured machine with each name that it asks for and that the capture shows not to exist."""
    for finding in wire.captured.findings:
        asked = finding.get("name")
        asking = wire.case.network.interfaces_with(str(who_of(finding).get("src")))
        here = [each for each in asking if key(each.machine or "") == key(wire.captured.machine)]
        if finding.get("kind") != "dns_nxdomain" or not asked or not here or not wire.traffic.holds(finding):
            continue
        with suppress(ValueError):
            name, source = dns_name(str(asked)), end_of(here[0])
            wire.case.say(f"The capture shows that {source.label} cannot resolve {name}, so I check that name.")
            flow = Flow(wire.candidate.flow.protocol, source.address, None, name, None)
            yield Candidate(flow, source, End(name, name, origin="asked for in the capture"))


def _observe(wire: Wire, finding: Row) -> None:
    """Report a fault of other traffic between the ends."""
    port = port_of(finding)
    where = one_line(f"{finding.get('protocol')} port {port}" if port else str(finding.get("protocol")), 40)
    text = (
        f"In addition, the capture at {wire.captured.label} shows on other traffic between the two ends "
        f"({where}): {one_line(str(finding.get('title')), 160)}. This is not {wire.candidate}"
    )
    wire.case.state(f"{text}.", *wire.captured.audit_ids)
    wire.case.observations.append(text)
    wire.case.actions.append(f"If the failing traffic is on {where}, repeat the investigation and name it.")


# ------------------------------------------------------------------------------------------------------ other faults


def _report_fault(wire: Wire, finding: Row) -> None:
    title, detail = one_line(str(finding.get("title")), 160), one_line(str(finding.get("detail")), 240)
    actions = tuple(
        f"On {one_line(str(item.get('run_on')), 60)}: {one_line(str(item.get('command')), 200)}"
        for item in finding.get("remediation") or ()
        if isinstance(item, dict)
    )
    at_an_end = finding.get("blame") in AT_AN_END
    forward = wire.traffic.of_ends(who_of(finding)) == "forward"
    kinds = _open_kinds(wire, finding)
    at_source = (forward if not at_an_end else finding.get("blame") == "client") and finding["kind"] not in ATTEMPTS
    _, resource = wire.end_of(finding, sends=at_source if forward else not at_source)
    text = f"The capture at {wire.captured.label} shows: {title}. {detail}"
    told_by_both, records = _told_by_both(wire, finding)
    text += told_by_both
    if finding["kind"] == "dns_nxdomain":  # the walk of that name tells which record of which zone
        wire.case.state(text, *wire.captured.audit_ids)
        wire.case.not_verified("dns", one_line(title, 160), wire.captured.audit_ids)
        return
    told = known_kinds()[kinds[0]].layer if len(kinds) == 1 and resource else ""
    layer = told or ("guest_firewall" if at_an_end else "wire")
    if layer == "guest_firewall":
        note = "packets pass in both directions; the fault is at an end"
        wire.case.cover("wire", "cleared", wire.captured.audit_ids, note)
    if not told:
        wire.case.state(text, *wire.captured.audit_ids)
        wire.case.not_verified(layer, f"{text} The capture does not show which fault it is, or at which machine")
        wire.case.actions.extend(action for action in actions if action not in wire.case.actions)
        return
    wire.case.blame(
        Cause(
            *(layer, LOST, text, records, actions),
            kind=kinds[0],
            resource=resource,
            port=port_of(finding),
            seen_on=wire.candidate.flow,
            likely=(finding.get("confidence") != "high" and not told_by_both) or _never_answered(finding),
        )
    )


def _told_by_both(wire: Wire, finding: Row) -> tuple[str, tuple[str, ...]]:
    """Return what the capture at the other end adds to a finding, and the records of both."""
    here, comparison = wire.captured, wire.captured.comparison
    if comparison is None:
        return "", here.audit_ids
    if proof := comparison.proof(str(finding["kind"])):
        return f" Both captures: {proof}.", (*here.audit_ids, *comparison.audit_ids)
    for there in wire.case.captures.values():
        if isinstance(there, Captured) and there.comparison is comparison and there.machine != here.machine:
            same = [(each["kind"], who_of(each)) for each in there.findings if "kind" in each]
            if finding.get("blame") == "server_application" and (finding["kind"], who_of(finding)) in same:
                told = f" The capture at {there.label} shows it too: it does not arise on the path."
                return told, (*here.audit_ids, *there.audit_ids)
    return "", here.audit_ids


def _open_kinds(wire: Wire, finding: Row) -> tuple[str, ...]:
    """Return the kinds of fault that a capture shows so and that nothing else rules out: a walk that passes rules out
    what configuration tells, a guest that was read what it decides.
    """
    seen_as = str(finding.get("kind"))
    walks = walks_of(wire.case.network, wire.candidate)
    met = {hop.kind for way in walks for hop in way.hops}
    passes = all(way.outcome == "passes" for way in walks)
    inside = [wire.case.network.get(Guest, each) for each in wire.there]
    filters = any(guest is None or guest.packet_filter is None for guest in inside)
    listens = any(guest is None or guest.listeners is None for guest in inside)
    found = []
    for kind in kinds_seen_as(seen_as):
        layer = known_kinds()[kind].layer
        if kind == "azure_firewall":
            is_open = "firewall" in met and not passes
        elif kind == "guest_firewall":
            is_open = filters and not (seen_as == "port_unreachable" and wire.candidate.flow.protocol == "Udp")
        elif kind == "not_listening":
            is_open = listens and (seen_as != "port_unreachable" or wire.candidate.flow.protocol == "Udp")
        else:
            is_open = layer in ("wire", "load_balancer") or not passes
        found += [kind] if is_open else []
    return tuple(found)


# ---------------------------------------------------------------------------------------------- traffic that works


def _report_clean(wire: Wire, *, besides: bool) -> bool:
    """Clear the wire if the capture contains the traffic and shows no fault; without the traffic it proves nothing."""
    case, audit_ids, where = wire.case, wire.captured.audit_ids, wire.captured.label
    if wire.captured.capture.get("packets") == 0:
        case.not_verified("wire", f"the capture at {where} holds no packets", audit_ids)
        return False
    rows = wire.traffic.conversations(wire.captured)
    if not rows:
        _report_no_traffic(wire)
        return False
    unanswered = sum(int(row.get("unanswered") or 0) for row in rows)
    if unanswered or besides:
        why = f"{unanswered} of its attempts have no answer" if unanswered else "other traffic between the ends fails"
        note = f"the capture at {where} holds packets of {wire.candidate}, but {why}: a fault on the wire is possible"
        case.state(f"{note[0].upper()}{note[1:]}.", *audit_ids)
        case.not_verified("wire", note, audit_ids)
        return False
    is_the_flow = wire.traffic.port_decides and not wire.traffic.any_source and not wire.is_translated
    if is_the_flow and any(row.get("answered") for row in rows):
        vetoed(case, wire.candidate, audit_ids)
    seen = sum(int(row.get("packets") or 0) for row in rows)
    text = f"The capture at {where} shows no fault in {seen} packets of the traffic between the two ends."
    odd = [str(sentence) for finding in wire.captured.findings for sentence in finding.get("unusual") or ()]
    if odd:
        case.state(f"Unusual in that capture: {one_line('; '.join(odd), 400)}.", *audit_ids)
    earlier = case.layers.get("wire")
    case.state(text, *audit_ids)
    case.cover("wire", "cleared", (*(earlier.audit_ids if earlier else ()), *audit_ids), text)
    return True


def vetoed(case: Case, candidate: Candidate, audit_ids: Iterable[str]) -> tuple[Cause, ...]:
    """Take back the causes from configuration for a candidate's flow, which a capture shows working; return them.

    Their hypotheses become contradicted: two results of different tiers disagree about them.
    """
    records = tuple(audit_ids)
    overruled = tuple(cause for cause in case.causes if cause.flow is not None and cause.flow == candidate.flow)
    for cause in overruled:
        case.causes.remove(cause)
        case.statements = [each for each in case.statements if each[0] != cause.text]
        kept = {action for other in case.causes for action in other.actions}
        case.actions = [action for action in case.actions if action not in cause.actions or action in kept]
        text = (
            f"The configuration says: {cause.text.rstrip('.')}. A capture shows {candidate} working, with "
            "new connections that are answered. It is the more reliable of the two (tier 1), so this is not the cause."
        )
        case.state(text, *cause.audit_ids, *records)
        if not any(other.layer == cause.layer for other in case.causes):
            case.layers[cause.layer] = Layer("not_verified", (*cause.audit_ids, *records), text)
            case.gaps.append((cause.layer, "the configuration disagrees with a capture"))
        case.resolved[cause.hypothesis] = "contradict"
        arguments = {
            "action": "contradict",
            "id": cause.hypothesis,
            "audit_ids": list(dict.fromkeys((*cause.audit_ids, *records))),
            "higher_fidelity_source": f"tier 1: the packet capture read in {', '.join(records)}",
            "description": one_line(text, 400),
        }
        case.verdicts.append(Call("manage_hypotheses", arguments))
    return overruled


def _report_no_traffic(wire: Wire) -> None:
    where, flow = wire.captured.label, wire.candidate
    note = (
        f"the capture at {where} holds no packet of {flow}, so it proves nothing about the symptom"
        if flow.flow.protocol.upper() in wire.captured.complete
        else f"the capture at {where} does not show whether it holds packets of {flow}"
    )
    if where == flow.source.label:
        note += f": nothing was sent during the capture, or the guest of {where} does not send them"
    wire.case.state(f"{note[0].upper()}{note[1:]}.", *wire.captured.audit_ids)
    wire.case.not_verified("wire", note, wire.captured.audit_ids)
    wire.case.actions.append(
        f"Reproduce the symptom on {flow.source.label} while the capture runs, for example with "
        f"“{_reproduction(flow)}”, and investigate again."
    )


def _reproduction(candidate: Candidate) -> str:
    address, flow = candidate.destination.address or candidate.destination.label, candidate.flow
    if not flow.has_ports:
        return shlex.join(["ping", "-c", "50", address])
    kind = ["-u"] if flow.protocol.casefold() == "udp" else []
    port = "PORT" if flow.destination_port is None else str(flow.destination_port)
    return f"while sleep 2; do {shlex.join(['nc', '-vz', '-w', '2', *kind, address, port])}; done"
