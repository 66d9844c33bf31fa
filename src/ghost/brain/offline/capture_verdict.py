"""Verdict of a capture about the two ends: direction and place of packet loss, or other faults."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ghost.brain.offline.case import Case, Cause, confirm, refute
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.hypothesis_catalogue import LOST, activate
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Symptom
from ghost.brain.offline.wire_captures import Captured, between, capture_at, of_flow, port_of, talks
from ghost.net import kinds_seen_as, known_kinds
from ghost.text import one_line

LOSS = {"loss", "rto_loss"}
HARMLESS = {"LOW", "INFO"}
GUEST = {"server_application", "server_host", "client"}
"""The `blame` values of a finding that is not about the path."""


MAX_PORTS = 3
"""Observed ports for which the security rules are judged too."""

Gates = Callable[[Symptom], Steps[None]]
"""Judges the security rules for a symptom whose port a capture has shown."""


def examine_wire(case: Case, symptom: Symptom, source: End, destination: End, gates: Gates) -> Steps[None]:
    """Capture at the source, or at the destination if the source is outside the tenant, and judge the findings.

    Causes of slow transfers may be visible only at the other end: losses of acknowledgements, for example.
    """
    activate(case, LOST)
    here, there = (source, destination) if source.machine else (destination, source)
    clean = yield from _captured_clean(case, symptom, here, there, source, destination, gates)
    if clean and symptom.kind == "degraded" and there.machine:
        case.say("A clean capture at one end does not prove a clean path, so I capture at the other end too.")
        yield from _captured_clean(case, symptom, there, here, source, destination, gates)
    causes = [cause for cause in case.causes if cause.hypothesis == LOST]
    wire = case.layers.get("wire")
    if causes:
        confirm(case, LOST, [audit_id for cause in causes for audit_id in cause.audit_ids])
    elif wire is not None and wire.status == "cleared":
        refute(case, LOST, wire.audit_ids)


def _captured_clean(
    case: Case, symptom: Symptom, here: End, there: End, source: End, destination: End, gates: Gates
) -> Steps[bool]:
    """Return whether a capture was made at `here`, contains the symptom's traffic, and shows nothing that explains
    it.
    """
    captured = yield from capture_at(case, symptom, here, there)
    if captured is None:
        return False
    yield from _judge_observed_ports(case, symptom, captured, source, destination, gates)
    clean, seen_besides = True, False
    for finding in between(captured, source, destination):
        kind, slight = finding.get("kind"), finding.get("severity") in HARMLESS
        if slight and not (kind in LOSS and symptom.kind == "degraded"):
            continue
        if not of_flow(finding, symptom):
            _observe(case, symptom, finding, captured)
            seen_besides = True
            continue
        if kind in LOSS:
            _report_loss(case, finding, captured, source, destination)
        elif kind == "syn_unanswered" and str(finding["who"].get("src")) == source.address:
            yield from _unanswered(case, symptom, finding, captured, source, destination)
        else:
            _report_fault(case, finding, captured, source, destination)
        clean = False
    return clean and _report_clean(case, symptom, captured, source, destination, seen_besides)


def _judge_observed_ports(
    case: Case, symptom: Symptom, captured: Captured, source: End, destination: End, gates: Gates
) -> Steps[None]:
    """Judge the security rules for ports seen in the capture, if the symptom states no port."""
    if symptom.port_decides or symptom.protocol == "Icmp":
        return
    rows = [
        row
        for row in talks(captured, symptom, source, destination)
        if str(row.get("src")) == source.address and isinstance(row.get("port"), int)
    ]
    unanswered = [row for row in rows if row.get("unanswered")]
    for row in (unanswered or (rows if len(rows) == 1 else []))[:MAX_PORTS]:
        if row["port"] == symptom.port:
            continue
        protocol = str(row.get("protocol")).capitalize()
        case.say(
            f"No port was stated; the capture shows {protocol.upper()} port {row['port']} between the two ends, so I "
            "judge the security rules for it."
        )
        yield from gates(replace(symptom, port=row["port"], protocol=protocol, port_from="observed"))


def _observe(case: Case, symptom: Symptom, finding: dict[str, Any], captured: Captured) -> None:
    """Report a fault of other traffic than the symptom's."""
    port = (finding.get("who") or {}).get("port")
    where = f"{finding.get('protocol')} port {port}" if port else str(finding.get("protocol"))
    text = (
        f"In addition, the capture at {captured.end.label} shows on other traffic between the two ends "
        f"({one_line(where, 40)}): {one_line(str(finding.get('title')), 160)}. This is not {symptom.flow_name}"
    )
    case.state(f"{text}.", *captured.audit_ids)
    case.observations.append(text)
    case.actions.append(f"If the failing traffic is on {one_line(where, 40)}, repeat the investigation and name it.")


