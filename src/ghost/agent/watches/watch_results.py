"""What a run of a watch found, in a file beside its records: "no drift" is a certificate that they give again."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from ghost.agent.audit_evidence import Evidence
from ghost.agent.fixes import judged, told
from ghost.agent.network_reads import NEEDS
from ghost.agent.session import SessionPaths
from ghost.agent.watches.path_snapshot import KeptPath, open_snapshot, snapshot_of_reads
from ghost.agent.watches.snapshot_comparison import Outcome, compared, first_read, unread_lines
from ghost.agent.watches.watch_file import WatchedFlow
from ghost.errors import RecordError
from ghost.net import ACTIVITY_LOG, Missing, Walk, described_change, key, met, newest_changes
from ghost.records import Head, head_beside, read_json, verify, write_json
from ghost.text import one_line, plural

MAX_WHY: Final = 1000
DIGEST_CHARACTERS: Final = 24
MAX_CHANGED_BY: Final = 5
MAX_REPORTED: Final = 10
"""Of differences between a result and its records."""


class WatchResult(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    watch: str
    session_id: str
    outcome: Outcome
    why: str = ""
    """Of an outcome that is not known."""
    flows: list[WatchedFlow]
    compared_with: str | None = None
    """The session of the earlier snapshot; None of a first one."""
    compared_head: dict[str, Any] | None = None
    taken_at: str = ""
    head: dict[str, Any] | None = None
    """Of the shell's audit of this run."""
    walks: list[dict[str, Any]] = []
    """Of each flow its outcome, why, and its hops, each with the records that it rests on."""
    records: list[str] = []
    """The records that the walks rest on."""
    changes: list[dict[str, str]] = []
    noted: list[str] = []
    not_known: list[str] = []
    changed_by: list[str] = []
    is_whole: bool = False
    """Whether all was read that the walks need."""


