"""Resources left by earlier sessions, in three layers: the registry, Azure, old local files.

Reports only; deletes nothing. Each orphan has one kind and, if possible, the command that would remove it.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ghost.cloud import capture_commands, leftover_commands
from ghost.cloud.capture_commands import ShellCommand
from ghost.cloud.preflight_results import capture_names
from ghost.cloud.resource_names import begun_at, is_blob_name, is_capture_name, is_location, subscription_of
from ghost.cloud.shell_reply import Reply, why_not_listed
from ghost.cloud.task import CaptureTask, CleanupStatus, State

ABANDONED = "abandoned_task"
NEEDS_CLEANUP = "needs_cleanup"
PARTIALLY_CLEANED = "partially_cleaned"
UNTRACKED = "untracked_azure"
UNTRACKED_BLOB = "untracked_blob"
STALE_FILE = "stale_local_file"

# What the capture engine writes, and the capture itself.
ARTIFACT_ENDINGS = (
    ".cap",
    ".pcap",
    ".pcapng",
    "_semantic.json",
    "_forensic_report.md",
    "_executive_summary.md",
    "_report.html",
    "_comparison.md",
    "_comparison.html",
)


@dataclass(frozen=True)
class Orphan:
    kind: str
    task_id: str | None = None
    session_id: str | None = None
    state: str | None = None
    cleanup_status: str | None = None
    resource: str | None = None
    location: str | None = None
    path: str | None = None
    age_days: float | None = None
    owner: str | None = None
    """Who began it: a session, or the target in its name."""
    running: bool = False
    """The capture may still be recording."""
    command: str | None = None
    """Removal command for an orphan that no cleanup plan covers; RISKY, so a person decides."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def in_registry(tasks: Iterable[CaptureTask], session_id: str, now: datetime) -> list[Orphan]:
    """Return layer 1, the registry. A partial cleanup takes precedence over an abandoned task."""
    found: list[Orphan] = []
    for task in tasks:
        kind = _kind(task, session_id)
        if kind is not None:
            found.append(_of_task(kind, task, now))
    return found


def _kind(task: CaptureTask, session_id: str) -> str | None:
    if task.cleanup_status is CleanupStatus.PARTIAL:
        return PARTIALLY_CLEANED
    if task.state in {State.DONE, State.CANCELLED} and not task.remaining:
        return None
    if task.state is State.DONE:
        return None
    if task.outcome is None and task.state not in _ENDED:
        return ABANDONED if task.session_id != session_id else None  # this session's own go on with check_task
    if task.state is State.ABANDONED:
        return ABANDONED
    if task.cleanup_status in {None, CleanupStatus.PENDING}:
        return NEEDS_CLEANUP
    return None


_ENDED = frozenset(
    {State.COMPLETED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.CLEANING_UP, State.ABANDONED}
)


def _of_task(kind: str, task: CaptureTask, now: datetime) -> Orphan:
    seconds = task.seconds_since_creation(now)
    return Orphan(
        kind=kind,
        task_id=task.task_id,
        session_id=task.session_id,
        state=task.state.value,
        cleanup_status=task.cleanup_status.value if task.cleanup_status else None,
        resource=task.capture_name,
        location=task.location,
        path=task.local_pcap_path,
        age_days=None if seconds is None else round(seconds / 86_400, 1),
        owner=f"session {task.session_id}",
        running=task.active and task.state in _RECORDING and seconds is not None and seconds < _longest(task),
    )


_RECORDING = frozenset({State.APPROVED, State.PROVISIONING, State.WAITING})
_STARTING = timedelta(minutes=10)
"""For approval and creation, before the recording begins."""
LONGEST_SECONDS = 18_000
"""Azure's limit, which a capture has whose own is not shown."""


def _longest(task: CaptureTask) -> float:
    return task.duration_limit_seconds + _STARTING.total_seconds()


@dataclass(frozen=True)
class FoundCapture:
    subscription: str | None
    """None is az's current one."""
    location: str
    name: str
    seconds: int
    """Its time limit."""


@dataclass(frozen=True)
class FoundBlob:
    account: str
    container: str
    auth_mode: str
    name: str


@dataclass
class AzureScan:
    """Layer 2: every capture and blob with Ghost's prefix, in each place that a session used."""

    captures: list[FoundCapture] = field(default_factory=list)
    blobs: list[FoundBlob] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def scan_azure(execute: Callable[[ShellCommand], Reply], prefix: str, used: Iterable[CaptureTask] = ()) -> AzureScan:
    """Search az's subscription and those of the tasks `used`, and the containers of these tasks."""
    scan = AzureScan()
    used = list(used)
    current = _scan_subscription(execute, prefix, None, scan)
    known = {subscription_of(task.target_id or task.target) for task in used}
    for subscription in sorted(filter(None, known - {current})):
        _scan_subscription(execute, prefix, subscription, scan)
    places = {(task.storage_account, task.storage_container, task.storage_auth_mode) for task in used}
    for account, container, auth_mode in sorted(place for place in places if place[0]):
        reply = execute(leftover_commands.list_blobs_of_prefix(account, container, auth_mode, prefix))
        names = capture_names(reply)
        if names is None and not reply.absent:
            scan.warnings.append(f"container {account}/{container} was not searched for blobs: {why_not_listed(reply)}")
        found = (name for name in names or [] if name.startswith(f"{prefix}_"))
        scan.blobs += [FoundBlob(account, container, auth_mode, name) for name in found]
    return scan


