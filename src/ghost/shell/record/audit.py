"""The audit of one session: a record per command, chained by hash, and an intent beside it while a command runs.

It only writes. What it is given is already processed: no raw output and no secret may reach it. A failure to write is
said on standard error and to the caller, and stops nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from ghost.errors import RecordError, WorkspaceError
from ghost.records import ChainedLog, Head, head_path, read_valid_records
from ghost.shell.judge.decision import SAFE
from ghost.shell.record.intent import INTENT, Intent, hold_session, left_behind, session_of, to_disk

SUMMARY_CHARACTERS = 200
MAX_UNWRITTEN = 100
"""Records kept while they cannot be written; a disk may be full for a while."""
OTHER_PROCESS_SECONDS = 1.0
"""How long a session waits for a process that is just recording what was cut off of it."""


@dataclass(frozen=True)
class AuditRecord:
    """One command's life, in the order of its line in the file; `prev` is added by the chain."""

    timestamp: str
    session_id: str
    sequence: int
    audit_id: str
    command: str
    reasoning: str
    status: str
    classification: str
    tier_triggered: int | None
    error: str | None
    action: str | None
    user_decision: str | None
    denial_reason: str | None
    modified_command: str | None
    environment: str
    approval_id: str | None = None
    """Of the answer that decided; None where nobody was asked."""
    argv_sha256: str | None = None
    """Of the words that ran under an approval, as there."""
    message: str | None = None
    """Why it did not run or complete, and what to do instead, as whoever proposed it reads it."""
    exit_code: int | None = None
    output: str = ""
    stderr: str = ""
    output_summary: str = ""
    output_truncated: bool = False
    output_sha256: str | None = None
    """Of the file with the whole output (`kept_output.output_path`), where `output` is a part of it."""
    output_bytes: int | None = None
    """Size of that file."""
    output_missing: str | None = None
    """Why `output` is a part and there is no such file."""
    redactions_applied: bool = False
    redaction_categories: tuple[str, ...] = ()
    redaction_rules: Mapping[str, int] = field(default_factory=dict)
    """Id of a rule of redaction to how many secrets it took out."""
    duration_seconds: float | None = None
    anonymization_applied: bool = False
    sandbox: tuple[str, ...] = ()
    stages: tuple[Mapping[str, Any], ...] = ()
    """Of each command of the line that ran: `argv`, `class`, `sandbox`, `exit_code`."""

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "output_summary": self.output[:SUMMARY_CHARACTERS],
            "redaction_categories": list(self.redaction_categories),
            "sandbox": list(self.sandbox),
            "stages": list(self.stages),
        }


class ShellAudit:
    """The audit file of one session and its intent. What crashes cut off in the directory is recorded at start-up.

    Raises `WorkspaceError` where another process writes this session's audit. Several of one process share it.
    """

    def __init__(self, directory: Path, session_id: str, warn: Callable[[str], None] | None = None) -> None:
        self.session_id = session_id
        self.path = audit_path(directory, session_id)
        self.head_path = head_path(self.path)
        self.intent_path = intent_path(directory, session_id)
        self.warn = warn if warn is not None else _warn_on_stderr
        self._intent = Intent(self.intent_path)
        self._begun: set[str] = set()
        self._unwritten: list[dict[str, Any]] = []
        self._hold = hold_session(self.path, OTHER_PROCESS_SECONDS)
        if not self._hold.is_locked:
            self.warn(f"the session {session_id} cannot be locked: end other processes that run its commands")
        record_interrupted(directory)
        self._settle_own()
        with self._hold.one_at_a_time:
            self._hold.log = ChainedLog(self.path)  # as it is on the disk now
            self._hold.sequence = max(self._hold.sequence, self._last_sequence())

    @property
    def head(self) -> Head:
        return self._hold.log.head

    @property
    def one_at_a_time(self) -> RLock:
        """Lock held while a command of the session runs: the shells of one process take turns."""
        return self._hold.one_at_a_time

    @property
    def covered(self) -> list[Any] | None:
        """What approvals still cover, for all shells of this process; None before they were read."""
        return self._hold.covered

    @covered.setter
    def covered(self, covered: list[Any]) -> None:
        self._hold.covered = covered

    def next_id(self) -> tuple[int, str]:
        """The next sequence number and its audit id."""
        with self._hold.one_at_a_time:
            self._hold.sequence += 1
            return self._hold.sequence, self.audit_id(self._hold.sequence)

    def audit_id(self, sequence: int) -> str:
        return f"{self.session_id}_{sequence:03d}"

    def begin(self, record: AuditRecord) -> None:
        """Write the intent of a command before it runs, so that a crash cannot hide it.

        For what may change something the word is on the disk before the command runs. For a SAFE command the system
        has it, which outlives a crash of Ghost, though not of the machine; waiting for the disk twice would cost more
        than most such commands take.
        """
        self._begun.add(record.audit_id)
        try:
            self._intent.state(record.as_dict(), on_disk=record.classification != SAFE)
        except (RecordError, OSError, ValueError) as error:
            self.warn(f"the intent of {record.audit_id} is not written: {error}")

    def write(self, record: AuditRecord) -> bool:
        """Append the record of a command, save the head of the chain; once no command is open, remove the intents.

        False where the record is not on the disk. It is then kept, and written before the next one if that works.
        """
        self._unwritten = [*self._unwritten, record.as_dict()][-MAX_UNWRITTEN:]
        try:
            while self._unwritten:
                self._hold.log.append(self._unwritten[0])
                self._begun.discard(self._unwritten.pop(0)["audit_id"])
            to_disk(self.path)
        except (RecordError, OSError) as error:
            self.warn(f"the audit has a gap at {record.audit_id}: {error}")
            return False
        try:
            save_head(self._hold.log)
            if not self._begun:
                self._intent.remove()
        except OSError as error:
            self.warn(f"{record.audit_id} is on record, but the files beside the record are not up to date: {error}")
        return True

    def _settle_own(self) -> None:
        try:
            _settle(self.intent_path, OTHER_PROCESS_SECONDS)
            if self.intent_path.exists():
                self.warn(f"{self.intent_path} is kept: it names no command, or another shell of this process runs it")
        except (RecordError, WorkspaceError) as error:
            self.warn(f"a command was interrupted, and is not on record: {error}")

    def _last_sequence(self) -> int:
        try:
            records, _ = read_valid_records(self.path)
            lines = self._hold.log.head.count
        except RecordError as error:
            self.warn(f"the audit cannot be read: {error}")
            return 0
        return max([lines, *_sequences(records)])


