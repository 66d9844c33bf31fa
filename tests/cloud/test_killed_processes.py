"""Real processes are killed with SIGKILL before and after each command of a capture's life, on the real shell.

One life goes on through all the kills: each process takes up what the one before left, gets one command further, and is
killed. After each kill the registry is read, and another session looks for what is left. After every other one it
removes all of it, too; then the workspace is put back as the kill left it, and the life goes on.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ghost.cloud import CloudOrchestrator
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.task import State
from ghost.cloud.transitions import LEGAL
from ghost.lab import load_scenario, reopen, start
from tests.exhaustive import sample

from .capture_process import orchestrator
from .scripted import task_of
from .test_faults import AT_ONCE

CHECKS = (
    *("az resource list", "get-instance-view", "packet-capture list", "storage account show", "container exists"),
    *("show-effective-route-table", "list-effective-nsg"),
)
WORK = ("packet-capture create", "show-status", "blob download", "pcap-forensics")
CLEANUP = ("packet-capture delete", "blob delete", "rm ")
SINGLE = [(part, 1, moment) for part in (*CHECKS, *WORK, *CLEANUP) for moment in ("before", "after")]
# Both ends are made ready by one process, so a kill in the checks of the second begins with those of the first anew.
PAIR = [
    ("list-effective-nsg", 2, "after"),
    *[
        (part, 1, moment)
        for part in (*WORK[:3], *WORK[:3], WORK[3], *CLEANUP, *CLEANUP)
        for moment in ("before", "after")
    ],
]
KILLS = 8
"""Of each list, in `make test`."""
PAIR_OF = {"web-vm-01": SINGLE, "web-vm-01 to redis-cache-01": PAIR}


class CaptureProcesses:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cloud.capture_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def run(self, **order: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture
def processes() -> Iterator[CaptureProcesses]:
    running = CaptureProcesses()
    yield running
    running.end()


def held(workspace: Path) -> set[str]:
    """The captures and blobs that the lab's Azure holds, and the capture files on the disk, each by its name."""
    state = json.loads((workspace / "lab" / "state.json").read_text(encoding="utf-8"))
    captures = {capture["name"] for capture in state.get("captures", [])}
    blobs = {blob["name"] for blob in state.get("blobs", [])}
    return captures | blobs | {path.name for path in (workspace / "captures").glob("*.cap")}


def assert_legal(workspace: Path) -> None:
    """The records of each task follow the table, its last one has a plan for all that may exist, no line is broken."""
    warnings: list[str] = []
    registry = TaskRegistry(workspace / "audit", "reader", warnings.append)
    assert warnings == []
    states: dict[str, list[State]] = {}
    for line in (workspace / "audit" / "orchestrator_tasks_s1.jsonl").read_text().splitlines():
        record = json.loads(line)
        states.setdefault(record["task_id"], []).append(State(record["state"]))
    for passed in states.values():
        assert [p for p in pairwise(passed) if p[0] is not p[1] and p[1] not in LEGAL[p[0]] and p not in AT_ONCE] == []
    planned = [step.command for task in registry.all() for step in task.remaining]
    for thing in held(workspace):
        assert any(thing in command for command in planned), f"{thing} is left and no plan names it"


def assert_another_session_finds_all(desk: CloudOrchestrator, workspace: Path, known: set[str]) -> set[str]:
    before = held(workspace)
    found = {orphan["task_id"] for orphan in desk.orchestrate({"intent": "list_tasks"})["orphans"]}
    assert held(workspace) >= before, "nothing is deleted unasked"
    assert set(map(task_of, before)) <= found
    for task in known - found:
        assert desk.orchestrate({"intent": "check_task", "task_id": task})["status"] != "error"
    return found


def assert_it_removes_all(desk: CloudOrchestrator, workspace: Path, found: set[str]) -> None:
    answers = [desk.orchestrate({"intent": "cleanup_task", "task_id": task}) for task in found]
    if any(answer["cleanup_status"] == "partial" for answer in answers):  # a creation that was not answered
        reopen(workspace / "lab").clock.sleep(180)
    for task in found:
        answer = desk.orchestrate({"intent": "cleanup_task", "task_id": task})
        assert (answer["state"], answer["cleanup_status"]) in {("DONE", "completed"), ("DONE", "skipped")}, answer
    assert held(workspace) == set()


@pytest.mark.parametrize("target", PAIR_OF)
def test_a_life_through_a_kill_at_every_command(tmp_path: Path, processes: CaptureProcesses, target: str) -> None:
    workspace, backup = tmp_path / "work", tmp_path / "backup"
    scenario = load_scenario("blocked-port")
    start(scenario, workspace / "lab", speed=600.0)
    order = {
        "workspace": str(workspace),
        "session": "s1",
        "target": target,
        "account": scenario.world.storage_accounts[0].name,
    }
    known: set[str] = set()
    for kill in sample(PAIR_OF[target], KILLS):
        assert processes.run(**order, kill=kill) == -9, f"the life ended before {kill}"
        assert_legal(workspace)
        tasks = {task.task_id for task in TaskRegistry(workspace / "audit", "reader", print).all()}
        assert known <= tasks, "a kill lost a task"
        known = tasks
        desk = orchestrator(workspace, "s2")
        found = assert_another_session_finds_all(desk, workspace, known)
        if kill[2] == "after":  # before the next command nothing else is there to remove
            shutil.copytree(workspace, backup)
            assert_it_removes_all(desk, workspace, found)
            shutil.rmtree(workspace)
            backup.rename(workspace)
    assert processes.run(**order, kill=None) == 0
    assert held(workspace) == set()
    assert len(known) == (1 if target == "web-vm-01" else 2)
    registry = TaskRegistry(workspace / "audit", "reader", print)
    assert {(task.state, task.outcome) for task in registry.all()} == {(State.DONE, "completed")}


def test_a_process_killed_while_azure_creates_the_capture_leaves_nothing_unseen(
    tmp_path: Path, processes: CaptureProcesses
) -> None:
    scenario = load_scenario("blocked-port")
    for number in sample(range(20), 3):
        workspace = tmp_path / str(number)
        start(scenario, workspace / "lab", speed=600.0)
        account = scenario.world.storage_accounts[0].name
        order = {"workspace": str(workspace), "session": "s1", "target": "web-vm-01", "account": account}
        assert processes.run(**order, kill=("packet-capture create", 1, "during")) == -9
        desk = orchestrator(workspace, "s2")
        (task,) = (orphan["task_id"] for orphan in desk.orchestrate({"intent": "list_tasks"})["orphans"])
        early = desk.orchestrate({"intent": "cleanup_task", "task_id": task})
        assert early["cleanup_status"] in {"partial", "completed"}  # before or after Azure made it
        deadline = time.monotonic() + 30
        while not held(workspace) and early["cleanup_status"] == "partial" and time.monotonic() < deadline:
            time.sleep(0.05)
        reopen(workspace / "lab").clock.sleep(180)
        desk = orchestrator(workspace, "s3")
        found = {orphan["task_id"] for orphan in desk.orchestrate({"intent": "list_tasks"})["orphans"]}
        assert set(map(task_of, held(workspace))) <= found
        assert_it_removes_all(desk, workspace, found)


def test_at_least_fifty_processes_are_killed() -> None:
    assert sum(map(len, PAIR_OF.values())) >= 50
