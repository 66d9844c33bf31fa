"""The life cycle of a capture as a pure state machine: (task, event) to (task, next command).

No I/O, no clock, no waiting. The caller saves the task before and after each command, so that a crash at any point
leaves a record of what may exist; `Resumed` continues from there.

    CREATED → DETECTING → APPROVED → PROVISIONING → WAITING → DOWNLOADING → ANALYZING → COMPLETED
    any of these → FAILED, TIMED_OUT or CANCELLED; with something to remove → CLEANING_UP → DONE
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ghost.cloud import capture_commands, cleanup, target_detection, task_events
from ghost.cloud.resource_names import BlobPlace
from ghost.cloud.task import CaptureTask, CleanupStatus, Denial, Mode, Outcome, State
from ghost.cloud.task_events import Event
from ghost.cloud.transitions import IllegalTransition, Next, end, to
from ghost.text import plural

ABSENT_POLLS = 3
"""So many answers in a row that there is no such capture are confirmed by Azure's list."""

_Handler = Callable[[CaptureTask, Any, datetime], Next]


def advance(task: CaptureTask, event: Event, at: datetime) -> Next:
    """Return the task after `event`, and the next command if there is one.

    Raises `IllegalTransition` if the event cannot happen in the task's state.
    """
    handler = _HANDLERS.get((task.state, type(event)))
    if handler is None:
        raise IllegalTransition(f"task {task.task_id} is {task.state}: {type(event).__name__} cannot happen there")
    return handler(task, event, at)


def follow_up(task: CaptureTask) -> Event | None:
    """Return the automatic next step: a failed, timed-out or cancelled capture is cleaned up."""
    ended_badly = task.state in {State.FAILED, State.TIMED_OUT, State.CANCELLED}
    if task.creation_unanswered and task.absent_at is not None:
        return None  # nothing is there yet: what Azure may still be creating is looked for minutes later
    if ended_badly and task.remaining and task.cleanup_status is CleanupStatus.PENDING:
        return task_events.CleanupRequested()
    return None


def news_of_partner(partner: CaptureTask | None) -> Event | None:
    """Return the event for a capture that waits for the other end's task; None while that is active."""
    if partner is None:
        return task_events.PartnerLost()
    capture = partner.local_pcap_path
    if partner.active:
        return task_events.PartnerReady(capture) if partner.state is State.COMPLETED and capture else None
    compared = partner.outcome is Outcome.COMPLETED and partner.mode is Mode.COMPARISON
    return task_events.ComparedByPartner(capture) if compared and capture else task_events.PartnerLost()


# --- creating ----------------------------------------------------------------------------------------------------


def _container_created(task: CaptureTask, _: task_events.ContainerCreated, _at: datetime) -> Next:
    return task.having(creates_container=False), capture_commands.create(task)


def _container_failed(task: CaptureTask, event: task_events.ContainerFailed, at: datetime) -> Next:
    if task.absent_at is None:
        task = cleanup.without_cloud_steps(task, "the container could not be created")
    return end(task, Outcome.FAILED, at, event.detail)


def _created(task: CaptureTask, event: task_events.CaptureCreated, at: datetime) -> Next:
    task = _located(task.having(azure_operation_id=event.name or task.capture_name), event.place)
    task = task.having(cleanup_plan=capture_commands.cloud_cleanup(task), cleanup_status=CleanupStatus.PENDING)
    approved = task.timestamps.approved or at
    return to(task, State.PROVISIONING).stamped(approved=approved, provisioned=at), None


def _located(task: CaptureTask, place: BlobPlace | None) -> CaptureTask:
    """Store the blob address reported by Azure, which every later command uses."""
    if place is None:
        return task
    return task.having(
        storage_account=place.account,
        storage_container=place.container,
        storage_blob_name=place.blob,
        blob_located=True,
    )


def _creation_failed(task: CaptureTask, event: task_events.CreationFailed, _at: datetime) -> Next:
    """Look before anything is concluded: the answer may be lost, and the capture there."""
    task = task.having(error_detail=event.detail, creation_refused=event.refused)
    return task, capture_commands.identify(task)


