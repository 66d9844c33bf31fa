"""The error and edge cases of the published behaviour, one row each: what happens, and how the task then stands."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import MakeDesk
from .scripted import CAPTURE, ENDING, TASK, Desk, broken, failed, ran, refused, shown, status

OTHER = "ghost_db-vm-01_20250115T143200"
AKS = ran([{"type": "Microsoft.ContainerService/managedClusters", "location": "eastus"}])
NO_SPACE = failed(f"ERROR: [Errno {errno.ENOSPC}] No space left on device")
Step = Callable[[Desk], dict[str, Any]]


def capture(d: Desk) -> dict[str, Any]:
    return d.capture()


def check(d: Desk) -> dict[str, Any]:
    return d.ask("check_task", task_id=TASK)


def cancel(d: Desk) -> dict[str, Any]:
    return d.ask("cancel_task", task_id=TASK)


def cleanup(d: Desk) -> dict[str, Any]:
    return d.ask("cleanup_task", task_id=TASK)


@dataclass(frozen=True)
class Row:
    what: str
    azure: tuple[tuple[str, Any], ...] = ()
    steps: tuple[Step, ...] = (capture, check)
    expected: dict[str, Any] = field(default_factory=dict)
    """Fields of the last answer."""
    says: str = ""
    """In its error detail or message."""
    ran: dict[str, int] = field(default_factory=dict)
    """How often commands of this shape were sent."""

    def __str__(self) -> str:
        return self.what


def ends(state: str, outcome: str, cleanup_status: str | None) -> dict[str, Any]:
    return {"state": state, "status": f"task_{outcome}", "cleanup_status": cleanup_status}


def partial_file(command: str) -> dict[str, Any]:
    Path(command.split("--file ")[1].split()[0]).write_bytes(b"par")
    return NO_SPACE


def empty_file(command: str) -> dict[str, Any]:
    Path(command.split("--file ")[1].split()[0]).touch()
    return ran()


def unwritable(d: Desk) -> dict[str, Any]:
    """A directory stands where the registry's file should be, whoever runs the test."""
    d.orchestrator.registry_path.unlink(missing_ok=True)
    d.orchestrator.registry_path.mkdir(parents=True)
    return d.capture()


def corrupted(d: Desk) -> dict[str, Any]:
    d.capture()
    with d.orchestrator.registry_path.open("ab") as file:
        file.write(b'{"task_id": "ghost_x", "state":\n\xff\xfe\n')
    d.restarted()
    return check(d)


