"""The `[Cloud Orchestrator]` lines shown on the terminal while a task progresses."""

from __future__ import annotations

import re

from ghost.cloud.task import CaptureTask, CleanupStatus, CleanupStep, State
from ghost.cloud.tool_responses import DETAIL_LIMIT, kept_warning
from ghost.records import elapsed
from ghost.text import one_line

_HEAD = "[Cloud Orchestrator] "
_ROUTINE = re.compile(
    r"(?:New task|Target type|Poll \d+/\d+: packetCaptureStatus|Preflight(?!.*Not checked)|Download complete"
    r"|Task \S+: (?:PROVISIONING|WAITING|DOWNLOADING|ANALYZING|COMPLETED|CLEANING_UP\s+Removing|DONE)\b)",
    re.DOTALL,
)
_KINDS = {"vm": "VM", "vmss": "scale set instance"}
_STATUSES = frozenset({"NotStarted", "Running", "Stopped", "Error", "Unknown"})
_INDENT = "\n      "


def is_routine(announcement: str) -> bool:
    """Return whether an announcement tells only what was asked for and went well."""
    return _ROUTINE.match(announcement.removeprefix(_HEAD)) is not None


def block(first: str, *details: str) -> str:
    """Return one announcement: its head and indented details, without control characters."""
    return _HEAD + _INDENT.join(one_line(line, DETAIL_LIMIT) for line in (first, *details))


def new_task(task: CaptureTask) -> str:
    return block(f"New task: {task.task_id}", f"Intent: {task.intent}", f"Target: {task.target} (detecting type...)")


def warning(text: str) -> str:
    return block(f"Warning: {text}")


def moved(before: CaptureTask, after: CaptureTask) -> list[str]:
    """Return the announcement of a step from `before` to `after`."""
    lines: list[str] = []
    if after.target_type in _KINDS and before.target_type is None:
        lines.append(
            block(
                f"Target type: {_KINDS[after.target_type]}. Using Network Watcher packet capture.",
                f"Capture duration: {after.duration_limit_seconds} seconds",
                f"Storage: {after.storage_account or 'an account of ' + str(after.location)}/{after.storage_container}",
            )
        )
    if after.state is State.APPROVED and before.state is State.DETECTING:
        lines.append(_preflight(after))
    if after.poll_count > before.poll_count:
        stopped = f" ({after.stop_reason})" if after.stop_reason else ""
        status = f"packetCaptureStatus = {after.capture_status}{stopped}"
        answer = f"failed, {after.poll_error}" if after.poll_error else status
        lines.append(block(f"Poll {after.poll_count}/{after.max_polls}: {answer}"))
        if not after.poll_error and after.capture_status not in _STATUSES:
            lines.append(warning(f"The status {after.capture_status} is unknown: the capture is assumed to be running"))
    if before.state is State.DOWNLOADING and after.state in {State.ANALYZING, State.COMPLETED}:
        size = f" ({_size(after.local_pcap_bytes)})" if after.local_pcap_bytes is not None else ""
        lines.append(block(f"Download complete: {after.local_pcap_path}{size}"))
    failed_steps = [
        now for was, now in zip(before.cleanup_plan, after.cleanup_plan, strict=False) if _newly_failed(was, now)
    ]
    lines += [warning(f"{kept_warning(step.name, step.in_cloud)} {step.kept_because or ''}") for step in failed_steps]
    became_partial = (
        after.cleanup_status is CleanupStatus.PARTIAL and before.cleanup_status is not CleanupStatus.PARTIAL
    )
    if after.state is not before.state or became_partial:
        details = _details(after)
        if details is not None:
            lines.append(block(f"Task {after.task_id}: {after.state}", *details))
    return lines


def _preflight(task: CaptureTask) -> str:
    passed = sum(result.passed is True for result in task.preflight)
    unsure = [f"Not checked: {result.check} ({result.detail})" for result in task.preflight if result.passed is None]
    return block(f"Preflight: {passed} of {len(task.preflight)} checks passed, none failed", *unsure)


def _details(task: CaptureTask) -> list[str] | None:
    """Return the lines under a state; None if the state is not announced."""
    match task.state:
        case State.PROVISIONING:
            return ["Status: Packet capture starting. Check back in ~5-10 seconds."]
        case State.COMPLETED if task.active:
            return ["Status: Downloaded. Waiting for the other end of the path."]
        case State.COMPLETED:
            clouds = sum(step.in_cloud for step in task.remaining)
            return [
                f"Semantic JSON: {task.semantic_json_path}",
                f"{'Comparison' if task.compare_with else 'Forensic'} Report: {task.report_path}",
                f"Duration: {elapsed(task.duration_seconds or 0.0)}",
                f"Cleanup: {clouds} cloud resource{'' if clouds == 1 else 's'} pending deletion",
            ]
        case State.FAILED:
            return [f"Error: {task.error_detail}"]
        case State.TIMED_OUT | State.CANCELLED | State.ABANDONED:
            return [f"Reason: {task.error_detail}"]
        case State.CLEANING_UP if task.cleanup_status is CleanupStatus.PENDING:
            return [f"Removing: {step.name}" for step in task.remaining]
        case State.CLEANING_UP if task.cleanup_status is CleanupStatus.PARTIAL:
            return [f"Not deleted: {step.name}" for step in task.remaining]
        case State.DONE:
            return [f"Outcome: {task.outcome}", f"Cleanup: {task.cleanup_status}"]
        case _:
            return None


def _newly_failed(before: CleanupStep, after: CleanupStep) -> bool:
    return after.kept_because is not None and after.kept_because != before.kept_because


def _size(count: int | None) -> str:
    value = float(count or 0)
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"
