"""What earlier sessions left is found in three layers and touched in none."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ghost.cloud import orphans
from ghost.cloud.task import CaptureTask, CleanupStatus, CleanupStep, Outcome, State

from .conftest import MakeDesk
from .scripted import CAPTURE, GROUP_ID, START, SUBSCRIPTION, TASK, Desk, failed, ran, refused

FIELDS = {
    "kind",
    "task_id",
    "session_id",
    "state",
    "cleanup_status",
    "resource",
    "location",
    "path",
    "age_days",
    "owner",
    "running",
    "command",
}
STEP = CleanupStep(command="rm /captures/x.cap")


def a_task(state: State, session: str = "old", **fields: Any) -> CaptureTask:
    return CaptureTask(task_id="ghost_a", session_id=session, state=state).having(**fields)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (a_task(State.WAITING), "abandoned_task"),
        (a_task(State.CREATED), "abandoned_task"),
        (a_task(State.WAITING, "now"), None),
        (a_task(State.COMPLETED, outcome=Outcome.COMPLETED, cleanup_status=CleanupStatus.PENDING), "needs_cleanup"),
        (a_task(State.COMPLETED, cleanup_status=CleanupStatus.PENDING), "needs_cleanup"),
        (a_task(State.FAILED, outcome=Outcome.FAILED, cleanup_plan=(STEP,)), "needs_cleanup"),
        (a_task(State.FAILED, outcome=Outcome.FAILED, cleanup_status=CleanupStatus.SKIPPED), None),
        (a_task(State.TIMED_OUT, "now", outcome=Outcome.TIMED_OUT), "needs_cleanup"),
        (a_task(State.CLEANING_UP, outcome=Outcome.FAILED, cleanup_status=CleanupStatus.PENDING), "needs_cleanup"),
        (a_task(State.CLEANING_UP, outcome=Outcome.FAILED, cleanup_status=CleanupStatus.PARTIAL), "partially_cleaned"),
        (a_task(State.ABANDONED, cleanup_status=CleanupStatus.PARTIAL), "partially_cleaned"),
        (a_task(State.ABANDONED, outcome=Outcome.CANCELLED, cleanup_plan=(STEP,)), "abandoned_task"),
        (a_task(State.CANCELLED, outcome=Outcome.CANCELLED), None),
        (a_task(State.DONE, outcome=Outcome.COMPLETED, cleanup_status=CleanupStatus.COMPLETED), None),
    ],
)
def test_a_task_is_an_orphan_of_one_kind_or_none(task: CaptureTask, kind: str | None) -> None:
    found = orphans.in_registry([task], "now", START)
    assert [orphan.kind for orphan in found] == ([kind] if kind else [])


def test_every_region_with_a_watcher_is_searched(desk: MakeDesk) -> None:
    watchers = [{"name": "a", "location": "eastus"}, {"name": "b", "location": "westus2"}]
    held = [[{"name": "ghost_x"}, {"name": "other"}], [{"name": "ghost_y"}]]
    d = desk(("az network watcher list", ran(watchers)), ("packet-capture list", [ran(h) for h in held]))
    response = d.ask("list_tasks")
    found = [(o["kind"], o["resource"], o["location"]) for o in response["orphans"]]
    assert found == [("untracked_azure", "ghost_x", "eastus"), ("untracked_azure", "ghost_y", "westus2")]
    assert response["orphans"][0]["command"] == "az network watcher packet-capture delete -l eastus -n ghost_x"
    assert all(orphan.keys() == FIELDS for orphan in response["orphans"])
    assert response["shell_audit_ids"] == ["s1_001", "s1_002", "s1_003"]


def test_every_subscription_and_container_of_a_task_on_record_is_searched_and_each_thing_is_named_once(
    desk: MakeDesk,
) -> None:
    """az has moved to another subscription, and the first capture and its blob were left without a plan."""
    lost = "ghost_db-vm-01_20250115T093000_ab12"
    other = f"{GROUP_ID}/x".replace("3f6c", "9999").removesuffix("/providers/x")
    d = desk(
        ("watcher list", ran([{"id": f"{other}/providers/Microsoft.Network/n/w", "location": "eastus"}])),
        ("packet-capture list .*starts_with", ran([{"name": lost, "seconds": 60}, {"name": CAPTURE}])),
        ("blob list", ran([{"name": f"{lost}.cap"}, {"name": f"{CAPTURE}.cap"}])),
    )
    d.capture()
    commands = len(d.shell.commands)
    d.restarted("s2")
    scanned = d.shell.commands[commands:]
    own = SUBSCRIPTION.rpartition("/")[2]
    assert [f"--subscription {own}" in command for command in scanned] == [False, False, True, True, False]
    assert "--account-name forensics --container-name captures --prefix ghost_ --auth-mode login" in scanned[-1]
    found = {o["resource"]: o for o in d.ask("list_tasks")["orphans"]}
    assert set(found) == {lost, CAPTURE, f"forensics/captures/{lost}.cap"}
    assert (found[lost]["owner"], found[lost]["age_days"]) == ("unknown, of db-vm-01", 0.2)
    assert (found[CAPTURE]["owner"], found[CAPTURE]["task_id"]) == ("session s1", TASK)
    assert [found[name]["running"] for name in found] == [name == CAPTURE for name in found]


def test_the_places_of_another_networks_tasks_are_not_searched(desk: MakeDesk) -> None:
    """A lab's account may be the name of somebody's in Azure."""
    d = desk(network="lab wire-loss (SIMULATED)")
    d.capture()
    for network, searched in (("Azure", False), ("lab wire-loss (SIMULATED)", True)):
        d.options["network"], commands = network, len(d.shell.commands)
        d.restarted("s2")
        assert any("--account-name forensics" in each for each in d.shell.commands[commands:]) is searched


@pytest.mark.parametrize(("minutes", "running"), [(0, True), (10, True), (12, False)])
def test_a_capture_without_a_record_runs_until_its_time_limit(desk: MakeDesk, minutes: int, running: bool) -> None:
    d = desk(("packet-capture list", ran([{"name": CAPTURE, "seconds": 60}])))
    d.clock.sleep(60 * minutes)
    d.restarted()
    assert [o["running"] for o in d.ask("list_tasks")["orphans"]] == [running]


def test_looking_for_orphans_runs_once_and_only_reads(desk: MakeDesk) -> None:
    d = desk(("packet-capture list", ran([{"name": "ghost_x"}])))
    for _ in range(3):
        d.ask("list_tasks")
    assert [c.split()[3] for c in d.shell.commands] == ["list", "packet-capture"]
    assert not d.shell.matching("delete|^rm ")


@pytest.mark.parametrize(
    "answer",
    [
        ("az network watcher list", failed("ERROR: Please run 'az login' to setup account.")),
        ("az network watcher list", failed("az: not found", 127)),
        ("az network watcher list", refused()),
        ("az network watcher list", ran("nonsense")),
        ("packet-capture list", failed("ERROR: (AuthorizationFailed)")),
        ("packet-capture list", ran([{"name": "a"}, "[truncated: showing 4 of 9 items]"])),
    ],
)
def test_a_search_that_could_not_be_made_is_said_and_stops_nothing(desk: MakeDesk, answer: Any) -> None:
    d = desk(answer)
    response = d.ask("list_tasks")
    assert (response["status"], response["orphans"], len(response["warnings"])) == ("completed", [], 1)
    assert d.said == [f"[Cloud Orchestrator] Warning: {response['warnings'][0]}"]


def test_of_a_region_whose_list_was_cut_that_is_said_and_not_its_last_words(desk: MakeDesk) -> None:
    d = desk(("packet-capture list", ran([{"name": "a"}, "[truncated: showing 4 of 9 items]"])))
    (warning,) = d.ask("list_tasks")["warnings"]
    assert warning == "region eastus was not searched for captures that earlier sessions left: the list was truncated"


def test_a_hostile_name_is_shown_but_put_into_no_command(desk: MakeDesk) -> None:
    d = desk(("packet-capture list", ran([{"name": "ghost_x; rm -rf ~"}, {"name": "ghost_\u001b[2J"}, {"name": 5}])))
    assert [orphan["command"] for orphan in d.ask("list_tasks")["orphans"]] == [None, None]


def test_old_captures_and_reports_are_stale_and_nothing_else_is(desk: MakeDesk) -> None:
    d = desk()
    captures = d.directory / "captures"
    captures.mkdir()
    ours = ["ghost_a.cap", "ghost_a.pcap", "ghost_a_semantic.json", "ghost_a_forensic_report.md", "ghost_a_report.html"]
    ours += ["ghost_a_executive_summary.md", "ghost_a_vs_ghost_b_comparison.md", "ghost_a_vs_ghost_b_comparison.html"]
    for name in [*ours, "mine.cap", "ghost_notes.txt", "ghosts.cap"]:
        _aged(captures / name, days=8)
    _aged(captures / "ghost_young.cap", days=6)
    (captures / "ghost_directory.cap").mkdir()
    (captures / "ghost_link.cap").symlink_to("/etc/passwd")
    found = d.ask("list_tasks")["orphans"]
    assert sorted(Path(o["path"]).name for o in found) == sorted(ours)
    assert {(o["kind"], o["age_days"]) for o in found} == {("stale_local_file", 8.0)}
    assert found[0]["command"] == f"rm {found[0]['path']}"
    assert len(list(captures.iterdir())) == len(ours) + 6


def _aged(path: Path, days: float) -> None:
    path.write_text("x")
    moment = (START - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))


def test_a_task_of_an_earlier_session_can_be_checked_cancelled_and_cleaned(desk: MakeDesk) -> None:
    for intent, status, state in [
        ("check_task", "task_completed", "COMPLETED"),
        ("cancel_task", "task_cancelled", "DONE"),
        ("cleanup_task", "task_cancelled", "DONE"),
    ]:
        d: Desk = desk()
        task_id = d.capture()["task_id"]
        d.restarted("s2")
        response = d.ask(intent, task_id=task_id)
        assert (response["status"], response["state"]) == (status, state)
        last = json.loads(d.orchestrator.registry_path.read_text().splitlines()[-1])
        assert (last["session_id"], d.orchestrator.registry_path.name) == ("s1", "orchestrator_tasks_s2.jsonl")
        for path in (d.directory / "audit").iterdir():
            path.unlink()


def test_only_this_sessions_tasks_are_listed(desk: MakeDesk) -> None:
    d = desk()
    d.capture()
    assert [task["task_id"] for task in d.ask("list_tasks")["tasks"]] == [TASK]
    d.restarted("s2")
    response = d.ask("list_tasks")
    assert response["tasks"] == []
    assert [(o["kind"], o["state"]) for o in response["orphans"]] == [("abandoned_task", "PROVISIONING")]


def test_a_partial_cleanup_is_offered_again_at_the_next_start(desk: MakeDesk) -> None:
    d = desk(("packet-capture delete", [refused(), ran()]))
    d.capture()
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    d.restarted("s2")
    assert [o["kind"] for o in d.ask("list_tasks")["orphans"]] == ["partially_cleaned"]
    assert d.ask("cleanup_task", task_id=TASK)["cleanup_status"] == "completed"
    assert d.ask("list_tasks")["orphans"] == []
