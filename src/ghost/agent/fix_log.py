"""Was it mended? What a fix and each check of it showed: one chain of the workspace, with its head beside it.

A check is noted when it begins: one without a result was cut off. `ghost audit verify` makes its verdict again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from ghost.agent.audit_evidence import Evidence
from ghost.agent.fixes import Fix, Sender, failing_traffic, judged, with_changes
from ghost.agent.network_reads import NEEDS
from ghost.agent.session import SessionPaths, Workspace, load_session
from ghost.agent.watches import network_of, reads_on_record
from ghost.errors import GhostError, SessionError
from ghost.net import Answer, Guest, Mend, Network, Read, collect, walk
from ghost.records import (
    ChainedLog,
    head_beside,
    head_path,
    isoformat,
    read_valid_records,
    valid_session_id,
    verify,
    write_json,
)
from ghost.shell import RISKY

APPLY: Final = "apply_"
"""The beginning of the ids of sessions of `ghost apply`."""
CHECK: Final = "check_"
"""Of those of checks by the schedule."""
CHECK_OPTION: Final = " --check"

FIELDS: Final = ("kind", "at", "session_id", "records", "outcome", "why")
Kind = Literal["begun", "applied", "checked", "told"]
Outcome = tuple[str, str]
"""`mended`, `not_mended` or `not_known`, and why."""


class FixLog:
    """The log of a workspace; written by who holds the workspace's lock."""

    def __init__(self, workspace: Workspace) -> None:
        self._path = workspace.fix_checks

    def append(self, kind: Kind, session_id: str, records: str, at: datetime, outcome: Outcome = ("", "")) -> None:
        """Put on record what became of a fix. `records`: the session of the commands."""
        log = ChainedLog(self._path)
        values = (kind, isoformat(at), session_id, records, *outcome)
        log.append(dict(zip(FIELDS, values, strict=True)))
        write_json(head_path(self._path), log.head.as_dict())

    def results(self) -> dict[str, list[dict[str, Any]]]:
        """Return what was applied and checked, by investigation."""
        found: dict[str, list[dict[str, Any]]] = {}
        for record in _entries(self._path):
            if record["kind"] in ("applied", "checked"):
                found.setdefault(str(record["session_id"]), []).append(record)
        return found

    def untold(self) -> list[dict[str, Any]]:
        """Return the last check of each investigation, where nobody was told of it."""
        told = {record["records"] for record in _entries(self._path) if record["kind"] == "told"}
        last = (rows[-1] for rows in self.results().values())
        return [record for record in last if record["kind"] == "checked" and record["records"] not in told]


def _entries(path: Path) -> list[dict[str, Any]]:
    return [record for record in read_valid_records(path)[0] if record.keys() >= set(FIELDS)]


# --- what a check says


def check_question(session_id: str) -> str:
    """Return what the reads of a check are for, as their records say it."""
    return f"ghost apply {session_id}{CHECK_OPTION}"


def read_again(
    fix: Fix, execute: Callable[[Read], Answer], known: Network | None = None, mends: Sequence[Mend] = ()
) -> Network:
    """Return what the walks of a fix's traffic need, read anew; with `mends`, for walks of the changed network."""
    flows = [flow for flow, _ in fix.senders]
    return collect(flows, execute, known or _insides(fix, Network()), lambda read: with_changes(read, mends))


def _insides(fix: Fix, network: Network) -> Network:
    """Return a network with what was seen inside machines, which is as recorded: reading it asks a person."""
    return network.with_resources(Guest, fix.network.all(Guest).values())


def walked(network: Network, senders: Iterable[Sender]) -> list[dict[str, str]]:
    return [
        {"flow": str(flow), "outcome": outcome, "why": why}
        for flow, source in senders
        for outcome, why in [judged(walk(network, flow, source=source))]
    ]


