"""What an answer of the shell means to the task whose command it answers: an event."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ghost.cloud import events
from ghost.cloud.commands import Purpose, ShellCommand
from ghost.cloud.events import Event
from ghost.cloud.lifecycle import AKS_CLUSTER, VIRTUAL_MACHINE
from ghost.cloud.names import is_capture_name, is_location, one_line
from ghost.cloud.task import CaptureTask

_DETAIL_LIMIT = 500
_PROGRAM_MISSING = 127

# Azure's and rm's words for "it is not there". A subscription that cannot be found says nothing about a resource in it.
_ABSENT = re.compile(
    r"\b\w*NotFound\b|\bwas not found\b|\bcould not be found\b|\bnot found\b|\bdoes not exist\b|\bNo such file\b",
    re.IGNORECASE,
)
_OTHER_ABSENCE = re.compile(
    r"SubscriptionNotFound|InvalidSubscription|\bsubscription\b[^/\n]{0,80}(not|n't)\b|\btenant\b|command not found|"
    r"Failed to resolve|Name or service not known",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reply:
    """The fields of a shell response that the orchestrator acts on."""

    status: str
    output: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str | None = None
    action: str | None = None
    denial_reason: str | None = None
    audit_id: str | None = None

    @classmethod
    def of(cls, response: dict[str, Any]) -> Reply:
        exit_code = response.get("exit_code")
        return cls(
            status=str(response.get("status") or "error"),
            output=str(response.get("output") or ""),
            stderr=str(response.get("stderr") or ""),
            exit_code=exit_code if isinstance(exit_code, int) else None,
            error=_line(response.get("error")),
            action=_text(response.get("action")),
            denial_reason=_line(response.get("denial_reason")),
            audit_id=_text(response.get("audit_id")),
        )

    @property
    def succeeded(self) -> bool:
        return self.status == "completed" and self.exit_code == 0

    @property
    def denied(self) -> bool:
        return self.status == "denied"

    @property
    def user_denied(self) -> bool:
        """A person refused; a prompt that nobody answered is no refusal."""
        return self.denied and self.action != "user_abandoned"

    @property
    def absent(self) -> bool:
        """The program ran and said that what it was asked for does not exist."""
        if self.status != "completed" or self.exit_code in (0, None, _PROGRAM_MISSING):
            return False
        return _OTHER_ABSENCE.search(self.stderr) is None and _ABSENT.search(self.stderr) is not None

    @property
    def detail(self) -> str:
        """Why it failed, in one line: the error of the program, else of the shell."""
        text = one_line(_last_words(self.stderr.strip() or self.output.strip()), _DETAIL_LIMIT)
        if self.error:
            return f"{self.error}: {text}" if text else self.error
        if self.denied:
            return "not approved" + (f": {self.denial_reason}" if self.denial_reason else "")
        return text or f"exit status {self.exit_code} and no message"


def event_of(task: CaptureTask, command: ShellCommand, reply: Reply) -> Event:
    """The event that `reply` is, for the purpose of `command`."""
    match command.purpose:
        case Purpose.DETECT:
            return _detected(task, reply)
        case Purpose.VERIFY_STORAGE:
            return _storage(task, reply)
        case Purpose.CREATE:
            return _created(task, reply)
        case Purpose.LOOK_FOR_CAPTURE:
            return _looked(task, reply)
        case Purpose.POLL:
            return _polled(reply)
        case Purpose.DOWNLOAD:
            return _denied(reply) or (
                events.Downloaded() if reply.succeeded else events.DownloadFailed(reply.detail, left_a_file=False)
            )
        case Purpose.ANALYSE:
            return _denied(reply) or (
                events.Analysed()
                if reply.succeeded
                else events.AnalysisFailed(f"The capture could not be analysed: {reply.detail}")
            )
        case Purpose.CLEAN_UP:
            if reply.succeeded or reply.absent:
                return events.StepCleaned(command.step)
            return events.StepKept(command.step, reply.detail)


def _denied(reply: Reply) -> events.Denied | None:
    return events.Denied(reply.denial_reason) if reply.denied else None


def _detected(task: CaptureTask, reply: Reply) -> Event:
    if reply.denied:
        return events.Denied(reply.denial_reason)
    if not reply.succeeded:
        return events.TargetUnusable(f"Target {task.target} was not found: {reply.detail}")
    found = parse_json(reply.output)
    rows = [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
    typed = [(_text(row.get("type")), _text(row.get("location"))) for row in rows]
    resources = [(kind, location) for kind, location in typed if kind]
    if not resources:
        return events.TargetUnusable(
            f"Resource not found: {task.target} in resource group {task.resource_group}. "
            "Name another group, or give the full resource id"
        )
    kind, location = min(resources, key=_preference)
    if location is None or not is_location(location):
        return events.TargetUnusable(f"Azure names no usable region for {task.target}")
    return events.TargetFound(one_line(kind, 120), location)


def _preference(resource: tuple[str, str | None]) -> int:
    """A short name may belong to several resources (a VM, its NIC, its disk): what can be captured on comes first."""
    kind = resource[0].lower()
    return {VIRTUAL_MACHINE: 0, AKS_CLUSTER: 1}.get(kind, 2)


def _storage(task: CaptureTask, reply: Reply) -> Event:
    if reply.denied:
        return events.Denied(reply.denial_reason)
    place = f"{task.storage_account}/{task.storage_container}"
    if not reply.succeeded:
        return events.StorageUnusable(f"Storage {place} is not accessible: {reply.detail}")
    found = parse_json(reply.output)
    if isinstance(found, dict) and found.get("exists") is True:
        return events.StorageVerified()
    return events.StorageUnusable(
        f"The container {task.storage_container} does not exist in storage account {task.storage_account}: create it, "
        "or name another account"
    )


def _created(task: CaptureTask, reply: Reply) -> Event:
    if reply.denied:
        return events.Denied(reply.denial_reason)
    if not reply.succeeded:
        cut_off = reply.error in ("timeout", "interrupted")
        return events.CreationFailed(f"Azure provisioning failed: {reply.detail}", cut_off)
    reported = parse_json(reply.output)
    if reply.action != "user_modified" or not isinstance(reported, dict):
        return events.CaptureCreated()
    # A person may have changed the name or the place of the capture: later commands must address what exists.
    name = _text(reported.get("name"))
    storage = reported.get("storageLocation")
    path = _text(storage.get("storagePath")) if isinstance(storage, dict) else None
    place = f"https://{task.storage_account}.blob.core.windows.net/{task.storage_container}/"
    blob = path.removeprefix(place) if path and path.startswith(place) else None
    return events.CaptureCreated(
        name if name and is_capture_name(name) else None,
        blob if blob and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,254}", blob) else None,
    )


def _looked(task: CaptureTask, reply: Reply) -> Event:
    names = capture_names(reply)
    return events.LeftoverLookedFor(None if names is None else task.capture_name.lower() in map(str.lower, names))


def capture_names(reply: Reply) -> list[str] | None:
    """The names in a list of packet captures; None where they could not be listed in full."""
    listed = parse_json(reply.output) if reply.succeeded else None
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        return None  # a string among the rows says that the shell cut the list
    return [row["name"] for row in listed if isinstance(row.get("name"), str)]


def _polled(reply: Reply) -> Event:
    if not reply.succeeded:
        return events.PollFailed(reply.detail, absent=reply.absent)
    found = parse_json(reply.output)
    status = _text(found.get("packetCaptureStatus")) if isinstance(found, dict) else None
    if status is None:
        return events.PollFailed("the answer holds no packetCaptureStatus")
    errors = found.get("packetCaptureError")
    return events.Polled(
        one_line(status, 40),
        _text(found.get("stopReason")),
        tuple(one_line(str(error), 80) for error in errors) if isinstance(errors, list) else (),
    )


def _last_words(text: str) -> str:
    """What az says after `ERROR:`; of another program, whose progress may come before it, the last line."""
    _, marker, message = text.rpartition("ERROR:")
    return message if marker else text.rpartition("\n")[2]


def parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _line(value: object) -> str | None:
    return one_line(value, _DETAIL_LIMIT) or None if isinstance(value, str) else None
