"""Something goes wrong at every command of a capture's life: the task ends in a legal state, and what is left is known.

Killed processes are in `test_after_a_crash.py`, and real ones in `test_killed_processes.py`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ghost.cloud.task import State
from ghost.cloud.transitions import LEGAL
from ghost.errors import LoginError
from ghost.records import verify

from .scripted import TASK, Desk, task_of
from .small_azure import COMMANDS_OF_A_LIFE, FAULTS, LIVES, Fault, SmallAzure

ENDED = {"task_completed", "task_failed", "task_cancelled", "task_timed_out"}
POINTS = [
    *[("named", at, fault) for at in range(1, len(LIVES["named"]) + 1) for fault in FAULTS],
    *[("chosen", at, fault) for at in range(4, LIVES["chosen"].index("show-status") + 1) for fault in FAULTS],
]
"""A life, which of its commands, and what befalls it; before and after the choice both lives are the same."""
LASTING = [
    (life, part, fault)
    for life, parts in (
        ("named", COMMANDS_OF_A_LIFE),
        ("chosen", ("storage account list", "role assignment list", "container create")),
    )
    for part in parts
    for fault in FAULTS
    if not fault.takes_effect and fault.name != "login expired"
]
AT_ONCE = {
    (State.APPROVED, State.WAITING),
    (State.APPROVED, State.DOWNLOADING),
    (State.PROVISIONING, State.DOWNLOADING),
    (State.PROVISIONING, State.TIMED_OUT),
    (State.FAILED, State.DONE),
}
"""One event takes these through the legal states between: the capture ended by the first poll, nothing to clean."""
ENDS = ("ghost_web-vm-01_20250115T143200", "ghost_db-vm-01_20250115T143200")


def named(point: tuple[str, Any, Fault]) -> str:
    life, at, fault = point
    return f"{life}: {LIVES[life][at - 1] if isinstance(at, int) else at}: {fault}"


def live(desk: Desk, *tasks: str) -> dict[str, dict[str, Any]]:
    """A whole life as a brain would have it that asks until each task has ended, and then for cleanup."""
    assert isinstance(desk.shell, SmallAzure)
    with suppress(LoginError):
        account = "*" if desk.shell.accounts else "forensics"
        desk.capture("web-vm-01" if len(tasks) == 1 else "web-vm-01 to db-vm-01", storage_account=account)
    for _ in range(12):
        answers = {task: asked_again_after_a_login(desk, "check_task", task) for task in tasks}
        if all(answer["status"] in ENDED for answer in answers.values()):
            break
    for task in tasks:
        asked_again_after_a_login(desk, "cleanup_task", task)
    return {task: asked_again_after_a_login(desk, "check_task", task) for task in tasks}


def asked_again_after_a_login(desk: Desk, intent: str, task: str) -> dict[str, Any]:
    try:
        return desk.ask(intent, task_id=task)
    except LoginError:
        return desk.ask(intent, task_id=task)


def assert_sound(desk: Desk, azure: SmallAzure) -> None:
    """Every state followed one that it may follow; while a thing exists, a plan that was not carried out names it."""
    path = desk.orchestrator.registry_path
    assert verify(path, desk.orchestrator.registry_head).ok
    states: dict[str, list[State]] = {}
    last: dict[str, dict[str, Any]] = {}
    for record in desk.records():
        states.setdefault(record["task_id"], []).append(State(record["state"]))
        last[record["task_id"]] = record
    for passed in states.values():
        wrong = [(a, b) for a, b in pairwise(passed) if a is not b and b not in LEGAL[a] and (a, b) not in AT_ONCE]
        assert wrong == []
    steps = [step for record in last.values() for step in record["cleanup_plan"]]
    planned = [step["command"] for step in steps if not step["executed"] and not step["not_needed"]]
    for thing in azure.left:
        assert any(thing in command for command in planned), f"{thing} is left and no plan names it"


def assert_a_restart_finds_and_removes_what_is_left(desk: Desk, azure: SmallAzure) -> None:
    left = set(azure.left)
    deletions = len(azure.matching("delete|^rm "))
    desk.restarted("s2")
    orphans = desk.ask("list_tasks")["orphans"]
    assert len(azure.matching("delete|^rm ")) == deletions, "nothing is deleted unasked"
    named_tasks = {orphan["task_id"] for orphan in orphans}
    assert set(map(task_of, left)) <= named_tasks
    for task_id in filter(None, named_tasks):
        desk.ask("cleanup_task", task_id=task_id)
        desk.clock.sleep(180)  # a creation that was not answered is looked for twice
        assert desk.ask("cleanup_task", task_id=task_id)["cleanup_status"] in {"completed", "skipped"}
    assert azure.left == set()
    assert desk.ask("list_tasks")["orphans"] == []


@pytest.mark.parametrize(("life", "at", "fault"), POINTS, ids=map(named, POINTS))
def test_a_fault_at_one_command_leaves_nothing_unknown(tmp_path: Path, life: str, at: int, fault: Fault) -> None:
    azure = SmallAzure(tmp_path, life)
    desk = Desk(tmp_path, azure)
    azure.fault_at = (at, fault)
    (answer,) = live(desk, TASK).values()
    assert azure.since_start >= at, "the fault was not reached"
    assert answer["status"] in ENDED
    assert_sound(desk, azure)
    assert_a_restart_finds_and_removes_what_is_left(desk, azure)


@pytest.mark.parametrize(("life", "part", "fault"), LASTING, ids=map(named, LASTING))
def test_a_fault_that_lasts_leaves_nothing_unknown(tmp_path: Path, life: str, part: str, fault: Fault) -> None:
    azure = SmallAzure(tmp_path, life)
    desk = Desk(tmp_path, azure, options={"max_polls": 4})
    azure.faulty_pattern = (part, fault)
    (answer,) = live(desk, TASK).values()
    assert answer["status"] in ENDED | ({"task_pending", "error"} if fault.name == "the shell broke" else set())
    assert_sound(desk, azure)
    azure.faulty_pattern = None
    assert_a_restart_finds_and_removes_what_is_left(desk, azure)


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.takes_effect or f.name == "denied"], ids=str)
@pytest.mark.parametrize("at", range(17, 30))
def test_a_fault_in_the_life_of_a_pair_leaves_nothing_unknown(tmp_path: Path, at: int, fault: Fault) -> None:
    """From the first creation on, behind both ends' checks."""
    azure = SmallAzure(tmp_path)
    desk = Desk(tmp_path, azure)
    azure.fault_at = (at, fault)
    answers = live(desk, *ENDS)
    assert azure.since_start >= at, "the fault was not reached"
    assert {answer["status"] for answer in answers.values()} <= ENDED
    assert_sound(desk, azure)
    assert_a_restart_finds_and_removes_what_is_left(desk, azure)


def test_the_records_of_a_life_without_a_fault_are_sound(tmp_path: Path) -> None:
    azure = SmallAzure(tmp_path)
    desk = Desk(tmp_path, azure)
    live(desk, *ENDS)
    assert_sound(desk, azure)
    assert azure.left == set()
    assert json.loads(desk.orchestrator.registry_path.read_text().splitlines()[-1])["state"] == "DONE"
