"""Attention: always returns the open task with the exact highest score.

    score = w_u urgency + w_i importance + w_unc uncertainty + w_r recency + w_g goal_fit

Urgency and recency change with time along straight lines (`curves.py`), so two tasks on the same lines keep their order
while both stay on them. There is one heap per pair of lines, ordered by the constant part, and one heap of the times at
which tasks change lines. A query moves the due tasks and compares the heads: O(log n) amortised, and no score is stale.
Invalidated entries stay until they reach the head (lazy deletion), or until they outnumber the valid ones and the heaps
are rebuilt.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from ghost.config import Settings
from ghost.mind.curves import RECENCY, URGENCY
from ghost.mind.data_model import Task, TaskStatus
from ghost.records import Clock, elapsed


@dataclass(frozen=True)
class Weights:
    urgency: float = 0.30
    importance: float = 0.25
    uncertainty: float = 0.15
    recency: float = 0.10
    goal_fit: float = 0.20

    @classmethod
    def of(cls, settings: Settings) -> Weights:
        return cls(
            settings.attention_urgency,
            settings.attention_importance,
            settings.attention_uncertainty,
            settings.attention_recency,
            settings.attention_goal_fit,
        )


@dataclass(frozen=True)
class Component:
    name: str
    value: float
    weight: float
    why: str

    @property
    def contribution(self) -> float:
        return self.weight * self.value

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} x {self.weight:.2f} = {self.contribution:.3f} ({self.why})"


@dataclass(frozen=True)
class Score:
    """The score of a task; `total` is the sum of the contributions."""

    task_id: str
    total: float
    components: tuple[Component, ...]

    def __str__(self) -> str:
        return f"{self.total:.3f}: " + ", ".join(map(str, self.components))


class _KeptTask(NamedTuple):
    task: Task
    goal_fit: float
    version: int


class _Ranked(NamedTuple):
    """An entry of a heap: highest key first, older first among equals."""

    negative_key: float
    created_ts: float
    id: str
    version: int


class Attention:
    """Tasks by id. Done and blocked tasks are kept and explained but never offered. Thread-safe."""

    def __init__(self, weights: Weights, clock: Clock) -> None:
        self.weights = weights
        self._clock = clock
        self._lock = threading.RLock()
        self._entries_by_id: dict[str, _KeptTask] = {}
        self._versions = count(1)
        self._heaps: dict[tuple[int, int], list[_Ranked]] = {}
        self._turns: list[tuple[float, str, int]] = []
        self._entries = 0
        self._moved_until = self._origin = clock.now().timestamp()

    # --- changes ---

    def add_or_update(self, task: Task, goal_fit: float = 0.5) -> None:
        """Add or replace a task. `goal_fit`: 0 to 1, fit with the long-term goals. An infinite deadline
        means none.
        """
        if not 0.0 <= goal_fit <= 1.0:
            raise ValueError(f"goal_fit is from 0 to 1, not {goal_fit}")
        if task.deadline_ts is not None and not math.isfinite(task.deadline_ts):
            task = task.model_copy(update={"deadline_ts": None})
        with self._lock:
            self._keep(task, goal_fit)
            self._drop_invalid_if_many()

    def next_task(self) -> Task | None:
        """Take the open task with the highest score and mark it `doing`, so that it is not offered again until
        updated. None if no task is open.
        """
        with self._lock:
            best = self.peek()
            if best is None:
                return None
            started = best.model_copy(
                update={"status": TaskStatus.DOING, "last_update_ts": self._clock.now().timestamp()}
            )
            self._keep(started, self._entries_by_id[best.id].goal_fit)
            return started

    def remove(self, task_id: str) -> bool:
        with self._lock:
            return self._entries_by_id.pop(task_id, None) is not None

    # --- questions ---

    def peek(self) -> Task | None:
        """Return what `next_task` would take. Among equal scores the older task, then the lower id."""
        with self._lock:
            head = self._best_head(self._clock.now().timestamp())
            return self._entries_by_id[head.id].task if head else None

    def top_k(self, k: int) -> list[tuple[Task, float]]:
        """Return the `k` best open tasks with their scores, best first."""
        with self._lock:
            now = self._clock.now().timestamp()
            started: list[tuple[tuple[int, int], _Ranked]] = []
            best: list[tuple[Task, float]] = []
            while len(best) < k and (head := self._best_head(now)) is not None:
                place = self._place(self._entries_by_id[head.id].task, now)
                started.append((place, heapq.heappop(self._heaps[place])))
                best.append((self._entries_by_id[head.id].task, self._total(head.id, now)))
            for place, head in started:
                heapq.heappush(self._heaps[place], head)
            return best

    def explain(self, task_id: str) -> Score | None:
        """Return the score's components, also for done and blocked tasks; None for an unknown id."""
        with self._lock:
            entry = self._entries_by_id.get(task_id)
            now = self._clock.now().timestamp()
        if entry is None:
            return None
        components = tuple(self._components(entry, now))
        return Score(task_id, math.fsum(part.contribution for part in components), components)

    def tasks(self) -> list[Task]:
        with self._lock:
            return [entry.task for entry in self._entries_by_id.values()]

    def get(self, task_id: str) -> Task | None:
        entry = self._entries_by_id.get(task_id)
        return entry.task if entry else None

    def goal_fit(self, task_id: str) -> float:
        return self._entries_by_id[task_id].goal_fit

    def __len__(self) -> int:
        return len(self._entries_by_id)

    # --- the heaps; the lock is held ---

    def _keep(self, task: Task, goal_fit: float) -> None:
        entry = _KeptTask(task, goal_fit, next(self._versions))
        self._entries_by_id[task.id] = entry
        self._rank(entry, max(self._moved_until, self._clock.now().timestamp()))

    def _rank(self, entry: _KeptTask, now: float) -> None:
        """Insert a task into the heap of its lines and schedule its next change of lines."""
        task = entry.task
        if task.status is not TaskStatus.OPEN:
            return
        place = urgency, recency = self._place(task, now)
        heap = self._heaps.setdefault(place, [])
        heapq.heappush(heap, _Ranked(-self._key(entry, place), task.created_ts, task.id, entry.version))
        self._entries += 1
        turns = [RECENCY.turns(task.last_update_ts, recency)]
        if task.deadline_ts is not None:
            turns.append(URGENCY.turns(task.deadline_ts, urgency))
        if soon := [turn for turn in turns if turn is not None]:
            heapq.heappush(self._turns, (min(soon), task.id, entry.version))

    def _rank_all(self) -> None:
        self._heaps.clear()
        self._turns.clear()
        self._entries = 0
        for entry in self._entries_by_id.values():
            self._rank(entry, self._moved_until)

    def _move_due(self, now: float) -> None:
        """Move every due task to its lines at `now`; all of them if the clock was set back."""
        if now < self._moved_until:
            self._moved_until = now
            self._rank_all()
            return
        self._moved_until = now
        while self._turns and self._turns[0][0] <= now:
            _, task_id, version = heapq.heappop(self._turns)
            entry = self._entries_by_id.get(task_id)
            if entry is not None and entry.version == version:
                moved = entry._replace(version=next(self._versions))
                self._entries_by_id[task_id] = moved
                self._rank(moved, now)
        self._drop_invalid_if_many()

    def _drop_invalid_if_many(self) -> None:
        if self._entries > 2 * len(self._entries_by_id) + 64:
            self._rank_all()

    def _best_head(self, now: float) -> _Ranked | None:
        self._move_due(now)
        heads = []
        for place, heap in self._heaps.items():
            while heap and self._is_invalid(heap[0]):
                heapq.heappop(heap)
                self._entries -= 1
            if heap:
                head = heap[0]
                slope = self._slope(place)
                score = -head.negative_key + slope * (now - self._origin)
                heads.append((-score, head.created_ts, head.id, head))
        return min(heads)[-1] if heads else None

    def _is_invalid(self, entry: _Ranked) -> bool:
        kept = self._entries_by_id.get(entry.id)
        return kept is None or kept.version != entry.version

    # --- the score ---

    def _place(self, task: Task, now: float) -> tuple[int, int]:
        urgency = URGENCY.piece(task.deadline_ts, now) if task.deadline_ts is not None else 0
        return urgency, RECENCY.piece(task.last_update_ts, now)

    def _slope(self, place: tuple[int, int]) -> float:
        urgency, recency = place
        return self.weights.urgency * URGENCY.lines[urgency].slope + self.weights.recency * RECENCY.lines[recency].slope

    def _key(self, entry: _KeptTask, place: tuple[int, int]) -> float:
        """Return the score without its time-dependent part; constant while the task stays on its lines."""
        task, urgency, recency = entry.task, URGENCY.lines[place[0]], RECENCY.lines[place[1]]
        due = (task.deadline_ts - self._origin) if task.deadline_ts is not None else 0.0
        updated = task.last_update_ts - self._origin
        return (
            self.weights.urgency * (urgency.level - urgency.slope * due)
            + self.weights.importance * task.importance
            + self.weights.uncertainty * task.uncertainty
            + self.weights.recency * (recency.level - recency.slope * updated)
            + self.weights.goal_fit * entry.goal_fit
        )

    def _total(self, task_id: str, now: float) -> float:
        return math.fsum(part.contribution for part in self._components(self._entries_by_id[task_id], now))

    def _components(self, entry: _KeptTask, now: float) -> Iterator[Component]:
        task, weights = entry.task, self.weights
        urgency = URGENCY.at(now - task.deadline_ts) if task.deadline_ts is not None else 0.0
        yield Component("urgency", urgency, weights.urgency, _deadline_in_words(task.deadline_ts, now))
        yield Component("importance", task.importance, weights.importance, "importance as given")
        yield Component("uncertainty", task.uncertainty, weights.uncertainty, "uncertainty as given")
        age = now - task.last_update_ts
        yield Component("recency", RECENCY.at(age), weights.recency, f"changed {elapsed(max(age, 0.0))} ago")
        yield Component("goal_fit", entry.goal_fit, weights.goal_fit, "fit with the long-term goals")


def _deadline_in_words(deadline_ts: float | None, now: float) -> str:
    if deadline_ts is None:
        return "no deadline"
    seconds_left = deadline_ts - now
    return f"due in {elapsed(seconds_left)}" if seconds_left > 0 else f"overdue for {elapsed(-seconds_left)}"
