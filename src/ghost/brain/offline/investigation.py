"""The whole investigation: understand, snapshot, walk, read what splits the remaining explanations, conclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ghost.brain.conversation import MemoryNote
from ghost.brain.offline.addressed_names import apart, by_name
from ghost.brain.offline.azure_opinion import ask_azure
from ghost.brain.offline.capture_verdict import examine_wire
from ghost.brain.offline.case import Case, Cause
from ghost.brain.offline.complaint import Complaint, StatedEnds
from ghost.brain.offline.conclusion import conclude, conclude_not_begun
from ghost.brain.offline.earlier_records import recalled, taken_up
from ghost.brain.offline.flow_history import last_passed
from ghost.brain.offline.guest_inspection import inspect_guests
from ghost.brain.offline.hypothesis_catalogue import register_all
from ghost.brain.offline.path_verdict import Verdict, blame_faults, cover_layers, identity, judge
from ghost.brain.offline.recent_changes import what_changed
from ghost.brain.offline.snat_metrics import check_metrics
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.undecided import ask_what_decides
from ghost.brain.offline.understanding import understand

PASSES_SOME = ("slow", "intermittent", "reset")
"""Kinds of complaint that a configuration which stops every packet does not explain by itself."""
MAX_LOOKED_AT = 3
"""Flows for which machines are read inside and packets captured: each asks for approvals."""


def investigate(text: str, memory: MemoryNote | None = None, stated: StatedEnds | None = None) -> Steps[None]:
    """Run the investigation. `memory`: decides what is read first, and may name a session whose records stand for the
    reads of this one while its fault is still there. `stated`: what options state beside the sentence.
    """
    memory = memory or MemoryNote("")

    def search(case: Case) -> Steps[Complaint]:
        return _search(case, stated or StatedEnds(), memory)

    case = yield from recalled(Case(text), memory.earlier, search)
    complaint = yield from search(case)
    if not complaint.flows:
        yield from conclude_not_begun(case, complaint)
        return
    yield from ask_azure(case, case.causes)
    yield from what_changed(case, complaint)
    yield from conclude(case, complaint)


def _search(case: Case, stated: StatedEnds, memory: MemoryNote) -> Steps[Complaint]:
    """Find out what is complained about and what explains it: the causes are in `case`."""
    complaint = yield from understand(case, case.symptom, stated)
    if not complaint.flows:
        return complaint
    register_all(case, complaint, memory.layers)
    verdicts = yield from judge(case, complaint.candidates)
    complaint, verdicts = yield from ask_what_decides(case, complaint, verdicts)
    complaint, verdicts = yield from by_name(case, complaint, verdicts)
    complaint = apart(case, complaint, verdicts)
    _settle(case, complaint, verdicts)

    for flow in complaint.flows[:MAX_LOOKED_AT]:
        of_flow = [verdict for verdict in verdicts if verdict.candidate in flow]
        if of_flow:
            yield from _look_closer(case, complaint, of_flow, memory)
    return complaint


def _look_closer(case: Case, complaint: Complaint, verdicts: list[Verdict], memory: MemoryNote) -> Steps[None]:
    """Look where configuration does not reach: at what was measured and logged, inside the machines, on the wire.

    `verdicts`: of one flow. What explains it ends the search.
    """
    own = {identity(fault) for verdict in verdicts for fault in verdict.faults}
    others = [cause.identity for cause in case.causes if cause.identity not in own]
    if _explained(case, complaint, others):
        if any(verdict.asks_the_guest for verdict in verdicts):
            yield from _inside(case, complaint, verdicts)
        return
    yield from check_metrics(case, complaint, verdicts[0].candidate)
    if any(cause.conclusive for cause in _causes_beside(case, others)):
        return
    yield from last_passed(case, verdicts[0].candidate)
    wire_first = _wire_first(complaint, memory.layers)
    for look in (_on_the_wire, _inside) if wire_first else (_inside, _on_the_wire):
        enough = _causes_beside(case, others) if look is _inside else _explained(case, complaint, others)
        if not enough or (look is _inside and wire_first and (yield from taken_up(case, memory.earlier))):
            yield from look(case, complaint, verdicts)


def _explained(case: Case, complaint: Complaint, others: list[tuple[str, ...] | None]) -> bool:
    """Return whether a cause beside those of other flows is enough to stop at.

    What configuration stops explains neither what passes at times nor, where it is not certain, a refusal.
    """
    causes = _causes_beside(case, others)
    if complaint.kind in PASSES_SOME:
        return any(cause.flow is None for cause in causes)
    return any(complaint.kind != "refused" or not cause.likely for cause in causes)


def _causes_beside(case: Case, others: list[tuple[str, ...] | None]) -> list[Cause]:
    return [cause for cause in case.causes if cause.kind and cause.identity not in others]


def _inside(case: Case, complaint: Complaint, verdicts: list[Verdict]) -> Steps[None]:
    candidates = [verdict.candidate for verdict in verdicts]
    yield from inspect_guests(case, complaint, candidates)
    _settle(case, complaint, (yield from judge(case, candidates)))


def _on_the_wire(case: Case, complaint: Complaint, verdicts: list[Verdict]) -> Steps[None]:
    if case.earlier_wire is not None:
        case.cover_as_stated(case.earlier_wire)
        return
    observed = yield from examine_wire(case, complaint, verdicts[0].candidate)
    if observed:
        case.say("I walk the path again with what was read since.")
        known = [verdict.candidate for verdict in verdicts]
        if all(each in known for each in observed):  # one of several sources alone would stand for all
            _settle(case, complaint, (yield from judge(case, known)))
        else:
            seen = replace(complaint, flows=(tuple(observed),))
            _settle(case, seen, (yield from judge(case, observed)))


def _settle(case: Case, complaint: Complaint, verdicts: list[Verdict]) -> None:
    cover_layers(case, verdicts)
    blame_faults(case, complaint, verdicts)


def _wire_first(complaint: Complaint, suspected: Sequence[str]) -> bool:
    """Return whether a capture tells more than the guests do: of trouble that comes and goes, or by memory."""
    inside_or_wire = [layer for layer in suspected if layer in ("guest_firewall", "wire")]
    return complaint.kind in PASSES_SOME or inside_or_wire[:1] == ["wire"]
