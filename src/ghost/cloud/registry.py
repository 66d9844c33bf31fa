"""The task registry: one append-only file per session, the last record of a task wins.

Records of earlier sessions are read from their files and never written there: their chains stay as those sessions left
them. What happens to such a task later is recorded in this session's file, with a higher `revision`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from ghost.cloud.task import CaptureTask
from ghost.errors import RecordError, UsageError
from ghost.records import ChainedLog, Head, read_valid_records, valid_session_id

_STEM = "orchestrator_tasks_"


class TaskRegistry:
    def __init__(self, directory: Path, session_id: str, warn: Callable[[str], None]) -> None:
        if not valid_session_id(session_id):
            raise UsageError(
                f"session id {session_id[:120]!r} cannot name a file: use letters, digits, '_', '-' and '.'"
            )
        self._log = ChainedLog(directory / f"{_STEM}{session_id}.jsonl")
        self._warn = warn
        self._tasks = _load(directory, warn)

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def head(self) -> Head:
        return self._log.head

    def get(self, task_id: str) -> CaptureTask | None:
        return self._tasks.get(task_id)

    def all(self) -> list[CaptureTask]:
        return list(self._tasks.values())

    def holds(self, task_id: str) -> bool:
        """Whether the id is taken. Azure's names and some file systems do not tell upper from lower case."""
        return task_id.lower() in {known.lower() for known in self._tasks}

    def save(self, task: CaptureTask) -> CaptureTask:
        """Appends the task as it now stands, and returns it with its revision; unchanged tasks are not written again.

        Where the file cannot be written the task goes on in memory, with a warning.
        """
        if self._tasks.get(task.task_id) == task:
            return task
        saved = task.having(revision=task.revision + 1)
        self._tasks[task.task_id] = saved
        try:
            self._log.append(saved.model_dump(mode="json"))
        except RecordError as error:
            self._warn(f"{error}. Task {task.task_id} is kept in memory only: its resources are lost track of on exit")
        return saved


def _load(directory: Path, warn: Callable[[str], None]) -> dict[str, CaptureTask]:
    tasks: dict[str, CaptureTask] = {}
    for path in sorted(directory.glob(f"{_STEM}*.jsonl")):
        for task in _read(path, warn):
            known = tasks.get(task.task_id)
            if known is None or task.revision >= known.revision:
                tasks[task.task_id] = task
    return tasks


def _read(path: Path, warn: Callable[[str], None]) -> list[CaptureTask]:
    try:
        records, broken = read_valid_records(path)
    except RecordError as error:
        warn(str(error))
        return []
    tasks: list[CaptureTask] = []
    unusable = 0
    for record in records:
        try:
            tasks.append(CaptureTask.model_validate(record))
        except ValidationError:
            unusable += 1
    if broken:
        warn(f"{path.name}: line {', '.join(map(str, broken[:10]))} cannot be read and was skipped")
    if unusable:
        warn(f"{path.name}: {unusable} record{'s' if unusable > 1 else ''} skipped that describe no task")
    return tasks