ERRORS = [
    Row(
        "Azure provisioning fails at the creation",
        (("packet-capture create", failed("ERROR: (InternalServerError) no capacity")),),
        (capture,),
        ends("FAILED", "failed", "pending"),
        "no capacity",
        {" delete ": 0, "packet-capture show ": 1},
    ),
    Row(
        "Azure provisioning fails and leaves the resource",
        (
            ("packet-capture create", failed("ERROR: (InternalServerError)")),
            ("packet-capture show ", lambda command: shown(command, provisioningState="Failed")),
        ),
        (capture,),
        ends("DONE", "failed", "completed"),
        ran={"packet-capture delete": 1, "blob delete": 1},
    ),
    Row(
        "Azure provisioning fails mid-capture",
        (("show-status", status("Error", packetCaptureError=["InternalError"])),),
        expected=ends("DONE", "failed", "completed"),
        says="InternalError",
        ran={"packet-capture delete": 1, "blob delete": 1, "blob download": 0},
    ),
    Row(
        "the download fails at the first attempt",
        (("blob download", [failed("ERROR: BlobNotFound"), ran()]),),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={"blob download": 2},
    ),
    Row(
        "the download fails at both attempts",
        (("blob download", [failed("ERROR: first words"), failed("ERROR: second words")]),),
        expected=ends("DONE", "failed", "completed"),
        says="attempt 1: first words; attempt 2: second words",
        ran={"blob download": 2, "packet-capture delete": 1, "^rm ": 0},
    ),
    Row(
        "the capture engine fails",
        (("^pcap-forensics", failed("not a capture", 2)),),
        expected=ends("DONE", "failed", "completed"),
        says="not a capture",
        ran={"packet-capture delete": 1, "blob delete": 1, "^rm ": 1},
    ),
    Row(
        "the capture engine prints nothing",
        (("^pcap-forensics", ran("")),),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={" delete ": 0},
    ),
    Row(
        "a person denies the creation",
        (("packet-capture create", refused("not in production")),),
        (capture,),
        {**ends("CANCELLED", "cancelled", "skipped"), "user_denied": True, "denial_reason": "not in production"},
        ran={" delete ": 0},
    ),
    Row(
        "a person denies the download",
        (("blob download", refused()),),
        expected={**ends("DONE", "cancelled", "completed"), "user_denied": True},
        ran={"packet-capture delete": 1, "blob delete": 1, "^rm ": 0},
    ),
    Row(
        "a person denies a deletion",
        (("packet-capture delete", refused("evidence")),),
        (capture, check, cleanup),
        {**ends("CLEANING_UP", "completed", "partial"), "not_cleaned": [f"packet capture {CAPTURE}"]},
        "not deleted. It may incur charges.",
        {"blob delete": 1, "^rm ": 1},
    ),
    Row(
        "an unknown task is checked",
        steps=(lambda d: d.ask("check_task", task_id="ghost_none"),),
        expected={"status": "error", "error": "unknown_task"},
        says="No task found with ID",
    ),
    Row(
        "an unknown intent",
        steps=(lambda d: d.ask("fly"),),
        expected={"status": "error", "error": "unknown_intent"},
        says="Unsupported intent",
    ),
    Row(
        "the storage account is not accessible",
        (("container exists", failed("ERROR: Failed to resolve 'forensics.blob.core.windows.net'")),),
        (capture,),
        ends("FAILED", "failed", "skipped"),
        "Storage forensics/captures is not accessible",
        {" create ": 0, " delete ": 0},
    ),
    Row(
        "storage permissions are revoked while the capture runs",
        (("blob download", failed("ERROR: AuthorizationPermissionMismatch")),),
        expected=ends("DONE", "failed", "completed"),
        says="AuthorizationPermissionMismatch",
    ),
    Row(
        "the resource group is not found",
        (("az resource", failed("ERROR: (ResourceGroupNotFound) Resource group 'prod-rg' could not be found.", 3)),),
        (capture,),
        ends("FAILED", "failed", "skipped"),
        "Resource group 'prod-rg' could not be found",
        {" create ": 0},
    ),
    Row(
        "no network watcher in the region, seen before the creation",
        (("packet-capture list", [ran([]), failed("ERROR: network watcher is not enabled for region eastus.")]),),
        (capture,),
        ends("FAILED", "failed", "skipped"),
        "NetworkWatcherNotEnabled",
        {" create ": 0},
    ),
    Row(
        "no network watcher in the region, seen by the creation",
        (("packet-capture create", failed("ERROR: (NetworkWatcherNotEnabled) not enabled in region eastus")),),
        (capture,),
        ends("FAILED", "failed", "skipped"),
        "NetworkWatcherNotEnabled",
        {" delete ": 0},
    ),
    Row(
        "the disk is full during the download",
        (("blob download", partial_file),),
        expected=ends("DONE", "failed", "completed"),
        says="No space left on device",
        ran={"packet-capture delete": 1, "^rm ": 1},
    ),
    Row(
        "the registry's file cannot be written",
        steps=(unwritable, check),
        expected=ends("COMPLETED", "completed", "pending"),
    ),
    Row(
        "a task is checked again by the same caller",
        steps=(capture, check, check),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={"show-status": 1, "blob download": 1, "^pcap-forensics": 1},
    ),
    Row(
        "a task that is DONE is checked",
        steps=(capture, check, cleanup, check),
        expected=ends("DONE", "completed", "completed"),
        ran={" delete ": 2},
    ),
    Row(
        "a task that is DONE is cancelled",
        steps=(capture, check, cleanup, cancel),
        expected=ends("DONE", "completed", "completed"),
        ran={" delete ": 2},
    ),
]

