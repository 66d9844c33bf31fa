"""The task registry: one append-only file per session, the last record of a task wins.

Records of earlier sessions are read from their files and never written there: their chains stay as those sessions left
them. What happens to such a task later is recorded in this session's file, with a higher `revision`.
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
            self._read_all_at_once()
            return self.get(task_id)
        self._tasks[task_id] = task
        return task

    def all(self) -> list[CaptureTask]:
        return self._those(list(self._tasks))

    def unsettled(self) -> list[CaptureTask]:
        """All but those that are DONE and kept nothing: what may still hold a resource."""
        return self._those([task_id for task_id, known in self._tasks.items() if not known.settled])

    def of_session(self, session_id: str) -> list[CaptureTask]:
        return self._those([task_id for task_id, known in self._tasks.items() if known.session_id == session_id])

    def holds(self, task_id: str) -> bool:
        """Whether the id is taken. Azure's names and some file systems do not tell upper from lower case."""
        return task_id.lower() in self._taken

    def save(self, task: CaptureTask) -> CaptureTask:
        """Appends the task as it now stands, and returns it with its revision; unchanged tasks are not written again.

        Where the file cannot be written the task goes on in memory, with a warning.
        """
        if self.get(task.task_id) == task:
            return task
        saved = task.having(revision=task.revision + 1)
        self._tasks[task.task_id] = saved
        self._taken.add(task.task_id.lower())
        try:
            self._log.append(saved.model_dump(mode="json"))
        except RecordError as error:
            self._warn(f"{error}. Task {task.task_id} is kept in memory only: its resources are lost track of on exit")
        return saved

    def _those(self, task_ids: list[str]) -> list[CaptureTask]:
        return [task for task_id in task_ids if (task := self.get(task_id)) is not None]

    def _read_all_at_once(self) -> None:
        """A record that looked like a task is none: an earlier one of that task may be the last that is good."""
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
