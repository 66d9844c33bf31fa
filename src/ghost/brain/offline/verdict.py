"""What a capture says about the two ends: which direction loses packets, and where, or what else is broken."""

from __future__ import annotations

from typing import Any

from ghost.brain.offline.case import Case, Cause, confirm, refute
from ghost.brain.offline.ends import End
from ghost.brain.offline.hypotheses import LOST, activate
from ghost.brain.offline.reading import plain
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Symptom
from ghost.brain.offline.wire import Captured, about, capture_at

LOSS = {"loss", "rto_loss"}
HARMLESS = {"LOW", "INFO"}
GUEST = {"server_application", "server_host", "client"}
"""Whom a finding blames when the path is not to blame."""


def examine_wire(case: Case, symptom: Symptom, source: End, destination: End) -> Steps[None]:
    """Captures at the source, or at the destination where the source is outside, and judges what it shows.

    What slows a transfer may be visible at the other end alone: losses of acknowledgements, for one.
    """
    activate(case, LOST)
    here, there = (source, destination) if source.machine else (destination, source)
    clean = yield from _captured_clean(case, symptom, here, there, source, destination)
    if clean and symptom.kind == "degraded" and there.machine:
        case.say("A clean capture at one end is not a clean path, so I look at the other end too.")
        yield from _captured_clean(case, symptom, there, here, source, destination)
    causes = [cause for cause in case.causes if cause.hypothesis == LOST]
    wire = case.layers.get("wire")
    if causes:
        confirm(case, LOST, [audit_id for cause in causes for audit_id in cause.audit_ids])
    elif wire is not None and wire.status == "cleared":
        refute(case, LOST, wire.audit_ids)


def _captured_clean(case: Case, symptom: Symptom, here: End, there: End, source: End, destination: End) -> Steps[bool]:
    """Whether a capture was made at `here` and shows nothing that explains the symptom."""
    captured = yield from capture_at(case, symptom, here, there)
    if captured is None:
        return False
    clean = True
    for finding in about(captured, symptom, source, destination):
        kind, slight = finding.get("kind"), finding.get("severity") in HARMLESS
        if kind in LOSS and (symptom.kind == "degraded" or not slight):
            _lost(case, finding, captured, source, destination)
        elif kind == "syn_unanswered" and str(finding["who"].get("src")) == source.address:
            yield from _unanswered(case, symptom, finding, captured, source, destination)
        elif not slight:
            _broken(case, finding, captured)
        else:
            continue
        clean = False
    return clean and _clean(case, captured)


def _lost(case: Case, finding: dict[str, Any], captured: Captured, source: End, destination: End) -> None:
    who = finding["who"]
    by_address = {source.address: source.label, destination.address: destination.label}
    sender, receiver = by_address[str(who["src"])], by_address[str(who["dst"])]
    measured = finding.get("measured") or {}
    text = (
        f"Segments from {sender} to {receiver} are lost{_how_many(measured)}, "
        f"{_place(measured, captured.end.label, sender, receiver)}"
    )
    actions = (
        f"Look at what lies on the way from {sender} to {receiver}, in that direction: appliances, host maintenance, "
        "the accelerated networking and CPU of the receiver; the configuration that Azure shows allows the traffic.",
        f"Capture at {receiver} too and compare both captures: pcap-forensics CAPTURE-AT-{sender} --compare "
        f"CAPTURE-AT-{receiver}",
    )
    case.blame(Cause("wire", LOST, text, captured.audit_ids, actions))


def _how_many(measured: dict[str, Any]) -> str:
    if measured.get("loss_pct") is None:
        return ""
    repeated, sent = measured.get("retransmissions"), measured.get("data_segments")
    counted = f"; {repeated} retransmissions, {sent} data segments" if repeated is not None and sent else ""
    return f" ({measured['loss_pct']}% of all sent{counted})"


def _place(measured: dict[str, Any], where: str, sender: str, receiver: str) -> str:
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
    """SYNs leave the source and nothing comes back: a second capture tells whether they arrive."""
    sent = (finding.get("measured") or {}).get("syn")
    seen = f"{sent} connection attempts" if sent else "connection attempts"
    text = f"{seen} from {source.label} to {destination.label} are seen at {captured.end.label} and never answered"
    if case.causes:
        case.state(f"{text}, which agrees with the cause found.", *captured.audit_ids)
        case.cover("wire", "not_verified", captured.audit_ids, f"{text}, as the cause found makes it")
        return
    if captured.end is destination or destination.machine is None:
        _silent_guest(case, f"{text}.", captured.audit_ids, destination)
        return
    case.state(f"{text}.", *captured.audit_ids)
    case.say("To see whether they arrive I need the other end too.")
    arriving = yield from capture_at(case, symptom, destination, source)
    if arriving is None:
        text = f"{text}; whether they arrive could not be verified, so the place of the fault is open."
        case.blame(Cause("wire", LOST, text, captured.audit_ids))
        return
    both = (*captured.audit_ids, *arriving.audit_ids)
    again = about(arriving, symptom, source, destination)
    if any(other.get("kind") == "syn_unanswered" for other in again):
        _silent_guest(case, f"{text}; they do arrive at {destination.label}.", both, destination)
        return
    text = f"{text}; they do not arrive at the interface of {destination.label}, so they are lost in between."
    case.blame(Cause("wire", LOST, text, both))


def _silent_guest(case: Case, seen: str, audit_ids: tuple[str, ...], destination: End) -> None:
    text = f"{seen} The guest of {destination.label} does not answer: its firewall drops them, or nothing accepts them."
    advice = (
        f"On {destination.label}: does the service listen (ss -ltn), what does its firewall drop (nft list ruleset)?"
    )
    case.blame(Cause("guest_firewall", LOST, text, audit_ids, (advice,)))
    case.cover("wire", "cleared", audit_ids, f"packets reach {destination.label}; it is the guest that does not answer")


def _broken(case: Case, finding: dict[str, Any], captured: Captured) -> None:
    layer = "guest_firewall" if finding.get("blame") in GUEST else "wire"
    title, detail = plain(str(finding.get("title")), 160), plain(str(finding.get("detail")), 240)
    actions = tuple(
        f"On {plain(str(item.get('run_on')), 60)}: {plain(str(item.get('command')), 200)}"
        for item in finding.get("remediation") or ()
        if isinstance(item, dict)
    )
    text = f"The capture at {captured.end.label} shows: {title}. {detail}"
    case.blame(Cause(layer, LOST, text, captured.audit_ids, actions))
    if layer != "wire":
        case.cover(
            "wire", "cleared", captured.audit_ids, "packets pass in both directions; what is broken is at an end"
        )


def _clean(case: Case, captured: Captured) -> bool:
    packets = captured.capture.get("packets")
    if packets == 0:
        case.not_verified("wire", f"the capture at {captured.end.label} holds no packets", captured.audit_ids)
        return False
    numbers = next((str(f.get("detail")) for f in captured.findings if f.get("kind") == "none"), "")
    counted = f" in {packets} packets" if packets else ""
    text = (
        f"The capture at {captured.end.label} shows nothing broken between the two ends{counted}. {plain(numbers, 240)}"
    )
    earlier = case.layers.get("wire")
    case.state(text.strip(), *captured.audit_ids)
    case.cover("wire", "cleared", (*(earlier.audit_ids if earlier else ()), *captured.audit_ids), text.strip())
    return True
