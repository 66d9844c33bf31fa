"""One investigation per workspace: an advisory lock that the kernel drops when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ghost.errors import WorkspaceError
from ghost.records.atomic import private_dir


@contextmanager
def workspace_lock(workspace: Path) -> Iterator[None]:
    """Holds the workspace for this process.

    Raises `WorkspaceError` at once when another process holds it, naming that process.
    """
    private_dir(workspace)
    path = workspace / "ghost_session.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as busy:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
            who = f"process {owner}" if owner.isdigit() else "another process"
            raise WorkspaceError(
                f"the workspace {workspace} is in use by {who}: wait for it to end, or work elsewhere "
                "with --workspace DIR"
            ) from busy
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        yield
    finally:
        os.close(descriptor)
