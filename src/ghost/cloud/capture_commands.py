"""The commands of a capture's life cycle, as argument lists joined by `shlex.join`, each with a reason for people.

Packet captures are created in the target's resource group; later commands address them by region and name:
https://learn.microsoft.com/cli/azure/network/watcher/packet-capture
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ghost.cloud.preflight import Check, CheckCommand
from ghost.cloud.resource_names import begun_at, is_placeholder, is_resource_id
from ghost.cloud.task import CaptureTask, CleanupStep, Mode, Outcome
from ghost.cloud.traffic_filters import as_json
from ghost.text import one_line

CREATE_TIMEOUT_SECONDS = 300.0
TRANSFER_TIMEOUT_SECONDS = 1800.0
DOWNLOAD_RETRY_SECONDS = 5.0
DOWNLOAD_ATTEMPTS = 2
REMOVAL_ATTEMPTS = 4
"""Of each deletion, while Azure is busy with another operation on it."""
BUSY_SECONDS = 10.0
_CONTEXT_LIMIT = 500
_REASON_LIMIT = 1000

_RESOURCE_FIELDS = "{id:id,name:name,type:type,location:location}"


class Purpose(StrEnum):
    DETECT = "detect"
    SEARCH_OTHER_GROUPS = "look_elsewhere"
    PREFLIGHT = "preflight"
    LIST_ACCOUNTS = "list_accounts"
    CREATE_CONTAINER = "create_container"
    CREATE = "create"
    LOOK_FOR_CAPTURE = "look_for_capture"
    POLL = "poll"
    IDENTIFY = "identify"
    LOCATE_BLOB = "locate_blob"
    DOWNLOAD = "download"
    ANALYSE = "analyse"
    CLEAN_UP = "clean_up"


@dataclass(frozen=True)
class ShellCommand:
    """A command for the shell and its reason."""

    purpose: Purpose
    command: str
    reasoning: str
    timeout_seconds: float | None = None
    delay_seconds: float = 0.0
    step: int = 0
    """Index in the cleanup plan, for a cleanup step."""
    check: Check | None = None
    """Name of the preflight check, for a check."""
    asks: bool = False
    """Asks although a plan covers it: the step before it failed."""

    def request(self) -> dict[str, object]:
        request: dict[str, object] = {"command": self.command, "reasoning": one_line(self.reasoning, _REASON_LIMIT)}
        if self.timeout_seconds is not None:
            request["timeout_seconds"] = self.timeout_seconds
        if self.asks:
            request["asks"] = True
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


def search_other_groups(task: CaptureTask) -> ShellCommand:
    query = "[].{id:id,name:name,type:type,location:location,resourceGroup:resourceGroup}"
    words = ["az", "resource", "list", "-n", task.target, "--query", query, "-o", "json"]
    return ShellCommand(
        Purpose.SEARCH_OTHER_GROUPS,
        shlex.join(words),
        f"{task.target} is not in {task.resource_group}: looking for it in the other resource groups. "
        f"Investigation: {context(task)}",
    )


def check(task: CaptureTask, row: CheckCommand) -> ShellCommand | str:
    """Return the command of one preflight check, or the missing fact that it needs."""
    words = row.filled(
        {
            "target_id": task.target_id,
            "resource_group": task.resource_group,
            "location": task.location,
            "scale_set": task.instance.scale_set if task.instance else None,
            "instance": task.instance.instance if task.instance else None,
            "network_interface": task.network_interface,
            "storage_account": task.storage_account,
            "storage_account_id": task.storage_account_id,
            "principal": task.principal,
            "storage_container": task.storage_container,
            "capture_name": task.capture_name,
            "storage_auth_mode": task.storage_auth_mode,
            "subscription": task.subscription,
        }
    )
    if isinstance(words, str):
        return words
    reasoning = f"{row.why} {task.target}, {task.storage_account}. Investigation: {context(task)}"
    return ShellCommand(Purpose.PREFLIGHT, shlex.join(words), reasoning, check=row.check)


def create_container(task: CaptureTask) -> ShellCommand:
    words = ["az", "storage", "container", "create", "--account-name", task.storage_account]
    words += ["--name", task.storage_container, "--auth-mode", task.storage_auth_mode, "-o", "none"]
    return ShellCommand(
        Purpose.CREATE_CONTAINER,
        shlex.join(words),
        f"Storage account {task.storage_account} has no container {task.storage_container} for the capture. It stays "
        f"when the capture is deleted. Investigation: {context(task)}",
    )


def create(task: CaptureTask) -> ShellCommand:
    """Return the creation command. az takes an account name as one in the target's resource group, so the id is used
    if known.

    For a scale set instance, az takes the set as the target and the instance as an inclusion.
    """
    account, container, blob = task.storage_account, task.storage_container, task.storage_blob_name
    endpoint = task.storage_endpoint or f"https://{account}.blob.core.windows.net/"
    words = [*_PACKET_CAPTURE, "create", "-g", task.resource_group, "-n", task.capture_name]
    if task.instance is not None:
        words += ["--target", task.instance.scale_set_id, "--target-type", "AzureVMSS"]
        words += ["--include", task.instance.instance]
    else:
        words += ["--vm", task.target]
    words += ["--storage-account", task.storage_account_id or account]
    words += ["--storage-path", f"{endpoint}{container}/{blob}", "--time-limit", str(task.duration_limit_seconds)]
    if task.size_limit_bytes is not None:
        words += ["--capture-limit", str(task.size_limit_bytes)]
    if task.filters:
        words += ["--filters", as_json(task.filters)]
    return ShellCommand(
        Purpose.CREATE,
        shlex.join([*words, *in_subscription(task), "-o", "json"]),
        f"Creating packet capture for investigation: {context(task)}. "
        f"Duration: {task.duration_limit_seconds} seconds. Capture name: {task.capture_name}.",
        timeout_seconds=CREATE_TIMEOUT_SECONDS,
    )


def creations(task: CaptureTask) -> list[ShellCommand]:
    """What is to be created, in this order."""
    return [*([create_container(task)] if task.creates_container else []), create(task)]


def whole_life(task: CaptureTask) -> list[str]:
    """The commands that change something in a capture's life, each as often as it may run: what a plan asks about."""
    removal = [step.command for step in task.cleanup_plan if step.in_cloud]
    return [
        *[creation.command for creation in creations(task)],
        *[download(task).command] * DOWNLOAD_ATTEMPTS,
        *[command for command in removal for _ in range(REMOVAL_ATTEMPTS)],
        *([] if task.keeps_local_capture else [remove_file(task.download_path)]),
    ]


