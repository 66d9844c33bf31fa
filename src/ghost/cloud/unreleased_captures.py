"""Which captures of a registry still hold something: read only, for whoever reminds a person of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ghost.cloud.orphans import in_registry
from ghost.cloud.registry import TaskRegistry


@dataclass(frozen=True)
class LeftBehind:
    """`kind` is that of an orphan: abandoned_task, needs_cleanup or partially_cleaned."""

    task_id: str
    session_id: str
    kind: str
    target: str
    left: int
    """Steps of the cleanup plan that were not carried out."""
    created: datetime | None


def left_behind(audit_dir: Path, running: str, now: datetime) -> list[LeftBehind]:
    """Across all sessions, the last record of each task. Captures under way of the session `running` are not among
    them. Files that cannot be read are passed over; nothing is written."""
    registry = TaskRegistry(audit_dir, "reader", lambda _: None)
    tasks = {task.task_id: task for task in registry.unsettled()}
    found = ((orphan.kind, tasks[orphan.task_id or ""]) for orphan in in_registry(tasks.values(), running, now))
    return [
        LeftBehind(task.task_id, task.session_id, kind, task.target_name, len(task.remaining), task.timestamps.created)
        for kind, task in found
    ]
