"""One investigation and one server per workspace: advisory locks that the kernel releases when the process ends."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ghost.errors import RecordError, WorkspaceError
from ghost.records.atomic_files import open_regular, private_dir

LOCK = "ghost_session.lock"
SERVER_LOCK = "ghost_server.lock"
LOOKS, LOOK_SECONDS = 3, 0.02
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+", re.ASCII)


@contextmanager
def workspace_lock(workspace: Path, name: str = LOCK, url: str = "") -> Iterator[None]:
    """Lock the workspace for this process; `SERVER_LOCK` for its server, which is at `url`.

    Raises `WorkspaceError` at once if another process holds it, naming that process.
    """
    private_dir(workspace)
    path = workspace / name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise WorkspaceError(
            f"cannot lock the workspace {workspace} ({error.strerror}): name another one with --workspace DIR"
        ) from error
    try:
        try:
            _lock(descriptor)
        except OSError as busy:
            raise WorkspaceError(
                f"the workspace {workspace} is in use by {_owner(workspace, path)}, or work elsewhere "
                "with --workspace DIR"
            ) from busy
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n{url}\n".encode("ascii", "replace"))
        yield
    finally:
        os.close(descriptor)


def _owner(workspace: Path, lock: Path) -> str:
    """Return who holds a lock, and what to do."""
    pid, _ = _held_by(lock)
    server, url = _held_by(workspace / SERVER_LOCK)
    if lock.name == LOCK and pid and pid == server and is_held(workspace / SERVER_LOCK):
        return (
            f"ghost serve (process {pid}), which runs something now: try again when that has ended, "
            f"put an investigation in its queue, on the dashboard{url} or by POST /investigations"
        )
    return f"{f'process {pid}' if pid else 'another process'}: wait for it to end"


def _held_by(lock: Path) -> tuple[str, str]:
    """Return the process id that a lock file names, empty if none, and ` (ADDRESS/ui)` of a server."""
    with suppress(OSError), open_regular(lock) as file:
        pid, _, url = file.read(200).decode("ascii", "replace").partition("\n")
        shown = f" ({url.strip()}/ui)" if _ADDRESS.fullmatch(url.strip()) else ""
        return pid.strip() if pid.strip().isdigit() else "", shown
    return "", ""


def _lock(descriptor: int) -> None:
    """Lock, trying again for a moment: `is_held` holds the lock while it looks. Raises `OSError`."""
    for _ in range(LOOKS):
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOOK_SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def file_lock(lock: Path) -> Iterator[None]:
    """Hold a lock on this file, waiting for who holds it: for changes of a moment. Raises `RecordError`."""
    private_dir(lock.parent)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise RecordError(f"cannot lock {lock} ({error.strerror}): check the permissions") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(workspace: Path) -> bool:
    """Return whether a process is working in this workspace."""
    return is_held(workspace / LOCK)


def is_held(lock: Path) -> bool:
    """Return whether a process holds a lock on this file; False if the file does not exist."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