def _scan_subscription(
    execute: Callable[[ShellCommand], Reply], prefix: str, subscription: str | None, scan: AzureScan
) -> str | None:
    """Add what a subscription holds to `scan`, and return its id."""
    reply = execute(leftover_commands.list_watchers(subscription))
    watchers = reply.value
    which = f"subscription {subscription}" if subscription else "Azure"
    if not isinstance(watchers, list):
        scan.warnings.append(f"{which} was not searched for captures that earlier sessions left: {reply.detail}")
        return None
    if reply.cut or any(not isinstance(watcher, dict) for watcher in watchers):
        scan.warnings.append("the list of network watchers was truncated: some regions were not searched")
    watchers = [watcher for watcher in watchers if isinstance(watcher, dict)]
    for location in sorted(filter(is_location, {str(watcher.get("location")) for watcher in watchers})):
        reply = execute(leftover_commands.list_captures_of_prefix(location, prefix, subscription))
        if capture_names(reply) is None:
            scan.warnings.append(
                f"region {location} was not searched for captures that earlier sessions left: {why_not_listed(reply)}"
            )
            continue
        for row in reply.value:
            name, seconds = row.get("name"), row.get("seconds")
            if isinstance(name, str) and name.startswith(f"{prefix}_"):
                limit = seconds if isinstance(seconds, int) else LONGEST_SECONDS
                scan.captures.append(FoundCapture(subscription, location, name, limit))
    return next((subscription_of(str(watcher.get("id"))) for watcher in watchers), None)


def untracked(scan: AzureScan, tasks: Iterable[CaptureTask], now: datetime) -> list[Orphan]:
    """Return captures and blobs in Azure that no task will remove. Captures come first: one may be writing its blob."""
    tasks = [task for task in tasks if task.active or task.remaining]
    covered = {task.capture_name.lower() for task in tasks}
    found = {capture.name.lower(): capture for capture in reversed(scan.captures)}
    captures = [
        Orphan(
            kind=UNTRACKED,
            resource=capture.name,
            location=capture.location,
            command=capture_commands.delete_capture(capture.location, capture.name, capture.subscription)
            if is_capture_name(capture.name)
            else None,
            running=_may_run(capture, now),
            **_by_name(capture.name, now),
        )
        for name, capture in sorted(found.items())
        if name not in covered
    ]
    covered_blobs = {task.storage_blob_name for task in tasks}
    recording = {f"{capture.name}.cap" for capture in found.values() if _may_run(capture, now)}
    blobs = [
        Orphan(
            kind=UNTRACKED_BLOB,
            resource=f"{blob.account}/{blob.container}/{blob.name}",
            command=capture_commands.delete_blob(blob.account, blob.container, blob.name, blob.auth_mode)
            if is_blob_name(blob.name)
            else None,
            running=blob.name in recording,
            **_by_name(blob.name, now),
        )
        for blob in scan.blobs
        if blob.name not in covered_blobs
    ]
    return captures + blobs


def _may_run(capture: FoundCapture, now: datetime) -> bool:
    begun = begun_at(capture.name)
    return begun is not None and now < begun + _STARTING + timedelta(seconds=capture.seconds)


def _by_name(name: str, now: datetime) -> dict[str, Any]:
    """Return owner and age as the name shows them."""
    begun = begun_at(name)
    if begun is None:
        return {}
    target = name[: name.index(f"_{begun:%Y%m%dT%H%M%S}")].partition("_")[2]
    return {
        "owner": f"unknown, of {target}",
        "age_days": round(max(0.0, (now - begun).total_seconds()) / 86_400, 1),
    }


def stale_files(directory: Path, prefix: str, now: datetime, max_age_days: float) -> list[Orphan]:
    """Return layer 3: captures and reports selected by name and age; needs no registry and no Azure."""
    found: list[Orphan] = []
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return []  # no directory, or none that can be read: nothing of Ghost's to be found there
    for path in entries:
        if not path.name.startswith(f"{prefix}_") or not path.name.endswith(ARTIFACT_ENDINGS):
            continue
        try:
            status = path.lstat()
        except OSError:
            continue  # gone since it was listed
        age_days = (now.timestamp() - status.st_mtime) / 86_400
        if stat.S_ISREG(status.st_mode) and age_days > max_age_days:
            found.append(_stale(path, age_days))
    return found


def _stale(path: Path, age_days: float) -> Orphan:
    command = capture_commands.remove_file(str(path)) if str(path).isprintable() else None
    return Orphan(kind=STALE_FILE, path=str(path), age_days=round(age_days, 1), owner="this machine", command=command)
