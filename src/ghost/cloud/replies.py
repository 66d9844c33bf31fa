"""The event that a shell answer means for the task."""

from __future__ import annotations

from typing import Any

from ghost.azure import PROGRAM_MISSING, ErrorKind
from ghost.cloud import preflight, storage_choice, task_events
from ghost.cloud.capture_commands import Purpose, ShellCommand
from ghost.cloud.preflight import Check
from ghost.cloud.preflight_results import NO_WATCHER, capture_names, judge
from ghost.cloud.resource_names import BlobPlace, blob_location, is_capture_name, is_location, usable_id
from ghost.cloud.shell_reply import Reply, text
from ghost.cloud.target_detection import AKS_CLUSTER, SCALE_SET, SCALE_SET_INSTANCE, VIRTUAL_MACHINE
from ghost.cloud.task import CaptureTask
from ghost.cloud.task_events import Event
from ghost.text import one_line

# What a capture can be asked of, or that is known well enough to say why not.
_CAPTURED = (VIRTUAL_MACHINE, SCALE_SET_INSTANCE, SCALE_SET, AKS_CLUSTER)

# Azure did not begin these. Any other failure may have lost the answer of a creation that it did begin.
_NOT_BEGUN = frozenset(
    (
        *(ErrorKind.LOGIN_MISSING, ErrorKind.LOGIN_EXPIRED, ErrorKind.WRONG_SUBSCRIPTION, ErrorKind.FORBIDDEN),
        *(ErrorKind.NOT_FOUND, ErrorKind.QUOTA, ErrorKind.BAD_REQUEST),
    )
)
_LOCKED = "ScopeLocked"
_BUSY = ("AnotherOperationInProgress", "AnotherOperationIsInProgress")


def event_of(task: CaptureTask, command: ShellCommand, reply: Reply) -> Event:
    """Return the event that `reply` means for `command`."""
    match command.purpose:
        case Purpose.DETECT:
            return _detected(task, reply)
        case Purpose.SEARCH_OTHER_GROUPS:
            return _found_elsewhere(task, reply)
        case Purpose.PREFLIGHT:
            return _checked(task, command.check or Check.STORAGE, reply)
        case Purpose.LIST_ACCOUNTS:
            return storage_choice.accounts_listed(reply)
        case Purpose.CREATE_CONTAINER:
            return _denied(reply) or (
                task_events.ContainerCreated()
                if reply.succeeded
                else task_events.ContainerFailed(
                    f"The container {task.storage_container} could not be created in {task.storage_account}: "
                    f"{reply.detail}. Create it yourself, or name another: --storage-container"
                )
            )
        case Purpose.CREATE:
            return _created(reply)
        case Purpose.LOOK_FOR_CAPTURE:
            return _listed(task, reply)
        case Purpose.IDENTIFY:
            return _identified(task, reply)
        case Purpose.POLL:
            return _polled(reply)
        case Purpose.LOCATE_BLOB:
            return task_events.BlobLocated(_place(_capture(reply)))
        case Purpose.DOWNLOAD:
            return _denied(reply) or (
                task_events.Downloaded()
                if reply.succeeded
                else task_events.DownloadFailed(reply.detail, left_a_file=False)
            )
        case Purpose.ANALYSE:
            return _denied(reply) or (
                task_events.Analysed()
                if reply.succeeded
                else task_events.AnalysisFailed(f"The capture could not be analysed: {reply.detail}")
            )
        case Purpose.CLEAN_UP:
            if reply.succeeded or reply.absent:
                return task_events.StepCleaned(command.step, absent=not reply.succeeded)
            if reply.azure_error is not None and reply.azure_error.code in _BUSY:
                return task_events.StepBusy(command.step, reply.detail)
            return task_events.StepKept(command.step, reply.detail)


def _denied(reply: Reply) -> task_events.Denied | None:
    return task_events.Denied(reply.denial_reason) if reply.denied else None


def _detected(task: CaptureTask, reply: Reply) -> Event:
    if reply.denied:
        return task_events.Denied(reply.denial_reason)
    if not reply.succeeded:
        return task_events.TargetUnusable(f"Target {task.target} was not found: {reply.detail}")
    rows = [row for row in _rows(reply.value) if text(row.get("type"))]
    if not rows and not reply.cut and reply.value == []:
        return task_events.TargetMissing(_not_found(task))
    if not rows:
        return task_events.TargetUnusable(_not_found(task))
    captured = [row for row in rows if row["type"].lower() in _CAPTURED]
    if len(captured) > 1:
        candidates = ", ".join(one_line(str(row.get("id") or row["type"]), 200) for row in captured[:5])
        return task_events.TargetUnusable(
            f"{task.target} names several resources: {candidates}. Give the full resource id of the one you mean"
        )
    row = (captured or rows)[0]
    location = text(row.get("location"))
    if location is None or not is_location(location):
        return task_events.TargetUnusable(f"Azure gives no usable region for {task.target}")
    resource_id = usable_id(task.target)
    return task_events.TargetFound(one_line(row["type"], 120), location, resource_id or usable_id(row.get("id")))


