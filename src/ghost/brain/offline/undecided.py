"""What the complaint leaves open, asked only where the answer changes what is found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ghost.brain.offline.case import Case, ask
from ghost.brain.offline.complaint import Candidate, Complaint, StatedEnds
from ghost.brain.offline.path_verdict import Verdict, identity, judge
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.understanding import nobody, understand
from ghost.brain.offline.understanding.equal_gates import opens

MAX_LISTED = 8


def ask_what_decides(
    case: Case, complaint: Complaint, verdicts: list[Verdict]
) -> Steps[tuple[Complaint, list[Verdict]]]:
    """Return the complaint and its verdicts after asking for a source, a destination or a port that decides."""
    for about, question in (("source", _of_source), ("destination", _of_destination), ("port", _of_port)):
        text = question(complaint, verdicts)
        if text is None:
            continue
        answer = yield from ask(case, text)
        if nobody(answer):
            break
        anew = yield from understand(case, complaint.text, _with_answer(complaint.stated, about, answer))
        if anew.flows:
            complaint = anew
            verdicts = yield from judge(case, complaint.candidates)
    return (yield from _the_right_way_round(case, complaint, verdicts))


def _the_right_way_round(
    case: Case, complaint: Complaint, verdicts: list[Verdict]
) -> Steps[tuple[Complaint, list[Verdict]]]:
    """Return the complaint with its ends swapped where the rules open the port at what was taken for the source.

    Words leave the direction open more often than they seem to: "the load from the database to the worker".
    """
    asked_about = [each for each in complaint.candidates if _is_served_by_source(case, complaint, each)]
    if case.ends_confirmed or len(complaint.flows) != 1 or len(asked_about) != len(complaint.candidates):
        return complaint, verdicts
    first = asked_about[0]
    port, source, destination = first.flow.destination_port, first.source.label, first.destination.label
    answer = yield from ask(
        case,
        f"I read that {source} connects to {destination} port {port}, but the rules open that port at {source}, not "
        f"at {destination}. Which machine or address is the source of the failing traffic?",
    )
    if nobody(answer):
        turned = tuple(_turned(each) for each in complaint.candidates)
        complaint = replace(complaint, flows=(turned,), ends_sure=False)
    else:
        anew = yield from understand(case, complaint.text, _turned_by(complaint, first, answer))
        complaint = anew if anew.flows else complaint
    return complaint, (yield from judge(case, complaint.candidates))


def _is_served_by_source(case: Case, complaint: Complaint, candidate: Candidate) -> bool:
    port = candidate.flow.destination_port
    ends = candidate.source, candidate.destination
    if not complaint.source_known or port is None or not all(end.machine for end in ends):
        return False
    return opens(case.network, ends[0], port) is True and opens(case.network, ends[1], port) is not True


def _turned(candidate: Candidate) -> Candidate:
    ends = candidate.flow.destination_address, candidate.flow.source_address
    flow = replace(candidate.flow, source_address=ends[0], destination_address=ends[1])
    return replace(candidate, flow=flow, source=candidate.destination, destination=candidate.source)


def _turned_by(complaint: Complaint, first: Candidate, answer: str) -> StatedEnds:
    """Return what is stated with the source that was answered, and the other end as the destination."""
    source, destination = first.source.label.casefold(), first.destination.label
    other = destination if source in answer.casefold() else first.source.label
    port = complaint.stated.port or first.flow.destination_port
    return replace(complaint.stated, source=answer, destination=other, port=port)


def _with_answer(stated: StatedEnds, about: str, answer: str) -> StatedEnds:
    if about != "port":
        return replace(stated, source=answer) if about == "source" else replace(stated, destination=answer)
    number = re.search(r"(?<![\w.-])\d{1,5}(?![\w.])", answer)
    protocol = "udp" if "udp" in answer.casefold() else "tcp" if "tcp" in answer.casefold() else stated.protocol
    return replace(stated, port=int(number[0]) if number else stated.port, protocol=protocol)


def _of_source(complaint: Complaint, verdicts: Sequence[Verdict]) -> str | None:
    if complaint.source_known or not _differ(verdicts):
        return None
    return (
        f"The symptom does not say what the source of the traffic is, and it matters: {_ends(verdicts, 'source')}. "
        "From which machine or address does the failing traffic go? Please answer with a name or an address."
    )


def _of_destination(_complaint: Complaint, verdicts: Sequence[Verdict]) -> str | None:
    best = [v for v in verdicts if v.candidate.meaning == verdicts[0].candidate.meaning]
    if len(best) == len(verdicts) or not _differ(verdicts):
        return None
    return (
        f"The symptom may mean different traffic, and it matters: {_ends(verdicts, 'destination')}. What is the "
        "destination of the failing traffic? Please answer with a name or an address."
    )


def _of_port(complaint: Complaint, verdicts: Sequence[Verdict]) -> str | None:
    if complaint.kind == "dns":
        return None
    guessed = [v for v in verdicts if v.candidate.port_guessed]
    bound = [v for v in guessed if not v.whatever_port]
    if not bound:
        return None
    first = bound[0].candidate
    usual = f" I would take {first.flow.destination_port}." if first.flow.destination_port else ""
    return (
        f"Which port of {first.destination.label} is affected? Nobody stated one, and the rules decide by it.{usual} "
        "For example: 443, or udp 53."
    )


def _differ(verdicts: Sequence[Verdict]) -> bool:
    return len({(verdict.walk.outcome, *map(identity, verdict.faults)) for verdict in verdicts}) > 1


def _ends(verdicts: Sequence[Verdict], role: str) -> str:
    told = {"passes": "passes", "blocked": "is blocked", "unknown": "is not known to pass"}
    ends = {getattr(verdict.candidate, role).label: told[verdict.outcome] for verdict in verdicts}
    listed = [f"{label} {outcome}" for label, outcome in list(ends.items())[:MAX_LISTED]]
    return "; ".join(listed)
