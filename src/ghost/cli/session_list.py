"""`ghost sessions`: one line a session, newest first: what it was about, how it ended, and what is left to do.

Reads session files, reports and registries; changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from ghost.agent import APPLY, CHECK, NEEDS, WATCH, Evidence, FixLog, Session, SessionPaths, Workspace, load_session
from ghost.cli.session_records import REACH, open_workspace, option_of
from ghost.cli.terminal import line_width, to_stdout
from ghost.cloud import unreleased_captures_of
from ghost.config import Settings
from ghost.errors import GhostError, RecordError
from ghost.mcp import MCP
from ghost.records import is_held, is_locked, read_json, read_valid_records, valid_session_id
from ghost.shell import RISKY
from ghost.text import one_line, plural, visible

LATEST = 20
"""Of connections, walks and single commands that are listed; all are in the JSON."""
SHELL = "shell_"
"""The beginning of the ids of single commands."""
_MIN_ABOUT, _MIN_ENDING = 12, 12


@dataclass(frozen=True)
class Row:
    """One session. `about`: symptom, question or command; `details`: what only the JSON tells."""

    session_id: str
    kind: str
    """`investigation`, `mcp`, `apply`, `reach`, `watch` or `command`."""
    created_at: str | None
    about: str
    outcome: str
    waits: tuple[str, ...]
    """What is left to do, in words."""
    details: dict[str, Any]

    @property
    def ending(self) -> str:
        return "; ".join(filter(None, (self.outcome, *self.waits)))

    def as_dict(self) -> dict[str, Any]:
        told = {"session_id": self.session_id, "kind": self.kind, "created_at": self.created_at}
        return {**told, "result": self.outcome, "waits": list(self.waits), **self.details}


def list_sessions(workspace_option: Path | None, *, as_json: bool) -> None:
    workspace = open_workspace(workspace_option, Settings())
    kinds = (_investigations, _connections, _applied, _walks, _watched, _checks, _commands)
    parts = [_newest_first(rows(workspace)) for rows in kinds]
    if as_json:
        print(json.dumps([row.as_dict() for rows in parts for row in rows], indent=2, ensure_ascii=False))
        return
    if not parts[0]:
        print(f"No investigations in {workspace.root}. Start one: ghost investigate --lab blocked-port")
    headings = (
        *("", "Connections of ghost mcp", "Fixes of ghost apply", "Walks of ghost reach"),
        "Runs of ghost watch",
        "Checks of fixes",
        "Single commands of ghost shell run",
    )
    for heading, rows in zip(headings, parts, strict=True):
        _print_part(heading, rows, LATEST if heading else len(rows))
    finished = [row for row in parts[0] if row.details["state"] == "finished"][:1]
    if shown := [*finished, *(row for rows in parts for row in rows)][:1]:
        of = f"{shown[0].session_id}{option_of(workspace.root)}"
        print(f"See one: {f'ghost report {of}   ' if finished else ''}ghost audit show {of}")


def _newest_first(rows: Iterator[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.created_at or row.session_id.partition("_")[2], reverse=True)


# Printing


def _print_part(heading: str, rows: Sequence[Row], count: int) -> None:
    out = to_stdout()
    if heading and rows:
        more = f", the latest {count} of {len(rows)} (all: --json)" if len(rows) > count else ""
        print(f"{heading}{more}:")
    for line in _lines(rows[:count], line_width()) if rows else ():
        out.print(Text(line), soft_wrap=True)


def _lines(rows: Sequence[Row], width: int) -> Iterator[str]:
    """One line a row, how it ended at the right. What it was about is cut first, then the end; an id never."""
    ids, abouts, endings = (
        max(map(len, texts), default=0)
        for texts in zip(*((row.session_id, _cut(row.about), row.ending) for row in rows), strict=True)
    )
    least = min(abouts, max(_MIN_ABOUT, (width - 64) // 3))
    room = max(min(width - ids - len("  11-28 18:00Z    "), abouts + endings), least + min(endings, _MIN_ENDING))
    for row in rows:
        ending = _fitted(row, room - least)
        about = room - len(ending)
        yield f"{row.session_id:<{ids}}  {_when(row.created_at)}  {_cut(row.about, about):<{about}}  {ending}".rstrip()


def _fitted(row: Row, width: int) -> str:
    """How it ended and what waits; what waits is cut last."""
    left = width - sum(len(wait) + 2 for wait in row.waits)
    if row.outcome and left >= _MIN_ENDING:
        return "; ".join((_cut(row.outcome, left), *row.waits))
    return _cut("; ".join(row.waits) or row.outcome, width)


def _cut(text: str, width: int | None = None) -> str:
    return one_line(visible(text, keep="\n\t"), width)


def _when(stamp: str | None) -> str:
    with suppress(ValueError, TypeError):
        return datetime.fromisoformat(stamp or "").astimezone(UTC).strftime("%m-%d %H:%MZ")
    return " " * 12


# Investigations


def _investigations(workspace: Workspace) -> Iterator[Row]:
    running = workspace.current_id() if is_locked(workspace.root) else None
    captures = Counter[str]()
    if workspace.audit_dir.is_dir():
        left = unreleased_captures_of(workspace.audit_dir, running or "", datetime.now(UTC))
        captures.update(capture.session_id for capture in left)
    listed = set()
    for session_id in workspace.session_ids():
        try:
            session, _ = load_session(workspace.find(session_id))
        except GhostError:  # listed as damaged, by its turns
            continue
        listed.add(session_id)
        yield _investigation(session, session.paths(workspace.root), captures[session_id], is_running=running)
    for session_id in workspace.recorded_ids():
        if session_id not in listed:
            outcome = "session file missing or damaged"
            yield Row(session_id, "investigation", None, "", outcome, (), {"state": "damaged"})


def _investigation(session: Session, paths: SessionPaths, captures: int, *, is_running: str | None) -> Row:
    report = _report(paths) if session.rca_report_path else {}
    state = "finished" if session.rca_report_path else "not finished"
    outcome, waits = "", []
    if session.session_id == is_running:
        state = outcome = "running"
    elif not session.rca_report_path:
        waits.append(f"{_why_unfinished(paths)}: resume")
    else:
        outcome = _outcome(report) if report else "finished; its report cannot be read"
    if captures:
        waits.append(f"{plural(captures, 'capture')} to clean up")
    details = {
        "symptom": session.symptom,
        "network": session.network,
        "brain": session.model,
        "turns": session.turn_count,
        "state": state,
        **{name: report.get(name) for name in ("outcome", "confidence", "causes")},
        "report": session.rca_report_path,
    }
    about = session.symptom or str(session.stated) or "(no symptom yet)"
    return Row(session.session_id, "investigation", session.created_at, about, outcome, tuple(waits), details)


def _report(paths: SessionPaths) -> dict[str, Any]:
    with suppress(FileNotFoundError, RecordError):
        report = read_json(paths.report_json)
        return report if isinstance(report, dict) else {}
    return {}


def _why_unfinished(paths: SessionPaths) -> str:
    if _is_cut_off(paths):
        return "interrupted"
    last: dict[str, Any] = next(reversed(read_valid_records(paths.turns)[0]), {}) if paths.turns.is_file() else {}
    asks = last.get("kind") == "turn" and not last.get("tool_calls")
    return "question open" if asks else "not finished"


def _is_cut_off(paths: SessionPaths) -> bool:
    """Whether the session's last command was cut off while it ran."""
    if paths.intent.exists():
        return not is_held(paths.intent)
    records = list(Evidence(paths.shell_audit).values()) if paths.shell_audit.is_file() else []
    return bool(records) and records[-1].get("error") == "interrupted"