def _report_loss(case: Case, finding: dict[str, Any], captured: Captured, source: End, destination: End) -> None:
    who = finding["who"]
    by_address = {source.address: source.label, destination.address: destination.label}
    sender, receiver = by_address[str(who["src"])], by_address[str(who["dst"])]
    measured = finding.get("measured") or {}
    text = (
        f"Segments from {sender} to {receiver} are lost{_loss_ratio(finding)}, "
        f"{_loss_location(measured, captured.end.label, sender, receiver)}"
    )
    actions = (
        f"Look at what lies on the way from {sender} to {receiver}, in that direction: appliances, host maintenance, "
        "the accelerated networking and CPU of the receiver; the configuration that Azure shows allows the traffic.",
        f"Narrow down where they are lost: capture at both ends at the same time while the symptom is present, with "
        f"the capture target “{sender} to {receiver}”, whose two captures are compared before they are removed.",
    )
    case.blame(
        Cause(
            *("wire", LOST, text, captured.audit_ids, actions, True),
            kind="packet_loss",
            resource=_suffering(finding, source, destination).resource,
            port=port_of(finding),
        )
    )


def _loss_ratio(finding: dict[str, Any]) -> str:
    """Return the loss ratio from the finding's detail, which counts lost and sent segments."""
    measured = finding.get("measured") or {}
    share = measured.get("loss_pct")
    if share is None:
        return ""
    counted = re.match(r"([\d,]+) of ([\d,]+) segments lost", str(finding.get("detail") or ""))
    repeated = measured.get("retransmissions")
    port = (finding.get("who") or {}).get("port")
    seen = f", {repeated} retransmissions seen" if repeated is not None else ""
    seen += f"; port {port}" if port else ""
    if counted:
        lost, sent = (number.replace(",", "") for number in counted.groups())
        return f" ({lost} of {sent} segments, {share}%{seen})"
    lost_in_all = sum(measured.get(f"lost_{side}_capture_point") or 0 for side in ("before", "after"))
    return f" ({f'{lost_in_all} segments, ' if lost_in_all else ''}{share}% of all sent{seen})"


def _loss_location(measured: dict[str, Any], where: str, sender: str, receiver: str) -> str:
    before, after = measured.get("lost_before_capture_point"), measured.get("lost_after_capture_point")
    if after and not before:
        return f"between the capture at {where} and {receiver}."
    if before and not after:
        return f"between {sender} and the capture at {where}."
    if where == sender:
        return f"after they left the interface of {sender}, where the capture saw them."
    return f"before they reached the interface of {where}, where the capture missed them."


def _unanswered(
    case: Case, symptom: Symptom, finding: dict[str, Any], captured: Captured, source: End, destination: End
) -> Steps[None]:
    """Handle SYNs that leave the source without an answer: a second capture shows whether they arrive."""
    port = finding["who"].get("port")
    text = (
        f"{_connection_attempts(finding)} from {source.label} to "
        f"{destination.label}{f' port {port}' if port else ''} are seen "
        f"at {captured.end.label} and never answered"
    )
    if case.causes:
        case.state(f"{text}, which agrees with the cause found.", *captured.audit_ids)
        case.cover("wire", "not_verified", captured.audit_ids, f"{text}, as expected from the cause found")
        return
    if captured.end is destination or destination.machine is None:
        _silent_guest(case, f"{text}.", captured.audit_ids, destination)
        return
    case.state(f"{text}.", *captured.audit_ids)
    case.say("To see whether they arrive I also capture at the other end.")
    arriving = yield from capture_at(case, symptom, destination, source)
    if arriving is None:
        text = f"{text}; whether they arrive could not be verified, so the location of the fault is not known."
        case.blame(Cause("wire", LOST, text, captured.audit_ids))
        return
    both = (*captured.audit_ids, *arriving.audit_ids)
    again = [finding for finding in between(arriving, source, destination) if of_flow(finding, symptom)]
    rows = [
        row
        for row in talks(arriving, symptom, source, destination)
        if port in (None, row.get("port")) and str(row.get("src")) == source.address
    ]
    if any(other.get("kind") == "syn_unanswered" for other in again):
        _silent_guest(case, f"{text}; they do arrive at {destination.label}.", both, destination)
        return
    if rows and not any(row.get("unanswered") for row in rows):
        text = (
            f"{text}; they arrive at {destination.label} and are answered there, so the answers are lost on the way "
            f"back to {source.label}."
        )
        case.blame(Cause("wire", LOST, text, both))
        return
    if rows:
        _silent_guest(case, f"{text}; they do arrive at {destination.label}.", both, destination)
        return
    text = f"{text}; they do not arrive at the interface of {destination.label}, so they are lost in between."
    case.blame(Cause("wire", LOST, text, both))


def _connection_attempts(finding: dict[str, Any]) -> str:
    measured = finding.get("measured") or {}
    sent, repeated = measured.get("syn"), measured.get("syn_retransmitted")
    if not sent:
        return "connection attempts"
    return f"{sent} SYNs" if repeated is None else f"{sent} SYNs in {sent - repeated} connection attempts"


