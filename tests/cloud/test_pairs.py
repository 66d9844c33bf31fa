"""Both ends of a path: two tasks, one comparison; or, where one end is lost, the other alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from .conftest import MakeDesk
from .scripted import ENDING, VM, Desk, failed, ran, refused, status

SOURCE = "ghost_web-vm-01_20250115T143200"
DESTINATION = "ghost_db-vm-01_20250115T143200"


def start_pair(desk: Desk) -> dict[str, Any]:
    return desk.capture("web-vm-01 to db-vm-01")


def test_a_pair_is_two_linked_tasks_each_with_its_own_approval(desk: MakeDesk) -> None:
    d = desk()
    response = start_pair(d)
    assert (response["task_id"], response["paired_task"]["task_id"]) == (SOURCE, DESTINATION)
    assert (response["state"], response["paired_task"]["state"]) == ("PROVISIONING", "PROVISIONING")
    assert len(d.shell.matching("packet-capture create")) == 2


def test_a_plan_that_nobody_answered_is_put_again_for_both_ends_at_once(desk: MakeDesk) -> None:
    plans: list[Sequence[str]] = []

    def approve_plan(lines: Sequence[str], _: str) -> None:
        plans.append(lines)
        if len(plans) == 1:
            raise KeyboardInterrupt  # the person stops the investigation

    nothing_yet = [failed("ERROR: (ResourceNotFound) x was not found.", 3)] * 2
    d = desk(("show-status", [*nothing_yet, status("Stopped")]), approve_plan=approve_plan)
    with pytest.raises(KeyboardInterrupt):
        start_pair(d)
    d.restarted()
    d.ask("check_task", task_id=SOURCE)
    assert d.ask("check_task", task_id=DESTINATION)["status"] == "task_completed"
    assert plans == [plans[0]] * 2
    creations = d.shell.matching("packet-capture create")
    assert [line for line in plans[0] if "create" in line] == creations


def test_the_first_end_waits_and_the_second_compares_for_both(desk: MakeDesk) -> None:
    d = desk()
    start_pair(d)
    first = d.ask("check_task", task_id=SOURCE)
    assert (first["status"], first["state"], first["result"]) == ("task_pending", "COMPLETED", None)
    assert first["message"] == (
        "Source capture complete. Waiting for destination capture (db-vm-01) to finish before comparison analysis."
    )
    second = d.ask("check_task", task_id=DESTINATION)
    assert second["status"] == "task_completed"
    (analysis,) = d.shell.matching("^pcap-forensics")
    captures = d.directory / "captures"
    assert analysis == (
        f"pcap-forensics {captures}/{SOURCE}.cap --compare {captures}/{DESTINATION}.cap --ends "
        f"--semantic-dir {captures} --report-dir {captures}"
    )
    results = [d.ask("check_task", task_id=task_id)["result"] for task_id in (SOURCE, DESTINATION)]
    assert {r["mode"] for r in results} == {"comparison"}
    assert {r["report_path"] for r in results} == {f"{captures}/{SOURCE}_vs_{DESTINATION}_comparison.md"}
    assert len({r["semantic_json_path"] for r in results}) == 2
    assert len(d.shell.matching("^pcap-forensics")) == 1


def test_an_end_whose_partner_failed_is_analysed_alone_and_says_so(desk: MakeDesk) -> None:
    d = desk((f"show-status .*{DESTINATION}", status("Error")))
    start_pair(d)
    d.ask("check_task", task_id=DESTINATION)
    response = d.ask("check_task", task_id=SOURCE)
    assert (response["status"], response["result"]["mode"]) == ("task_completed", "single_end_fallback")
    assert response["result"]["report_path"].endswith(f"{SOURCE}_forensic_report.md")
    assert response["paired_task"]["status"] == "task_failed"
    assert response["message"].startswith("Destination capture failed. Single-end analysis completed on source")


def test_a_denied_end_leaves_the_other_to_go_on(desk: MakeDesk) -> None:
    d = desk((f"create .*{SOURCE}_{ENDING} ", refused("not that one")))
    response = start_pair(d)
    assert (response["task_id"], response["status"], response["user_denied"]) == (DESTINATION, "task_pending", True)
    assert response["paired_task"]["status"] == "task_cancelled"
    assert d.ask("check_task", task_id=DESTINATION)["result"]["mode"] == "single_end_fallback"


def test_an_end_that_is_no_machine_leaves_the_other_to_go_on(desk: MakeDesk) -> None:
    aks = ran([{"type": "Microsoft.ContainerService/managedClusters", "location": "eastus"}])
    d = desk(("az resource .*db-vm-01", aks))
    response = start_pair(d)
    assert (response["task_id"], response["paired_task"]["status"]) == (SOURCE, "task_failed")
    assert d.ask("check_task", task_id=SOURCE)["result"]["mode"] == "single_end_fallback"


def test_a_waiting_end_can_be_cancelled_and_its_capture_is_removed(desk: MakeDesk) -> None:
    d = desk((f"show-status .*{DESTINATION}", status("Running")))
    start_pair(d)
    d.ask("check_task", task_id=SOURCE)
    assert d.ask("cleanup_task", task_id=SOURCE)["error"] == "task_active"
    response = d.ask("cancel_task", task_id=SOURCE)
    assert (response["status"], response["cleanup_status"]) == ("task_cancelled", "completed")
    assert list((d.directory / "captures").glob("*.cap")) == []


def test_a_comparison_that_failed_leaves_the_other_end_analysed_alone(desk: MakeDesk) -> None:
    d = desk(("^pcap-forensics .*--compare", failed("the second file is no capture")))
    start_pair(d)
    d.ask("check_task", task_id=SOURCE)
    assert d.ask("check_task", task_id=DESTINATION)["status"] == "task_failed"
    assert d.ask("check_task", task_id=SOURCE)["result"]["mode"] == "single_end_fallback"


def test_each_end_cleans_up_only_its_own(desk: MakeDesk) -> None:
    d = desk()
    start_pair(d)
    d.ask("check_task", task_id=SOURCE)
    d.ask("check_task", task_id=DESTINATION)
    d.ask("cleanup_task", task_id=SOURCE)
    removed = d.shell.matching("delete|^rm")
    assert len(removed) == 3
    assert all(SOURCE in command and DESTINATION not in command for command in removed)


def test_two_ends_of_one_name_in_two_groups_are_two_tasks(desk: MakeDesk) -> None:
    ids = [f"/subscriptions/0/resourceGroups/{g}/providers/Microsoft.Compute/virtualMachines/web" for g in "ab"]
    d = desk(("az resource", ran({"type": VM, "location": "eastus"})))
    response = d.capture(" to ".join(ids))
    assert response["paired_task"]["task_id"] == f"{response['task_id']}_2"
    assert [re.findall(r"-g (\S+)", c)[0] for c in d.shell.matching(" create ")] == ["a", "b"]
