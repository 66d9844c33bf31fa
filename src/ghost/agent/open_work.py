"""What a workspace leaves open, as tasks of the mind: investigations without a conclusion, captures not cleaned up.

It reads session files and task registries, and changes nothing. A file that cannot be read is no task.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ghost.agent.report import latest_tasks
from ghost.agent.session import Workspace, load_session
from ghost.cloud import CleanupStatus
from ghost.errors import GhostError
from ghost.mind import Task

CLEANUP_WITHIN_SECONDS: Final = 86_400.0
"""A capture left in Azure costs storage from the first day."""

Found = tuple[Task, ...]


class OpenInvestigations:
    """Each investigation of the workspace that has not concluded: to be resumed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._read = _Reread(_unfinished)

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002 - the face of a source of tasks
        archived = sorted(self._workspace.audit_dir.glob("ghost_session_*.json"))
        return self._read.all([self._workspace.session_file, *archived])


class PendingCleanups:
    """Each capture whose resources in Azure, or on this machine, were not all removed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._read = _Reread(_not_cleaned)

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002 - the face of a source of tasks
        return self._read.all(sorted(self._workspace.audit_dir.glob("orchestrator_tasks_*.jsonl")))


class _Reread:
    """Reads a file again only when it changed, for a source is asked every few seconds."""

    def __init__(self, read: Callable[[Path], Iterator[Task]]) -> None:
        self._reader = read
        self._known: dict[Path, tuple[tuple[int, int], Found]] = {}

    def all(self, paths: list[Path]) -> list[Task]:
        known: dict[Path, tuple[tuple[int, int], Found]] = {}
        for path in paths:
            with contextlib.suppress(OSError, GhostError):
                status = path.stat()
                version = (status.st_mtime_ns, status.st_size)
                before = self._known.get(path)
                known[path] = before if before and before[0] == version else (version, tuple(self._reader(path)))
        self._known = known
        return [task for _, found in known.values() for task in found]


def _unfinished(path: Path) -> Iterator[Task]:
    session, _ = load_session(path)
    if session.completion is not None:
        return
    began = _epoch(session.created_at)
    yield Task(
        id=f"investigation:{session.session_id}",
        title=f"Finish the investigation {session.session_id}",
        goal="A root cause that records support",
        context=f"{session.network}, {session.turn_count} turns. ghost investigate --resume {session.session_id}",
        importance=0.8,
        uncertainty=0.8,
        created_ts=began,
        last_update_ts=path.stat().st_mtime,
        metadata={"session_id": session.session_id, "source": "open_investigations"},
    )


def _not_cleaned(path: Path) -> Iterator[Task]:
    for task in latest_tasks(path).values():
        left = [step for step in task.get("cleanup_plan") or [] if not step.get("executed")]
        if left and task.get("cleanup_status") in {CleanupStatus.PENDING, CleanupStatus.PARTIAL}:
            yield _cleanup(task, len(left))


def _cleanup(task: dict[str, Any], left: int) -> Task:
    began = _epoch(str(task.get("created_at")))
    identity = str(task["task_id"])
    return Task(
        id=f"cleanup:{identity}",
        title=f"Clean up the capture {identity}",
        goal="Nothing of it left in Azure or on this machine",
        context=f"{left} steps of its plan left; session {task.get('session_id')}, target {task.get('target')}",
        deadline_ts=began + CLEANUP_WITHIN_SECONDS,
        importance=0.7,
        uncertainty=0.2,
        created_ts=began,
        last_update_ts=began,
        metadata={"task_id": identity, "session_id": str(task.get("session_id")), "source": "pending_cleanups"},
    )


def _epoch(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0
