"""A process may be killed at any command: what exists in Azure is still found, finished or removed."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .scripted import (
    ACCOUNT,
    MACHINE,
    ROUTES,
    TASK,
    VM,
    VM_ID,
    Desk,
    ScriptedShell,
    created,
    failed,
    group,
    ran,
    status,
)

COMMANDS_OF_A_LIFE = 14
ANALYSED = 11


class Killed(BaseException):
    """Not an error that anything may handle: the process is gone."""


class SmallAzure(ScriptedShell):
    """Remembers which captures, blobs and files exist, and kills its caller at one command, before or after it."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.captures: set[str] = set()
        self.blobs: set[str] = set()
        self.directory = directory
        self.kill_at: tuple[int, str] | None = None
        self.since_start = 0

    @property
    def left(self) -> set[str]:
        files = {path.name for path in (self.directory / "captures").glob("*.cap")}
        return self.captures | self.blobs | files

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        if not request["reasoning"].startswith("Startup"):
            self.since_start += 1
        kill = self.kill_at if self.kill_at and self.kill_at[0] == self.since_start else None
        if kill and kill[1] == "before":
            raise Killed
        self.requests.append(request)
        reply = self._answer(shlex.split(request["command"]))
        if kill:
            raise Killed
        return {**reply, "audit_id": f"s1_{len(self.requests):03d}"}

    def _answer(self, words: list[str]) -> dict[str, Any]:
        options = dict(pairwise(words))
        name = options.get("-n") or options.get("--name", "")
        match words:
            case ["az", "network", "watcher", "list", *_]:
                return ran([{"name": "w", "location": "eastus"}])
            case ["az", "resource", *_]:
                return ran([{"id": VM_ID, "type": VM, "location": "eastus"}])
            case ["az", "vm", "get-instance-view", *_]:
                return ran(MACHINE)
            case ["az", "storage", "account", *_]:
                return ran(ACCOUNT)
            case ["az", "network", "nic", "show-effective-route-table", *_]:
                return ran(ROUTES)
            case ["az", "network", "nic", "list-effective-nsg", *_]:
                return ran([group()])
            case ["az", "storage", "container", *_]:
                return ran({"exists": True})
            case ["az", "network", "watcher", "packet-capture", verb, *_]:
                return self._capture(verb, name)
            case ["az", "storage", "blob", "download", *_]:
                Path(options["--file"]).write_bytes(b"x")
                return ran()
            case ["az", "storage", "blob", "delete", *_]:
                return self._drop(self.blobs, name)
            case ["rm", path] if not Path(path).exists():
                return failed(f"rm: cannot remove '{path}': No such file or directory")
            case ["rm", path]:
                Path(path).unlink()
        return ran()

    def _capture(self, verb: str, name: str) -> dict[str, Any]:
        match verb:
            case "list":
                return ran([{"name": capture} for capture in self.captures])
            case "create":
                self.captures.add(name)
                self.blobs.add(f"{name}.cap")
                return created(self.requests[-1]["command"])
            case "show-status" if name in self.captures:
                return status("Stopped")
            case "delete":
                return self._drop(self.captures, name)
        return failed(f"ERROR: (ResourceNotFound) {name} was not found.", 3)

    def _drop(self, held: set[str], name: str) -> dict[str, Any]:
        if name not in held:
            return failed(f"ERROR: (NotFound) {name} was not found.", 3)
        held.remove(name)
        return ran()


def live(desk: Desk) -> None:
    """A whole capture, as a brain asks for it, from wherever it stands."""
    known = {task["task_id"] for task in desk.ask("list_tasks")["tasks"]}
    if TASK not in known:
        desk.capture()
    for _ in range(5):
        if desk.ask("check_task", task_id=TASK)["status"] != "task_pending":
            break
    desk.ask("cleanup_task", task_id=TASK)


@pytest.fixture
def azure(tmp_path: Path) -> SmallAzure:
    return SmallAzure(tmp_path)


def test_the_count_of_commands_that_the_kills_cover_is_right(tmp_path: Path, azure: SmallAzure) -> None:
    live(Desk(tmp_path, azure))
    assert (azure.since_start, azure.left) == (COMMANDS_OF_A_LIFE, set())


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, COMMANDS_OF_A_LIFE + 1))
def test_a_killed_capture_goes_on_in_the_same_session_to_its_end(
    tmp_path: Path, azure: SmallAzure, at: int, moment: str
) -> None:
    desk = Desk(tmp_path, azure)
    azure.kill_at = (at, moment)
    with pytest.raises(Killed):
        live(desk)
    azure.kill_at = None
    desk.restarted()
    live(desk)
    response = desk.ask("check_task", task_id=TASK)
    assert (response["status"], response["state"]) == ("task_completed", "DONE")
    assert azure.left == set()
    assert len([c for c in azure.commands if " create " in c]) <= 1


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, COMMANDS_OF_A_LIFE + 1))
def test_a_killed_capture_is_an_orphan_of_the_next_session_that_cleanup_removes(
    tmp_path: Path, azure: SmallAzure, at: int, moment: str
) -> None:
    desk = Desk(tmp_path, azure)
    azure.kill_at = (at, moment)
    with pytest.raises(Killed):
        live(desk)
    azure.kill_at = None
    commands = len(azure.commands)
    desk.restarted("s2")
    assert not [c for c in azure.commands[commands:] if "delete" in c or c.startswith("rm")]
    orphans = desk.ask("list_tasks")["orphans"]
    assert [(o["kind"], o["task_id"], o["session_id"]) for o in orphans] == [
        ("abandoned_task" if at <= ANALYSED else "needs_cleanup", TASK, "s1")
    ]
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
    assert (orphan["kind"], orphan["resource"], orphan["location"]) == ("untracked_azure", TASK, "eastus")
    assert orphan["command"] == f"az network watcher packet-capture delete -l eastus -n {TASK}"
    assert azure.left
