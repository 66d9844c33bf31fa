"""The word a command leaves before it runs: a file beside the audit, locked for as long as its process lives.

The kernel drops the lock when a process ends, however it ends. So another process can tell a command that still runs
from one that was cut off, and no process id is trusted. Nothing here knows what a record holds.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ghost.errors import RecordError
from ghost.records import private_dir, read_json

_RETRY_SECONDS = 0.02


class Intent:
    """The intent file of one session, for the process that runs its commands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def state(self, value: dict[str, Any], *, on_disk: bool) -> None:
        """Writes the file anew, whole or not at all; `on_disk` waits until it would outlive a crash of the machine.

        Raises `RecordError` or `OSError` where it cannot be written.
        """
        private_dir(self.path.parent)
        self._release()
        temporary = self.path.with_name(f".{self.path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, json.dumps(value).encode() + b"\n")
            if on_disk:
                os.fsync(descriptor)
            temporary.replace(self.path)
            if on_disk:
                to_disk(self.path.parent)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def remove(self) -> None:
        """Once the outcome is on record. Raises `OSError` where the file stays."""
        self._release()
        self.path.unlink(missing_ok=True)

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def left_behind(path: Path, patience_seconds: float = 0.0) -> Iterator[Any]:
    """What an intent says whose process has ended, held so that no other process takes it too.

    None where there is none, and where its process lives. Raises `RecordError` where it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise RecordError(f"cannot read {path} ({error.strerror}): check the permissions") from error
    try:
        held = _lock(descriptor, patience_seconds)
        if held and os.fstat(descriptor).st_nlink:  # else it runs, or another process has just dealt with it
            yield read_json(path)
        else:
            yield None
    finally:
        os.close(descriptor)


def to_disk(path: Path) -> None:
    """Not only handed to the system: what it holds outlives a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, patience_seconds: float) -> bool:
    deadline = time.monotonic() + patience_seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_RETRY_SECONDS)
