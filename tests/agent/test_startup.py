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
        find_orphans(orchestrator),
        orchestrator,
        investigation.shell,
        investigation.session,
        Desk(choices=choices),
        bench.root,
    )
    intents = [request["intent"] for request in orchestrator.requests]
    return warnings, intents, investigation.session


NAMES = ["ghost_vm_1", "ghost_vm_2", "/w/ghost_x.cap", "ghost_$(x)"]


@pytest.mark.parametrize("choice", ["", None])
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
    warnings, intents, session = offered(bench, ["yyyy"], cleanup_status="partial")
    assert intents == ["list_tasks", "cleanup_task", "list_tasks"]
    assert asked == [ORPHANS[1]["command"], ORPHANS[2]["command"]]
    assert bench.ran == []
    assert len(warnings) == 4
    assert session.manual_cleanup_pending == NAMES


def test_reviewing_takes_only_those_that_were_chosen(bench):
    _, intents, session = offered(bench, ["ynnn"])
    assert intents == ["list_tasks", "cleanup_task", "list_tasks"]
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
    choose_and_clean(find_orphans(orchestrator), orchestrator, shell, session, Desk(choices=["yy"]), bench.root)
    assert all(why.startswith("Clean-up of what earlier sessions left: 2 resources.") for why in shell.of.values())
    assert "colleague" in shell.of[ORPHANS[1]["command"]]
    assert "colleague" not in shell.of[ORPHANS[2]["command"]]


def test_what_was_declined_is_noted_and_asked_no_more_and_what_may_record_is_never_offered(bench):
    running = {"kind": "abandoned_task", "task_id": "ghost_vm_9", "command": None, "running": True}
    shown = {**ORPHANS[0], "owner": "session s1", "age_days": 2.5}
    orchestrator = NoCaptures({"list_tasks": {"orphans": [shown, running, ORPHANS[2]]}})
    investigation = bench.investigation([turn("")])
    desk = Desk(choices=["nn"])
    for _ in range(2):
        orphans = find_orphans(orchestrator)
        choose_and_clean(orphans, orchestrator, investigation.shell, investigation.session, desk, bench.root)
        assert investigation.session.manual_cleanup_pending == [o.name for o in orphans]
    assert desk.offered == [
        [
            "ghost_vm_1 (finished captures that were not cleaned up, session s1, 2.5 days old)",
            "/w/ghost_x.cap (old ghost_* files on this machine)",
        ]
    ]
    orchestrator.answers["list_tasks"]["orphans"].append(ORPHANS[1])
    choose_and_clean(
        find_orphans(orchestrator), orchestrator, investigation.shell, investigation.session, desk, bench.root
    )
    assert desk.offered[1:] == [["ghost_vm_2 (ghost_* captures in Azure without a record here)"]]
