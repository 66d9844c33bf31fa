"""Resources left by earlier sessions, in three layers: the registry, Azure, old local files.

Reports only; deletes nothing. Each orphan has one kind and, if possible, the command that would remove it.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ghost.cloud import capture_commands
from ghost.cloud.capture_commands import ShellCommand
from ghost.cloud.preflight_results import capture_names, why_not_listed
from ghost.cloud.resource_names import is_capture_name, is_location
from ghost.cloud.shell_reply import Reply
from ghost.cloud.task import CaptureTask, CleanupStatus, State

ABANDONED = "abandoned_task"
NEEDS_CLEANUP = "needs_cleanup"
PARTIALLY_CLEANED = "partially_cleaned"
UNTRACKED = "untracked_azure"
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
    )


@dataclass(frozen=True)
class AzureScan:
    """Layer 2: every capture with Ghost's prefix, in every region with a network watcher."""

    captures: tuple[tuple[str, str], ...] = ()
    """(location, name)"""
    warnings: tuple[str, ...] = ()


def scan_azure(execute: Callable[[ShellCommand], Reply], prefix: str) -> AzureScan:
    reply = execute(capture_commands.list_watchers())
    watchers = reply.value
    if not isinstance(watchers, list):
        return AzureScan(warnings=(f"Azure was not searched for captures that earlier sessions left: {reply.detail}",))
    captures: list[tuple[str, str]] = []
    warnings: list[str] = []
    if reply.cut or any(not isinstance(watcher, dict) for watcher in watchers):
        warnings.append("the list of network watchers was truncated: some regions were not searched")
    regions = {str(watcher.get("location")) for watcher in watchers if isinstance(watcher, dict)}
    for location in sorted(filter(is_location, regions)):
        reply = execute(capture_commands.list_captures_of_prefix(location, prefix))
        names = capture_names(reply)
        if names is None:
            warnings.append(
                f"region {location} was not searched for captures that earlier sessions left: {why_not_listed(reply)}"
            )
            continue
        captures += [(location, name) for name in names if name.startswith(f"{prefix}_")]
    return AzureScan(tuple(captures), tuple(warnings))


def untracked(scan: AzureScan, tasks: Iterable[CaptureTask]) -> list[Orphan]:
    """Return captures in Azure that no task will remove."""
    covered = {task.capture_name.lower() for task in tasks if task.active or task.remaining}
    return [
        Orphan(
            kind=UNTRACKED,
            resource=name,
            location=location,
            command=capture_commands.delete_capture(location, name) if is_capture_name(name) else None,
        )
        for location, name in scan.captures
        if name.lower() not in covered
    ]


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
    return Orphan(kind=STALE_FILE, path=str(path), age_days=round(age_days, 1), command=command)
