"""What earlier sessions left behind is shown, and deleted only where the engineer says so."""

from __future__ import annotations

import pytest

from ghost.agent import choose_and_clean, find_orphans
from ghost.shell import HitlDecision
from tests.agent.conftest import Desk, NoCaptures, turn

ORPHANS = [
    {"kind": "needs_cleanup", "task_id": "ghost_vm_1", "command": None},
    {"kind": "untracked_azure", "task_id": None, "resource": "ghost_vm_2",
     "command": "az network watcher packet-capture delete -l eastus -n ghost_vm_2"},
    {"kind": "stale_local_file", "task_id": None, "path": "/w/ghost_x.cap", "command": "rm /w/ghost_x.cap"},
    {"kind": "untracked_azure", "task_id": None, "resource": "ghost_$(x)", "command": None},
]  # fmt: skip


def offered(bench, choices: list[str | None], cleanup_status: str = "completed"):
    orchestrator = NoCaptures(
        {
            "list_tasks": {"status": "completed", "tasks": [], "orphans": ORPHANS},
            "cleanup_task": {"status": "task_completed", "cleanup_status": cleanup_status},
        }
    )
    investigation = bench.investigation([turn("")])
    warnings = choose_and_clean(
        find_orphans(orchestrator), orchestrator, investigation.shell, investigation.session, Desk(choices=choices)
    )
    intents = [request["intent"] for request in orchestrator.requests]
    return warnings, intents, investigation.session


NAMES = ["ghost_vm_1", "ghost_vm_2", "/w/ghost_x.cap", "ghost_$(x)"]


@pytest.mark.parametrize("choice", ["s", None])
def test_skipped_or_with_nobody_there_nothing_is_deleted_and_all_is_noted(bench, choice):
    warnings, intents, session = offered(bench, [choice])
    assert (warnings, intents, bench.ran) == ([], ["list_tasks"], [])
    assert session.manual_cleanup_pending == NAMES


def test_every_deletion_asks_through_the_gate_and_what_is_left_is_said(bench):
    asked = []

    def decide(command: str) -> HitlDecision:
        asked.append(command)
        return HitlDecision("deny")

    bench.decide = decide
    warnings, intents, session = offered(bench, ["c"], cleanup_status="partial")
    assert intents == ["list_tasks", "cleanup_task"]
    assert asked == [ORPHANS[1]["command"], ORPHANS[2]["command"]]
    assert bench.ran == []
    assert len(warnings) == 4
    assert session.manual_cleanup_pending == NAMES


def test_reviewing_takes_only_those_that_were_chosen(bench):
    _, intents, session = offered(bench, ["r", "y", "n", "n", "n"])
    assert intents == ["list_tasks", "cleanup_task"]
    assert bench.ran == []
    assert session.manual_cleanup_pending == NAMES[1:]


def test_who_approves_the_deletion_of_an_unknown_capture_reads_that_it_may_be_a_colleagues(bench):
    class Reasons:
        def __init__(self) -> None:
            self.of: dict[str, str] = {}

        def execute(self, request):
            self.of[request["command"]] = request["reasoning"]
            return {"status": "denied"}

    shell, orchestrator = Reasons(), NoCaptures({"list_tasks": {"orphans": ORPHANS[1:3]}})
    session = bench.investigation([turn("")]).session
    choose_and_clean(find_orphans(orchestrator), orchestrator, shell, session, Desk(choices=["c"]))
    assert all(why.startswith("Clean-up of what earlier sessions left: 2 resources.") for why in shell.of.values())
    assert "colleague" in shell.of[ORPHANS[1]["command"]]
    assert "colleague" not in shell.of[ORPHANS[2]["command"]]