def _identified(task: CaptureTask, event: task_events.CaptureIdentified, at: datetime) -> Next:
    detail = task.error_detail or "The creation was not confirmed"
    if event.exists and event.ours and event.usable:
        return _created(task.having(error_detail=None), task_events.CaptureCreated(place=event.place), at)
    if event.exists and event.ours is False:
        task = cleanup.without_cloud_steps(task, event.described)
        detail = f"{detail}. {event.described}. It is not this task's and is not removed"
    elif event.exists is False and task.creation_refused and task.absent_at is None:
        task = cleanup.without_cloud_steps(task, "Azure refused the creation and has no such capture")
    elif event.exists is False:
        task = task.having(absent_at=task.absent_at or at)
        detail = f"{detail}. {cleanup.second_look(task)}"
    return end(task, Outcome.FAILED, at, detail)


def _creation_denied(task: CaptureTask, event: task_events.Denied, at: datetime) -> Next:
    if task.absent_at is None:  # no earlier process asked Azure for it
        task = cleanup.without_cloud_steps(task, "the creation was not approved")
    return _denied(task, "the container of the capture" if task.creates_container else "the capture", event, at)


def _poll_unconfirmed_creation(task: CaptureTask, event: task_events.PollFailed, at: datetime) -> Next:
    """Handle a process that ended while the capture was created: if Azure has none, request it again."""
    if event.absent:
        task = task.having(absent_at=task.absent_at or at)
        return task, capture_commands.creations(task)[0]
    return task, None


def _polled_unconfirmed_creation(task: CaptureTask, event: task_events.Polled, at: datetime) -> Next:
    task, _ = _created(task, task_events.CaptureCreated(), at)
    return _polled(task, event, at)


# --- waiting -----------------------------------------------------------------------------------------------------


def _polled(task: CaptureTask, event: task_events.Polled, at: datetime) -> Next:
    task = _counted(task, at).having(
        poll_error=None,
        absent_polls=0,
        capture_status=event.status,
        stop_reason=event.stop_reason or task.stop_reason,
        capture_errors=event.errors or task.capture_errors,
    )
    if event.status == "Stopped":
        return _stopped(task)
    if event.status == "Error":
        errors = ", ".join(event.errors) or "Azure gives no reason"
        return end(task, Outcome.FAILED, at, f"Azure reports that the capture failed: {errors}")
    return _timed_out_or_waiting(task, at)


def _stopped(task: CaptureTask) -> Next:
    plan = (*task.cleanup_plan, *capture_commands.local_cleanup([task.download_path]))
    task = to(task, State.DOWNLOADING).having(cleanup_plan=plan)
    return task, _fetch(task)


def _poll_failed(task: CaptureTask, event: task_events.PollFailed, at: datetime) -> Next:
    """Count a failed poll, which says nothing about the capture unless Azure repeats that there is none."""
    absent = task.absent_polls + 1 if event.absent else 0
    task = _counted(task, at).having(poll_error=event.detail, absent_polls=absent)
    if absent and absent % ABSENT_POLLS == 0:
        return task, capture_commands.look_for_capture(task)
    return _timed_out_or_waiting(task, at)


def _listed(task: CaptureTask, event: task_events.CaptureListed, at: datetime) -> Next:
    """Fetch what a capture stored that somebody else deleted."""
    if event.exists is not False:
        return _timed_out_or_waiting(task, at)
    return _stopped(task.having(stop_reason="somebody else deleted the capture"))


def _counted(task: CaptureTask, at: datetime) -> CaptureTask:
    if task.state is State.PROVISIONING:
        task = to(task, State.WAITING)
    task = task.stamped(first_poll=task.timestamps.first_poll or at, last_poll=at)
    return task.having(poll_count=task.poll_count + 1)


def _timed_out_or_waiting(task: CaptureTask, at: datetime) -> Next:
    if task.poll_count < task.max_polls:
        return task, None
    last = f"last status {task.capture_status or 'never read'}"
    failed = f"; the last poll failed: {task.poll_error}" if task.poll_error else ""
    detail = f"The capture did not stop within {plural(task.poll_count, 'poll')} ({last}{failed})"
    return end(task, Outcome.TIMED_OUT, at, detail)


# --- downloading and analysing -----------------------------------------------------------------------------------


def _fetch(task: CaptureTask) -> capture_commands.ShellCommand:
    return capture_commands.download(task) if task.blob_located else capture_commands.locate_blob(task)


def _blob_located(task: CaptureTask, event: task_events.BlobLocated, _at: datetime) -> Next:
    task = _located(task, event.place)
    if task.blob_located:
        local = tuple(step for step in task.cleanup_plan if not step.in_cloud)
        task = task.having(cleanup_plan=(*capture_commands.cloud_cleanup(task), *local))
    return task, capture_commands.download(task)