def audit_path(directory: Path, session_id: str) -> Path:
    return directory / f"shell_audit_{session_id}.jsonl"


def intent_path(directory: Path, session_id: str) -> Path:
    return directory / f"shell_audit_{session_id}{INTENT}"


def record_interrupted(directory: Path) -> list[str]:
    """Record every intent of an ended process as `interrupted` in its session. Returns the audit ids.

    Answers the audit ids of what it recorded. The record says what was about to run, and claims nothing of how it
    ended. What cannot be read or written stays as it is, for `verify` to tell.
    """
    recorded = []
    for path in sorted(directory.glob(f"shell_audit_*{INTENT}")):
        with suppress(RecordError, WorkspaceError):
            recorded.append(_settle(path))
    return [audit_id for audit_id in recorded if audit_id is not None]


def _settle(intent: Path, patience_seconds: float = 0.0) -> str | None:
    """Record one intent as interrupted. Returns the audit id; None if there was no intent.

    Raises `RecordError` where the intent does not say what was to run, or no record can be made of it, and
    `WorkspaceError` where another process writes that session's audit: it is that one's to record.
    """
    session_id = session_of(intent)
    with left_behind(intent, patience_seconds) as stated:
        if stated is None:
            return None
        record = _interrupted(stated, session_id, intent)
        hold = hold_session(audit_path(intent.parent, session_id), patience_seconds)
        log = hold.log
        try:
            with hold.one_at_a_time:
                known = read_valid_records(log.path)[0]
                on_record = any(_is_of(r, record) for r in known)
                if not on_record:  # else the crash came after the record was written
                    if any(r.get("audit_id") == record.audit_id for r in known):  # of another command
                        record = _renumbered(record, max(_sequences(known), default=0) + 1)
                    log.append(record.as_dict())
                    to_disk(log.path)
                save_head(log)
            intent.unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(f"cannot write {log.path} ({error.strerror}): check the permissions") from error
        return None if on_record else record.audit_id


def _is_of(known: dict[str, Any], record: AuditRecord) -> bool:
    """Whether a record belongs to the same command, not just the same sequence number."""
    return all(known.get(name) == getattr(record, name) for name in ("audit_id", "timestamp", "command"))


def _renumbered(record: AuditRecord, sequence: int) -> AuditRecord:
    return replace(record, sequence=sequence, audit_id=f"{record.session_id}_{sequence:03d}")


def _sequences(records: list[dict[str, Any]]) -> list[int]:
    return [n for r in records if isinstance(n := r.get("sequence"), int)]


def _interrupted(stated: object, session_id: str, intent: Path) -> AuditRecord:
    known = stated if isinstance(stated, dict) else {}
    fields = {name: known[name] for name in AuditRecord.__dataclass_fields__ if name in known}
    try:
        record = replace(AuditRecord(**fields), output="", stderr="", redaction_categories=(), redaction_rules={})
    except TypeError as error:
        raise RecordError(f"{intent} does not say which command it was ({error}): remove it") from error
    if record.session_id != session_id or not isinstance(record.sequence, int):
        raise RecordError(f"{intent} belongs to no command of {session_id}: remove it")
    return replace(record, status="error", error="interrupted")


def save_head(log: ChainedLog) -> None:
    """Save the head of the chain atomically, without fsync.

    A crash of the machine may leave an earlier head: the records after it still verify.
    """
    path = head_path(log.path)
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "w", encoding="utf-8", opener=_private) as file:
        file.write(json.dumps(log.head.as_dict()) + "\n")
    temporary.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _warn_on_stderr(message: str) -> None:
    print(f"ghost: warning: {message}", file=sys.stderr, flush=True)  # noqa: T201 - the one place that warns
