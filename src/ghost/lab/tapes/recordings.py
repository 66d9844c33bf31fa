"""What was recorded, read from an export of `ghost audit export` or from lines of JSON, and checked.

A line has `command`, `exit_code`, `output` and `stderr`, as the audit writes it. A tape's own lines may have a list of
commands with one answer, a JSON value in place of `output` (`json`, as az prints it, or `body`, as Azure Resource
Manager answers it), and a `source`.
"""

from __future__ import annotations

import json
import re
import shlex
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ghost.errors import LabError
from ghost.lab.az_cli.output import in_order, render
from ghost.lab.az_cli.output_shape import flattened
from ghost.text import one_line, visible

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 64 * 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024
_CAPTURE = re.compile(r"captures/([A-Za-z0-9][A-Za-z0-9_.-]{0,119}\.(?:cap|pcap|pcapng))")
_AUDIT_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_UNREADABLE = (OSError, zipfile.BadZipFile, RuntimeError, zlib.error, EOFError, ValueError)

Read = Callable[[str], str | None]
"""From the name of a file of an export to its text; None if it is not there."""


@dataclass(frozen=True)
class Recording:
    command: str
    exit_code: int
    output: str
    stderr: str = ""
    missing: str | None = None
    """Why `output` is a part only."""
    at: float | None = None
    """Seconds since the first; None if not told."""


@dataclass(frozen=True)
class Tape:
    recordings: tuple[Recording, ...]
    symptom: str | None = None
    """What the session was about."""
    captures: Mapping[str, bytes] | None = None
    """Capture files by name."""


def read_tape(path: Path) -> Tape:
    """Read a tape: an export (zip), or lines of JSON. Raises `LabError`, one line, if it is invalid."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return _of_export(_members(archive), archive)
        with path.open("rb") as file:
            return Tape(tuple(_recordings(_text(file.read(MAX_MEMBER_BYTES + 1)), lambda _: None)))
    except LabError as error:
        raise LabError(f"{visible(str(path))}: {error}") from error
    except _UNREADABLE as error:
        raise LabError(f"cannot read the tape {visible(str(path))}: {one_line(str(error), 160)}") from error


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name. None is ever written under its name."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_BYTES:
        raise LabError(f"an export has at most {MAX_MEMBERS} files and {MAX_BYTES >> 20} MiB: name a smaller one")
    by_name = {member.filename: member for member in members}
    if len(by_name) < len(members):
        raise LabError("two files of the export have one name: export the session again")
    for name, member in by_name.items():
        if stat.S_ISLNK(member.external_attr >> 16) or member.flag_bits & 1:
            raise LabError(
                f"{one_line(name)} is a link or encrypted, which an export never holds: export the session again"
            )
    return by_name


def _of_export(members: Mapping[str, zipfile.ZipInfo], archive: zipfile.ZipFile) -> Tape:
    def content(name: str) -> bytes:
        with archive.open(members[name]) as file:
            return file.read(MAX_MEMBER_BYTES + 1)

    audits = [name for name in members if re.fullmatch(r"shell_audit_[A-Za-z0-9_-]+\.jsonl", name)]
    if len(audits) != 1:
        raise LabError("it is not an export of one session: it holds no shell_audit_SESSION.jsonl, or several")
    recordings = _recordings(_text(content(audits[0])), lambda name: _text(content(name)) if name in members else None)
    sessions = [name for name in members if re.fullmatch(r"ghost_session[A-Za-z0-9_]*\.json", name)]
    session = json.loads(_text(content(sessions[0]))) if sessions else {}
    symptom = session.get("symptom") if isinstance(session, dict) else None
    captures = {found[1]: _bounded(content(name)) for name in members if (found := _CAPTURE.fullmatch(name))}
    return Tape(tuple(recordings), one_line(symptom, None) if isinstance(symptom, str) else None, captures)


def _recordings(lines: str, read: Read) -> Iterator[Recording]:
    """Yield the commands that ran to their end."""
    began: datetime | None = None
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("it is not an object")
            if type(record.get("exit_code", 0)) is int:
                commands = record.get("modified_command") or record.get("command")
                moment = _moment(record.get("timestamp"))
                began = began or moment
                at = (moment - began).total_seconds() if moment and began else None
                for command in commands if isinstance(commands, list) else [commands]:
                    yield replace(_recording(command, record, read), at=at)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise LabError(f"line {number} is not a recorded command: {one_line(str(error), 120)}") from error


def _recording(command: object, record: Mapping[str, Any], read: Read) -> Recording:
    output, stderr = record.get("output") or "", record.get("stderr") or ""
    if not (isinstance(command, str) and isinstance(output, str) and isinstance(stderr, str) and shlex.split(command)):
        raise ValueError("command, output and stderr are texts")
    missing = None
    if "json" in record or "body" in record:
        output = render(in_order(flattened(record["body"]) if "body" in record else record["json"]), "json")
    elif record.get("output_sha256"):
        audit_id = str(record.get("audit_id"))
        whole = read(f"output/{audit_id}.txt") if _AUDIT_ID.fullmatch(audit_id) else None
        output, missing = (output, "the export does not hold the rest") if whole is None else (whole, None)
    elif record.get("output_truncated"):
        missing = one_line(str(record.get("output_missing") or "the rest was not kept"))
    f"{command}{output}{stderr}".encode()  # JSON may hold halves of characters, which no file can
    return Recording(command, record.get("exit_code", 0), output, stderr, missing)


def _moment(timestamp: object) -> datetime | None:
    return datetime.fromisoformat(timestamp).astimezone(UTC) if isinstance(timestamp, str) else None


def _text(content: bytes) -> str:
    return _bounded(content).decode("utf-8")


def _bounded(content: bytes) -> bytes:
    if len(content) > MAX_MEMBER_BYTES:
        raise LabError(f"a file of it is longer than {MAX_MEMBER_BYTES >> 20} MiB: name a smaller one")
    return content
