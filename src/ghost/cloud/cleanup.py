"""Clean-up: one pass through the plan, cloud first, then local. Failed steps are reported and can be retried."""

from __future__ import annotations

from datetime import datetime

from ghost.cloud import capture_commands, task_events
from ghost.cloud.task import CaptureTask, CleanupStatus, State
from ghost.cloud.transitions import IllegalTransition, Next, to


def begin(task: CaptureTask, event: task_events.CleanupRequested, at: datetime) -> Next:
    if task.active:
        raise IllegalTransition(f"task {task.task_id} is {task.state}: cancel it before it is cleaned up")
    planned = {step.command for step in task.cleanup_plan}
    artifacts = capture_commands.local_cleanup(task.artifact_paths) if event.include_artifacts else ()
    added = tuple(step for step in artifacts if step.command not in planned)
    again = tuple(step.having(kept_because=None) for step in task.cleanup_plan)
    task = task.having(cleanup_plan=(*again, *added))
    if not task.remaining:
        already = task.cleanup_status if task.cleanup_status is CleanupStatus.COMPLETED else CleanupStatus.SKIPPED
        return _finished(task, already, at)
    if task.state is not State.CLEANING_UP:
        task = to(task, State.CLEANING_UP)
    task = task.stamped(cleanup_started=at).having(cleanup_status=CleanupStatus.PENDING)
    return _next_step(task, 0, at)


def step_cleaned(task: CaptureTask, event: task_events.StepCleaned, at: datetime) -> Next:
    plan = list(task.cleanup_plan)
    plan[event.step] = plan[event.step].having(executed=True)
    return _next_step(task.having(cleanup_plan=tuple(plan)), event.step + 1, at)


def step_kept(task: CaptureTask, event: task_events.StepKept, at: datetime) -> Next:
    """Record a failed step: the rest of the plan still runs, and a later cleanup retries this one."""
    plan = list(task.cleanup_plan)
    plan[event.step] = plan[event.step].having(kept_because=event.detail)
    return _next_step(task.having(cleanup_plan=tuple(plan)), event.step + 1, at)


def _next_step(task: CaptureTask, start: int, at: datetime) -> Next:
    for step in range(start, len(task.cleanup_plan)):
        if not task.cleanup_plan[step].executed:
            return task, capture_commands.clean_up(task, step)
    if task.remaining:
        return task.having(cleanup_status=CleanupStatus.PARTIAL), None
    return _finished(task, CleanupStatus.COMPLETED, at)


def _finished(task: CaptureTask, status: CleanupStatus, at: datetime) -> Next:
    if task.state is State.DONE:
        return task, None
    if task.state not in {State.CLEANING_UP, State.CANCELLED}:
        task = to(task, State.CLEANING_UP)
    return to(task, State.DONE).having(cleanup_status=status).stamped(cleanup_completed=at), None
