"""Atomic file replacement: a temporary file beside the target, fsync, rename."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from ghost.errors import RecordError


def private_dir(path: Path) -> Path:
    """Create `path` and its missing parents, readable by the owner only, and return it.

    Raises `RecordError` if it cannot be created.
    """
    try:
        missing = [d for d in (path, *path.parents) if not d.exists()]
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is not a directory")
    except OSError as error:
        raise RecordError(f"cannot create the directory {path} ({error.strerror or error}): name another") from error
    return path


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by a file with `content`; after a crash it holds the old or the new content, never a part.

    Raises `RecordError` if the file cannot be written, or `path` is a device or pipe, which a rename would replace.
    """
    private_dir(path.parent)
    temporary = None
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file")
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
        _sync_directory(path.parent)
    except OSError as error:
        raise RecordError(
            f"cannot write {path} ({error.strerror or error}): check the disk and the permissions"
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Like `write_bytes`, with `text` in UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Like `write_text`, with `value` as indented JSON."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; refuses links, pipes and devices, which could block.

    Raises `OSError` if it is missing or not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_json(path: Path) -> Any:
    """Return the value in `path`. Raises `FileNotFoundError` if it is missing, `RecordError` if it is not JSON."""
    try:
        with open_regular(path) as file:
            return json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"cannot read {path} ({error}): restore it from a copy or remove it") from error


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
