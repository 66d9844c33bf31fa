"""Intents: a file beside the audit, written before a command runs and locked while its process lives.

The kernel drops the lock when a process ends, however it ends. So another process can tell a command that still runs
from one that was cut off, and no process id is trusted. Nobody replaces or removes an intent that is not its own.
One process at a time holds a session: the audit is a chain, and a chain has one writer. Nothing here knows what a
record holds.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ghost.errors import RecordError, WorkspaceError
from ghost.records import ChainedLog, private_dir, read_json

INTENT = ".intent.json"
_OF_ITS_OWN = ".~"  # no session id holds it
_RETRY_SECONDS = 0.02


class Intent:
    """The intents of one shell: one while a command runs, more where records could not be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own: list[tuple[Path, int]] = []

    def state(self, value: dict[str, Any], *, on_disk: bool) -> None:
        """Writes an intent, whole or not at all; `on_disk` waits until it would outlive a crash of the machine.

        Where the name is taken, whoever took it, it gets one of its own. Raises `RecordError` or `OSError` where it
        cannot be written.
        """
        private_dir(self.path.parent)
        token = secrets.token_hex(8)
        temporary = self.path.with_name(f".{self.path.name}.{token}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, json.dumps(value).encode() + b"\n")
            if on_disk:
                os.fsync(descriptor)
            try:
                os.link(temporary, self.path)
                path = self.path
            except OSError:
                path = self.path.with_name(f"{self.path.name.removesuffix(INTENT)}{_OF_ITS_OWN}{token}{INTENT}")
                temporary.rename(path)
            temporary.unlink(missing_ok=True)
            if on_disk:
                to_disk(self.path.parent)
        except BaseException:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        self._own.append((path, descriptor))

    def remove(self) -> None:
        """Once the outcome is on record. Raises `OSError` where a file stays."""
        while self._own:
            path, descriptor = self._own.pop()
            try:
                with suppress(FileNotFoundError):
                    if os.path.samestat(path.lstat(), os.fstat(descriptor)):
                        path.unlink()
            finally:
                os.close(descriptor)


class SessionHold:
    """State that the shells of one process share for a session: lock, log, sequence number and turn."""

    def __init__(self, lock: Path, log: ChainedLog, descriptor: int | None) -> None:
        self.log = log
        self.sequence = 0
        self.covered: list[Any] | None = None
        self.one_at_a_time = threading.RLock()
        self.is_locked = descriptor is not None
        if descriptor is not None:
            weakref.finalize(self, _let_go, lock, descriptor, os.getpid())


_holds: weakref.WeakValueDictionary[tuple[int, str], SessionHold] = weakref.WeakValueDictionary()
_holding = threading.RLock()


def hold_session(audit: Path, patience_seconds: float = 0.0) -> SessionHold:
    """The shared state of this process for a session, released with its last user.

    Raises `WorkspaceError` where another process has it for longer than `patience_seconds`. Where no file can be
    locked, the hold says so.
    """
    lock = audit.with_name(f".{audit.name}.lock")
    with _holding:
        key = (os.getpid(), os.path.realpath(audit))
        hold = _holds.get(key)
        if hold is None:
            try:
                descriptor = _locked_file(lock, patience_seconds)
            except BlockingIOError:
                raise WorkspaceError(
                    f"another process runs commands of the session of {audit}: wait until it has ended, or use a "
                    "session of another name"
                ) from None
            except (OSError, RecordError):
                descriptor = None
            hold = _holds[key] = SessionHold(lock, ChainedLog(audit), descriptor)
        return hold


def _locked_file(lock: Path, patience_seconds: float) -> int:
    """Raises `BlockingIOError` where another process has it."""
    private_dir(lock.parent)
    deadline = time.monotonic() + patience_seconds
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            if not _lock(descriptor, max(0.0, deadline - time.monotonic())):
                raise BlockingIOError
            with suppress(FileNotFoundError):
                if os.path.samestat(lock.lstat(), os.fstat(descriptor)):  # else its holder has just removed it
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _let_go(lock: Path, descriptor: int, owner: int) -> None:
    if os.getpid() == owner:  # a child of this process has a copy of the descriptor, not the session
        with suppress(OSError):
            lock.unlink()
    os.close(descriptor)


def session_of(intent: Path) -> str:
    """The session that the name of an intent stands for."""
    return intent.name.removeprefix("shell_audit_").removesuffix(INTENT).partition(_OF_ITS_OWN)[0]


@contextmanager
def left_behind(path: Path, patience_seconds: float = 0.0) -> Iterator[Any]:
    """The content of an intent whose process has ended, locked against other processes.

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
    """fsync: the content survives a crash of the machine."""
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
