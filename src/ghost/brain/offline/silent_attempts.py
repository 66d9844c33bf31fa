"""Connection attempts without an answer: whether they arrive, and whether answers leave, tells whose fault it is."""

from __future__ import annotations

from ghost.brain.offline.case import Cause
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.wire_captures import Captured, Row, capture_at
from ghost.brain.offline.wire_traffic import Wire, judged, port_of
from ghost.net import Guest, key


def judge_unanswered(wire: Wire, finding: Row, others: list[str]) -> Steps[None]:
    """Judge attempts without an answer: a second capture shows whether they arrive, and whether answers leave."""
    case, here = wire.case, wire.captured
    port = port_of(finding)
    source, destination = wire.candidate.source.label, wire.candidate.destination.label
    text = f"{_attempts(finding)} from {source} to {destination}{f' port {port}' if port else ''}"
    if (finding.get("measured") or {}).get("syn_ack"):
        _answers_lost(wire, f"{text} are answered, and the answers are never acknowledged", here.audit_ids)
        return
    answered = sum(int(row.get("answered") or 0) for row in wire.traffic.conversations(here))
    ending = f"not answered, {answered} others are" if answered else "never answered"
    text = f"{text} are seen at {here.label} and {ending}"
    if case.causes:
        case.state(f"{text}, which agrees with the cause found.", *here.audit_ids)
        case.cover("wire", "not_verified", here.audit_ids, f"{text}, as expected from the cause found")
        return
    if wire.at_destination:
        _silent_guest(wire, f"{text}.", here.audit_ids, finding)
        return
    case.state(f"{text}.", *here.audit_ids)
    there = [machine for machine in others if key(machine) != key(here.machine)]
    if not there:
        case.not_verified("wire", f"{text}; what lies at the other end cannot be captured", here.audit_ids)
        return
    if here.comparison is None:
        case.say("To see whether they arrive I also capture at the other end.")
    arriving = yield from capture_at(case, there[0], str(wire.candidate))
    if not isinstance(arriving, Captured):
        case.not_verified("wire", f"{text}; whether they arrive could not be verified", here.audit_ids)
        return
    both = (*here.audit_ids, *arriving.audit_ids, *(here.comparison.audit_ids if here.comparison else ()))
    _compare(judged(case, wire.complaint, wire.candidate, arriving), text, both)


def _compare(wire: Wire, text: str, both: tuple[str, ...]) -> None:
    """Tell from the capture at the destination where attempts that get no answer at the source end."""
    case, label = wire.case, wire.captured.label
    seen = [each for each in wire.captured.findings if each.get("kind") == "syn_unanswered"]
    seen = [each for each in seen if wire.traffic.holds(each)]
    rows = wire.traffic.conversations(wire.captured)
    if any((each.get("measured") or {}).get("syn_ack") for each in seen):
        _answers_lost(wire, f"{text}; they arrive at {label} and are answered there", both)
    elif seen or any(row.get("unanswered") for row in rows):
        _silent_guest(wire, f"{text}; they do arrive at {label}.", both, *seen[:1])
    elif rows and not wire.is_translated:
        _answers_lost(wire, f"{text}; they arrive at {label} and are answered there", both)
    elif not rows and "TCP" in wire.captured.complete and len(wire.there) == 1:
        lost = f"{text}; they do not arrive at the interface of {label}, so they are lost in between."
        case.blame(Cause("wire", LOST, lost, both))
    else:
        case.not_verified("wire", f"{text}; the capture at {label} does not show whether they arrive", both)


def _attempts(finding: Row) -> str:
    measured = finding.get("measured") or {}
    sent, repeated = measured.get("syn"), measured.get("syn_retransmitted")
    if not sent:
        return "Connection attempts"
    return f"{sent} SYNs" if repeated is None else f"{sent} SYNs in {sent - repeated} connection attempts"


def _answers_lost(wire: Wire, seen: str, audit_ids: tuple[str, ...]) -> None:
    """Report that the destination answers and its answers do not come back: nothing of its guest's silence."""
    source = wire.candidate.source.label
    where = (
        f"the answers reach {source}, whose guest does not accept them"
        if not wire.at_destination
        else f"the answers are lost on the return path to {source}"
    )
    advice = (
        f"Check the return path: routes of {wire.candidate.destination.label} to {source}, appliances that see one "
        f"direction only, and the packet filter of {source}."
    )
    wire.case.blame(Cause("wire", LOST, f"{seen}: {where}.", audit_ids, (advice,), likely=True))


def _silent_guest(wire: Wire, seen: str, audit_ids: tuple[str, ...], finding: Row | None = None) -> None:
    """Report that packets come to the destination's interface and its guest does not answer."""
    machine, label = wire.captured.machine, wire.captured.label
    guest = wire.case.network.get(Guest, machine)
    inside = guest is not None and guest.packet_filter is not None
    queue = finding is not None and finding.get("blame") == "server_application"
    does = "its firewall drops them, or nothing accepts them" if not queue else "its program accepts no more"
    text = f"{seen} The guest of {label} does not answer: {does}."
    if inside:
        text = f"{seen} The guest of {label} does not answer, though its packet filter was read and lets them pass."
    advice = f"On {label}: does the service listen (ss -ltn), what does its firewall drop (nft list ruleset)?"
    wire.case.blame(
        Cause(
            *("guest_firewall", LOST, text, audit_ids, (advice,)),
            kind="" if inside or queue else "guest_firewall",  # Seen to arrive there.
            resource=machine,
            seen_on=wire.candidate.flow,
            likely=True,
        )
    )
    wire.case.cover("wire", "cleared", audit_ids, f"packets reach {label}; the guest does not answer")
