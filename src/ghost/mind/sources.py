"""Sources of tasks, queried at every cycle.

The answer of a source is complete: a task it no longer names is done. A source that fails is logged and queried again;
its tasks stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ghost.mind.data_model import Task
from ghost.mind.interrupts import Interrupts

MAX_TASKS = 10_000
"""Maximum tasks per source; further ones are ignored."""


class TaskSource(Protocol):
    """A source of tasks. `name` is optional and defaults to the class name."""

    def tasks(self, now: float) -> Iterable[Task]:
        """Return the pending tasks, with stable ids. `metadata["goal_fit"]` (0 to 1) is optional."""
        ...


class UnansweredInterrupts:
    """Open questions to a person, more urgent the sooner they expire."""

    name = "interrupts"

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002  what is open says the clock of `interrupts`
        for query in self._interrupts.list_open():
            yield Task(
                id=f"task:{query.id}",
                title=f"Answer {query.id}: {query.question}",
                goal="Provide the missing information",
                context=query.rationale,
                deadline_ts=query.expires_ts,
                importance=0.6,
                uncertainty=0.9,
                created_ts=query.created_ts,
                last_update_ts=query.created_ts,
                metadata={"query_id": query.id, "goal_fit": 0.5},
            )


class DueConsolidation:
    """A due consolidation of memory. `since` returns when it became due, or None."""

    name = "consolidation"

    def __init__(self, since: Callable[[float], float | None]) -> None:
        self._since = since

    def tasks(self, now: float) -> Iterable[Task]:
        since = self._since(now)
        if since is not None:
            yield Task(
                id="task:consolidation",
                title="Consolidate memory",
                goal="Summarise recurring causes, merge duplicates, fade unused memories",
                importance=0.3,
                uncertainty=0.1,
                created_ts=since,
                last_update_ts=since,
                metadata={"goal_fit": 0.5},
            )