def _not_found(task: CaptureTask) -> str:
    return (
        f"Resource not found: {task.target} in resource group {task.resource_group}. "
        "Name another group, or give the full resource id"
    )


def _found_elsewhere(task: CaptureTask, reply: Reply) -> Event:
    """Report a target found in another group; it is not used, since the caller named a group."""
    rows = [row for row in _rows(reply.value) if str(row.get("type")).lower() in _CAPTURED]
    if not rows:
        return task_events.TargetUnusable(task.error_detail or _not_found(task))
    places = ", ".join(one_line(str(row.get("resourceGroup") or row.get("id")), 120) for row in rows[:5])
    return task_events.TargetUnusable(
        f"Resource not found: {task.target} in resource group {task.resource_group}. It is in {places}: "
        "name that group, or give the full resource id"
    )


def _checked(task: CaptureTask, check: Check, reply: Reply) -> Event:
    if reply.denied and preflight.required(check):
        return task_events.Denied(reply.denial_reason)
    return judge(check, task, reply)


def _was_refused(reply: Reply) -> bool:
    error = reply.azure_error
    return reply.exit_code == PROGRAM_MISSING or (
        error is not None
        and (error.kind in _NOT_BEGUN or error.code == _LOCKED or NO_WATCHER.search(reply.stderr) is not None)
    )


def _created(reply: Reply) -> Event:
    if reply.denied:
        return task_events.Denied(reply.denial_reason)
    if not reply.succeeded:
        return task_events.CreationFailed(f"Azure provisioning failed: {reply.detail}", _was_refused(reply))
    # A person may have changed the name or the place of the capture, and Azure may put it elsewhere: later commands
    # must address what exists.
    capture = _capture(reply)
    name = text(capture.get("name"))
    return task_events.CaptureCreated(name if name and is_capture_name(name) else None, _place(capture))


def _capture(reply: Reply) -> dict[str, Any]:
    """Return the fields of a packet capture, as shown by either az command group or the API."""
    answer = reply.value if isinstance(reply.value, dict) else {}
    inner = answer.get("properties")
    return {**inner, **answer} if isinstance(inner, dict) else answer


def _place(capture: dict[str, Any]) -> BlobPlace | None:
    storage = capture.get("storageLocation")
    path = text(storage.get("storagePath")) if isinstance(storage, dict) else None
    return blob_location(path) if path else None


def _identified(task: CaptureTask, reply: Reply) -> Event:
    """Compare target and storage path of the capture that has the task's name."""
    capture = _capture(reply)
    if text(capture.get("name")) is None:
        return task_events.CaptureIdentified(exists=False if reply.absent else None)
    target, place = text(capture.get("target")), _place(capture)
    planned = BlobPlace(task.storage_account, task.storage_container, task.storage_blob_name)
    wanted = task.instance.scale_set_id if task.instance else task.target_id
    ours = place == planned and target.lower() == wanted.lower() if target and place and wanted else None
    stored = f"{place.account}/{place.container}/{place.blob}" if place else "an unknown place"
    return task_events.CaptureIdentified(
        exists=True,
        ours=ours,
        usable=text(capture.get("provisioningState")) not in {"Failed", "Deleting", "Canceled"},
        described=one_line(f"Azure has a capture {task.capture_name} of {target}, stored in {stored}", 400),
        place=place,
    )


def _listed(task: CaptureTask, reply: Reply) -> Event:
    names = capture_names(reply)
    return task_events.CaptureListed(None if names is None else task.capture_name.lower() in map(str.lower, names))


def _polled(reply: Reply) -> Event:
    if not reply.succeeded:
        return task_events.PollFailed(reply.detail, absent=reply.absent)
    found = _capture(reply)
    status = text(found.get("packetCaptureStatus"))
    if status is None:
        return task_events.PollFailed("the answer has no packetCaptureStatus")
    errors = found.get("packetCaptureError")
    reason = text(found.get("stopReason"))
    return task_events.Polled(
        one_line(status, 40),
        one_line(reason, 80) if reason else None,
        tuple(one_line(str(error), 80) for error in errors) if isinstance(errors, list) else (),
    )


def _rows(found: Any) -> list[dict[str, Any]]:
    return [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