def _downloaded(task: CaptureTask, event: task_events.Downloaded, _at: datetime) -> Next:
    task = task.having(
        local_pcap_path=task.download_path,
        local_pcap_bytes=event.size_bytes,
        local_pcap_sha256=event.sha256,
    )
    if task.keeps_local_capture:
        task = _without_local_file(task)
    if task.paired_task_id is not None:
        return to(task, State.COMPLETED).having(cleanup_status=CleanupStatus.PENDING), None
    task = to(task, State.ANALYZING)
    return task, capture_commands.analyse(task)


def _download_failed(task: CaptureTask, event: task_events.DownloadFailed, at: datetime) -> Next:
    task = task.having(download_errors=(*task.download_errors, event.detail))
    # Azure may show the blob a moment after the capture stopped.
    if len(task.download_errors) < capture_commands.DOWNLOAD_ATTEMPTS:
        return task, capture_commands.download(task, delay_seconds=capture_commands.DOWNLOAD_RETRY_SECONDS)
    attempts = "; ".join(f"attempt {n}: {error}" for n, error in enumerate(task.download_errors, 1))
    if task.capture_errors:
        attempts += f"; Azure reported {', '.join(task.capture_errors)}"
    if task.stop_reason and task.stop_reason != "TimeExceeded":
        attempts += f"; the capture ended early: {task.stop_reason}"
    if not event.left_a_file:
        task = _without_local_file(task)
    return end(task, Outcome.FAILED, at, f"The capture could not be downloaded: {attempts}")


def _download_denied(task: CaptureTask, event: task_events.Denied, at: datetime) -> Next:
    return _denied(_without_local_file(task), "the download of the capture", event, at)


def _without_local_file(task: CaptureTask) -> CaptureTask:
    """Drop the local file from the cleanup plan when nothing was written."""
    in_cloud = tuple(step for step in task.cleanup_plan if step.in_cloud)
    return task.having(cleanup_plan=in_cloud)


def _analysed(task: CaptureTask, event: task_events.Analysed, at: datetime) -> Next:
    return _completed(task, event.also_written, at)


def _completed(task: CaptureTask, also_written: tuple[str, ...], at: datetime) -> Next:
    files = capture_commands.artifacts_of(task)
    task = task.having(
        semantic_json_path=files.semantic_json,
        report_path=files.report,
        executive_summary_path=files.executive_summary,
        artifact_paths=(*files.always, *also_written),
    )
    return end(task, Outcome.COMPLETED, at, None)


def _analysis_failed(task: CaptureTask, event: task_events.AnalysisFailed, at: datetime) -> Next:
    return end(task, Outcome.FAILED, at, event.detail)


def _analysis_denied(task: CaptureTask, event: task_events.Denied, at: datetime) -> Next:
    return _denied(task, "the analysis of the capture", event, at)


# --- the two ends of a path --------------------------------------------------------------------------------------


def _partner_ready(task: CaptureTask, event: task_events.PartnerReady, _at: datetime) -> Next:
    task = to(_undecided(task), State.ANALYZING).having(mode=Mode.COMPARISON, compare_with=event.capture)
    return task, capture_commands.analyse(task)


def _partner_lost(task: CaptureTask, _: task_events.PartnerLost, _at: datetime) -> Next:
    task = to(_undecided(task), State.ANALYZING).having(mode=Mode.SINGLE_END_FALLBACK)
    return task, capture_commands.analyse(task)


def _compared_by_partner(task: CaptureTask, event: task_events.ComparedByPartner, at: datetime) -> Next:
    return _completed(_undecided(task).having(mode=Mode.COMPARISON, compare_with=event.capture), (), at)


def _undecided(task: CaptureTask) -> CaptureTask:
    if not task.active:
        raise IllegalTransition(f"task {task.task_id} is {task.state} with its analysis done")
    return task


# --- requests ----------------------------------------------------------------------------------------------------


def _resumed(task: CaptureTask, _: task_events.Resumed, _at: datetime) -> Next:
    """Return the command whose answer this state waits for."""
    match task.state:
        case State.CREATED | State.DETECTING:
            return target_detection.begin(task)
        case State.APPROVED | State.PROVISIONING | State.WAITING:
            return task, capture_commands.poll(task)
        case State.DOWNLOADING:
            return task, _fetch(task)
        case State.ANALYZING:
            return task, capture_commands.analyse(task)
        case _:
            return task, None