EDGES = [
    Row(
        "the machine does not exist",
        (("az resource show", failed("ERROR: (ResourceNotFound) Resource not found: x", 3)), ("az resource", ran([]))),
        (capture,),
        ends("FAILED", "failed", "skipped"),
        "Resource not found",
        {" create ": 0},
    ),
    Row(
        "two captures of one machine at once",
        steps=(capture, capture, check),
        expected={**ends("COMPLETED", "completed", "pending"), "task_id": TASK},
        ran={f"create .*-n {CAPTURE} ": 1, f"create .*-n {TASK}_2_{ENDING} ": 1},
    ),
    Row(
        "a check before the first poll",
        (("show-status", status("NotStarted")),),
        expected={"status": "task_pending", "state": "WAITING", "poll_count": 4},
    ),
    Row(
        "checks that follow each other faster than the back-off",
        (("show-status", [status("Running")] * 3 + [status("Stopped")]),),
        (capture, check),
        ends("COMPLETED", "completed", "pending"),
        ran={"show-status": 4},
    ),
    Row(
        "an empty capture file",
        (("blob download", empty_file),),
        expected={**ends("COMPLETED", "completed", "pending"), "local_pcap_bytes": 0},
    ),
    Row(
        "the capture has stopped and its blob is not there yet",
        (("blob download", [failed("ERROR: The specified blob does not exist.", 3), ran()]),),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={"blob download": 2},
    ),
    Row(
        "an empty registry",
        steps=(lambda d: d.ask("list_tasks"),),
        expected={"status": "completed", "tasks": [], "orphans": []},
    ),
    Row("a corrupted registry", steps=(corrupted,), expected=ends("COMPLETED", "completed", "pending")),
    Row(
        "the network is lost while polling",
        (("show-status", [failed("ERROR: Connection aborted")] * 2 + [status("Stopped")]),),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={"show-status": 3},
    ),
    Row(
        "the disk is full during the analysis",
        (("^pcap-forensics", failed("OSError: [Errno 28] No space left on device", 1)),),
        expected=ends("DONE", "failed", "completed"),
        says="No space left on device",
        ran={"packet-capture delete": 1, "^rm ": 1},
    ),
    Row(
        "of a pair, one end is an AKS cluster",
        (("az resource .*db-vm-01", AKS),),
        (lambda d: d.capture("web-vm-01 to db-vm-01"), check),
        ends("COMPLETED", "completed", "pending"),
        "Single-end analysis completed on source capture only",
        {" create ": 1, "--compare": 0},
    ),
    Row(
        "of a pair, one end fails and the other completes",
        ((f"show-status .*{OTHER}", status("Error")),),
        (lambda d: d.capture("web-vm-01 to db-vm-01"), lambda d: d.ask("check_task", task_id=OTHER), check),
        ends("COMPLETED", "completed", "pending"),
        "Single-end analysis completed on source capture only",
        {"--compare": 0},
    ),
    Row(
        "no storage account is named",
        steps=(
            lambda d: d.ask("capture_traffic", target="web-vm-01", parameters={"resource_group": "prod-rg"}),
            lambda d: d.ask("capture_traffic", target="web-vm-01", parameters={"resource_group": "prod-rg"}),
        ),
        expected={"status": "error", "error": "missing_parameter", "message": "storage_account is required"},
        ran={"az resource": 0},
    ),
    Row(
        "what is to be deleted is gone already",
        (
            ("packet-capture delete", failed("ERROR: (ResourceNotFound) was not found.", 3)),
            ("blob delete", failed("ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound", 3)),
        ),
        (capture, check, cleanup),
        {**ends("DONE", "completed", "completed"), "not_cleaned": []},
    ),
    Row(
        "a status that nobody knows",
        (("show-status", [status("Paused"), status("Stopped")]),),
        expected=ends("COMPLETED", "completed", "pending"),
        ran={"show-status": 2},
    ),
    Row(
        "a creation that the shell had to stop",
        (("packet-capture create", broken("timeout")),),
        (capture,),
        ends("FAILED", "failed", "pending"),
        "may still be creating it",
        {" delete ": 0},
    ),
]


@pytest.mark.parametrize("row", [*ERRORS, *EDGES], ids=str)
def test_a_row_of_the_tables(desk: MakeDesk, row: Row) -> None:
    d = desk(*row.azure)
    answers = [step(d) for step in row.steps]
    last = answers[-1]
    assert {name: last.get(name) for name in row.expected} == row.expected
    assert row.says in f"{last.get('error_detail')} {last.get('message')}"
    for pattern, count in row.ran.items():
        assert len(d.shell.matching(pattern)) == count, pattern


def test_a_registry_that_cannot_be_written_is_warned_of(desk: MakeDesk) -> None:
    d = desk()
    unwritable(d)
    assert any("kept in memory only" in line for line in d.said)


def test_a_status_that_nobody_knows_is_warned_of(desk: MakeDesk) -> None:
    d = desk(("show-status", [status("Paused"), status("Unknown"), status("Stopped")]))
    d.capture()
    check(d)
    assert [line for line in d.said if "Warning" in line] == [
        "[Cloud Orchestrator] Warning: The status Paused is unknown: the capture is assumed to be running"
    ]


def test_a_corrupted_registry_is_warned_of(desk: MakeDesk) -> None:
    d = desk()
    corrupted(d)
    assert any("cannot be read and was skipped" in line for line in d.said)