def verdict(network: Network, fix: Fix) -> Outcome:
    """Return whether the traffic passes in this network."""
    reasons = {row["outcome"]: row["why"] for row in reversed(walked(network, fix.senders))}
    if "blocked" in reasons:
        return "not_mended", reasons["blocked"]
    if "unknown" in reasons:
        return "not_known", reasons["unknown"]
    if fix.besides:
        besides = "; ".join(fix.besides)
        return "not_known", f"the configuration lets it pass now, but the report also found {besides}"
    return "mended", "a walk of what was read anew passes"


def checked(network: Network, fix: Fix) -> Outcome:
    """Return the verdict of a check; what is inside a machine is as recorded, which decides nothing."""
    stops = [walk(network, flow, source=source).first_stop for flow, source in fix.senders]
    if any(stop is not None and stop.kind == "guest" for stop in stops):
        return "not_known", "what decides is inside a machine, which no SAFE command reads: investigate anew"
    return verdict(network, fix)


# --- whether the log holds


def fix_log_problems(paths: SessionPaths) -> tuple[str, list[str]] | None:
    """Return what the log holds of a session, and what is wrong; None where it need hold nothing.

    The verdict of a check is made again from its reads.
    """
    workspace = Workspace(paths.audit_dir.parent)
    log, head = workspace.fix_checks, head_beside(workspace.fix_checks)
    is_run = paths.session_id.startswith((APPLY, CHECK))
    is_there = log.exists() or head is not None
    runs = [run for run in _runs_of(paths, is_run=is_run) if _needs_entry(run)] if is_run or not is_there else []
    if not (runs or is_there):
        return None
    problems = [f"{log.name}: {problem}" for problem in verify(log, head).errors]
    records = [each for each in _entries(log) if paths.session_id in (each["records"], each["session_id"])]
    results = [record for record in records if record["kind"] in ("applied", "checked")]
    for run in runs:
        if not records:
            problems.append(f"{log.name} holds nothing of {run.session_id}, which ran: it was removed")
    decisive = [record for record in results if is_run or record["outcome"] == "mended"]
    problems += [each for record in decisive for each in _verdict_problems(workspace, record)]
    if not (runs or results or problems):
        return None
    told = [f"{record['kind']}: {str(record['outcome']).replace('_', ' ')}" for record in results]
    return "; ".join(told) or "no result: it was cut off, or is running", problems


def _verdict_problems(workspace: Workspace, stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a check's records do not give its verdict."""
    if stated["kind"] != "checked":
        return
    of = str(stated["records"])
    try:
        paths = SessionPaths(workspace.audit_dir, of)
        if not valid_session_id(of) or not paths.shell_audit.exists():
            raise SessionError("there are none")
        session, _ = load_session(workspace.find(str(stated["session_id"])))
        fix = failing_traffic(session, Evidence(session.paths(workspace.root).shell_audit))
        run = Evidence(paths.shell_audit)
        found, _ = checked(_insides(fix, network_of(run, paths, reads_on_record(run))), fix)
    except GhostError as error:
        yield f"the verdict of {of} cannot be compared with its records: {error}"
        return
    if found != stated["outcome"]:
        yield f"{of} is on record as {stated['outcome']}, and its reads say {found}"


def _runs_of(paths: SessionPaths, *, is_run: bool) -> Iterator[Evidence]:
    """Yield the records of a check or an application, or of those of an investigation."""
    if is_run:
        yield Evidence(paths.shell_audit)
        return
    for beginning in (APPLY, CHECK):
        for file in sorted(paths.audit_dir.glob(f"shell_audit_{beginning}*.jsonl")):
            run = Evidence(file)
            if {f"ghost apply {paths.session_id}", check_question(paths.session_id)} & _questions(run):
                yield run


def _needs_entry(run: Evidence) -> bool:
    """Return whether a run checked a fix, or a command of one ran."""
    changes = [record for record in run.values() if record.get("classification") == RISKY]
    return any(record.get("status") != "denied" for record in changes) or any(
        question.endswith(CHECK_OPTION) for question in _questions(run)
    )


def _questions(run: Evidence) -> set[str]:
    return {str(record.get("reasoning")).partition(NEEDS)[0] for record in run.values()}
