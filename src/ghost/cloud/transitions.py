"""Allowed state transitions, and the two functions that make every change of state."""

from __future__ import annotations

from datetime import datetime

from ghost.cloud.capture_commands import ShellCommand
from ghost.cloud.task import CaptureTask, CleanupStatus, Outcome, State
from ghost.errors import GhostError

Next = tuple[CaptureTask, ShellCommand | None]
"""The task after an event, and the next command."""

_ENDED_EARLY = frozenset({State.FAILED, State.CANCELLED, State.ABANDONED})
LEGAL: dict[State, frozenset[State]] = {
    State.CREATED: frozenset({State.DETECTING}) | _ENDED_EARLY,
    State.DETECTING: frozenset({State.APPROVED}) | _ENDED_EARLY,
    State.APPROVED: frozenset({State.PROVISIONING}) | _ENDED_EARLY,
    State.PROVISIONING: frozenset({State.WAITING}) | _ENDED_EARLY,
    State.WAITING: frozenset({State.DOWNLOADING, State.TIMED_OUT}) | _ENDED_EARLY,
    State.DOWNLOADING: frozenset({State.ANALYZING, State.COMPLETED}) | _ENDED_EARLY,
    State.ANALYZING: frozenset({State.COMPLETED}) | _ENDED_EARLY,
    State.COMPLETED: frozenset({State.CLEANING_UP, State.ANALYZING, State.CANCELLED, State.ABANDONED}),
    State.FAILED: frozenset({State.CLEANING_UP}),
    State.TIMED_OUT: frozenset({State.CLEANING_UP}),
    State.CANCELLED: frozenset({State.CLEANING_UP, State.DONE}),
    State.ABANDONED: frozenset({State.CLEANING_UP}),
    State.CLEANING_UP: frozenset({State.DONE}),
    State.DONE: frozenset({State.CLEANING_UP}),  # only where a later request adds the analysis artifacts
}


class IllegalTransition(GhostError):  # noqa: N818  a term of the field, not a failure of the outside
    pass


def to(task: CaptureTask, state: State) -> CaptureTask:
    if state not in LEGAL[task.state]:
        raise IllegalTransition(f"task {task.task_id} cannot go from {task.state} to {state}")
    return task.having(state=state)


_STATE_OF = {
    Outcome.COMPLETED: State.COMPLETED,
    Outcome.FAILED: State.FAILED,
    Outcome.CANCELLED: State.CANCELLED,
    Outcome.TIMED_OUT: State.TIMED_OUT,
}


def end(
    task: CaptureTask,
    outcome: Outcome,
    at: datetime,
    detail: str | None,
    *,
    state: State | None = None,
    cleanup_status: CleanupStatus | None = CleanupStatus.PENDING,
) -> Next:
    """End a capture; every kind of end passes through here once."""
    if not task.remaining:
        cleanup_status = CleanupStatus.SKIPPED
    target = state or _STATE_OF[outcome]
    task = task if task.state is target else to(task, target)
    task = task.having(
        outcome=outcome,
        error_detail=detail,
        cleanup_status=cleanup_status,
        duration_seconds=task.seconds_since_creation(at),
    )
    return task.stamped(completed=at), None
