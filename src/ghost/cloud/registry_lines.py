"""Lines of a registry file, parsed only as far as needed to know which task each belongs to.

Most lines of a long registry are never used. A line that this program wrote begins and ends in a known way, and the
next line carries its hash: if both hold, the line is intact and its JSON is parsed on demand. Any other line, and
always the last, is parsed at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from ghost.cloud.task import CaptureTask, State
from ghost.records import parse_record, read_lines

_WRITTEN = re.compile(
    rb'\{"task_id": "([A-Za-z0-9_.-]{1,80})", "session_id": "([A-Za-z0-9_.-]*)", .*?, "state": "([A-Z_]+)", '
    rb'.*, "revision": ([0-9]{1,9}), "prev": "([0-9a-f]{64})"\}'
)

_KEPT = (b'"cleanup_status": "partial"', b'"executed": false')


@dataclass(frozen=True, slots=True)
class UnreadTask:
    """A record whose JSON is not parsed yet."""

    task_id: str
    session_id: str
    state: str
    revision: int
    line: bytes

    def read(self) -> CaptureTask | None:
        """Return the task; None if the record is not one (for example from another version)."""
        try:
            return CaptureTask.model_validate_json(self.line)
        except ValidationError:
            return None

    @property
    def settled(self) -> bool:
        """Like `CaptureTask.settled`, from the raw text. Quotes inside a JSON text would be escaped."""
        return self.state == State.DONE and not any(mark in self.line for mark in _KEPT)


@dataclass
class Reading:
    """Problems found while reading one file."""

    broken: list[int] = field(default_factory=list)
    """Numbers (from 1) of lines that are not JSON objects."""
    unusable: int = 0
    """Number of records that are not tasks."""


def read_tasks(path: Path, reading: Reading, *, at_once: bool = False) -> Iterator[CaptureTask | UnreadTask]:
    """Return the records of `path`, oldest first. Raises `RecordError` if it cannot be read."""
    waiting: tuple[int, bytes, re.Match[bytes] | None] | None = None
    for number, line in enumerate(read_lines(path), 1):
        written = None if at_once else _WRITTEN.fullmatch(line)
        if waiting is not None:
            follows = written[5] if written is not None else b""
            yield from _record(*waiting, follows, reading)
        waiting = number, line, written
    if waiting is not None:
        yield from _record(*waiting, b"", reading)


def _record(
    number: int, line: bytes, written: re.Match[bytes] | None, follows: bytes, reading: Reading
) -> Iterator[CaptureTask | UnreadTask]:
    """Return one record; `follows` is the hash carried by the next line."""
    if written is not None and follows and hashlib.sha256(line).hexdigest().encode() == follows:
        task_id, session_id, state, revision = (group.decode() for group in written.groups()[:4])
        yield UnreadTask(task_id, session_id, state, int(revision), line)
        return
    record = parse_record(line)
    if record is None:
        reading.broken.append(number)
        return
    try:
        yield CaptureTask.model_validate(record)
    except ValidationError:
        reading.unusable += 1