def _silent_guest(case: Case, seen: str, audit_ids: tuple[str, ...], destination: End) -> None:
    text = f"{seen} The guest of {destination.label} does not answer: its firewall drops them, or nothing accepts them."
    advice = (
        f"On {destination.label}: does the service listen (ss -ltn), what does its firewall drop (nft list ruleset)?"
    )
    case.blame(
        Cause(
            *("guest_firewall", LOST, text, audit_ids, (advice,)),
            kind="guest_firewall" if destination.machine else "",  # seen to arrive there
            resource=destination.resource,
            likely=True,
        )
    )
    case.cover("wire", "cleared", audit_ids, f"packets reach {destination.label}; the guest does not answer")


def _report_fault(case: Case, finding: dict[str, Any], captured: Captured, source: End, destination: End) -> None:
    layer = "guest_firewall" if finding.get("blame") in GUEST else "wire"
    title, detail = one_line(str(finding.get("title")), 160), one_line(str(finding.get("detail")), 240)
    actions = tuple(
        f"On {one_line(str(item.get('run_on')), 60)}: {one_line(str(item.get('command')), 200)}"
        for item in finding.get("remediation") or ()
        if isinstance(item, dict)
    )
    text = f"The capture at {captured.end.label} shows: {title}. {detail}"
    case.blame(
        Cause(
            *(layer, LOST, text, captured.audit_ids, actions),
            kind=_kind(str(finding.get("kind")), layer),
            resource=_suffering(finding, source, destination).resource,
            port=port_of(finding),
            likely=finding.get("confidence") != "high" or len(kinds_seen_as(str(finding.get("kind")))) > 1,
        )
    )
    if layer != "wire":
        case.cover("wire", "cleared", captured.audit_ids, "packets pass in both directions; the fault is at an end")


def _kind(finding: str, layer: str) -> str:
    """Return the only kind of fault that a capture shows so, at that layer if there are several; else nothing."""
    kinds = {kind: known_kinds()[kind].layer for kind in kinds_seen_as(finding)}
    if len(kinds) > 1:
        kinds = {kind: of for kind, of in kinds.items() if of == layer}
    return next(iter(kinds)) if len(kinds) == 1 and {*kinds.values()} <= {"wire", "guest_firewall"} else ""


def _suffering(finding: dict[str, Any], source: End, destination: End) -> End:
    """Return the end to which a finding is to be put down; of one of the path, the sender of the packets."""
    if finding.get("blame") in GUEST:
        return source if finding["blame"] == "client" else destination
    return source if str(finding["who"]["src"]) == source.address else destination


def _report_clean(
    case: Case, symptom: Symptom, captured: Captured, source: End, destination: End, seen_besides: bool
) -> bool:
    """Clear the wire if the capture contains the traffic and shows no fault; without the traffic it proves nothing."""
    packets, where = captured.capture.get("packets"), captured.end.label
    if packets == 0:
        case.not_verified("wire", f"the capture at {where} holds no packets", captured.audit_ids)
        return False
    rows = talks(captured, symptom, source, destination)
    if not rows:
        _report_no_traffic(case, symptom, captured, source, destination)
        return False
    unanswered = sum(int(row.get("unanswered") or 0) for row in rows)
    if unanswered or seen_besides:
        why = (
            f"{unanswered} attempts of it have no answer" if unanswered else "other traffic between the ends is broken"
        )
        note = f"the capture at {where} holds packets of {symptom.flow_name}, but {why}, so the wire is not cleared"
        case.state(f"{note[0].upper()}{note[1:]}.", *captured.audit_ids)
        case.not_verified("wire", note, captured.audit_ids)
        return False
    seen = sum(int(row.get("packets") or 0) for row in rows)
    text = f"The capture at {where} shows nothing broken between the two ends in {seen} packets of the traffic."
    earlier = case.layers.get("wire")
    case.state(text, *captured.audit_ids)
    case.cover("wire", "cleared", (*(earlier.audit_ids if earlier else ()), *captured.audit_ids), text)
    return True


def _report_no_traffic(case: Case, symptom: Symptom, captured: Captured, source: End, destination: End) -> None:
    flow = f"{symptom.flow_name} between {source.label} and {destination.label}"
    note = (
        f"the capture at {captured.end.label} holds no packet of {flow}, so it proves nothing about the symptom"
        if symptom.protocol.upper() in captured.complete
        else f"the capture at {captured.end.label} does not show whether it holds packets of {flow}"
    )
    case.state(f"{note[0].upper()}{note[1:]}.", *captured.audit_ids)
    case.not_verified("wire", note, captured.audit_ids)
    case.actions.append(
        f"Reproduce the symptom on {source.label} while the capture runs, for example with "
        f"“{_reproduction(symptom, destination)}”, and investigate again."
    )


def _reproduction(symptom: Symptom, destination: End) -> str:
    address = destination.address or destination.label
    if symptom.protocol == "Icmp":
        return shlex.join(["ping", "-c", "50", address])
    kind = ["-u"] if symptom.protocol == "Udp" else []
    probe = shlex.join(["nc", "-vz", "-w", "2", *kind, address, str(symptom.port or "PORT")])
    return f"while sleep 2; do {probe}; done"
