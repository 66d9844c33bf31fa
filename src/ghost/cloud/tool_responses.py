"""Responses to the brain: always all fields of the contract, built from the task alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ghost.cloud.task import CaptureTask, CleanupStatus, Denial, Outcome, State
from ghost.text import one_line, plural

DETAIL_LIMIT = 3000
"""Of characters: a reason holds a remedy for each of several storage accounts."""

_POLLING = frozenset({State.APPROVED, State.PROVISIONING, State.WAITING})


@dataclass
class CallTrace:
    """The shell's records of one call of `orchestrate`."""

    audit_ids: list[str] = field(default_factory=list)
    user_denied: bool = False
    denial_reason: str | None = None

    @classmethod
    def of(cls, denial: Denial) -> CallTrace:
        return cls([denial.audit_id] if denial.audit_id else [], user_denied=True, denial_reason=denial.reason)

    def as_dict(self) -> dict[str, Any]:
        return {
            "user_denied": self.user_denied,
            "denial_reason": self.denial_reason,
            "shell_audit_ids": list(self.audit_ids),
        }


def task_response(task: CaptureTask, partner: CaptureTask | None, now: datetime, trace: CallTrace) -> dict[str, Any]:
    polling = task.active and task.state in _POLLING
    response: dict[str, Any] = {
        "task_id": task.task_id,
        "status": f"task_{task.outcome}" if task.outcome else "task_pending",
        "state": task.state.value,
        "target": task.target,
        "target_type": task.target_type,
        "investigation_context": task.investigation_context,
        "result": _result(task),
        "cleanup_status": task.cleanup_status.value if task.cleanup_status else None,
        "not_cleaned": [step.name for step in task.remaining if task.cleanup_status is CleanupStatus.PARTIAL],
        "error_detail": task.error_detail,
        "poll_count": task.poll_count if polling else None,
        "max_polls": task.max_polls if polling else None,
        "elapsed_seconds": task.seconds_since_creation(now),
        "duration_seconds": task.duration_seconds,
        "capture_status": task.capture_status,
        "stop_reason": task.stop_reason,
        "capture_errors": list(task.capture_errors),
        "local_pcap_bytes": task.local_pcap_bytes,
        "local_pcap_sha256": task.local_pcap_sha256,
        "preflight": _preflight(task),
        "message": _message(task, partner),
    }
    if partner is not None:
        response["paired_task"] = {
            "task_id": partner.task_id,
            "target": partner.target,
            "status": f"task_{partner.outcome}" if partner.outcome else "task_pending",
            "state": partner.state.value,
            "poll_count": partner.poll_count,
            "error_detail": partner.error_detail,
            "local_pcap_path": (_result(partner) or {}).get("local_pcap_path"),
        }
    return response | trace.as_dict()


def list_response(
    tasks: Sequence[CaptureTask],
    orphans: Sequence[dict[str, Any]],
    warnings: Sequence[str],
    now: datetime,
    trace: CallTrace,
) -> dict[str, Any]:
    own = [task_response(task, None, now, CallTrace(list(task.shell_audit_ids))) for task in tasks]
    for row in own:
        del row["user_denied"], row["denial_reason"]
    return {
        "status": "completed",
        "tasks": own,
        "orphans": list(orphans),
        "warnings": list(warnings),
        "message": f"{plural(len(own), 'task')} in this session, {plural(len(orphans), 'left-over')}.",
        **trace.as_dict(),
    }


def error_response(code: str, message: str, trace: CallTrace, task_id: str | None = None) -> dict[str, Any]:
    return {"task_id": task_id, "status": "error", "error": code, "message": message, **trace.as_dict()}


def _preflight(task: CaptureTask) -> list[dict[str, Any]]:
    """Return the preflight results until the capture runs; afterwards they are of no use."""
    if task.timestamps.first_poll is not None:
        return []
    return [result.model_dump(mode="json") for result in task.preflight]


def _result(task: CaptureTask) -> dict[str, Any] | None:
    if task.outcome is not Outcome.COMPLETED:
        return None
    removed = {step.name for step in task.cleanup_plan if step.executed}

    def present(path: str | None) -> str | None:
        return None if f"local file {path}" in removed else path

    return {
        "mode": task.mode.value,
        "local_pcap_path": present(task.local_pcap_path),
        "semantic_json_path": present(task.semantic_json_path),
        "report_path": present(task.report_path),
        "executive_summary_path": present(task.executive_summary_path),
    }


def _message(task: CaptureTask, partner: CaptureTask | None) -> str:
    if task.active:
        return _progress(task, partner)
    ending = _ENDINGS[task.outcome or Outcome.CANCELLED].format(target=task.target_name)
    if partner is not None and task.mode == "single_end_fallback":
        ending = (
            f"{(partner.pair_role or 'other').capitalize()} capture {partner.outcome or 'lost'}. "
            f"Single-end analysis completed on {task.pair_role or 'the surviving'} capture only."
        )
    return " ".join(part for part in (ending, _stop_note(task), _detail(task), _cleanup_note(task)) if part)


_ENDINGS = {
    Outcome.COMPLETED: "Capture complete. Forensic report generated.",
    Outcome.FAILED: "Capture of {target} failed.",
    Outcome.CANCELLED: "Capture of {target} cancelled.",
    Outcome.TIMED_OUT: "Capture of {target} timed out.",
}


def _progress(task: CaptureTask, partner: CaptureTask | None) -> str:
    match task.state:
        case State.PROVISIONING:
            return "Packet capture starting. Check back in ~5-10 seconds."
        case State.WAITING | State.APPROVED:
            status = task.capture_status or "not yet known"
            return f"Packet capture running on {task.target_name}. Azure capture status: {status}."
        case State.COMPLETED:
            other = f" ({partner.target_name})" if partner is not None else ""
            ends = ("Destination", "source") if task.pair_role == "destination" else ("Source", "destination")
            return (
                f"{ends[0]} capture complete. Waiting for {ends[1]} capture{other} to finish before comparison "
                "analysis."
            )
        case _:
            return f"Task is {task.state}. check_task continues from there."


def _detail(task: CaptureTask) -> str:
    if not task.error_detail:
        return ""
    detail = one_line(task.error_detail, DETAIL_LIMIT).rstrip(".")
    return f"{detail[:1].upper()}{detail[1:]}."


def _stop_note(task: CaptureTask) -> str:
    notes = []
    if task.stop_reason and task.stop_reason != "TimeExceeded":
        notes.append(f"It stopped before its time limit: {one_line(task.stop_reason, 80)}.")
    if task.capture_errors:
        notes.append(f"Azure reported {', '.join(task.capture_errors)}.")
    return " ".join(notes)


def _cleanup_note(task: CaptureTask) -> str:
    if task.cleanup_status is CleanupStatus.COMPLETED:
        return "Resources cleaned up."
    if task.cleanup_status is CleanupStatus.PARTIAL:
        return " ".join(kept_warning(step.name, step.in_cloud) for step in task.remaining)
    if task.cleanup_status is CleanupStatus.PENDING:
        return f"{plural(len(task.remaining), 'resource')} to clean up."
    return ""


def kept_warning(resource: str, in_cloud: bool) -> str:
    return f"Resource {resource} not deleted." + (" It may incur charges." if in_cloud else "")
