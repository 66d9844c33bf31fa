r"""Append-only JSONL in which every record carries the hash of the line before it.

A line is one JSON object and `\n`, written by one `write` to a file opened for appending. Its last field, `prev`, is
the SHA-256 in hex of the previous line without the line feed; the first line has 64 zeros. A chain proves that no line
but the last was changed; the last is covered by a *head* (count and hash) stored elsewhere, in the session or in
`{file}.head`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ghost.errors import ChainError, RecordError
from ghost.records.atomic_files import open_regular, private_dir, read_json

GENESIS = "0" * 64


@dataclass(frozen=True)
class Head:
    """The length of a chain and the hash of its last line (`GENESIS` if empty)."""

    count: int = 0
    sha256: str = GENESIS

    def as_dict(self) -> dict[str, Any]:
        return {"count": self.count, "sha256": self.sha256}

    @classmethod
    def from_dict(cls, value: object) -> Head | None:
        if not isinstance(value, dict):
            return None
        count, sha256 = value.get("count"), value.get("sha256")
        if isinstance(count, int) and not isinstance(count, bool) and isinstance(sha256, str):
            return cls(count, sha256)
        return None


def head_path(log: Path) -> Path:
    """Return where the head of a log is kept, beside it."""
    return log.with_name(f"{log.name}.head")


def head_beside(log: Path) -> Head | None:
    """Return the head that was kept beside a log; None where there is none, or it cannot be read."""
    try:
        return Head.from_dict(read_json(head_path(log)))
    except (FileNotFoundError, RecordError):
        return None


class ChainedLog:
    """The writer of one file. It must be the only writer; it continues an existing file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head: Head | None = None

    @property
    def head(self) -> Head:
        if self._head is None:
            self._head = _head_of_file(self.path)
        return self._head

    def append(self, record: dict[str, Any]) -> dict[str, Any]:
        """Write `record` with its `prev` and return what was written.

        A half-written last line, left by a crash, is terminated first, so that it remains one broken line. Raises
        `RecordError` if the file cannot be written or the record is not JSON.
        """
        chained = {**record, "prev": self.head.sha256}
        try:
            line = json.dumps(chained, ensure_ascii=True, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordError(f"a record for {self.path} is not JSON: {error}") from error
        try:
            private_dir(self.path.parent)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self.path, flags, 0o600)
            try:
                _check_regular(descriptor)
                _write_whole(descriptor, _closing_line_feed(descriptor) + line + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            self._head = None  # what reached the disk is not known: read it again before the next record
            raise RecordError(
                f"cannot write {self.path} ({error.strerror or error}): check the disk and the permissions"
            ) from error
        self._head = Head(self.head.count + 1, hashlib.sha256(line).hexdigest())
        return chained


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Return the records in `path`, oldest first. Raises `ChainError` at the first line that is not a JSON object."""
    for number, line in enumerate(read_lines(path), 1):
        record = parse_record(line)
        if record is None:
            raise ChainError(
                f"{path} line {number} is not a JSON object: the file was modified or truncated; restore a copy"
            )
        yield record


def read_valid_records(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the readable records, and the numbers of the unreadable lines (from 1)."""
    records: list[dict[str, Any]] = []
    broken: list[int] = []
    for number, line in enumerate(read_lines(path), 1):
        record = parse_record(line)
        if record is None:
            broken.append(number)
        else:
            records.append(record)
    return records, broken


@dataclass(frozen=True)
class Verification:
    """The result of recomputing a chain. `errors` make it fail; `notes` do not."""

    path: Path
    head: Head
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.errors


def verify(path: Path, expected: Head | None) -> Verification:
    """Recompute the chain of `path` and compare it with the saved head.

    Valid records after the saved head pass with a note (the process ended before it saved the new head); a file shorter
    than the head, a different line at the head, or a broken link fails.
    """
    errors: list[str] = []
    notes: list[str] = []
    if not path.exists():
        if expected is not None and expected.count == 0:
            return Verification(path, Head(), [], ["no record was written"])
        return Verification(path, Head(), [f"{path} does not exist"], [])
    count, previous, at_expected = 0, GENESIS, GENESIS
    for line in read_lines(path):
        count += 1
        record = parse_record(line)
        if record is None:
            errors.append(f"line {count} is not a JSON object")
        elif record.get("prev") != previous:
            errors.append(f"line {count}: its prev is not the hash of line {count - 1}: one of the two was changed")
        previous = hashlib.sha256(line).hexdigest()
        if expected is not None and count == expected.count:
            at_expected = previous
    if count and not _ends_with_line_feed(path):
        errors.append(f"line {count} is truncated: it does not end with a line feed")
    if expected is None:
        errors.append("no head was saved, so a change of the last line cannot be detected")
    elif count < expected.count:
        errors.append(f"{expected.count} records were written, {count} remain: the file was truncated")
    elif expected.count and at_expected != expected.sha256:
        errors.append(f"line {expected.count} is not the record that was written there")
    elif count > expected.count:
        notes.append(f"{count - expected.count} valid records follow the saved head")
    return Verification(path, Head(count, previous), errors, notes)


def read_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """Return the lines of `path` from byte `start` on, without their line feeds; none if there is no file."""
    try:
        with open_regular(path) as file:
            file.seek(start)
            for line in file:
                yield line.removesuffix(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror or error}): check the permissions") from error


def parse_record(line: bytes) -> dict[str, Any] | None:
    """Return the record on a line; None if it is not a JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _head_of_file(path: Path) -> Head:
    count, last = 0, b""
    for line in read_lines(path):
        count, last = count + 1, line
    return Head(count, hashlib.sha256(last).hexdigest()) if count else Head()


def _ends_with_line_feed(path: Path) -> bool:
    with open_regular(path) as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _closing_line_feed(descriptor: int) -> bytes:
    """Return a line feed if a crash left the last line without one, else nothing."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return b""
    return b"\n"


def _write_whole(descriptor: int, content: bytes) -> None:
    """Write all of `content` or none of it, so that a full disk does not leave half a record."""
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, content)
    except OSError:
        os.ftruncate(descriptor, before)
        raise
    if written != len(content):
        os.ftruncate(descriptor, before)
        raise OSError(f"wrote {written} of {len(content)} bytes")


def _check_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("it is not a regular file")
