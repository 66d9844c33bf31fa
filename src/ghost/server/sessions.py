"""The investigations of a workspace for the API; read only.

A session file is reread only when it changed, since the list is polled every few seconds. An unreadable file is listed
as damaged and does not fail the list.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, model_validator

from ghost.agent import Session, SessionPaths, Workspace, load_session
from ghost.errors import GhostError, RecordError
from ghost.records import is_locked, read_json, valid_session_id


class InvestigationState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    RESUMABLE = "resumable"
    DAMAGED = "damaged"


class OfFile(BaseModel):
    """The content of a workspace file; lone surrogates, possible in JSON, are replaced."""

    @model_validator(mode="before")
    @classmethod
    def _whole_characters(cls, fields: Any) -> Any:
        return {name: whole(value) for name, value in fields.items()} if isinstance(fields, dict) else fields


def whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return [whole(each) for each in value] if isinstance(value, list) else value


class InvestigationRow(OfFile):
    session_id: str = Field(examples=["ghost_20250115_143200"])
    state: InvestigationState = Field(description="`resumable`: without a report, and no process is working on it.")
    created_at: str | None = Field(description="ISO 8601; null if the session file is damaged or missing.")
    brain: str | None = Field(description="`offline`, or a model's name.")
    network: str | None = Field(description="`Azure`, or the name of a simulated network.")
    symptom: str | None
    turns: int
    hypotheses: int
    confidence: str | None = Field(description="Confidence of the conclusion, if any.")
    summary: str | None = Field(description="The root cause as text, if any.")
    outcome: str | None = Field(description="`cause_found`, `healthy`, `inconclusive` or `not_investigated`.")
    has_report: bool


_Version = tuple[int, int, int]
"""Modification time, size and inode of the file."""


class Sessions:
    """The session files of a workspace. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[_Version, InvestigationRow | None]] = {}

    def rows(self) -> list[InvestigationRow]:
        """Return the rows, newest first; an id begins with its time."""
        running = is_locked(self.workspace.root)
        with self._lock:
            found: dict[str, InvestigationRow] = {}
            known: dict[Path, tuple[_Version, InvestigationRow | None]] = {}
            for path in self._files():
                row = self._row(path, known)
                if row is not None and row.session_id not in found:
                    found[row.session_id] = self._now(row, running=running and path == self.workspace.session_file)
            self._known = known
        for session_id in self.workspace.recorded_ids():
            if session_id not in found:
                found[session_id] = self._now(_damaged(session_id), running=False)
        return sorted(found.values(), key=lambda row: row.session_id, reverse=True)

    def find(self, session_id: str) -> tuple[Session | None, SessionPaths] | None:
        """Return the session (None if its file is damaged) and its paths; None for an unknown id."""
        if not valid_session_id(session_id):
            return None
        paths = SessionPaths(self.workspace.audit_dir, session_id)
        try:
            session, _ = load_session(self.workspace.find(session_id))
        except GhostError:
            return (None, paths) if paths.turns.is_file() else None
        return session, paths

    def row(self, session_id: str) -> InvestigationRow | None:
        return next((row for row in self.rows() if row.session_id == session_id), None)

    def _files(self) -> Iterator[Path]:
        yield self.workspace.session_file
        yield from sorted(self.workspace.audit_dir.glob("ghost_session_*.json"))

    def _row(self, path: Path, known: dict[Path, tuple[_Version, InvestigationRow | None]]) -> InvestigationRow | None:
        try:
            status = path.stat()
        except OSError:
            return None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        before = self._known.get(path)
        if before is None or before[0] != version:
            try:
                before = (version, self._of(load_session(path)[0]))
            except GhostError:
                before = (version, None)  # listed as damaged by its turns, where it has any
        known[path] = before
        return before[1]

    def _of(self, session: Session) -> InvestigationRow:
        """Return its row. Where there is a report, what the records allowed to say wins over what the brain said."""
        completion, report = session.completion or {}, self._report(session)
        finished = session.rca_report_path is not None
        return InvestigationRow(
            session_id=session.session_id,
            state=InvestigationState.FINISHED if finished else InvestigationState.RESUMABLE,
            created_at=session.created_at,
            brain=session.model,
            network=session.network,
            symptom=_text(report.get("symptom")) or session.symptom,
            turns=session.turn_count,
            hypotheses=len(session.hypothesis_log),
            confidence=_text(report.get("confidence")) or _text(completion.get("confidence")),
            summary=_text(completion.get("root_cause_summary")),
            outcome=_text(report.get("outcome")) or _text(completion.get("outcome")),
            has_report=False,
        )

    def _report(self, session: Session) -> dict[str, Any]:
        with contextlib.suppress(RecordError, OSError):
            report = read_json(SessionPaths(self.workspace.audit_dir, session.session_id).report_json)
            if isinstance(report, dict):
                return report
        return {}

    def _now(self, row: InvestigationRow, *, running: bool) -> InvestigationRow:
        has_report = SessionPaths(self.workspace.audit_dir, row.session_id).report_json.is_file()
        state = InvestigationState.RUNNING if running else row.state
        return row.model_copy(update={"has_report": has_report, "state": state})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _damaged(session_id: str) -> InvestigationRow:
    return InvestigationRow(
        session_id=session_id,
        state=InvestigationState.DAMAGED,
        created_at=None,
        brain=None,
        network=None,
        symptom=None,
        turns=0,
        hypotheses=0,
        confidence=None,
        summary=None,
        outcome=None,
        has_report=False,
    )