def _cancelled(task: CaptureTask, event: task_events.CancelRequested, at: datetime) -> Next:
    if not task.active:
        return task, None
    task = task.having(cancel_reason=event.reason)
    return end(task, Outcome.CANCELLED, at, f"Cancelled on request: {event.reason or 'no reason given'}")


def _abandoned(task: CaptureTask, _: task_events.SessionEnded, at: datetime) -> Next:
    if not task.active:
        raise IllegalTransition(f"task {task.task_id} ended {task.outcome}: it was not abandoned")
    detail = f"Session {task.session_id} ended while the task was {task.state}"
    return end(task, Outcome.CANCELLED, at, detail, state=State.ABANDONED)


# --- the table ---------------------------------------------------------------------------------------------------


def _denied(task: CaptureTask, what: str, event: task_events.Denied, at: datetime) -> Next:
    denial = Denial(audit_id=next(reversed(task.shell_audit_ids), None), reason=event.reason)
    detail = f"{what[:1].upper()}{what[1:]} was not approved" + (f": {event.reason}" if event.reason else "")
    return end(task.having(denial=denial), Outcome.CANCELLED, at, detail)


_RUNNING = (
    State.CREATED,
    State.DETECTING,
    State.APPROVED,
    State.PROVISIONING,
    State.WAITING,
    State.DOWNLOADING,
    State.ANALYZING,
)
_RESTING = (
    State.COMPLETED,
    State.FAILED,
    State.TIMED_OUT,
    State.CANCELLED,
    State.ABANDONED,
    State.CLEANING_UP,
    State.DONE,
)

_HANDLERS: dict[tuple[State, type], _Handler] = {
    (State.CREATED, task_events.Registered): target_detection.registered,
    (State.DETECTING, task_events.TargetFound): target_detection.target_found,
    (State.DETECTING, task_events.TargetUnusable): target_detection.target_unusable,
    (State.DETECTING, task_events.TargetMissing): target_detection.target_missing,
    (State.DETECTING, task_events.Checked): target_detection.checked,
    (State.DETECTING, task_events.AccountsListed): target_detection.accounts_listed,
    (State.DETECTING, task_events.Denied): _creation_denied,
    (State.APPROVED, task_events.ContainerCreated): _container_created,
    (State.APPROVED, task_events.ContainerFailed): _container_failed,
    (State.APPROVED, task_events.CaptureCreated): _created,
    (State.APPROVED, task_events.CreationFailed): _creation_failed,
    (State.APPROVED, task_events.CaptureIdentified): _identified,
    (State.APPROVED, task_events.Denied): _creation_denied,
    (State.APPROVED, task_events.Polled): _polled_unconfirmed_creation,
    (State.APPROVED, task_events.PollFailed): _poll_unconfirmed_creation,
    (State.PROVISIONING, task_events.Polled): _polled,
    (State.PROVISIONING, task_events.PollFailed): _poll_failed,
    (State.WAITING, task_events.Polled): _polled,
    (State.WAITING, task_events.PollFailed): _poll_failed,
    (State.WAITING, task_events.CaptureListed): _listed,
    (State.DOWNLOADING, task_events.BlobLocated): _blob_located,
    (State.DOWNLOADING, task_events.Downloaded): _downloaded,
    (State.DOWNLOADING, task_events.DownloadFailed): _download_failed,
    (State.DOWNLOADING, task_events.Denied): _download_denied,
    (State.ANALYZING, task_events.Analysed): _analysed,
    (State.ANALYZING, task_events.AnalysisFailed): _analysis_failed,
    (State.ANALYZING, task_events.Denied): _analysis_denied,
    (State.COMPLETED, task_events.PartnerReady): _partner_ready,
    (State.COMPLETED, task_events.PartnerLost): _partner_lost,
    (State.COMPLETED, task_events.ComparedByPartner): _compared_by_partner,
    (State.CLEANING_UP, task_events.StepCleaned): cleanup.step_cleaned,
    (State.CLEANING_UP, task_events.CaptureIdentified): cleanup.identified,
    (State.CLEANING_UP, task_events.StepBusy): cleanup.step_busy,
    (State.CLEANING_UP, task_events.StepKept): cleanup.step_kept,
    **{(state, task_events.Resumed): _resumed for state in (*_RUNNING, *_RESTING)},
    **{(state, task_events.CancelRequested): _cancelled for state in (*_RUNNING, *_RESTING)},
    **{(state, task_events.SessionEnded): _abandoned for state in (*_RUNNING, State.COMPLETED)},
    **{(state, task_events.CleanupRequested): cleanup.begin for state in _RESTING},
}