def look_for_capture(task: CaptureTask) -> ShellCommand:
    query = "[].{name:name,provisioningState:provisioningState}"
    words = [*_PACKET_CAPTURE, "list", "-l", task.location or "", *in_subscription(task)]
    return ShellCommand(
        Purpose.LOOK_FOR_CAPTURE,
        shlex.join([*words, "--query", query, "-o", "json"]),
        f"Checking whether the capture {task.capture_name} still exists. Investigation: {context(task)}",
    )


def poll(task: CaptureTask) -> ShellCommand:
    words = [*_PACKET_CAPTURE, "show-status", "-l", task.location or "", "-n", task.capture_name]
    return ShellCommand(
        Purpose.POLL,
        shlex.join([*words, *in_subscription(task), "-o", "json"]),
        f"Checking whether the capture {task.capture_name} has stopped. Investigation: {context(task)}",
    )


def locate_blob(task: CaptureTask) -> ShellCommand:
    words = [*_PACKET_CAPTURE, "show", "-l", task.location or "", "-n", task.capture_name, *in_subscription(task)]
    return ShellCommand(
        Purpose.LOCATE_BLOB,
        shlex.join([*words, "--query", "{name:name,storageLocation:storageLocation}", "-o", "json"]),
        f"Reading where the blob of the capture {task.capture_name} is. Investigation: {context(task)}",
    )


