"""New audit records as stimuli: one short sentence about each step of an investigation.

A sentence names the program, the verdict, the exit status and the session; never an argument or output. Read positions
are stored, so a restart neither repeats nor loses a record. An incomplete last line is read later, a line that is not a
record is skipped, a truncated or replaced file is read from its start.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from ghost.agent import CHECK, WATCH
from ghost.errors import RecordError
from ghost.records import parse_record, read_json, valid_session_id, write_json
from ghost.server.logs import logger

_log = logger("ghost.server.audit_watch")

FILES: Final = 2_000
"""Maximum number of watched files, newest first; older ones no longer change."""
RECORDS_AT_ONCE: Final = 50
"""Maximum records per poll."""
BYTES_AT_ONCE: Final = 8_388_608
"""Maximum bytes read per file and poll. A longer line is skipped."""
_NAME: Final = re.compile(
    rf"(?P<kind>shell_audit|orchestrator_tasks)_(?!{WATCH}|{CHECK})(?P<session>[A-Za-z0-9_.-]{{1,100}})\.jsonl"
)
"""Not those of the schedule: what it finds is told by itself."""
_WORD: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
_LABEL: Final = re.compile(r"[A-Za-z0-9_. -]{1,120}")
_AZ_WORDS: Final = 5


@dataclass(frozen=True)
class AuditStimulus:
    """A record as a stimulus. `text` is one sentence; `about` is its source."""

    text: str
    about: dict[str, Any]


class _Position(BaseModel):
    """The read position in a file. `in_line`: inside a line that is too long and is skipped."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    device: int
    inode: int
    offset: int
    in_line: bool = False


class _Positions(BaseModel):
    files: dict[str, _Position] = {}


class AuditWatch:
    """Reader of new audit records. Not thread-safe.

    `redact` is applied to every sentence. On the first start, existing records count as read.
    """

    def __init__(self, audit_dir: Path, state_file: Path, redact: Callable[[str], str]) -> None:
        self._dir = audit_dir
        self._state_file = state_file
        self._redact = redact
        self._places = self._restored()

    def look(self, take: Callable[[list[AuditStimulus]], None]) -> int:
        """Pass new records to `take`, then store the positions. Returns their number.

        Exceptions of `take` are passed on, and the records are read again at the next call.
        """
        places = {name: place for name, place in self._places.items() if (self._dir / name).exists()}
        stimuli: list[AuditStimulus] = []
        for path in self._files():
            if len(stimuli) >= RECORDS_AT_ONCE:
                break
            found, place = self._read(path, places.get(path.name), RECORDS_AT_ONCE - len(stimuli))
            stimuli += found
            if place is not None:
                places[path.name] = place
        if stimuli:
            take(stimuli)
        if places != self._places:
            self._places = places
            self._keep()
        return len(stimuli)

    def _files(self) -> list[Path]:
        """Return the files to watch, least recently written first, so that stimuli are roughly in order of time."""
        found: list[tuple[float, Path]] = []
        try:
            with os.scandir(self._dir) as entries:
                for entry in entries:
                    match = _NAME.fullmatch(entry.name)
                    if match and valid_session_id(match["session"]) and entry.is_file(follow_symlinks=False):
                        found.append((entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)))
        except OSError:
            return []  # not made yet: no investigation has run here
        return [path for _, path in sorted(found)[-FILES:]]

    def _read(self, path: Path, place: _Position | None, limit: int) -> tuple[list[AuditStimulus], _Position | None]:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return [], place
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return [], place
            same = place is not None and (place.device, place.inode) == (status.st_dev, status.st_ino)
            if place is None or not same or place.offset > status.st_size:
                place = _Position(device=status.st_dev, inode=status.st_ino, offset=0)
            content = os.pread(descriptor, BYTES_AT_ONCE, place.offset) if status.st_size > place.offset else b""
        finally:
            os.close(descriptor)
        return self._records(path.name, content, place, limit)

    def _records(
        self, name: str, content: bytes, place: _Position, limit: int
    ) -> tuple[list[AuditStimulus], _Position]:
        """Return the records of the complete lines in `content`, and the offset of the first unread line."""
        stimuli: list[AuditStimulus] = []
        start = 0
        in_line = place.in_line
        while len(stimuli) < limit:
            end = content.find(b"\n", start)
            if end < 0:
                if len(content) - start >= BYTES_AT_ONCE:
                    start, in_line = len(content), True
                break
            if not in_line and (record := self._sentence(name, content[start:end])) is not None:
                stimuli.append(record)
            start, in_line = end + 1, False
        return stimuli, place.model_copy(update={"offset": place.offset + start, "in_line": in_line})

    def _sentence(self, name: str, line: bytes) -> AuditStimulus | None:
        record = parse_record(line)
        match = _NAME.fullmatch(name)
        if record is None or match is None:
            return None
        described = of_command if match["kind"] == "shell_audit" else of_capture
        stimuli = described(record, match["session"])
        return replace(stimuli, text=self._redact(stimuli.text)) if stimuli else None

    # --- what was seen, over a restart ---

    def _restored(self) -> dict[str, _Position]:
        try:
            return _Positions.model_validate(read_json(self._state_file)).files
        except FileNotFoundError:
            return dict(self._ends())
        except (RecordError, ValidationError) as error:
            _log.warning("the audit read positions are lost: existing records count as read", error=str(error))
            return dict(self._ends())

    def _ends(self) -> Iterator[tuple[str, _Position]]:
        for path in self._files():
            with suppress(OSError):
                status = path.stat()
                yield path.name, _Position(device=status.st_dev, inode=status.st_ino, offset=_end_of_lines(path))

    def _keep(self) -> None:
        try:
            write_json(self._state_file, _Positions(files=self._places).model_dump(mode="json"))
        except RecordError as error:
            _log.warning("the audit read positions could not be stored", error=str(error))


