"""The lines of a registry file, read no further than is needed to know which task each is of.

Most lines of a long registry are of tasks that nobody asks for again. A line that this program wrote begins and ends in
a known way, and the line after it carries its hash: where both hold it is that line, whole, and its JSON can wait until
someone wants the task. Any other line, the last one always, is read at once.
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
    """A record of which only the first look was taken."""

    task_id: str
    session_id: str
    state: str
    revision: int
    line: bytes

    def read(self) -> CaptureTask | None:
        """None where it describes no task, as a record of another version may."""
        try:
            return CaptureTask.model_validate_json(self.line)
        except ValidationError:
            return None

    @property
    def settled(self) -> bool:
        """As `CaptureTask.settled`. Within a JSON text the quotes would be escaped."""
        return self.state == State.DONE and not any(mark in self.line for mark in _KEPT)


@dataclass
class Reading:
    """What reading one file showed beside its records."""

    broken: list[int] = field(default_factory=list)
    """Lines that are no JSON object, from 1."""
    unusable: int = 0
    """Records that describe no task."""


def read_tasks(path: Path, reading: Reading, *, at_once: bool = False) -> Iterator[CaptureTask | UnreadTask]:
    """The records of `path`, oldest first. Raises `RecordError` where it cannot be read."""
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
    """`follows` is the hash that the next line carries."""
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