def identify(task: CaptureTask) -> ShellCommand:
    words = [*_PACKET_CAPTURE, "show", "-l", task.location or "", "-n", task.capture_name, *in_subscription(task)]
    query = "{name:name,target:target,provisioningState:provisioningState,storageLocation:storageLocation}"
    return ShellCommand(
        Purpose.IDENTIFY,
        shlex.join([*words, "--query", query, "-o", "json"]),
        f"The creation of {task.capture_name} was not confirmed: checking what Azure has under this name. "
        f"Investigation: {context(task)}",
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
        source, destination = _ends(task)
        words = ["pcap-forensics", source, "--compare", destination, "--ends"]
        reasoning = f"Comparing captures from both ends of the path. Investigation: {context(task)}"
    words += ["--semantic-dir", task.capture_dir, "--report-dir", task.capture_dir]
    return ShellCommand(Purpose.ANALYSE, shlex.join(words), reasoning, timeout_seconds=TRANSFER_TIMEOUT_SECONDS)


def clean_up(task: CaptureTask, step: int) -> ShellCommand:
    remaining = len(task.remaining)
    why = _CLEANUP_REASONS[task.outcome] if task.outcome else _CLEANUP_REASONS[Outcome.CANCELLED]
    return ShellCommand(
        Purpose.CLEAN_UP,
        task.cleanup_plan[step].command,
        f"Cleanup for {task.outcome or 'unfinished'} task {task.task_id}. Investigation: {context(task)}. {why} "
        f"This removes {task.cleanup_plan[step].name} ({remaining} "
        f"{'resource' if remaining == 1 else 'resources'} left).",
        timeout_seconds=CREATE_TIMEOUT_SECONDS,
        delay_seconds=BUSY_SECONDS * task.cleanup_plan[step].attempts,
        step=step,
        asks=task.outcome not in (Outcome.COMPLETED, Outcome.CANCELLED) or not _is_of(task, task.cleanup_plan[step]),
    )


def _is_of(task: CaptureTask, step: CleanupStep) -> bool:
    """Return whether a step removes what the task made, by its name: a record may name anything in Azure."""
    made = all(map(begun_at, (task.capture_name, task.storage_blob_name)))
    return not step.in_cloud or (made and step.command in [own.command for own in cloud_cleanup(task)])


def cloud_cleanup(task: CaptureTask) -> tuple[CleanupStep, ...]:
    """Return the cleanup steps: capture first, then its blob. Registered before the capture is created."""
    return (
        CleanupStep(
            command=delete_capture(task.location or "", task.capture_name, task.subscription),
            resource=f"packet capture {task.capture_name}",
        ),
        CleanupStep(
            command=delete_blob(
                task.storage_account, task.storage_container, task.storage_blob_name, task.storage_auth_mode
            ),
            resource=f"blob {task.storage_account}/{task.storage_container}/{task.storage_blob_name}",
        ),
    )


def delete_capture(location: str, name: str, subscription: str | None = None) -> str:
    return shlex.join([*_PACKET_CAPTURE, "delete", "-l", location, "-n", name, *of_subscription(subscription)])


def delete_blob(account: str, container: str, name: str, auth_mode: str) -> str:
    words = ["az", "storage", "blob", "delete", "--account-name", account, "--container-name", container]
    return shlex.join([*words, "--name", name, "--auth-mode", auth_mode])


def remove_file(path: str) -> str:
    return shlex.join(["rm", path])


def local_cleanup(paths: Sequence[str]) -> tuple[CleanupStep, ...]:
    return tuple(CleanupStep(command=remove_file(path), resource=f"local file {path}") for path in paths)


@dataclass(frozen=True)
class Artifacts:
    """The files the engine writes for one analysis, by its naming rule."""

    semantic_json: str
    report: str
    executive_summary: str
    where_written: tuple[str, ...] = ()
    """Files that the engine does not always write."""

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
    """Return the investigation context for a reason: one line, no control characters, no final full stop."""
    return one_line(task.investigation_context, _CONTEXT_LIMIT).rstrip(".") or "no context given"


_PACKET_CAPTURE = ("az", "network", "watcher", "packet-capture")

_CLEANUP_REASONS = {
    Outcome.COMPLETED: "Analysis complete — removing transient resources.",
    Outcome.FAILED: "The capture failed — removing what it left.",
    Outcome.TIMED_OUT: "The capture timed out and may still be running — deleting it stops it.",
    Outcome.CANCELLED: "The capture was cancelled — removing what it left.",
}


def in_subscription(task: CaptureTask) -> list[str]:
    """Return the subscription arguments: those of the target's full id, whatever subscription az uses."""
    return of_subscription(task.subscription)


def of_subscription(subscription: str | None) -> list[str]:
    return ["--subscription", subscription] if subscription else []


def _by_id(target: str) -> bool:
    return is_resource_id(target) or is_placeholder(target)


def _ends(task: CaptureTask) -> list[str]:
    """Return the two captures of a pair, the source's first."""
    ends = [task.local_pcap_path or "", task.compare_with or ""]
    return ends if task.pair_role != "destination" else ends[::-1]
