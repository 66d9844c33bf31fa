"""The whole processed output of a command: in its record, or in a file beside the audit where the record shows a part.

Code judges the whole, a conversation holds the part. A file counts only by the SHA-256 in a record of the chain: one
that a crash left without a record is no evidence. It never holds a beginning only: what is not kept has a reason.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.errors import RecordError
from ghost.records import open_regular, valid_session_id, write_bytes
from ghost.shell.record.cut_output import UNFINISHED

MAX_BYTES = 16 * 1024 * 1024
TOO_LONG = "it is longer than 16 MiB"


@dataclass(frozen=True)
class KeptOutput:
    """The file with the output of a command; `path` is None, with the reason in `missing`, where it is not kept."""

    path: Path | None = None
    sha256: str | None = None
    size: int | None = None
    missing: str | None = None

    def as_metadata(self) -> dict[str, Any]:
        if self.path is None:
            return {"full_output_missing": self.missing}
        return {"full_output": str(self.path), "full_output_bytes": self.size, "full_output_sha256": self.sha256}


def output_path(audit_dir: Path, audit_id: str) -> Path:
    """Raises `RecordError` for an id that is no file name; a record may have been changed."""
    session_id, _, number = audit_id.rpartition("_")
    if not valid_session_id(session_id) or not re.fullmatch("[0-9]{1,9}", number):
        raise RecordError(f"{audit_id!r} is not an audit id: see ghost audit show SESSION")
    return audit_dir / "output" / f"{audit_id}.txt"


def keep(audit_dir: Path, audit_id: str, text: str) -> KeptOutput:
    """Write the output of a command, all or nothing."""
    content = text.encode("utf-8", "replace")
    if len(content) > MAX_BYTES:
        return KeptOutput(missing=TOO_LONG)
    path = output_path(audit_dir, audit_id)
    try:
        write_bytes(path, content)
    except RecordError as error:
        return KeptOutput(missing=f"it could not be written ({getattr(error.__cause__, 'strerror', None) or error})")
    return KeptOutput(path, hashlib.sha256(content).hexdigest(), len(content))


def whole_output(response: Mapping[str, Any]) -> str:
    """Return all that a command printed, for code: of a response of the shell, of which `output` may be a part.

    Raises `RecordError` with the reason where that is not known: it failed or was ended, or too much was printed.
    """
    if response["exit_code"] != 0:
        raise RecordError(
            f"the command of {response['audit_id']} failed: it may have printed only a part; run it again"
        )
    return printed_output(response)


def printed_output(told: Mapping[str, Any], audit_dir: Path | None = None) -> str:
    """Return all that a command printed before it ended by itself, whatever its exit status: of a response, or of its
    record in `audit_dir`.

    Raises `RecordError` like `whole_output`.
    """
    if told["status"] != "completed":
        raise RecordError(
            f"the command of {told['audit_id']} did not end by itself: it may have printed only a part; run it again"
        )
    text = recorded_output(told, audit_dir) if audit_dir is not None else _of_response(told)
    if text.endswith(UNFINISHED):
        raise RecordError(f"the output of {told['audit_id']} ends in an unfinished line")
    return text


def _of_response(response: Mapping[str, Any]) -> str:
    told = response["output_metadata"]
    if not told["truncation_applied"]:
        return str(response["output"])
    if "full_output" not in told:
        raise _not_kept(response["audit_id"], told.get("full_output_missing"))
    return _read(Path(told["full_output"]), told.get("full_output_sha256"), told.get("full_output_bytes"))


def recorded_output(record: Mapping[str, Any], audit_dir: Path) -> str:
    """Return all that the command of a record printed, for a person; of a command that failed, until then.

    Raises `RecordError` with the reason where that is not on record, or its file is not the one that was written.
    """
    audit_id = str(record.get("audit_id"))
    if record.get("output_sha256") is not None:
        return _read(output_path(audit_dir, audit_id), record["output_sha256"], record.get("output_bytes"))
    if record.get("output_truncated"):
        raise _not_kept(audit_id, record.get("output_missing"))
    return str(record.get("output") or "")


def _not_kept(audit_id: str, reason: object) -> RecordError:
    return RecordError(f"only a part of the output of {audit_id} is on record: {reason or 'the rest was not kept'}")


def _read(path: Path, sha256: object, size: object) -> str:
    try:
        with open_regular(path) as file:
            found = os.fstat(file.fileno()).st_size
            content = file.read(MAX_BYTES) if found <= MAX_BYTES else b""
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror or str(error)
        raise RecordError(f"the full output {path.name} cannot be read: {why}") from error
    if found > MAX_BYTES:
        raise RecordError(f"the full output {path.name} was modified: {TOO_LONG}")
    if (size is not None and size != found) or sha256 != hashlib.sha256(content).hexdigest():
        raise RecordError(f"the full output {path.name} was modified")
    return content.decode("utf-8", "replace")
