"""Download, analysis, cleanup and cancellation: however a capture ends, what it made is removed or named."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from .conftest import MakeDesk
from .scripted import (
    CAPTURE,
    TASK,
    broken,
    failed,
    ran,
    refused,
    status,
)


def test_a_download_is_tried_again_after_five_seconds(desk: MakeDesk) -> None:
    d = desk(("blob download", [failed("ERROR: BlobNotFound"), ran()]))
    d.capture()
    assert d.ask("check_task", task_id=TASK)["status"] == "task_completed"
    assert d.clock.slept == [5.0]


def test_two_failed_downloads_fail_the_task_with_both_errors_and_clean_the_cloud(desk: MakeDesk) -> None:
    d = desk(("blob download", [failed("ERROR: first"), failed("ERROR: second")]))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["cleanup_status"]) == ("task_failed", "completed")
    assert "first" in response["error_detail"]
    assert "second" in response["error_detail"]
    assert len(d.shell.matching("delete")) == 2
    assert not d.shell.matching("^rm ")


def test_a_partial_download_is_removed(desk: MakeDesk) -> None:
    def full_disk(command: str) -> dict[str, object]:
        Path(shlex.split(command)[shlex.split(command).index("--file") + 1]).write_bytes(b"par")
        return failed("ERROR: [Errno 28] No space left on device")

    d = desk(("blob download", full_disk))
    d.capture()
    assert d.ask("check_task", task_id=TASK)["cleanup_status"] == "completed"
    assert list((d.directory / "captures").iterdir()) == []


def test_a_denied_download_cancels_the_task_and_cleans_up(desk: MakeDesk) -> None:
    d = desk(("blob download", refused("not allowed")))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["state"], response["cleanup_status"]) == (
        "task_cancelled",
        "DONE",
        "completed",
    )
    assert (response["user_denied"], response["denial_reason"]) == (True, "not allowed")
    assert [c.split()[1] for c in d.shell.matching("delete|^rm")] == ["network", "storage"]


def test_an_empty_capture_completes(desk: MakeDesk) -> None:
    d = desk(("blob download", lambda command: (Path(command.split("--file ")[1].split()[0]).touch(), ran())[1]))
    d.capture()
    assert d.ask("check_task", task_id=TASK)["status"] == "task_completed"
    assert d.records()[-1]["local_pcap_bytes"] == 0


@pytest.mark.parametrize("answer", [failed("not a capture"), failed("not found", 127), broken("timeout")])
def test_a_failed_analysis_fails_the_task_and_removes_cloud_and_local_capture(desk: MakeDesk, answer) -> None:
    d = desk(("^pcap-forensics", answer))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["cleanup_status"]) == ("task_failed", "completed")
    assert [c.split()[0] for c in d.shell.matching("delete|^rm")] == ["az", "az", "rm"]
    assert response["result"] is None


# --- cleanup and cancellation ------------------------------------------------------------------------------------


def test_a_denied_deletion_is_partial_is_told_and_can_be_tried_again(desk: MakeDesk) -> None:
    d = desk(("packet-capture delete", [refused("keep it"), ran()]))
    d.capture()
    d.ask("check_task", task_id=TASK)
    first = d.ask("cleanup_task", task_id=TASK)
    assert (first["state"], first["cleanup_status"], first["user_denied"]) == ("CLEANING_UP", "partial", True)
    assert f"Resource packet capture {CAPTURE} not deleted. It may incur charges." in first["message"]
    assert any("It may incur charges." in line for line in d.said)
    before = len(d.shell.commands)
    second = d.ask("cleanup_task", task_id=TASK)
    assert (second["status"], second["state"], second["cleanup_status"]) == ("task_completed", "DONE", "completed")
    assert [c.split()[4] for c in d.shell.commands[before:]] == ["delete"]


def test_what_is_gone_already_counts_as_cleaned(desk: MakeDesk) -> None:
    d = desk(
        ("packet-capture delete", failed(f"ERROR: (ResourceNotFound) The Resource 'x/{TASK}' was not found.", 3)),
        ("blob delete", failed("ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound", 3)),
        ("^rm ", failed("rm: cannot remove 'x.cap': No such file or directory")),
    )
    d.capture()
    d.ask("check_task", task_id=TASK)
    assert d.ask("cleanup_task", task_id=TASK)["cleanup_status"] == "completed"


@pytest.mark.parametrize(
    "answer",
    [
        failed("az: command not found", 127),
        failed("ERROR: The subscription 'abc' could not be found.", 1),
        failed("ERROR: (SubscriptionNotFound) The subscription 'abc' could not be found.", 3),
        failed("ERROR: Failed to resolve 'forensics.blob.core.windows.net'", 1),
        failed("ERROR: (AuthorizationFailed) The client does not have authorization", 1),
        broken("timeout"),
    ],
)
def test_what_could_not_be_asked_does_not_count_as_cleaned(desk: MakeDesk, answer) -> None:
    d = desk(("packet-capture delete", answer))
    d.capture()
    d.ask("check_task", task_id=TASK)
    response = d.ask("cleanup_task", task_id=TASK)
    assert (response["cleanup_status"], response["not_cleaned"]) == ("partial", [f"packet capture {CAPTURE}"])


def test_reports_stay_unless_they_are_asked_for(desk: MakeDesk) -> None:
    d = desk(("^rm ", ran()))
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    assert not d.shell.matching(f"^rm .*{TASK}_")
    response = d.ask("cleanup_task", task_id=TASK, include_artifacts=True)
    assert (response["state"], response["cleanup_status"]) == ("DONE", "completed")
    assert len(d.shell.matching(f"^rm .*{TASK}_")) == 3
    assert response["result"]["report_path"] is None


def test_a_settled_task_answers_every_intent_without_a_command(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    commands, records = len(d.shell.commands), len(d.records())
    for intent in ("check_task", "cancel_task", "cleanup_task", "check_task"):
        response = d.ask(intent, task_id=TASK)
        assert (response["status"], response["state"]) == ("task_completed", "DONE")
        assert response["result"]["report_path"].endswith("_forensic_report.md")
        assert (response["user_denied"], response["shell_audit_ids"]) == (False, [])
    assert (len(d.shell.commands), len(d.records())) == (commands, records)


def test_cancelling_a_running_capture_removes_what_it_made(desk: MakeDesk) -> None:
    d = desk(("show-status", status("Running")))
    d.capture()
    response = d.ask("cancel_task", task_id=TASK, reason="found it elsewhere")
    assert (response["status"], response["state"], response["cleanup_status"]) == (
        "task_cancelled",
        "DONE",
        "completed",
    )
    assert "found it elsewhere" in response["error_detail"]
    assert [c.split()[1] for c in d.shell.matching("delete")] == ["network", "storage"]


def test_an_active_task_is_not_cleaned_up_under_its_feet(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    response = d.ask("cleanup_task", task_id=TASK)
    assert (response["status"], response["error"]) == ("error", "task_active")
    assert not d.shell.matching("delete")


def test_a_denial_that_an_interrupted_call_did_not_return_is_told_by_the_check_of_a_resumed_session(
    desk: MakeDesk,
) -> None:
    d = desk(("packet-capture create", refused("not in production")))
    first = d.capture()
    again = d.restarted()
    told = again.orchestrate({"intent": "check_task", "task_id": first["task_id"]})
    assert (told["status"], told["user_denied"]) == ("task_cancelled", True)
    assert told["denial_reason"] == "not in production"
    assert told["shell_audit_ids"] == first["shell_audit_ids"][-1:]


@pytest.mark.parametrize("place", ["link", "directory", "elsewhere", "another name"])
def test_only_a_regular_file_of_a_task_directly_among_the_captures_is_removed(desk: MakeDesk, place: str) -> None:
    d = desk()
    d.capture()
    d.ask("check_task", task_id=TASK)
    path = d.directory / "captures" / f"{TASK}.cap"
    if place in ("link", "directory"):
        path.unlink()
        path.symlink_to("/etc/passwd") if place == "link" else path.mkdir()
    else:
        other = "captures/mine.cap" if place == "another name" else f"audit/{TASK}.cap"
        d.orchestrator.registry_path.write_text(
            d.orchestrator.registry_path.read_text().replace(f"rm {path}", f"rm {d.directory / other}")
        )
        d.restarted()
    response = d.ask("cleanup_task", task_id=TASK)
    assert (response["cleanup_status"], len(response["not_cleaned"])) == ("partial", 1)
    assert any("remove it yourself" in line for line in d.said)
    assert not d.shell.matching("^rm ")
