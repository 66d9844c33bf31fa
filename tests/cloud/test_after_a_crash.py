"""A process may be killed at any command: what exists in Azure is still found, finished or removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripted import CAPTURE, TASK, Desk
from .small_azure import KILLED_AFTER, KILLED_BEFORE, LIVES, Fault, Killed, SmallAzure

KILLS = [
    (life, at, fault)
    for life, commands in LIVES.items()
    for at in range(1, len(commands) + 1)
    for fault in (KILLED_BEFORE, KILLED_AFTER)
]


def live(desk: Desk) -> None:
    """A whole capture, as a brain asks for it, from wherever it stands."""
    known = {task["task_id"] for task in desk.ask("list_tasks")["tasks"]}
    if TASK not in known:
        assert isinstance(desk.shell, SmallAzure)
        desk.capture(storage_account="*" if desk.shell.accounts else "forensics")
    for _ in range(5):
        if desk.ask("check_task", task_id=TASK)["status"] != "task_pending":
            break
    desk.ask("cleanup_task", task_id=TASK)


@pytest.fixture
def azure(tmp_path: Path) -> SmallAzure:
    return SmallAzure(tmp_path)


@pytest.mark.parametrize("life", LIVES)
def test_the_count_of_commands_that_the_kills_cover_is_right(tmp_path: Path, life: str) -> None:
    azure = SmallAzure(tmp_path, life)
    live(Desk(tmp_path, azure))
    assert (azure.since_start, azure.left) == (len(LIVES[life]), set())
    commands = [r["command"] for r in azure.requests if not r["reasoning"].startswith("Left-overs:")]
    assert all(part in command for part, command in zip(LIVES[life], commands, strict=True))


@pytest.mark.parametrize(("life", "at", "kill"), KILLS)
def test_a_killed_capture_goes_on_in_the_same_session_to_its_end(
    tmp_path: Path, life: str, at: int, kill: Fault
) -> None:
    azure = SmallAzure(tmp_path, life)
    desk = Desk(tmp_path, azure)
    azure.fault_at = (at, kill)
    with pytest.raises(Killed):
        live(desk)
    azure.fault_at = None
    desk.restarted()
    live(desk)
    response = desk.ask("check_task", task_id=TASK)
    assert (response["status"], response["state"]) == ("task_completed", "DONE")
    assert azure.left == set()
    assert len([c for c in azure.commands if "packet-capture create " in c]) <= 1


@pytest.mark.parametrize(("life", "at", "kill"), KILLS)
def test_a_killed_capture_is_an_orphan_of_the_next_session_that_cleanup_removes(
    tmp_path: Path, life: str, at: int, kill: Fault
) -> None:
    azure = SmallAzure(tmp_path, life)
    desk = Desk(tmp_path, azure)
    azure.fault_at = (at, kill)
    with pytest.raises(Killed):
        live(desk)
    azure.fault_at = None
    commands = len(azure.commands)
    desk.restarted("s2")
    assert not [c for c in azure.commands[commands:] if "delete" in c or c.startswith("rm")]
    orphans = desk.ask("list_tasks")["orphans"]
    assert [(o["kind"], o["task_id"], o["session_id"]) for o in orphans] == [
        ("abandoned_task" if at <= LIVES[life].index("pcap-forensics") + 1 else "needs_cleanup", TASK, "s1")
    ]
    desk.ask("cleanup_task", task_id=TASK)
    desk.clock.sleep(180)
    response = desk.ask("cleanup_task", task_id=TASK)
    assert (response["state"], azure.left) == ("DONE", set())
    assert desk.ask("list_tasks")["orphans"] == []
    assert desk.restarted("s3").orchestrate({"intent": "list_tasks"})["orphans"] == []


def test_a_lost_registry_leaves_a_capture_that_azure_still_names(tmp_path: Path, azure: SmallAzure) -> None:
    desk = Desk(tmp_path, azure)
    desk.capture()
    desk.orchestrator.registry_path.unlink()
    desk.restarted("s2")
    (orphan,) = desk.ask("list_tasks")["orphans"]
    assert (orphan["kind"], orphan["resource"], orphan["location"]) == ("untracked_azure", CAPTURE, "eastus")
    assert orphan["command"] == f"az network watcher packet-capture delete -l eastus -n {CAPTURE}"
    assert azure.left
