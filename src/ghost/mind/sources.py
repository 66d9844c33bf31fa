"""Where tasks come from of their own accord: whoever knows of work that waits says so at every cycle.

The mind asks its sources again and again, and takes what they name for the whole truth: a task that its source names
no more is done. A source that fails is reported and asked again; its tasks stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ghost.mind.data_model import Task
from ghost.mind.interrupts import Interrupts

MOST_TASKS = 10_000
"""Of one source; what it names beyond is left out."""


class TaskSource(Protocol):
    """A source may have a `name`; without one it goes by its class."""

    def tasks(self, now: float) -> Iterable[Task]:
        """What waits now, with ids that stay the same from call to call. `metadata["goal_fit"]`, from 0 to 1, says how
        well a task serves the goals where the source knows."""
        ...


class UnansweredInterrupts:
    """Questions that wait for a person, the more urgent the sooner they expire."""

    name = "interrupts"

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002  what is open says the clock of `interrupts`
        for query in self._interrupts.list_open():
            yield Task(
                id=f"task:{query.id}",
                title=f"Answer {query.id}: {query.question}",
                goal="Give the mind the fact that it lacks",
                context=query.rationale,
                deadline_ts=query.expires_ts,
                importance=0.6,
                uncertainty=0.9,
                created_ts=query.created_ts,
                last_update_ts=query.created_ts,
                metadata={"query_id": query.id, "goal_fit": 0.5},
            )


class DueConsolidation:
    """Memory that should be put in order. `since`: since when it is due, and None while it is not."""

    name = "consolidation"

    def __init__(self, since: Callable[[float], float | None]) -> None:
        self._since = since

    def tasks(self, now: float) -> Iterable[Task]:
        since = self._since(now)
        if since is not None:
            yield Task(
                id="task:consolidation",
                title="Consolidate memory",
                goal="Sum up what episodes share, merge what is told twice, let fade what nobody asks for",
                importance=0.3,
                uncertainty=0.1,
                created_ts=since,
                last_update_ts=since,
                metadata={"goal_fit": 0.5},
            )
