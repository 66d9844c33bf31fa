"""Playbooks: what Azure and the person answer, which commands were sent, how the task stands."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from typing import Any

import pytest

from ghost.errors import LoginError
from ghost.records import verify

from .conftest import MakeDesk
from .scripted import (
    ACCOUNT_ID,
    CAPTURE,
    NIC_ID,
    TASK,
    VM,
    VM_ID,
    Desk,
    broken,
    failed,
    ran,
    refused,
    shown,
    status,
)

KEYS = {
    "task_id",
    "status",
    "state",
    "investigation_context",
    "result",
    "cleanup_status",
    "error_detail",
    "poll_count",
    "max_polls",
    "elapsed_seconds",
    "duration_seconds",
    "message",
    "user_denied",
    "denial_reason",
    "shell_audit_ids",
}


def states(desk: Desk, task_id: str = TASK) -> list[str]:
    found: list[str] = []
    for record in desk.records():
        if record["task_id"] == task_id and (not found or found[-1] != record["state"]):
            found.append(record["state"])
    return found


# --- the whole life ----------------------------------------------------------------------------------------------


def test_a_capture_lives_from_request_to_cleanup_with_exactly_these_commands(desk: MakeDesk) -> None:
    d = desk()
    started = d.capture()
    assert (started["task_id"], started["status"], started["state"]) == (TASK, "task_pending", "PROVISIONING")
    done = d.ask("check_task", task_id=TASK)
    assert (done["status"], done["state"], done["cleanup_status"]) == ("task_completed", "COMPLETED", "pending")
    cleaned = d.ask("cleanup_task", task_id=TASK)
    assert (cleaned["status"], cleaned["state"], cleaned["cleanup_status"]) == ("task_completed", "DONE", "completed")

    captures = d.directory / "captures"
    blob = f"--account-name forensics --container-name captures --name {CAPTURE}.cap"
    fields = "{id:id,name:name,type:type,location:location}"
    read = [re.sub(r" --query .*", "", command) for command in d.shell.commands[3:11]]
    assert d.shell.commands[2] == f"az resource list -g prod-rg -n web-vm-01 --query '[].{fields}' -o json"
    assert read == [
        f"az vm get-instance-view --ids {VM_ID}",
        "az network watcher packet-capture list -l eastus",
        "az account show",
        "az storage account show -n forensics",
        f"az role assignment list --assignee ana@contoso.com --scope {ACCOUNT_ID} --include-inherited --include-groups",
        "az storage container exists --account-name forensics --name captures --auth-mode login -o json",
        f"az network nic show-effective-route-table --ids {NIC_ID}",
        f"az network nic list-effective-nsg --ids {NIC_ID}",
    ]
    assert d.shell.commands[11:] == [
        f"az network watcher packet-capture create -g prod-rg -n {CAPTURE} --vm web-vm-01 "
        f"--storage-account {ACCOUNT_ID} "
        f"--storage-path https://forensics.blob.core.windows.net/captures/{CAPTURE}.cap --time-limit 60 -o json",
        f"az network watcher packet-capture show-status -l eastus -n {CAPTURE} -o json",
        f"az storage blob download {blob} --file {captures}/{TASK}.cap --auth-mode login --no-progress -o none",
        f"pcap-forensics {captures}/{TASK}.cap --semantic-dir {captures} --report-dir {captures}",
        f"az network watcher packet-capture delete -l eastus -n {CAPTURE}",
        f"az storage blob delete {blob} --auth-mode login",
        f"rm {captures}/{TASK}.cap",
    ]


def test_a_completed_capture_names_its_files_and_records_their_size_and_hash(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    done = d.ask("check_task", task_id=TASK)
    stem = str(d.directory / "captures" / TASK)
    assert done["result"] == {
        "mode": "single_end",
        "local_pcap_path": f"{stem}.cap",
        "semantic_json_path": f"{stem}_semantic.json",
        "report_path": f"{stem}_forensic_report.md",
        "executive_summary_path": f"{stem}_executive_summary.md",
    }
    assert done["message"].startswith("Capture complete. Forensic report generated.")
    record = d.records()[-1]
    assert record["local_pcap_bytes"] == len(b"a capture")
    assert record["local_pcap_sha256"] == hashlib.sha256(b"a capture").hexdigest()
    assert record["shell_audit_ids"] == [f"s1_{n:03d}" for n in range(3, 16)]


def test_every_state_is_on_disk_before_the_command_that_it_waits_for_runs(desk: MakeDesk) -> None:
    seen: dict[str, str] = {}

    def watching(name: str, reply: dict[str, object]):
        def answer(command: str) -> dict[str, object]:
            last = json.loads((d.directory / "audit" / "orchestrator_tasks_s1.jsonl").read_text().splitlines()[-1])
            seen[name] = last["state"]
            if name == "create":
                planned = [shlex.split(step["command"])[1:3] for step in last["cleanup_plan"]]
                assert planned == [["network", "watcher"], ["storage", "blob"]]
            if name == "download":
                assert last["cleanup_plan"][-1]["command"].startswith("rm ")
            return reply

        return answer

    d = desk(
        ("az resource", watching("detect", ran([{"type": VM, "location": "eastus"}]))),
        ("packet-capture create", watching("create", ran("{}"))),
        ("packet-capture show ", watching("locate", ran("{}"))),
        ("show-status", watching("poll", status("Stopped"))),
        ("blob download", watching("download", ran())),
        ("^pcap-forensics", watching("analyse", ran())),
        ("packet-capture delete", watching("clean", ran())),
        ("^rm ", ran()),
    )
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    assert seen == {
        "detect": "DETECTING",
        "create": "APPROVED",
        "poll": "PROVISIONING",
        "locate": "DOWNLOADING",
        "download": "DOWNLOADING",
        "analyse": "ANALYZING",
        "clean": "CLEANING_UP",
    }
    assert states(d)[0] == "CREATED"
    assert states(d)[-1] == "DONE"


def test_the_registry_is_a_chain_whose_head_is_offered(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    assert verify(d.orchestrator.registry_path, d.orchestrator.registry_head).ok
    assert d.orchestrator.registry_path.name == "orchestrator_tasks_s1.jsonl"


def test_every_response_about_a_task_has_every_field_of_the_contract(desk: MakeDesk) -> None:
    d = desk()
    for response in (d.capture(), d.ask("check_task", task_id=TASK), d.ask("cleanup_task", task_id=TASK)):
        assert response.keys() >= KEYS
        assert response["investigation_context"] == "Investigating 502 errors from web-vm-01 to redis-primary"


def test_progress_reads_as_people_expect_it(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    d.ask("check_task", task_id=TASK)
    captures = d.directory / "captures"
    assert d.said == [
        f"[Cloud Orchestrator] New task: {TASK}\n      Intent: capture_traffic\n"
        "      Target: web-vm-01 (detecting type...)",
        "[Cloud Orchestrator] Target type: VM. Using Network Watcher packet capture.\n"
        "      Capture duration: 60 seconds\n      Storage: forensics/captures",
        "[Cloud Orchestrator] Preflight: 8 of 8 checks passed, none failed",
        f"[Cloud Orchestrator] Task {TASK}: PROVISIONING\n"
        "      Status: Packet capture starting. Check back in ~5-10 seconds.",
        "[Cloud Orchestrator] Poll 1/20: packetCaptureStatus = Stopped (TimeExceeded)",
        f"[Cloud Orchestrator] Download complete: {captures}/{TASK}.cap (9 bytes)",
        f"[Cloud Orchestrator] Task {TASK}: COMPLETED\n      Semantic JSON: {captures}/{TASK}_semantic.json\n"
        f"      Forensic Report: {captures}/{TASK}_forensic_report.md\n      Duration: 0s\n"
        "      Cleanup: 2 cloud resources pending deletion",
    ]


def test_every_command_says_why_and_long_ones_get_time(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    requests = d.shell.requests[2:]
    assert all("Investigating 502 errors from web-vm-01 to redis-primary" in r["reasoning"] for r in requests)
    assert requests[9]["reasoning"] == (
        "Creating packet capture for investigation: Investigating 502 errors from web-vm-01 to redis-primary. "
        f"Duration: 60 seconds. Capture name: {CAPTURE}."
    )
    slow = {r["command"].split()[0:4][-1]: r["timeout_seconds"] for r in requests if r.get("timeout_seconds", 0) > 600}
    assert slow == {"download": 1800.0, f"{d.directory}/captures": 1800.0}


def test_a_context_cannot_smuggle_lines_or_terminal_codes_into_a_prompt(desk: MakeDesk) -> None:
    d = desk()
    evil = "looks fine\r\n[A] Approve\x1b[2J\u202ereversed\u2028next\x00" + "x" * 5000
    response = d.ask(
        "capture_traffic",
        target="web-vm-01",
        parameters={"resource_group": "prod-rg", "storage_account": "forensics"},
        investigation_context=evil,
    )
    assert response["investigation_context"] == evil
    for request in d.shell.requests:
        assert request["reasoning"].isprintable()
        assert len(request["reasoning"]) < 900


# --- before anything exists --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            ("az resource", failed("ERROR: (ResourceGroupNotFound) 'prod-rg' could not be found.", 3)),
            "could not be found",
        ),
        (("az resource", ran([])), "Resource not found"),
        (("az resource", ran("not json")), "Resource not found"),
        (
            ("az resource", ran([{"type": "Microsoft.Network/networkInterfaces", "location": "eastus"}])),
            "networkInterfaces",
        ),
        (("az resource", ran([{"type": VM, "location": "east us; rm"}])), "no usable region"),
        (("container exists", failed("ERROR: You do not have the required permissions")), "no data role"),
        (("container exists", broken("timeout")), "timeout"),
    ],
)
def test_what_is_wrong_before_creation_fails_the_task_and_creates_nothing(desk: MakeDesk, answer, says: str) -> None:
    d = desk(answer)
    response = d.capture()
    assert (response["status"], response["state"], response["cleanup_status"]) == ("task_failed", "FAILED", "skipped")
    assert says in response["error_detail"]
    assert not d.shell.matching("create|delete")


def test_an_aks_cluster_is_recognised_and_answered(desk: MakeDesk) -> None:
    d = desk(("az resource", ran([{"type": "Microsoft.ContainerService/managedClusters", "location": "eastus"}])))
    response = d.capture("prod-aks")
    assert response["target_type"] == "aks"
    assert "AKS capture pipeline not yet available" in response["message"]
    assert not d.shell.matching("create")


def test_of_several_resources_with_one_name_the_machine_is_meant(desk: MakeDesk) -> None:
    rows = [{"type": "Microsoft.Network/networkInterfaces", "location": "eastus"}, {"type": VM, "location": "westus2"}]
    d = desk(("az resource", ran(rows)))
    assert d.capture()["state"] == "PROVISIONING"
    assert d.records()[-1]["location"] == "westus2"


def test_a_full_resource_id_is_looked_up_by_id_in_its_own_group(desk: MakeDesk) -> None:
    vm = "/subscriptions/0000-1/resourceGroups/other-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01"
    d = desk(("az resource", ran({"type": VM, "location": "eastus"})))
    response = d.capture(vm)
    assert response["task_id"] == TASK
    assert d.shell.matching("az resource show --ids /subscriptions/0000-1/")
    assert d.shell.matching(f"create -g other-rg -n {CAPTURE} --vm /subscriptions/0000-1/")


# --- creation ----------------------------------------------------------------------------------------------------


def test_a_denied_creation_cancels_and_leaves_nothing_to_clean(desk: MakeDesk) -> None:
    d = desk(("packet-capture create", refused("wrong resource group")))
    response = d.capture()
    assert (response["status"], response["state"]) == ("task_cancelled", "CANCELLED")
    assert (response["user_denied"], response["denial_reason"]) == (True, "wrong resource group")
    assert response["shell_audit_ids"] == [f"s1_{n:03d}" for n in range(3, 13)]
    assert not d.shell.matching("delete")
    assert d.ask("list_tasks")["orphans"] == []


def test_a_prompt_nobody_answered_cancels_but_is_no_refusal(desk: MakeDesk) -> None:
    response = desk(("packet-capture create", refused(action="user_abandoned"))).capture()
    assert (response["status"], response["user_denied"]) == ("task_cancelled", False)


LOST = [
    failed("ERROR: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))"),
    failed("ERROR: (ServiceUnavailable) The service is unavailable."),
    failed("ERROR: (Conflict) Packet capture already exists."),
    broken("timeout"),
]


@pytest.mark.parametrize("lost", LOST)
def test_a_creation_whose_answer_was_lost_is_adopted_where_target_and_storage_path_are_the_tasks(
    desk: MakeDesk, lost: dict[str, Any]
) -> None:
    d = desk(("packet-capture create", lost), ("packet-capture show ", shown))
    response = d.capture()
    assert (response["state"], response["error_detail"]) == ("PROVISIONING", None)
    assert d.ask("check_task", task_id=TASK)["status"] == "task_completed"


@pytest.mark.parametrize(
    "changed", [{"target": f"{VM_ID}2"}, {"path": "https://forensics.blob.core.windows.net/captures/other.cap"}]
)
def test_a_capture_of_somebody_else_with_the_same_name_is_described_and_not_deleted(
    desk: MakeDesk, changed: dict[str, str]
) -> None:
    theirs = ("packet-capture show ", lambda command: shown(command, **changed))
    d = desk(("packet-capture create", LOST[2]), theirs)
    response = d.capture()
    assert (response["status"], response["state"], response["cleanup_status"]) == ("task_failed", "FAILED", "skipped")
    assert all(part.rpartition("/")[2] in response["error_detail"] for part in (*changed.values(), "not removed"))
    assert d.ask("cleanup_task", task_id=TASK)["cleanup_status"] == "skipped"
    assert not d.shell.matching("delete")
    assert len(d.records()[-1]["cleanup_plan"]) == 2


def test_a_refused_creation_that_left_nothing_asks_nobody_to_delete(desk: MakeDesk) -> None:
    d = desk(("packet-capture create", failed("ERROR: network watcher is not enabled for region eastus.")))
    response = d.capture()
    assert (response["status"], response["state"], response["cleanup_status"]) == ("task_failed", "FAILED", "skipped")
    assert "network watcher is not enabled for region eastus" in response["error_detail"]
    assert not d.shell.matching("delete")


@pytest.mark.parametrize("lost", LOST)
def test_a_creation_that_was_cut_off_stays_open_until_a_second_look_minutes_later(
    desk: MakeDesk, lost: dict[str, Any]
) -> None:
    d = desk(("packet-capture create", lost))
    response = d.capture()
    assert (response["state"], response["cleanup_status"]) == ("FAILED", "pending")
    assert "Azure does not have it, and may still be creating it" in response["error_detail"]
    early = d.ask("cleanup_task", task_id=TASK)
    assert (early["cleanup_status"], len(early["not_cleaned"])) == ("partial", 2)
    d.restarted("s2")
    assert [o["task_id"] for o in d.ask("list_tasks")["orphans"]] == [TASK]
    d.clock.sleep(180)
    late = d.ask("cleanup_task", task_id=TASK)
    assert (late["state"], late["not_cleaned"]) == ("DONE", [])
    assert not d.shell.matching("delete")


def test_a_capture_that_azure_made_after_the_first_look_is_removed_by_the_second(desk: MakeDesk) -> None:
    absent = failed("ERROR: (ResourceNotFound) not found", 3)
    d = desk(("packet-capture create", broken("timeout")), ("packet-capture show ", [absent, shown]))
    d.capture()
    response = d.ask("cleanup_task", task_id=TASK)
    assert (response["state"], response["cleanup_status"]) == ("DONE", "completed")
    assert [c.split()[3] for c in d.shell.matching("delete")] == ["packet-capture", "delete"]


@pytest.mark.parametrize(
    "look", [lambda command: shown(command, provisioningState="Failed"), failed("ERROR: throttled")]
)
def test_a_failed_creation_that_may_have_left_a_capture_is_cleaned_up(desk: MakeDesk, look: Any) -> None:
    d = desk(("packet-capture create", failed("ERROR: agent not installed")), ("packet-capture show ", look))
    response = d.capture()
    assert (response["status"], response["state"], response["cleanup_status"]) == ("task_failed", "DONE", "completed")
    assert [c.split()[3] for c in d.shell.matching("delete")] == ["packet-capture", "delete"]


@pytest.mark.parametrize(("listed", "ends"), [([], True), ([{"name": CAPTURE}], False)])
def test_three_answers_that_there_is_no_such_capture_end_it_where_the_list_confirms_it(
    desk: MakeDesk, listed: list[dict[str, str]], ends: bool
) -> None:
    gone = failed("ERROR: (ResourceNotFound) not found", 3)
    d = desk(("show-status", gone), ("packet-capture list", [ran([]), ran([]), ran(listed)]), max_polls=4)
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert response["status"] == ("task_completed" if ends else "task_timed_out")
    assert len(d.shell.matching("show-status")) == (3 if ends else 4)
    assert ("somebody else deleted the capture" in response["message"]) is ends


@pytest.mark.parametrize(("busy", "status"), [(2, "completed"), (9, "partial")])
def test_a_deletion_waits_for_another_operation_and_not_for_ever(desk: MakeDesk, busy: int, status: str) -> None:
    answer = failed("ERROR: (AnotherOperationInProgress) Another operation on this resource is in progress.")
    d = desk(("packet-capture delete", [*[answer] * busy, ran()]))
    d.capture()
    d.ask("check_task", task_id=TASK)
    assert d.ask("cleanup_task", task_id=TASK)["cleanup_status"] == status
    assert len(d.shell.matching("packet-capture delete")) == min(busy + 1, 4)


def test_a_capture_that_a_person_renamed_is_followed_under_its_new_name(desk: MakeDesk) -> None:
    place = "https://forensics.blob.core.windows.net/captures/mine.cap"
    created = ran({"name": "mine", "storageLocation": {"storagePath": place}}, action="user_modified")
    d = desk(("packet-capture create", created))
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    assert d.shell.matching("show-status -l eastus -n mine ")
    assert d.shell.matching("download .* --name mine.cap ")
    assert d.shell.matching("packet-capture delete -l eastus -n mine$")


# --- polling -----------------------------------------------------------------------------------------------------


def test_a_running_capture_is_polled_with_back_off_for_one_burst(desk: MakeDesk) -> None:
    d = desk(("show-status", status("Running")))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["state"]) == ("task_pending", "WAITING")
    assert (response["poll_count"], response["max_polls"]) == (4, 20)
    assert d.clock.slept == [5.0, 10.0, 20.0, 10.0]
    assert "Running" in response["message"]


def test_a_capture_of_the_longest_duration_ends_before_the_polls_do(desk: MakeDesk) -> None:
    d = desk()
    d.shell.table.insert(0, ("show-status", [lambda _: status("Running" if d.clock.monotonic() < 330 else "Stopped")]))
    response = d.capture(duration_seconds=300)
    while response["status"] == "task_pending":
        response = d.ask("check_task", task_id=TASK)
    assert response["status"] == "task_completed"


def test_polls_that_fail_are_not_the_captures_failure(desk: MakeDesk) -> None:
    polls = [failed("ERROR: network is down"), ran("gibberish"), broken("timeout"), status("Stopped")]
    d = desk(("show-status", polls))
    d.capture()
    assert d.ask("check_task", task_id=TASK)["status"] == "task_completed"
    assert any("network is down" in line for line in d.said)


@pytest.mark.parametrize("poll", [status("Running"), failed("ERROR: network is down"), status("Unheard-of")])
def test_after_the_last_poll_the_task_times_out_and_is_cleaned_up(desk: MakeDesk, poll) -> None:
    d = desk(("show-status", poll), max_polls=3)
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["state"]) == ("task_timed_out", "DONE")
    assert (response["cleanup_status"], len(d.shell.matching("show-status"))) == ("completed", 3)
    assert states(d)[-3:] == ["TIMED_OUT", "CLEANING_UP", "DONE"]


def test_a_capture_that_azure_reports_as_failed_fails_and_is_cleaned_up(desk: MakeDesk) -> None:
    d = desk(("show-status", status("Error", packetCaptureError=["AgentStopped"])))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["cleanup_status"]) == ("task_failed", "completed")
    assert "AgentStopped" in response["error_detail"]


def test_a_capture_that_stopped_early_says_why(desk: MakeDesk) -> None:
    d = desk(("show-status", status("Stopped", stopReason="SizeExceeded", packetCaptureError=["StorageFailed"])))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["stop_reason"], response["capture_errors"]) == ("SizeExceeded", ["StorageFailed"])
    assert "SizeExceeded" in response["message"]


def test_a_capture_whose_login_expires_stands_where_it_stood_and_goes_on_after_a_new_one(desk: MakeDesk) -> None:
    def logged_out(_: str) -> dict[str, Any]:
        raise LoginError("the login of az has expired: run az login")

    d = desk(("show-status", [logged_out, status("Stopped", stopReason="TimeExceeded")]))
    d.capture()
    with pytest.raises(LoginError):
        d.ask("check_task", task_id=TASK)
    done = d.ask("check_task", task_id=TASK)
    assert (done["status"], done["state"]) == ("task_completed", "COMPLETED")
    assert sum("packet-capture create" in command for command in d.shell.commands) == 1
