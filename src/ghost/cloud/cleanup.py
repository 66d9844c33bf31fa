"""Clean-up: one pass through the plan, cloud first, then local. Failed steps are reported and can be retried."""

from __future__ import annotations

from datetime import datetime, timedelta

from ghost.cloud import capture_commands, task_events
from ghost.cloud.task import CaptureTask, CleanupStatus, State
from ghost.cloud.transitions import IllegalTransition, Next, to

SECOND_LOOK_AFTER = timedelta(minutes=3)
"""A capture whose creation was not answered counts as never made if Azure has none at two looks so far apart."""


def without_cloud_steps(task: CaptureTask, because: str) -> CaptureTask:
    """Keep the plan, and note why nothing in Azure is to be removed."""
    plan = tuple(step.having(not_needed=because) if step.in_cloud else step for step in task.cleanup_plan)
    return task.having(cleanup_plan=plan)


def second_look(task: CaptureTask) -> str:
    """Return what is to be done about a capture that Azure does not have, or not yet."""
    due = (task.absent_at + SECOND_LOOK_AFTER).strftime("%H:%M:%S UTC") if task.absent_at else "a few minutes"
    return f"Azure does not have it, and may still be creating it: clean up again after {due}"


def begin(task: CaptureTask, event: task_events.CleanupRequested, at: datetime) -> Next:
    if task.active:
        raise IllegalTransition(f"task {task.task_id} is {task.state}: cancel it before it is cleaned up")
    planned = {step.command for step in task.cleanup_plan}
    artifacts = capture_commands.local_cleanup(task.artifact_paths) if event.include_artifacts else ()
    added = tuple(step for step in artifacts if step.command not in planned)
    again = tuple(step.having(kept_because=None, attempts=0) for step in task.cleanup_plan)
    task = task.having(cleanup_plan=(*again, *added))
    if not task.remaining:
        already = task.cleanup_status if task.cleanup_status is CleanupStatus.COMPLETED else CleanupStatus.SKIPPED
        return _finished(task, already, at)
    if task.state is not State.CLEANING_UP:
        task = to(task, State.CLEANING_UP)
    task = task.stamped(cleanup_started=at).having(cleanup_status=CleanupStatus.PENDING)
    if task.creation_unanswered:
        return task, capture_commands.identify(task)
    return _next_step(task, 0, at)


def identified(task: CaptureTask, event: task_events.CaptureIdentified, at: datetime) -> Next:
    """Handle what Azure has of a capture whose creation was not answered."""
    if event.exists and event.ours is False:
        task = without_cloud_steps(task, event.described)
    elif event.exists:
        task = task.stamped(provisioned=at)
    elif event.exists is False:
        if task.absent_at is not None and at - task.absent_at >= SECOND_LOOK_AFTER:
            task = without_cloud_steps(task, "Azure did not have it at two looks")
        else:
            task = task.having(absent_at=task.absent_at or at)
            plan = [s.having(kept_because=second_look(task)) if s in task.remaining else s for s in task.cleanup_plan]
            return task.having(cleanup_plan=tuple(plan), cleanup_status=CleanupStatus.PARTIAL), None
    return _next_step(task, 0, at)


def step_cleaned(task: CaptureTask, event: task_events.StepCleaned, at: datetime) -> Next:
    if event.absent and task.creation_unanswered and task.cleanup_plan[event.step].in_cloud:
        task = task.having(absent_at=task.absent_at or at)
        return step_kept(task, task_events.StepKept(event.step, second_look(task)), at)
    plan = list(task.cleanup_plan)
    plan[event.step] = plan[event.step].having(executed=True)
    return _next_step(task.having(cleanup_plan=tuple(plan)), event.step + 1, at)


def step_busy(task: CaptureTask, event: task_events.StepBusy, at: datetime) -> Next:
    plan = list(task.cleanup_plan)
    step = plan[event.step] = plan[event.step].having(attempts=plan[event.step].attempts + 1)
    task = task.having(cleanup_plan=tuple(plan))
    if step.attempts < capture_commands.REMOVAL_ATTEMPTS:
        return task, capture_commands.clean_up(task, event.step)
    return step_kept(task, task_events.StepKept(event.step, event.detail), at)


def step_kept(task: CaptureTask, event: task_events.StepKept, at: datetime) -> Next:
    """Record a failed step: the rest of the plan still runs, and a later cleanup retries this one."""
    plan = list(task.cleanup_plan)
    plan[event.step] = plan[event.step].having(kept_because=event.detail)
    return _next_step(task.having(cleanup_plan=tuple(plan)), event.step + 1, at)


def _next_step(task: CaptureTask, start: int, at: datetime) -> Next:
    for step in range(start, len(task.cleanup_plan)):
        if task.cleanup_plan[step] in task.remaining:
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
