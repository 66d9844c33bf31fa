"""Each tool is one request of the shell or of the orchestrator; words alone are a question to the engineer."""

from __future__ import annotations

import subprocess

import pytest

from tests.agent.conftest import command, complete, hypothesis, turn

CAPTURE = {"target": "vm-1", "resource_group": "rg", "storage_account": "sa"}
GIVEN = {
    "resource_group": "rg",
    "storage_account": "sa",
    "duration_seconds": 60,
    "storage_auth_mode": None,
    "filters": None,
}


@pytest.mark.parametrize(
    ("tool", "arguments", "request_"),
    [
        ("capture_traffic", CAPTURE, {"target": "vm-1", "investigation_context": "", "parameters": GIVEN}),
        (
            "capture_traffic",
            {**CAPTURE, "duration_seconds": 300, "storage_auth_mode": "key", "investigation_context": "loss?"},
            {
                "investigation_context": "loss?",
                "parameters": {**GIVEN, "duration_seconds": 300, "storage_auth_mode": "key"},
            },
        ),
        (
            "capture_traffic",
            {"target": "vm-1", "resource_group": "rg", "filters": "tcp * * 10.0.0.5 443"},
            {"parameters": {**GIVEN, "storage_account": "*", "filters": "tcp * * 10.0.0.5 443"}},
        ),
        ("check_task", {"task_id": "ghost_x"}, {"task_id": "ghost_x"}),
        ("cancel_task", {"task_id": "ghost_x", "reason": "found"}, {"task_id": "ghost_x", "reason": "found"}),
        ("cleanup_task", {"task_id": "ghost_x"}, {"task_id": "ghost_x"}),
    ],
)
def test_a_tool_is_the_intent_of_its_name_with_its_arguments(bench, tool, arguments, request_):
    investigation = bench.investigation([turn("", (tool, arguments)), turn("", complete())])
    investigation.begin("s")
    investigation.run()
    (asked,) = bench.orchestrator.requests
    asked.get("parameters", {}).pop("size_limit_bytes", None)
    assert asked["intent"] == tool
    assert {name: asked[name] for name in request_} == request_
    assert bench.ran == []


def test_a_command_is_one_request_of_the_shell_and_says_that_it_timed_out(bench):
    def runs_too_long(arguments, **_):
        bench.ran.append(arguments)
        raise subprocess.TimeoutExpired(arguments, 120)

    bench._run = runs_too_long
    investigation = bench.investigation([turn("", command("az vm list -g rg")), turn("", complete())])
    investigation.begin("s")
    investigation.run()
    (_, result), *_ = bench.desk.results
    assert (result["error"], result["_meta"]["timeout"]) == ("timeout", True)
    assert [words[1:] for words in bench.ran] == [["vm", "list", "-g", "rg"]]
    assert bench.orchestrator.requests == []


def test_the_engineer_may_end_the_investigation_where_the_brain_only_speaks(bench):
    bench.desk.answers = ["d"]
    investigation = bench.investigation([turn("Which one?")])
    investigation.begin("s")
    investigation.run()
    assert investigation.session.completion["confidence"] == "low"
    assert "ended the investigation" in investigation.session.completion["root_cause_summary"]


@pytest.mark.parametrize("status", ["task_failed", "task_timed_out", "task_cancelled"])
def test_a_task_that_ended_without_a_capture_is_a_result_and_no_denial(bench, status):
    bench.orchestrator.answers["check_task"] = {"status": status, "task_id": "ghost_x", "user_denied": False}
    calls = [hypothesis("register"), ("check_task", {"task_id": "ghost_x"}), command("az vm list -g rg")]
    investigation = bench.investigation([turn("", *calls), turn("", complete())])
    investigation.begin("s")
    investigation.run()
    assert [result["status"] for _, result in bench.desk.results[:3]] == ["ok", status, "completed"]
    assert investigation.session.denial_tracker == {"h1": 0}
