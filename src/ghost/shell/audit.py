"""The audit of one session: a record per command, chained by hash, and an intent beside it while a command runs.

It only writes. What it is given is already processed: no raw output and no secret may reach it. A failure to write is
said on standard error and stops nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ghost.errors import RecordError
from ghost.records import ChainedLog, Head, private_dir, read_json, read_valid_records, write_json
from ghost.shell.decision import SAFE

SUMMARY_CHARACTERS = 200


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
    exit_code: int | None = None
    output: str = ""
    stderr: str = ""
    output_summary: str = ""
    output_truncated: bool = False
    redactions_applied: bool = False
    redaction_categories: tuple[str, ...] = ()
    duration_seconds: float | None = None
    anonymization_applied: bool = False
    sandbox: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "output_summary": self.output[:SUMMARY_CHARACTERS],
            "redaction_categories": list(self.redaction_categories),
            "sandbox": list(self.sandbox),
        }


class ShellAudit:
    """The audit file of one session and its intent file. A command that a crash cut off is recorded at start-up."""

    def __init__(self, directory: Path, session_id: str, warn: Callable[[str], None] | None = None) -> None:
        self.session_id = session_id
        self.path = directory / f"shell_audit_{session_id}.jsonl"
        self.intent_path = directory / f"shell_audit_{session_id}.intent.json"
        self.head_path = directory / f"{self.path.name}.head"
        self._warn = warn if warn is not None else _warn_on_stderr
        self._log = ChainedLog(self.path)
        self._sequence = self._last_sequence()
        self._record_interrupted()

    @property
    def head(self) -> Head:
        return self._log.head

    def next_id(self) -> tuple[int, str]:
        """The next sequence number and its audit id."""
        self._sequence += 1
        return self._sequence, self.audit_id(self._sequence)

    def audit_id(self, sequence: int) -> str:
        return f"{self.session_id}_{sequence:03d}"

    def begin(self, record: AuditRecord) -> None:
        """Leaves word that a command is about to run: a crash must not hide that it did.

        For what may change something the word is on the disk before the command runs. For a SAFE command the system
        has it, which outlives a crash of Ghost, though not of the machine; waiting for the disk twice would cost more
        than most such commands take.
        """
        try:
            if record.classification == SAFE:
                private_dir(self.intent_path.parent)
                _replace(self.intent_path, record.as_dict())
            else:
                write_json(self.intent_path, record.as_dict())
        except (RecordError, OSError, ValueError) as error:
            self._warn(f"the intent of {record.audit_id} is not written: {error}")

    def write(self, record: AuditRecord) -> None:
        """Appends the record of a command, then saves the head of the chain and removes the intent."""
        self._append(record.as_dict(), record.audit_id)

    def _append(self, record: dict[str, Any], audit_id: str) -> None:
        try:
            self._log.append(record)
            _to_disk(self.path)
            _replace(self.head_path, self._log.head.as_dict())
            self.intent_path.unlink(missing_ok=True)
        except (RecordError, OSError) as error:
            self._warn(f"the audit has a gap at {audit_id}: {error}")

    def _last_sequence(self) -> int:
        try:
            records, _ = read_valid_records(self.path)
            lines = self._log.head.count
        except RecordError as error:
            self._warn(f"the audit cannot be read: {error}")
            return 0
        return max([lines, *(n for r in records if isinstance(n := r.get("sequence"), int))], default=0)

    def _record_interrupted(self) -> None:
        """Turns an intent that nothing followed into an `interrupted` record."""
        try:
            intent = read_json(self.intent_path)
        except FileNotFoundError:
            return
        except RecordError as error:
            self._warn(f"a command was interrupted, and what it was cannot be read: {error}")
            return
        known = intent if isinstance(intent, dict) else {}
        fields = {name: known[name] for name in AuditRecord.__dataclass_fields__ if name in known}
        try:
            record = replace(AuditRecord(**fields), output="", stderr="", redaction_categories=())
        except TypeError as error:
            self._warn(f"a command was interrupted, and {self.intent_path} does not say which: {error}")
            return
        if self._recorded(record.audit_id):
            self.intent_path.unlink(missing_ok=True)  # the crash came after the record was written
            return
        if isinstance(record.sequence, int):
            self._sequence = max(self._sequence, record.sequence)
        self.write(replace(record, status="error", error="interrupted"))

    def _recorded(self, audit_id: str) -> bool:
        records, _ = read_valid_records(self.path)
        return any(record.get("audit_id") == audit_id for record in records)


def _replace(path: Path, value: dict[str, Any]) -> None:
    """Whole or not there for every process, without waiting for the disk.

    Of the head, which a crash of the machine may leave at an earlier record: the records after it still verify.
    """
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "w", encoding="utf-8", opener=_private) as file:
        file.write(json.dumps(value) + "\n")
    temporary.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _to_disk(path: Path) -> None:
    """Not only handed to the system: a record outlives a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _warn_on_stderr(message: str) -> None:
    print(f"ghost: warning: {message}", file=sys.stderr, flush=True)  # noqa: T201 - the one place that warns
