"""The steps of the offline brain as checks that another brain asks for one by one.

A check reads what it needs and tells causes, layers and statements with their records, in the shape in which a
conclusion takes them. What was read is shared by the checks of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ghost import net
from ghost.brain.conversation import StatedEnds, ToolCall, ToolResult
from ghost.brain.offline.azure_reads import Outcome
from ghost.brain.offline.capture_verdict import judge_capture
from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Candidate, Complaint, Kind
from ghost.brain.offline.conclusion import causes_of, coverage_of, stated_flow
from ghost.brain.offline.guest_inspection import inspect_guests
from ghost.brain.offline.path_verdict import Verdict, blame_faults, cover_layers, judge
from ghost.brain.offline.recent_changes import what_changed
from ghost.brain.offline.replay import with_real_values
from ghost.brain.offline.snat_metrics import check_metrics
from ghost.brain.offline.steps import Question, Steps
from ghost.brain.offline.understanding import understand
from ghost.brain.offline.wire_captures import LONG_SECONDS, Captured, findings_of
from ghost.brain.offline.wire_traffic import judged
from ghost.net import Network
from ghost.text import map_text, one_line

MAX_FLOWS: Final = 4
MAX_CAUSES: Final = 6
MAX_STATEMENTS: Final = 12
MAX_HOPS: Final = 24
MAX_IDS: Final = 12
MAX_TEXT: Final = 500

Told = dict[str, Any]
Asked = Generator[tuple[ToolCall, ...], Sequence[ToolResult], Told]
"""Yields the calls of a check, takes their results, and returns what the check tells."""


class Checks:
    """The checks of one session, and what they have read of its network."""

    def __init__(self) -> None:
        self._known = Case("")
        self._kind: Kind | None = None
        """Of the complaint, as `find_ends` read it."""

    def forget(self) -> None:
        """Read anew from here on: something may have changed. What was denied is not asked again."""
        denied = {command: each for command, each in self._known.reads.items() if each.outcome is Outcome.DENIED}
        self._known = Case("", reads=denied)

    def check(self, name: str, arguments: Mapping[str, Any]) -> Asked:
        """Make a check of `CHECKS`. The engineer is not asked: what a question would settle is told as open."""
        known = self._known
        case = Case("", reads=known.reads, network=known.network, asked_of_azure=known.asked_of_azure)
        questions: list[str] = []
        steps, number = _CHECKS[name](case, {"kind": self._kind, **arguments}), 0
        reply: Any = None
        try:
            while True:
                step = steps.send(reply)
                if isinstance(step, Question):
                    questions.append(step.text)
                    reply = ""
                    continue
                calls = []
                for call in step.calls:
                    number += 1
                    calls.append(ToolCall(f"{name}.{number}", call.name, dict(call.arguments)))
                reply = [with_real_values(result) for result in (yield tuple(calls))]
        except StopIteration as ended:
            told: Told = ended.value
            self._kind = told["complaint"] if name == "find_ends" else self._kind
        finally:
            known.network = case.network
        if questions:
            told["open_question"] = one_line(questions[0], MAX_TEXT)
        bounded: Told = map_text(told, lambda text: one_line(text, MAX_TEXT), items=MAX_HOPS)
        return bounded


# What the words mean


def _find_ends(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    complaint = yield from understand(case, str(arguments["text"]), _stated(arguments))
    return _meant(complaint)


def _stated(arguments: Mapping[str, Any]) -> StatedEnds:
    given = {name: arguments.get(name) or "" for name in ("source", "destination", "protocol")}
    return StatedEnds(**given | {"protocol": given["protocol"].casefold()}, port=arguments.get("port"))


def _meant(complaint: Complaint) -> Told:
    candidates = complaint.candidates[:MAX_FLOWS]
    told: Told = {
        "complaint": complaint.kind,
        "flows": [_flow(each) for each in candidates],
        "sure": bool(candidates) and complaint.ends_sure and complaint.source_known and complaint.port_stated,
    }
    missing = complaint.missing or (complaint.same and f"another end than {complaint.same}")
    missing = missing or (complaint.invalid_port and f"a port: {complaint.invalid_port} is none")
    if not candidates:
        told["not_known"] = missing or "the traffic"
    elif not complaint.source_known:
        told["not_known"] = "the source: these stand for everybody who can reach the destination"
    return told


def _flow(candidate: Candidate) -> Told:
    origins = {
        "source": candidate.source.origin,
        "destination": candidate.destination.origin,
        "port": candidate.port_origin,
    }
    told = stated_flow(candidate.flow)
    told |= {"source": "internet"} if told["source"] == net.FIRST_PUBLIC else {}
    names = {"source_name": candidate.source.label, "destination_name": candidate.destination.label}
    return {**told, **names, "from": {name: each for name, each in origins.items() if each}}


# Walks


def _walked(case: Case, arguments: Mapping[str, Any]) -> Steps[tuple[Complaint, list[Verdict]]]:
    stated = _stated(arguments)
    complaint = yield from understand(case, str(stated), stated)
    complaint = replace(complaint, kind=arguments["kind"] or complaint.kind)
    if stated.source and not complaint.source_known:  # the ways of others would stand for the one that is asked about
        return replace(complaint, flows=(), missing=f"the source ({stated.source!r})"), []
    if not complaint.flows:
        return complaint, []
    verdicts = yield from judge(case, complaint.candidates)
    _settle(case, complaint, verdicts)
    return complaint, verdicts


def _settle(case: Case, complaint: Complaint, verdicts: Sequence[Verdict]) -> None:
    cover_layers(case, verdicts)
    blame_faults(case, complaint, verdicts)


def _check_path(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    complaint, verdicts = yield from _walked(case, arguments)
    return _found(case, complaint, verdicts)


def _check_name(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    asked = {"source": arguments["source"], "destination": arguments["name"], "kind": "dns"}
    complaint, verdicts = yield from _walked(case, asked)
    case.layers = {layer: found for layer, found in case.layers.items() if layer in ("dns", "service_endpoints")}
    return _found(case, complaint, verdicts)


def _check_load_balancer(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    complaint, verdicts = yield from _walked(case, {**arguments, "destination": arguments["name"]})
    for verdict in verdicts[:1]:
        yield from check_metrics(case, complaint, verdict.candidate)
    return _found(case, complaint, verdicts)


def _check_guest(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    complaint, verdicts = yield from _walked(case, arguments)
    if verdicts:
        yield from inspect_guests(case, complaint, [verdict.candidate for verdict in verdicts])
        verdicts = yield from judge(case, complaint.candidates)
        _settle(case, complaint, verdicts)
    return _found(case, complaint, verdicts)


def _what_changed(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    complaint, verdicts = yield from _walked(case, arguments)
    case.statements = []
    if complaint.flows:
        yield from what_changed(case, complaint)
    case.layers = {}
    return _found(case, complaint, verdicts)


def _read_capture(case: Case, arguments: Mapping[str, Any]) -> Steps[Told]:
    """Judge a capture, with `other_path` and `other_machine` of the one at the other end where there is a pair."""
    complaint, verdicts = yield from _walked(case, arguments)
    if not verdicts:
        return _found(case, complaint, verdicts)
    candidate, machine = verdicts[0].candidate, _machine(case.network, str(arguments["machine"]))
    if not machine:
        return {"error": "unknown_machine", "message": f"no machine is named {arguments['machine']!r}: see find_ends"}
    files = {machine: str(arguments["path"])}
    if other := _machine(case.network, net.name_of(str(arguments.get("other_machine") or ""))):
        files[other] = str(arguments["other_path"])
    if other == machine:
        return {"error": "wrong_machine", "message": f"{arguments['path']} is of the other end of its pair"}
    if net.key(machine) == net.key(candidate.destination.machine):
        files = dict(reversed(files.items()))
    taken = yield from findings_of(case, files)
    captured = taken[machine]
    if not isinstance(captured, Captured):
        return {"error": "not_read", "message": captured.reason}
    case.captures |= {(at, LONG_SECONDS): each for at, each in taken.items()}
    yield from judge_capture(judged(case, complaint, candidate, captured), [at for at in taken if at != machine])
    told = _found(case, complaint, verdicts)
    findings = ({name: each.get(name) for name in _OF_A_FINDING} for each in captured.findings)
    return {**told, "findings": [{**each, "audit_ids": list(captured.audit_ids)} for each in findings]}


_OF_A_FINDING: Final = ("kind", "severity", "confidence", "protocol", "who", "title", "blame")


def _machine(network: Network, named: str) -> str:
    machines = (each.machine for each in network.all(net.Interface).values() if each.machine)
    return next((each for each in machines if named.casefold() in (net.name_of(each).casefold(), each.casefold())), "")


_CHECKS: Final[Mapping[str, Callable[[Case, Mapping[str, Any]], Steps[Told]]]] = {
    "find_ends": _find_ends,
    "check_path": _check_path,
    "check_name": _check_name,
    "check_load_balancer": _check_load_balancer,
    "check_guest": _check_guest,
    "what_changed": _what_changed,
    "read_capture": _read_capture,
}
CHECKS: Final = tuple(_CHECKS)


# What is told


def _found(case: Case, complaint: Complaint, verdicts: Sequence[Verdict]) -> Told:
    sure = complaint.ends_sure and (complaint.port_stated or complaint.kind == "dns")
    told: Told = _meant(complaint)
    if not complaint.flows:
        return told
    walks = [{**flow, **_way(verdict)} for flow, verdict in zip(told.pop("flows"), verdicts, strict=False)]
    causes = causes_of(case, "high" if sure else "medium")[:MAX_CAUSES]
    return {
        **told,
        "walks": walks,
        "causes": [_cited(cause) for cause in causes],
        "coverage": [_cited(coverage_of(case, layer)) for layer in case.layers],
        "statements": [
            _cited({"text": text, "audit_ids": list(ids)}) for text, ids in case.statements[:MAX_STATEMENTS] if ids
        ],
        "recommended_actions": case.actions[:MAX_CAUSES],
    }


def _way(verdict: Verdict) -> Told:
    """Return a walk by its hops, one line each, up to what stops it."""
    return {"outcome": verdict.outcome, "hops": list(_lines(verdict.walk))[:MAX_HOPS]}


def _lines(walked: net.Walk) -> Iterator[str]:
    for hop in walked.hops:
        if hop.verdict != "pass" or hop.kind == "route":
            yield f"{hop.kind} {net.name_of(hop.resource)}: {hop.verdict}, {one_line(hop.reason, 160)}"
        if hop is walked.blocker:
            return


def _cited(row: Told) -> Told:
    return {**{k: v for k, v in row.items() if v not in (None, "")}, "audit_ids": row["audit_ids"][:MAX_IDS]}
