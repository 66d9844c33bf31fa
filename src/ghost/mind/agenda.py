"""Tasks from the sources: drafted first, applied to attention once the draft is written."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ghost.errors import GhostError
from ghost.mind.attention import Attention
from ghost.mind.data_model import Task, TaskStatus
from ghost.mind.sources import MAX_TASKS, TaskSource
from ghost.mind.thought_parsing import Redact
from ghost.providers import EmbeddingsProvider

_log = logging.getLogger(__name__)
NEUTRAL = 0.5


@dataclass(frozen=True)
class Named:
    """Tasks named by the sources: as received (`raw`), as stored, and their goal fit."""

    raw: Mapping[str, Task]
    admitted: Mapping[str, Task]
    fits: Mapping[str, float]
    asked: frozenset[str]
    """Sources that answered."""
    failures: tuple[str, ...]

    @property
    def most_important(self) -> Task | None:
        waiting = [task for task in self.admitted.values() if task.status is TaskStatus.OPEN]
        return max(waiting, key=lambda task: task.importance, default=None)


@dataclass(frozen=True)
class Draft:
    named: Named
    changed: tuple[Task, ...]
    """New and changed tasks."""
    gone: tuple[Task, ...]
    """Tasks no longer named by their source, as done."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.changed + self.gone


class Agenda:
    def __init__(
        self,
        attention: Attention,
        sources: Sequence[TaskSource],
        embeddings: EmbeddingsProvider,
        goals: Sequence[str],
        redact: Redact,
    ) -> None:
        self._attention = attention
        self._sources = _named(sources)
        self._embeddings = embeddings
        self._goals = list(goals)
        self._goal_vectors: list[list[float]] = []
        self._redact = redact
        self._raw: dict[str, Task] = {}
        self._fits: dict[str, float] = {}

    def restore(self, tasks: Sequence[Task]) -> None:
        """Load tasks from the store after a restart. Goal fit is recalculated when a source names the task again."""
        for task in tasks:
            if task.status is not TaskStatus.DONE:
                fit = _source_fit(task)
                self._attention.add_or_update(task, NEUTRAL if fit is None else fit)

    def ask(self, now: float) -> Named:
        """Query every source. Errors go to `failures`, and the tasks of a failed source stay unchanged."""
        raw: dict[str, Task] = {}
        admitted: dict[str, Task] = {}
        failures = []
        asked = set()
        for name, source in self._sources.items():
            try:
                found = list(islice(source.tasks(now), MAX_TASKS))
            except Exception as error:  # noqa: BLE001  whatever a source fails with, the mind goes on
                _log.warning("the task source %s failed: %s", name, error)
                failures.append(f"{name}: {type(error).__name__}: {error}")
                continue
            asked.add(name)
            for task in found:
                raw[task.id] = task
                admitted[task.id] = self._admitted(task, name, now)
        new = [
            task for task in admitted.values() if task.id not in self._fits or self._raw.get(task.id) != raw[task.id]
        ]
        return Named(raw, admitted, self._goal_fits(new), frozenset(asked), tuple(failures))

    def draft(self, named: Named, now: float) -> Draft:
        """Return the changes. No task may be taken between this and `take`."""
        current = {task.id: self._keep_taken(task) for task in named.admitted.values()}
        changed = [task for task in current.values() if self._attention.get(task.id) != task]
        removed = [
            task.model_copy(update={"status": TaskStatus.DONE, "last_update_ts": now})
            for task in self._attention.tasks()
            if task.metadata.get("source") in named.asked and task.id not in current
        ]
        return Draft(named, tuple(changed), tuple(removed))

    def take(self, draft: Draft) -> None:
        """Apply a draft that was written."""
        self._raw |= draft.named.raw
        self._fits |= draft.named.fits
        changed = {task.id: task for task in draft.changed}
        for task_id in changed.keys() | draft.named.fits.keys():
            task = changed.get(task_id) or self._attention.get(task_id)
            if task is not None:
                self._attention.add_or_update(task, self._fits.get(task_id, NEUTRAL))
        for task in draft.gone:
            self._attention.remove(task.id)
            self._raw.pop(task.id, None)
            self._fits.pop(task.id, None)

    # --- steps ---

    def _admitted(self, task: Task, source: str, now: float) -> Task:
        """Return the task as stored: without secrets, and marked with its source."""
        if self._raw.get(task.id) == task and (before := self._attention.get(task.id)) is not None:
            return before
        deadline = task.deadline_ts
        return task.model_copy(
            update={
                "title": self._redact(task.title),
                "goal": self._redact(task.goal),
                "context": self._redact(task.context),
                "deadline_ts": deadline if deadline is not None and math.isfinite(deadline) else None,
                "created_ts": task.created_ts if math.isfinite(task.created_ts) else now,
                "last_update_ts": task.last_update_ts if math.isfinite(task.last_update_ts) else now,
                "metadata": {**task.metadata, "source": source},
            }
        )

    def _keep_taken(self, task: Task) -> Task:
        """Keep the status of a taken task, although its source still lists it as open."""
        before = self._attention.get(task.id)
        if task.status is not TaskStatus.OPEN or before is None or before.status is not TaskStatus.DOING:
            return task
        updated = max(task.last_update_ts, before.last_update_ts)
        return task.model_copy(update={"status": TaskStatus.DOING, "last_update_ts": updated})

    def _goal_fits(self, tasks: Sequence[Task]) -> dict[str, float]:
        """Return goal fits: from the source, else the similarity of the task's words to the nearest goal. Omits those
        not available now, which are requested again.
        """
        source_fits = {task.id: fit for task in tasks if (fit := _source_fit(task)) is not None}
        return source_fits | self._nearness([task for task in tasks if task.id not in source_fits])

    def _nearness(self, tasks: Sequence[Task]) -> dict[str, float]:
        if not tasks or not self._goals:
            return dict.fromkeys((task.id for task in tasks), NEUTRAL)
        try:
            if not self._goal_vectors:
                self._goal_vectors = self._embeddings.embed(self._goals, "query")
            vectors = self._embeddings.embed([f"{task.title} {task.goal}" for task in tasks])
        except GhostError as error:
            _log.warning("tasks cannot be compared with the goals now: %s", error)
            return {}
        return {
            task.id: max(_cosine(vector, goal) for goal in self._goal_vectors)
            for task, vector in zip(tasks, vectors, strict=True)
        }


def _named(sources: Sequence[TaskSource]) -> dict[str, TaskSource]:
    named: dict[str, TaskSource] = {}
    for source in sources:
        name = str(getattr(source, "name", type(source).__name__))
        while name in named:
            name += "_"
        named[name] = source
    return named


def _source_fit(task: Task) -> float | None:
    fit = task.metadata.get("goal_fit")
    return float(fit) if isinstance(fit, int | float) and 0.0 <= fit <= 1.0 else None


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the similarity of unit vectors from 0 to 1; negative values count as 0."""
    return min(max(math.fsum(a * b for a, b in zip(one, other, strict=True)), 0.0), 1.0)
