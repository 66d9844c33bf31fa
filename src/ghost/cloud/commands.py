"""The commands of a capture's life, as argument lists joined by `shlex.join`, each with the reason a person reads.

Packet captures are created in the target's resource group; every later command addresses them by region and name:
https://learn.microsoft.com/cli/azure/network/watcher/packet-capture
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ghost.cloud.names import is_resource_id, one_line
from ghost.cloud.task import CaptureTask, CleanupStep, Mode, Outcome

CREATE_TIMEOUT_SECONDS = 300.0
TRANSFER_TIMEOUT_SECONDS = 1800.0
DOWNLOAD_RETRY_SECONDS = 5.0
_CONTEXT_LIMIT = 500
_REASON_LIMIT = 1000

_RESOURCE_FIELDS = "{id:id,name:name,type:type,location:location}"


class Purpose(StrEnum):
    DETECT = "detect"
    VERIFY_STORAGE = "verify_storage"
    CREATE = "create"
    LOOK_FOR_CAPTURE = "look_for_capture"
    POLL = "poll"
    DOWNLOAD = "download"
    ANALYSE = "analyse"
    CLEAN_UP = "clean_up"


@dataclass(frozen=True)
class ShellCommand:
    """What the orchestrator carries to the shell, and why."""

    purpose: Purpose
    command: str
    reasoning: str
    timeout_seconds: float | None = None
    delay_seconds: float = 0.0
    step: int = 0
    """Which step of the cleanup plan this is, where it is one."""

    def request(self) -> dict[str, object]:
        request: dict[str, object] = {"command": self.command, "reasoning": one_line(self.reasoning, _REASON_LIMIT)}
        if self.timeout_seconds is not None:
            request["timeout_seconds"] = self.timeout_seconds
        return request


def detect(task: CaptureTask) -> ShellCommand:
    if _by_id(task.target):
        words = ["az", "resource", "show", "--ids", task.target, "--query", _RESOURCE_FIELDS, "-o", "json"]
    else:
        query = f"[].{_RESOURCE_FIELDS}"
        words = ["az", "resource", "list", "-g", task.resource_group, "-n", task.target, "--query", query, "-o", "json"]
    return ShellCommand(
        Purpose.DETECT,
        shlex.join(words),
        f"Detecting what kind of resource {task.target} is and in which region. Investigation: {context(task)}",
    )


def verify_storage(task: CaptureTask) -> ShellCommand:
    words = ["az", "storage", "container", "exists", "--account-name", task.storage_account]
    words += ["--name", task.storage_container, "--auth-mode", task.storage_auth_mode, "-o", "json"]
    return ShellCommand(
        Purpose.VERIFY_STORAGE,
        shlex.join(words),
        f"Checking that {task.storage_account}/{task.storage_container} can hold the capture before one is created. "
        f"Investigation: {context(task)}",
    )


def create(task: CaptureTask) -> ShellCommand:
    account, container, blob = task.storage_account, task.storage_container, task.storage_blob_name
    words = ["az", "network", "watcher", "packet-capture", "create", "-g", task.resource_group]
    words += ["-n", task.capture_name, "--vm", task.target, "--storage-account", account]
    words += ["--storage-path", f"https://{account}.blob.core.windows.net/{container}/{blob}"]
    words += ["--time-limit", str(task.duration_limit_seconds), "-o", "json"]
    return ShellCommand(
        Purpose.CREATE,
        shlex.join(words),
        f"Creating packet capture for investigation: {context(task)}. "
        f"Duration: {task.duration_limit_seconds} seconds. Capture name: {task.capture_name}.",
        timeout_seconds=CREATE_TIMEOUT_SECONDS,
    )


def list_captures(location: str, reasoning: str) -> ShellCommand:
    query = "[].{name:name,provisioningState:provisioningState}"
    words = [*_PACKET_CAPTURE, "list", "-l", location, "--query", query, "-o", "json"]
    return ShellCommand(Purpose.LOOK_FOR_CAPTURE, shlex.join(words), reasoning)


def look_for_capture(task: CaptureTask) -> ShellCommand:
    return list_captures(
        task.location or "",
        f"Checking whether the failed creation left the capture {task.capture_name} behind. "
        f"Investigation: {context(task)}",
    )


def list_watchers() -> ShellCommand:
    words = ["az", "network", "watcher", "list", "--query", "[].{name:name,location:location}", "-o", "json"]
    return ShellCommand(
        Purpose.LOOK_FOR_CAPTURE,
        shlex.join(words),
        "Startup orphan detection: finding the regions in which packet captures can be.",
    )


def poll(task: CaptureTask) -> ShellCommand:
    words = [*_PACKET_CAPTURE, "show-status", "-l", task.location or "", "-n", task.capture_name, "-o", "json"]
    return ShellCommand(
        Purpose.POLL,
        shlex.join(words),
        f"Checking whether the capture {task.capture_name} has stopped. Investigation: {context(task)}",
    )


def download(task: CaptureTask, delay_seconds: float = 0.0) -> ShellCommand:
    words = ["az", "storage", "blob", "download", "--account-name", task.storage_account]
    words += ["--container-name", task.storage_container, "--name", task.storage_blob_name]
    words += [
        "--file",
        task.download_path,
        "--auth-mode",
        task.storage_auth_mode,
        "--no-progress",
        "-o",
        "none",
    ]
    return ShellCommand(
        Purpose.DOWNLOAD,
        shlex.join(words),
        f"Downloading capture for analysis. Investigation: {context(task)}",
        timeout_seconds=TRANSFER_TIMEOUT_SECONDS,
        delay_seconds=delay_seconds,
    )


def analyse(task: CaptureTask) -> ShellCommand:
    words = ["pcap-forensics", task.local_pcap_path or ""]
    reasoning = f"Analysing the capture of {task.target}. Investigation: {context(task)}"
    if task.mode is Mode.COMPARISON:
        words = ["pcap-forensics", *_ends(task)]
        words.insert(2, "--compare")
        reasoning = f"Comparing captures from both ends of the path. Investigation: {context(task)}"
    words += ["--semantic-dir", task.capture_dir, "--report-dir", task.capture_dir]
    return ShellCommand(Purpose.ANALYSE, shlex.join(words), reasoning, timeout_seconds=TRANSFER_TIMEOUT_SECONDS)


def clean_up(task: CaptureTask, step: int) -> ShellCommand:
    left = len(task.remaining)
    why = _CLEANUP_REASONS[task.outcome] if task.outcome else _CLEANUP_REASONS[Outcome.CANCELLED]
    return ShellCommand(
        Purpose.CLEAN_UP,
        task.cleanup_plan[step].command,
        f"Cleanup for {task.outcome or 'unfinished'} task {task.task_id}. Investigation: {context(task)}. {why} "
        f"This removes {task.cleanup_plan[step].name} ({left} {'resource' if left == 1 else 'resources'} left).",
        timeout_seconds=CREATE_TIMEOUT_SECONDS,
        step=step,
    )


def cloud_cleanup(task: CaptureTask) -> tuple[CleanupStep, ...]:
    """Capture first, then its blob. Registered before the capture is created."""
    blob = ["az", "storage", "blob", "delete", "--account-name", task.storage_account]
    blob += ["--container-name", task.storage_container, "--name", task.storage_blob_name]
    blob += ["--auth-mode", task.storage_auth_mode]
    return (
        CleanupStep(
            command=delete_capture(task.location or "", task.capture_name),
            resource=f"packet capture {task.capture_name}",
        ),
        CleanupStep(
            command=shlex.join(blob),
            resource=f"blob {task.storage_account}/{task.storage_container}/{task.storage_blob_name}",
        ),
    )


def delete_capture(location: str, name: str) -> str:
    return shlex.join([*_PACKET_CAPTURE, "delete", "-l", location, "-n", name])


def remove_file(path: str) -> str:
    return shlex.join(["rm", path])


def local_cleanup(paths: Sequence[str]) -> tuple[CleanupStep, ...]:
    return tuple(CleanupStep(command=remove_file(path), resource=f"local file {path}") for path in paths)


@dataclass(frozen=True)
class Artifacts:
    """What the engine writes for one analysis, by its naming rule."""

    semantic_json: str
    report: str
    executive_summary: str
    where_written: tuple[str, ...] = ()
    """Files that the engine may leave out."""

    @property
    def always(self) -> tuple[str, ...]:
        return (self.semantic_json, self.report, self.executive_summary)


def artifacts_of(task: CaptureTask) -> Artifacts:
    directory = Path(task.capture_dir)
    own = Path(task.local_pcap_path or "").stem
    semantic = str(directory / f"{own}_semantic.json")
    if task.mode is Mode.COMPARISON:
        first, second = (Path(path).stem for path in _ends(task))
        report = str(directory / f"{first}_vs_{second}_comparison.md")
        summary = str(directory / f"{first}_vs_{second}_executive_summary.md")
        html = str(directory / f"{first}_vs_{second}_comparison.html")
        return Artifacts(semantic, report, summary, (html,))
    report = str(directory / f"{own}_forensic_report.md")
    summary = str(directory / f"{own}_executive_summary.md")
    html = str(directory / f"{own}_report.html")
    return Artifacts(semantic, report, summary, (html,))


def context(task: CaptureTask) -> str:
    """The investigation context as it stands in a reason: one line, no control characters, no final full stop."""
    return one_line(task.investigation_context, _CONTEXT_LIMIT).rstrip(".") or "no context given"


_PACKET_CAPTURE = ("az", "network", "watcher", "packet-capture")

_CLEANUP_REASONS = {
    Outcome.COMPLETED: "Analysis complete — removing transient resources.",
    Outcome.FAILED: "The capture failed — removing what it left behind.",
    Outcome.TIMED_OUT: "The capture timed out and may still run — deleting it stops it.",
    Outcome.CANCELLED: "The capture was cancelled — removing what it left behind.",
}


def _by_id(target: str) -> bool:
    return is_resource_id(target) or target.startswith("[")


def _ends(task: CaptureTask) -> list[str]:
    """The two captures of a pair, the source's first."""
    ends = [task.local_pcap_path or "", task.compare_with or ""]
    return ends if task.pair_role != "destination" else ends[::-1]
