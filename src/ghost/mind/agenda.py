"""Brings what the sources name into attention: first as a draft, then, when it is written, for good."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ghost.errors import GhostError
from ghost.mind.attention import Attention
from ghost.mind.data_model import Task, TaskStatus
from ghost.mind.sources import MOST_TASKS, TaskSource
from ghost.mind.thought_parsing import Redact
from ghost.providers import EmbeddingsProvider

_log = logging.getLogger(__name__)
NEUTRAL = 0.5


@dataclass(frozen=True)
class Named:
    """What the sources named: as they did (`raw`), as it is kept, and how well each fits the goals."""

    raw: Mapping[str, Task]
    admitted: Mapping[str, Task]
    fits: Mapping[str, float]
    asked: frozenset[str]
    """The sources that answered."""
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
    """Tasks that their source names no more, as done."""

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
        """What the store kept over a restart. Its fit is told anew when a source names it again."""
        for task in tasks:
            if task.status is not TaskStatus.DONE:
                fit = _given_fit(task)
                self._attention.add_or_update(task, NEUTRAL if fit is None else fit)

    def ask(self, now: float) -> Named:
        """Asks every source. What one fails with is in `failures`, and its tasks stay as they are."""
        raw: dict[str, Task] = {}
        admitted: dict[str, Task] = {}
        failures = []
        asked = set()
        for name, source in self._sources.items():
            try:
                found = list(islice(source.tasks(now), MOST_TASKS))
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
        return Named(raw, admitted, self._fits_of(new), frozenset(asked), tuple(failures))

    def draft(self, named: Named, now: float) -> Draft:
        """What that changes. No task may be taken between this and `take`."""
        current = {task.id: self._still_taken(task) for task in named.admitted.values()}
        changed = [task for task in current.values() if self._attention.get(task.id) != task]
        gone = [
            task.model_copy(update={"status": TaskStatus.DONE, "last_update_ts": now})
            for task in self._attention.tasks()
            if task.metadata.get("source") in named.asked and task.id not in current
        ]
        return Draft(named, tuple(changed), tuple(gone))

    def take(self, draft: Draft) -> None:
        """The draft was written."""
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
        """The task as it is kept: without secrets, and marked with its source."""
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

    def _still_taken(self, task: Task) -> Task:
        """A task that somebody took stays taken, though its source goes on to call it open."""
        before = self._attention.get(task.id)
        if task.status is not TaskStatus.OPEN or before is None or before.status is not TaskStatus.DOING:
            return task
        updated = max(task.last_update_ts, before.last_update_ts)
        return task.model_copy(update={"status": TaskStatus.DOING, "last_update_ts": updated})

    def _fits_of(self, tasks: Sequence[Task]) -> dict[str, float]:
        """As the source says; else how near the task's words are to the nearest goal's. Without those that cannot be
        told now: they are asked for again."""
        given = {task.id: fit for task in tasks if (fit := _given_fit(task)) is not None}
        return given | self._nearness([task for task in tasks if task.id not in given])

    def _nearness(self, tasks: Sequence[Task]) -> dict[str, float]:
        if not tasks or not self._goals:
            return dict.fromkeys((task.id for task in tasks), NEUTRAL)
        try:
            if not self._goal_vectors:
                self._goal_vectors = self._embeddings.embed(self._goals)
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


def _given_fit(task: Task) -> float | None:
    fit = task.metadata.get("goal_fit")
    return float(fit) if isinstance(fit, int | float) and 0.0 <= fit <= 1.0 else None


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """From 0 to 1: of vectors of length 1, and no fit is no worse than none."""
    return min(max(math.fsum(a * b for a, b in zip(one, other, strict=True)), 0.0), 1.0)
