"""A denied command comes back with what to do instead."""

from __future__ import annotations

from ghost.agent.denials import pivots
from tests.agent.conftest import Bench, command, complete, hypothesis, turn


def test_each_pivot_of_the_table_is_told_for_its_command_and_a_generic_one_otherwise(bench: Bench) -> None:
    table = pivots()
    asked = {pivot.example: pivot.instead for pivot in table.pivots}
    assert len(asked) == 7
    asked["az vm run-command list -g rg --vm-name vm-1 --debug"] = table.generic
    investigation = bench.investigation([turn("", *map(command, asked)), turn("", complete())])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    told = {c.arguments["command"]: r["_meta"]["pivot_instruction"] for c, r in bench.desk.results[:-1]}
    assert told == asked


TIDYING = (command("az network watcher packet-capture delete -l eastus -n ghost_x"), command("rm captures/x.cap"))
CAPTURED = {"status": "task_completed", "user_denied": True, "shell_audit_ids": []}


def test_a_denied_clean_up_counts_against_no_hypothesis(bench: Bench) -> None:
    capture = {"target": "vm-1", "investigation_context": "x", "resource_group": "rg", "storage_account": "stacc"}
    bench.orchestrator.answers |= {"capture_traffic": CAPTURED, "cleanup_task": CAPTURED}
    tidied = turn(
        "", hypothesis("register"), *TIDYING, ("capture_traffic", capture), ("cleanup_task", {"task_id": "t"})
    )
    investigation = bench.investigation(
        [tidied, turn("", command("az vm restart -g rg -n vm-1")), turn("", complete())]
    )
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    counts = [result["_meta"].get("denial_count") for _, result in bench.desk.results[1:-1]]
    assert counts == [None, None, None, None, 1]


def test_the_denied_command_of_a_capture_names_its_pivot(bench: Bench) -> None:
    delete = next(p for p in pivots().pivots if "packet-capture" in p.command)
    bench.orchestrator.answers["cleanup_task"] = {
        "status": "task_completed",
        "user_denied": True,
        "shell_audit_ids": ["ghost_20260101_120000_001"],
    }
    investigation = bench.investigation([turn("", command(delete.example), ("cleanup_task", {"task_id": "t"}))])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.console.choices = ["g"]
    investigation.max_turns = 1
    investigation.run()
    assert bench.desk.results[-1][1]["_meta"]["pivot_instruction"] == delete.instead
    assert "denial_count" not in bench.desk.results[-1][1]["_meta"]  # What tidies up is no test.