def _outcome(report: dict[str, Any]) -> str:
    """`cause found (high): cache-nsg close-legacy-ports`."""
    words = f"{str(report.get('outcome')).replace('_', ' ')} ({report.get('confidence')})"
    found = report.get("causes")
    rows = [cause for cause in found if isinstance(cause, dict)] if isinstance(found, list) else []
    causes = [cause for cause in rows if cause.get("supported")]
    if not causes:
        return words
    more = f" +{len(causes) - 1}" if len(causes) > 1 else ""
    return f"{words}: {_cause(causes[0])}{more}"


def _cause(cause: dict[str, Any]) -> str:
    name = str(cause.get("resource") or "").rstrip("/").rpartition("/")[2]
    return f"{name} {cause.get('rule') or str(cause.get('kind')).replace('_', ' ')}".strip()


# `ghost mcp`, `ghost apply`, `ghost reach`, `ghost shell run` and the schedule


def _connections(workspace: Workspace) -> Iterator[Row]:
    for path in workspace.audit_dir.glob(f"mcp_calls_{MCP}*.jsonl"):
        session_id = path.stem.removeprefix("mcp_calls_")
        calls = [call for call in read_valid_records(path)[0] if "tool" in call]
        if not valid_session_id(session_id) or not calls:
            continue
        client, tools = str(calls[0].get("client")), Counter(str(call["tool"]) for call in calls)
        about = f"{client}: {', '.join(f'{tool} ×{n}' if n > 1 else tool for tool, n in tools.items())}"
        told = {"client": client, "calls": dict(tools)}
        yield Row(session_id, "mcp", calls[0].get("time"), about, plural(len(calls), "call"), (), told)