def question_of(watch: str, flows: Sequence[WatchedFlow], compared_with: str | None) -> str:
    """Return what a run asks, which the reason of each of its reads begins with: so its records say of what it is."""
    if compared_with is None:
        return "ghost watch"
    traffic = json.dumps([flow.model_dump(mode="json") for flow in flows])
    digest = hashlib.sha256(traffic.encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"ghost watch {watch} compared with {compared_with}, traffic {digest}"


def path_of(paths: SessionPaths, flows: Iterable[WatchedFlow]) -> tuple[KeptPath, str]:
    """Return the path that a session's records show, checked, and when its last read was made."""
    senders = [flow.sender for flow in flows]
    snapshot = snapshot_of_reads(paths.session_id, paths, senders)
    return open_snapshot(snapshot, paths, head_beside(paths.shell_audit)), snapshot.taken_at


def result_of(
    watch: str, flows: list[WatchedFlow], paths: SessionPaths, compared_with: SessionPaths | None
) -> WatchResult:
    """Return what the records of a run say, beside those of an earlier session.

    Raises `RecordError` where they are not as they were written.
    """
    senders = [flow.sender for flow in flows]
    now, taken_at = path_of(paths, flows)
    changed_by: list[str] = []
    if compared_with is None:
        found = first_read(now, senders)
    else:
        before, since = path_of(compared_with, flows)
        found = compared(before, now, senders)
        changed_by = _changed_by(paths, (before, now), since) if found.outcome == "drift" else []
    walks = [_walk_row(flow, walked) for flow, walked in zip(flows, now.walks, strict=True)]
    head, compared_head = (
        head_beside(paths.shell_audit),
        head_beside(compared_with.shell_audit) if compared_with is not None else None,
    )
    return WatchResult(
        watch=watch,
        session_id=paths.session_id,
        outcome=found.outcome,
        why="; ".join(found.not_known) if found.outcome == "not_known" else "",
        flows=flows,
        compared_with=compared_with.session_id if compared_with is not None else None,
        compared_head=compared_head.as_dict() if compared_head is not None else None,
        taken_at=taken_at,
        head=head.as_dict() if head is not None else None,
        walks=walks,
        records=list(dict.fromkeys(each for row in walks for hop in row["hops"] for each in hop["records"])),
        changes=[asdict(change) for change in found.changes],
        noted=list(found.noted),
        not_known=list(found.not_known),
        changed_by=changed_by,
        is_whole=found.is_whole,
    )


def with_reasons(result: WatchResult, failed: Mapping[Missing, str]) -> WatchResult:
    """Return a result that is not known with the reasons why reads failed."""
    if result.outcome != "not_known":
        return result
    reasons = {line: reason for missing, reason in failed.items() for line in unread_lines(missing)}
    why = "; ".join(f"{line} ({reasons[line]})" if line in reasons else line for line in result.not_known)
    return result.model_copy(update={"why": one_line(why, MAX_WHY)})


def _changed_by(paths: SessionPaths, both: Sequence[KeptPath], since: str) -> list[str]:
    """Return the changes of the path since a moment, newest first; none where the run has no activity log."""
    evidence, command = Evidence(paths.shell_audit), shlex.join(ACTIVITY_LOG)
    logs = [audit_id for audit_id, record in evidence.items() if record.get("command") == command]
    ids = (each for path in both for walked in path.walks for each in met(path.network, walked))
    known = frozenset(key(each) for each in ids if "/providers/" in each.casefold())
    try:
        rows = json.loads(evidence.real_output(logs[-1]) or "")["changes"]
        changes = newest_changes((row for row in rows if str(row.get("time")) >= since), known)
    except (LookupError, ValueError, TypeError, AttributeError):
        return []
    return [described_change(row) for row in changes[:MAX_CHANGED_BY]]


def _walk_row(flow: WatchedFlow, walked: Walk) -> dict[str, Any]:
    outcome, why = judged(walked)
    ways = [walked]
    for way in ways:
        ways.extend(way.others)
    hops = [
        {
            "leg": hop.leg,
            "hop": told(hop),
            "rule": hop.rule,
            "records": list(dict.fromkeys(filter(None, hop.references))),
        }
        for way in ways
        for hop in way.hops
    ]
    return {"flow": str(flow.sender[0]), "outcome": outcome, "why": why, "hops": hops}


def save_result(paths: SessionPaths, result: WatchResult) -> None:
    write_json(paths.watch_result, result.model_dump(mode="json"))


def result_problems(paths: SessionPaths) -> tuple[str, list[str]]:
    """Return what a run's result states, and where its records say otherwise."""
    if not paths.watch_result.exists():
        return "none", ["there is no result: it was removed, or the run was cut off or could not be made"]
    try:
        stated = WatchResult.model_validate(read_json(paths.watch_result))
        if stated.session_id != paths.session_id:
            return stated.outcome, [f"it is of {stated.session_id}"]
        before = SessionPaths(paths.audit_dir, stated.compared_with) if stated.compared_with else None
        found = result_of(stated.watch, stated.flows, paths, before)
    except (FileNotFoundError, RecordError, ValidationError) as error:
        return paths.watch_result.name, [f"cannot be compared with its records: {error}"]
    problems = _asked_otherwise(stated, paths)
    problems += [
        f"{name} is {str(getattr(stated, name))[:200]}, by the records {str(getattr(found, name))[:200]}"
        for name in (
            "outcome",
            "taken_at",
            "walks",
            "records",
            "changes",
            "noted",
            "not_known",
            "changed_by",
            "is_whole",
        )
        if getattr(stated, name) != getattr(found, name)
    ]
    for of, head in ((paths, stated.head), (before, stated.compared_head)):
        problems += verify(of.shell_audit, Head.from_dict(head)).errors if of is not None else []
    problems += Evidence(paths.shell_audit).problems(stated.records)
    words = f"{stated.outcome.replace('_', ' ')}, {plural(len(stated.records), 'record')}"
    compared_to = f", compared with {stated.compared_with}" if stated.compared_with else ""
    return words + compared_to, problems[:MAX_REPORTED]


def _asked_otherwise(stated: WatchResult, paths: SessionPaths) -> list[str]:
    """Return whether the records were made for another watch, traffic or comparison than the result states."""
    reasons = [str(record.get("reasoning")) for record in Evidence(paths.shell_audit).values()]
    question = question_of(stated.watch, stated.flows, stated.compared_with)
    others = [each for each in reasons if NEEDS in each and not each.startswith(f"{question}: ")]
    return [f"its records were made for something else: {others[0][:200]}"] if others else []
