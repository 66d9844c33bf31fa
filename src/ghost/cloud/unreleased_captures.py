"""Captures of a registry that still hold resources; read only, for reminders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ghost.cloud.orphans import in_registry
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.task import CaptureTask


@dataclass(frozen=True)
class UnreleasedCapture:
    """A capture with resources left. `kind` is an orphan's: abandoned_task, needs_cleanup or partially_cleaned."""

    task_id: str
    session_id: str
    kind: str
    target: str
    left: int
    """Number of cleanup steps not done."""
    created: datetime | None


def capture_tasks(audit_dir: Path) -> list[CaptureTask]:
    """Return the tasks of all sessions, the newest last. Nothing is written; unreadable files are skipped."""
    tasks = TaskRegistry(audit_dir, "reader", lambda _: None).all()
    return sorted(tasks, key=lambda task: (str(task.timestamps.created or ""), task.task_id))


def unreleased_captures_of(audit_dir: Path, running: str, now: datetime) -> list[UnreleasedCapture]:
    """Return unreleased captures across all sessions, from the last record of each task. Active captures of the
    session `running` are excluded; unreadable files are skipped; nothing is written.
    """
    registry = TaskRegistry(audit_dir, "reader", lambda _: None)
    tasks = {task.task_id: task for task in registry.unsettled()}
    found = ((orphan.kind, tasks[orphan.task_id or ""]) for orphan in in_registry(tasks.values(), running, now))
    return [
        UnreleasedCapture(
            task.task_id, task.session_id, kind, task.target_name, len(task.remaining), task.timestamps.created
        )
        for kind, task in found
    ]
