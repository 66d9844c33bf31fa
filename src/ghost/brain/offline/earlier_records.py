"""What memory offers, put to the test: is the fault of an earlier session still there, by what is read now?

The symptom is walked in the earlier session's records first, which costs nothing: unless that shows its cause, the
session is of no use here. Then the commands that the cause rests on are run, and the walk is made again with their
answers in place of the old ones. Only if it shows the same causes, by new records alone, do the others stand for reads
of this session, and its capture for another. Otherwise the investigation goes on without them; what was read is kept.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final

from ghost.brain.conversation import EarlierSession
from ghost.brain.offline.azure_reads import Read, Reading, reading_of
from ghost.brain.offline.case import Case, Cause, read, run
from ghost.brain.offline.complaint import Complaint
from ghost.brain.offline.steps import Call, Question, Steps
from ghost.net import Interface, Missing, Network, VirtualNetwork, key, name_of, read_of

MAX_CHECKS: Final = 3
"""Commands that a memory may cost, if it misleads."""
ENDS, NETWORKS = (shlex.join(read_of(Network(), Missing(each)).argv) for each in (Interface, VirtualNetwork))
"""The reads that every investigation begins with: they cost nothing. The interfaces tell the ends as they are now."""

Search = Callable[[Case], Steps[Complaint]]
"""The search for causes, which leaves them in the case."""


def recalled(case: Case, sessions: Sequence[EarlierSession], search: Search) -> Steps[Case]:
    """Return the case to go on with: one that a session's records answer, if its fault is still there.

    The first session whose records show its causes for this symptom is put to the test; no other costs a command.
    """
    for session in sessions:
        known = {command: reading_of(result) for command, result in session.results.items()}
        remembered = yield from _seen(Case(case.symptom, earlier=known, answered=case.answered), session, search)
        records = {audit_id for cause in remembered for audit_id in cause.audit_ids}
        decisive = [command for command, reading in known.items() if reading.record in records and command != ENDS]
        cost = len(decisive) - decisive.count(NETWORKS)
        if len(remembered) == len(session.causes) and cost <= MAX_CHECKS:
            return (yield from _tested(case, session, remembered, decisive, search))
    return case


def _tested(
    case: Case, session: EarlierSession, remembered: Sequence[Cause], decisive: Sequence[str], search: Search
) -> Steps[Case]:
    """Read what the causes rest on anew; if they are still there, let the session's other records answer reads."""
    told = " and ".join(f"{cause.kind.replace('_', ' ')} at {name_of(cause.resource)}" for cause in remembered)
    day, why = session.ended[:10], f"Is the fault that {session.session_id} found still there?"
    purpose = f"On {day} {session.session_id} found {told}. I read what that rested on anew, before anything else."
    yield from read(case, purpose, *(Read(tuple(shlex.split(command)), why) for command in (ENDS, *decisive)))
    rest = {command: reading_of(result) for command, result in session.results.items() if command not in case.reads}
    trial = Case(case.symptom, reads=dict(case.reads), earlier=rest, answered=case.answered)
    seen = yield from _seen(trial, session, search)
    old = {reading.record for reading in rest.values()}
    there = {cause.identity for cause in seen if not old.intersection(cause.audit_ids)}
    if not there.issuperset(cause.identity for cause in remembered):
        case.say("It is not there as it was, so I go on without that session.")
        return case
    yield from _stand(case, session, rest)
    return case


def taken_up(case: Case, sessions: Sequence[EarlierSession]) -> Steps[bool]:
    """Let the records of a session answer what is still to be read inside machines, if its causes were all seen here.

    Return whether they do. For causes that only a capture shows, which is not taken because a memory says so.
    """
    seen = {_place(cause.kind, cause.resource, cause.rule) for cause in case.causes}
    for session in sessions if not case.earlier else ():
        inside = any(" run-command invoke " in command for command in session.results)
        if inside and seen.issuperset(_places(session)):
            known = {command: reading_of(result) for command, result in session.results.items()}
            return (yield from _stand(case, session, {each: known[each] for each in known if each not in case.reads}))
    return False


def _stand(case: Case, session: EarlierSession, rest: dict[str, Reading]) -> Steps[bool]:
    """Let records stand for reads, if the agent puts that on record; return whether they do."""
    day = session.ended[:10]
    purpose = f"It is still there. For the rest of the path the records of {day} stand, and the report says where."
    (answer,) = yield from run(case, purpose, [Call("use_earlier_records", {"session_id": session.session_id})])
    if answer.get("status") == "ok":
        case.earlier, case.earlier_wire = rest, session.wire
    return bool(case.earlier)


def _seen(trial: Case, session: EarlierSession, search: Search) -> Steps[list[Cause]]:
    """Return the causes of the session that a search in records alone shows, and what they rest on; it ends where it
    needs a command.
    """
    steps, answer = search(trial), None
    try:
        while isinstance(step := steps.send(answer), Question):
            answer = yield step
    except StopIteration:
        pass
    found = _places(session)
    return [c for c in trial.causes if c.audit_ids and c.kind and _place(c.kind, c.resource, c.rule) in found]


def _places(session: EarlierSession) -> set[tuple[str, str, str]]:
    return {_place(each["kind"], each["resource"], each["rule"]) for each in session.causes}


def _place(kind: str, resource: str, rule: str | None) -> tuple[str, str, str]:
    return kind, key(resource), (rule or "").casefold()
