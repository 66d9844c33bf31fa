"""What a workspace has on record, for a client to read: sessions and their records, reports, findings of captures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ghost.agent import Evidence, SessionPaths, Workspace, load_session
from ghost.errors import GhostError, RecordError, SessionError, UsageError
from ghost.records import open_regular, read_json, read_valid_records, valid_session_id
from ghost.text import one_line

MARKDOWN, JSON = "text/markdown", "application/json"
LAST: Final = "last"
MAX_ROWS: Final = 200
"""Of records that are listed: the newest."""
MAX_LISTED: Final = 50
"""Of reports and of captures that are listed: the newest."""
MAX_OUTPUT: Final = 30_000
"""Characters of a record's output."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""Of a file that is read."""
_OF_A_RECORD: Final = (
    *("audit_id", "timestamp", "command", "modified_command", "reasoning", "status", "classification", "action"),
    *("denial_reason", "exit_code", "error", "message", "duration_seconds", "stderr"),
)
_SEMANTIC: Final = "_semantic.json"
_CALLS: Final = "mcp_calls_"
"""The beginning of the files of connections."""


def records_of(workspace: Workspace, session_id: str) -> dict[str, Any]:
    """Return the commands of a session, without their output, and the calls of a connection."""
    paths = _paths(workspace, session_id)
    evidence = Evidence(paths.shell_audit)
    records = list(evidence.values())
    names = ("status", "classification", "exit_code", "error")
    rows = [
        {
            "record": record.get("sequence"),
            "command": one_line(str(record.get("modified_command") or record.get("command")), 300),
            **{name: record[name] for name in names if record.get(name) is not None},
        }
        for record in records[-MAX_ROWS:]
    ]
    calls = [
        {name: value for name, value in call.items() if name != "prev"}
        for call in read_valid_records(paths.calls)[0][-MAX_ROWS:]
    ]
    told = {"session": paths.session_id, "records": rows, "left_out": len(records) - len(rows)}
    return {**told, **({"calls": calls} if calls else {})}


def record_of(workspace: Workspace, session_id: str, number: int) -> dict[str, Any]:
    """Return one record with its output."""
    paths = _paths(workspace, session_id)
    evidence = Evidence(paths.shell_audit)
    audit_id = f"{paths.session_id}_{number:03}"
    if audit_id not in evidence:
        numbers = [record.get("sequence") for record in evidence.values()]
        known = f"1 to {numbers[-1]}" if numbers else "none"
        raise UsageError(f"{paths.session_id} has no record {number}: its records are {known}")
    record = evidence[audit_id]
    try:
        output = evidence.whole_output(audit_id)
    except RecordError as part:
        output = f"{record.get('output') or ''}\n[{part}]"
    told = {name: record[name] for name in _OF_A_RECORD if record.get(name) not in (None, "")}
    cut = {"output_characters": len(output)} if len(output) > MAX_OUTPUT else {}
    return {**told, "output": output[:MAX_OUTPUT], **cut}


def _paths(workspace: Workspace, session_id: str) -> SessionPaths:
    """Raises `SessionError` where a session has no records."""
    known = sorted({*workspace.session_ids(), *workspace.recorded_ids()})
    named = _named(workspace, known, session_id)
    paths = SessionPaths(workspace.audit_dir, named)
    if not valid_session_id(named) or not (paths.shell_audit.is_file() or paths.calls.is_file()):
        there = f"the newest are {', '.join(known[-3:])}" if known else "there is no investigation yet"
        raise SessionError(f"no session {session_id[:100]!r} in this workspace: {there}")
    return paths


def _named(workspace: Workspace, known: Sequence[str], session_id: str) -> str:
    """Return the id that is meant: by `last` that of the newest investigation, else one by its unique beginning."""
    if session_id == LAST:
        return known[-1] if known else session_id
    connections = {path.stem.removeprefix(_CALLS) for path in workspace.audit_dir.glob(f"{_CALLS}*.jsonl")}
    begun = [each for each in {*known, *connections} if session_id and each.startswith(session_id)]
    return begun[0] if len(begun) == 1 else session_id


@dataclass(frozen=True)
class Document:
    """A resource that can be read."""

    uri: str
    name: str
    description: str
    mime_type: str


TEMPLATES: Final = (
    Document("ghost://reports/{session}", "report", "The root-cause report of an investigation.", MARKDOWN),
    Document("ghost://records/{session}/{number}", "record", "A command with its decision and output.", JSON),
    Document("ghost://findings/{capture}", "findings", "What the engine found in a capture.", JSON),
)
_URI: Final = re.compile(
    r"ghost://(?P<kind>reports|records|findings)/(?P<name>[A-Za-z0-9][\w.-]{0,199})(?:/(?P<number>[0-9]{1,9}))?"
)


def documents(workspace: Workspace, captures: Path) -> Iterator[Document]:
    """Yield the newest reports, and the findings of the newest captures."""
    for session_id in _finished(workspace)[:MAX_LISTED]:
        with suppress(GhostError):
            session, _ = load_session(workspace.find(session_id))
            about = one_line(session.symptom or "", 200)
            yield Document(f"ghost://reports/{session_id}", f"Report of {session_id}", about, MARKDOWN)
    found = [path for path in captures.glob(f"*{_SEMANTIC}") if path.is_file() and not path.is_symlink()]
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:MAX_LISTED]:
        name = path.name.removesuffix(_SEMANTIC)
        if _URI.fullmatch(f"ghost://findings/{name}"):
            yield Document(f"ghost://findings/{name}", f"Findings in {name}", "A capture.", JSON)


def _finished(workspace: Workspace) -> list[str]:
    """Return the investigations that have a report, the newest first."""
    finished = (each for each in workspace.session_ids() if SessionPaths(workspace.audit_dir, each).report.is_file())
    return sorted(finished, reverse=True)


def document_text(workspace: Workspace, captures: Path, uri: str) -> tuple[str, str]:
    """Return the text and the type of a resource. Raises `UsageError` where there is none of this name."""
    match = _URI.fullmatch(uri)
    missing = UsageError(f"there is no resource {uri[:200]!r}: list them, or see the templates")
    if match is None or (match["number"] is None) == (match["kind"] == "records"):
        raise missing
    name = match["name"]
    if match["kind"] == "records":
        return json.dumps(record_of(workspace, name, int(match["number"])), ensure_ascii=False), JSON
    if match["kind"] == "reports":
        finished = _finished(workspace)
        name = finished[0] if name == LAST and finished else name
        report = SessionPaths(workspace.audit_dir, name).report
        if not valid_session_id(name) or not report.is_file():
            raise missing
        with open_regular(report) as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace"), MARKDOWN
    semantic = captures / f"{name}{_SEMANTIC}"
    if ".." in name or not semantic.is_file():
        raise missing
    content = read_json(semantic)
    found = content.get("findings") if isinstance(content, dict) else content
    return json.dumps(found, ensure_ascii=False), JSON
