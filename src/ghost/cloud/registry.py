"""The task registry: one append-only file per session; the last record of a task is valid.

Files of earlier sessions are only read, so their chains stay unchanged. Later changes of such a task are recorded in
this session's file, with a higher `revision`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ghost.cloud.registry_lines import Reading, UnreadTask, read_tasks
from ghost.cloud.task import CaptureTask
from ghost.errors import RecordError, UsageError
from ghost.records import ChainedLog, Head, valid_session_id

_STEM = "orchestrator_tasks_"

_Known = dict[str, CaptureTask | UnreadTask]


class TaskRegistry:
    def __init__(self, directory: Path, session_id: str, warn: Callable[[str], None]) -> None:
        if not valid_session_id(session_id):
            raise UsageError(
                f"session id {session_id[:120]!r} cannot name a file: use letters, digits, '_', '-' and '.'"
            )
        self._log = ChainedLog(directory / f"{_STEM}{session_id}.jsonl")
        self._warn = warn
        self._directory = directory
        self._tasks = _load(directory, warn)
        self._taken = {task_id.lower() for task_id in self._tasks}

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def head(self) -> Head:
        return self._log.head

    def get(self, task_id: str) -> CaptureTask | None:
        known = self._tasks.get(task_id)
        if not isinstance(known, UnreadTask):
            return known
        task = known.read()
        if task is None:
            self._read_all()
            return self.get(task_id)
        self._tasks[task_id] = task
        return task

    def all(self) -> list[CaptureTask]:
        return self._matching_tasks(list(self._tasks))

    def unsettled(self) -> list[CaptureTask]:
        """Return tasks that may still hold a resource: all but those that are DONE and kept nothing."""
        return self._matching_tasks([task_id for task_id, known in self._tasks.items() if not known.settled])

    def of_session(self, session_id: str) -> list[CaptureTask]:
        return self._matching_tasks(
            [task_id for task_id, known in self._tasks.items() if known.session_id == session_id]
        )

    def holds(self, task_id: str) -> bool:
        """Return whether the id is in use. Azure names and some file systems are case-insensitive."""
        return task_id.lower() in self._taken

    def save(self, task: CaptureTask) -> CaptureTask:
        """Append the task and return it with its revision; an unchanged task is not written again.

        If the file cannot be written the task is kept in memory, with a warning.
        """
        if self.get(task.task_id) == task:
            return task
        saved = task.having(revision=task.revision + 1)
        self._tasks[task.task_id] = saved
        self._taken.add(task.task_id.lower())
        try:
            self._log.append(saved.model_dump(mode="json"))
        except RecordError as error:
            self._warn(
                f"{error}. Task {task.task_id} is kept in memory only: its resources will no longer be "
                "tracked after exit"
            )
        return saved

    def _matching_tasks(self, task_ids: list[str]) -> list[CaptureTask]:
        return [task for task_id in task_ids if (task := self.get(task_id)) is not None]

    def _read_all(self) -> None:
        """Read every record in full, after one proved not to be a task: an earlier record may be the last valid one."""
        read = {task_id: known for task_id, known in self._tasks.items() if isinstance(known, CaptureTask)}
        self._tasks = _load(self._directory, self._warn, at_once=True)
        for task_id, task in read.items():
            _take(self._tasks, task_id, task)


def _load(directory: Path, warn: Callable[[str], None], *, at_once: bool = False) -> _Known:
    tasks: _Known = {}
    for path in sorted(directory.glob(f"{_STEM}*.jsonl")):
        reading = Reading()
        try:
            for task in read_tasks(path, reading, at_once=at_once):
                _take(tasks, task.task_id, task)
        except RecordError as error:
            warn(str(error))
        if reading.broken:
            warn(f"{path.name}: line {', '.join(map(str, reading.broken[:10]))} cannot be read and was skipped")
        if (unusable := reading.unusable) > 0:
            warn(f"{path.name}: {unusable} record{'s' if unusable > 1 else ''} skipped that describe no task")
    return tasks


def _take(tasks: _Known, task_id: str, task: CaptureTask | UnreadTask) -> None:
    known = tasks.get(task_id)
    if known is None or task.revision >= known.revision:
        tasks[task_id] = task