def _recorded(workspace: Workspace, beginning: str) -> Iterator[tuple[SessionPaths, list[dict[str, Any]]]]:
    names = {path.name for path in workspace.audit_dir.glob(f"shell_audit_{beginning}*")}
    for session_id in {name.removeprefix("shell_audit_").partition(".")[0] for name in names}:
        if valid_session_id(session_id):
            paths, records = SessionPaths(workspace.audit_dir, session_id), []
            with suppress(GhostError, OSError):  # what cannot be read is listed without its records
                records = list(Evidence(paths.shell_audit).values()) if paths.shell_audit.is_file() else []
            yield paths, records


def _applied(workspace: Workspace) -> Iterator[Row]:
    results = _fix_results(workspace)
    for paths, records in _recorded(workspace, APPLY):
        first = records[0] if records else {}
        question = str(first.get("reasoning", "")).partition(NEEDS)[0]
        changes = [r for r in records if r.get("classification") == RISKY]
        ran = sum(r.get("status") == "completed" for r in changes)
        outcome = f"{ran} of {plural(len(changes), 'command')} ran" if changes else ""
        outcome = "; ".join(filter(None, (outcome, results.get(paths.session_id)))) or "nothing was run"
        told = {"question": question, "commands": [r.get("command") for r in changes], "ran": ran}
        yield Row(paths.session_id, "apply", first.get("timestamp"), question, outcome, (), told)


def _fix_results(workspace: Workspace) -> dict[str, str]:
    """Return whether a fix mended, by the session that applied or checked it."""
    rows = (row for rows in FixLog(workspace).results().values() for row in rows)
    return {str(row["records"]): str(row["outcome"]).replace("_", " ") for row in rows}


def _walks(workspace: Workspace, beginning: str = REACH) -> Iterator[Row]:
    for paths, records in _recorded(workspace, beginning):
        first = records[0] if records else {}
        question = str(first.get("reasoning", "")).partition(NEEDS)[0]
        told, kind = {"reads": len(records), "question": question}, beginning.rstrip("_")
        yield Row(paths.session_id, kind, first.get("timestamp"), question, plural(len(records), "read"), (), told)


def _watched(workspace: Workspace) -> Iterator[Row]:
    for row in _walks(workspace, WATCH):
        outcome = row.outcome
        with suppress(GhostError, OSError, LookupError, TypeError):  # not written, or damaged
            outcome = str(read_json(SessionPaths(workspace.audit_dir, row.session_id).watch_result)["outcome"])
        yield replace(row, outcome=outcome.replace("_", " "))


def _checks(workspace: Workspace) -> Iterator[Row]:
    results = _fix_results(workspace)
    return (replace(row, outcome=results.get(row.session_id, row.outcome)) for row in _walks(workspace, CHECK))


def _commands(workspace: Workspace) -> Iterator[Row]:
    for paths, records in _recorded(workspace, SHELL):
        record = records[0] if records else {}
        command = str(record.get("modified_command") or record.get("command") or "")
        state, waits = _command_state(record), ()
        if not record:
            state = (
                "cannot be read" if not paths.intent.exists() else "interrupted" if _is_cut_off(paths) else "running"
            )
        told = {"state": state, "command": command}
        yield Row(paths.session_id, "command", record.get("timestamp"), f"$ {command}", state, waits, told)


def _command_state(record: dict[str, Any]) -> str:
    decided = str(record.get("action") or record.get("error") or "-").replace("_", " ")
    ended = "" if record.get("exit_code") is None else f", exit {record['exit_code']}"
    return f"{record.get('classification')}, {decided}{ended}"