def _end_of_lines(path: Path) -> int:
    """Return the offset after the last complete line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - BYTES_AT_ONCE))
        tail = file.read()
    return size - len(tail) + tail.rfind(b"\n") + 1 if b"\n" in tail else 0


def of_command(record: Mapping[str, Any], session_id: str) -> AuditStimulus | None:
    """Return the sentence for a record of the shell audit."""
    audit_id = _label(record.get("audit_id"))
    if audit_id is None:
        return None
    program = program_of(str(record.get("modified_command") or record.get("command") or ""))
    verdict = _label(record.get("classification")) or "unclassified"
    text = f"Investigation {session_id} {_ended(record)}: {program} ({verdict.lower()}), record {audit_id}."
    return AuditStimulus(text, {"kind": "command", "session_id": session_id, "audit_id": audit_id})


def _ended(record: Mapping[str, Any]) -> str:
    status, exit_code = record.get("status"), record.get("exit_code")
    if status == "denied":
        return "had a command refused"
    if status == "completed" and isinstance(exit_code, int):
        return f"ran a command that ended with exit status {exit_code}"
    error = _label(record.get("error"))
    return f"ran a command that failed{f' with {error}' if error else ''}"


def of_capture(record: Mapping[str, Any], session_id: str) -> AuditStimulus | None:
    """Return the sentence for a record of a capture task."""
    task_id, state = _label(record.get("task_id")), _label(record.get("state"))
    if task_id is None or state is None:
        return None
    outcome = _label(record.get("outcome"))
    ended = f", outcome {outcome}" if outcome else ""
    text = f"Capture task {task_id} of investigation {session_id} is {state.lower().replace('_', ' ')}{ended}."
    return AuditStimulus(text, {"kind": "capture", "session_id": session_id, "task_id": task_id, "state": state})


def program_of(command: str) -> str:
    """Return the program's name, for the Azure CLI with the words of its command; no arguments."""
    words = command.split()
    if not words:
        return "no program"
    name = words[0].rpartition("/")[2]
    if _PROGRAM.fullmatch(name) is None:
        return "a program"
    path: list[str] = []
    for word in words[1 : 1 + _AZ_WORDS] if name == "az" else ():
        if _WORD.fullmatch(word) is None:
            break
        path.append(word)
    return " ".join([name, *path])


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) and _LABEL.fullmatch(value) else None
