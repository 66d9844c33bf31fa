"""The loop: what a brain asks for happens once, is booked, and survives a kill at any moment."""

from __future__ import annotations

import json

import pytest

from ghost.agent import Evidence, load_session
from ghost.agent.loop import NO_ONE_CAN_ANSWER
from ghost.brain import ResumeNote, ToolResults, UserMessage
from ghost.errors import BrainError
from ghost.shell import HitlDecision
from tests.agent.conftest import SESSION, command, complete, hypothesis, turn


def run(investigation, symptom="vm-1 cannot reach vm-2"):
    investigation.begin(symptom)
    investigation.run()
    return investigation


def test_a_brain_that_concludes_ends_the_investigation(bench):
    done = run(bench.investigation([turn("Looking.", command("az vm list -g rg")), turn("Done.", complete())]))
    assert done.session.completion["root_cause_summary"] == "It is the rule."
    assert done.session.turn_count == 2
    saved, intact = load_session(bench.workspace.session_file)
    assert intact
    assert saved == done.session


def test_results_are_tagged_with_where_they_were_seen_and_their_tier(bench):
    run(
        bench.investigation(
            [
                turn(
                    "Looking.", *map(command, ("az vm list -g rg", "ping -c 1 127.0.0.1", "ping -c 1 pcap-forensics"))
                ),
                turn("", complete()),
            ]
        )
    )
    tags = [result["_meta"] for _, result in bench.desk.results[:3]]
    assert tags == [
        {"context": "[CLOUD]", "evidence_tier": 2},
        *[{"context": "[LOCAL]", "evidence_tier": 3}] * 2,
    ]


def test_the_session_file_never_holds_output(bench):
    bench.outputs["az vm list"] = (0, '[{"name": "a-very-telling-name"}]')
    done = run(bench.investigation([turn("Looking.", command("az vm list -g rg")), turn("", complete())]))
    paths = done.session.paths(bench.root)
    assert "a-very-telling-name" in paths.shell_audit.read_text()
    assert "a-very-telling-name" not in bench.workspace.session_file.read_text()
    assert "a-very-telling-name" not in paths.turns.read_text()


def test_the_third_denial_makes_the_hypotheses_named_unverifiable(bench):
    risky = "az vm restart -g rg -n vm-1"
    calls = [command(risky, hypothesis_ids=["h2"])] * 3
    done = run(
        bench.investigation(
            [
                turn("", hypothesis("register", "h1"), hypothesis("register", "h2")),
                turn("", *calls),
                turn("", complete()),
            ]
        )
    )
    states = {h.id: h.state.value for h in done.session.hypothesis_log}
    assert states == {"h1": "ACTIVE", "h2": "UNVERIFIABLE"}
    metas = [result["_meta"] for call, result in bench.desk.results if call.name == "run_shell_cmd"]
    assert [m["denial_count"] for m in metas] == [1, 2, 3]
    assert all(m["denial_reason"] == "not now" for m in metas)
    assert "pivot_instruction" in metas[0]
    assert metas[1]["approaching_threshold"] is True
    assert metas[2]["denial_threshold_reached"] is True
    assert bench.ran == []
    assert [e.denial_reason for e in done.session.hypothesis_log[1].denial_events] == ["not now"] * 3


def test_a_denial_that_names_no_hypothesis_counts_against_all_active_ones(bench):
    done = run(
        bench.investigation(
            [
                turn("", hypothesis("register", "h1"), hypothesis("register", "h2")),
                turn("", command("az vm restart -g rg -n vm-1")),
                turn("", complete()),
            ]
        )
    )
    assert done.session.denial_tracker == {"h1": 1, "h2": 1}


def test_an_orchestrated_call_counts_as_denied_only_when_a_person_refused(bench):
    capture = ("capture_traffic", {"target": "vm-1", "resource_group": "rg", "storage_account": "sa"})
    bench.orchestrator.answers["capture_traffic"] = {"status": "task_cancelled", "user_denied": False, "task_id": "t"}
    first = run(bench.investigation([turn("", hypothesis("register")), turn("", capture), turn("", complete())]))
    assert first.session.denial_tracker == {"h1": 0}


@pytest.mark.parametrize("size", [None, 1_000_000, 7])
def test_the_size_of_a_capture_reaches_the_orchestrator_which_judges_it(bench, size):
    asked = {"target": "vm-1", "resource_group": "rg", "storage_account": "sta"}
    asked |= {} if size is None else {"size_limit_bytes": size}
    run(bench.investigation([turn("", ("capture_traffic", asked)), turn("", complete())]))
    (request,) = [r for r in bench.orchestrator.requests if r["intent"] == "capture_traffic"]
    assert request["parameters"]["size_limit_bytes"] == size


def test_a_command_that_runs_clears_the_consecutive_count_not_the_total(bench):
    done = run(
        bench.investigation(
            [
                turn("", hypothesis("register")),
                turn("", command("az vm restart -g rg -n vm-1"), command("az vm list -g rg")),
                turn("", complete()),
            ]
        )
    )
    assert done.session.denial_tracker == {"h1": 1}
    assert done.session.consecutive_denial_counter == {"h1": 0}
    assert done.session.hypothesis_log[0].state.value == "ACTIVE"


def test_a_hypothesis_is_not_resolved_by_records_that_do_not_exist_or_did_not_run(bench):
    run(
        bench.investigation(
            [
                turn("", hypothesis("register"), command("az vm restart -g rg -n vm-1")),
                turn("", hypothesis("confirm", audit_ids=[f"{SESSION}_001"]), hypothesis("confirm", audit_ids=["x_9"])),
                turn("", complete()),
            ]
        )
    )
    refusals = [r for c, r in bench.desk.results if c.arguments.get("action") == "confirm"]
    assert [r["error"] for r in refusals] == ["evidence_unusable", "evidence_unusable"]
    assert "was denied" in refusals[0]["message"]
    assert "not an audit record" in refusals[1]["message"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("no_such_tool", {}), "unknown_tool"),
        (("run_shell_cmd", {"command": "az vm list"}), "invalid_arguments"),
        (("run_shell_cmd", {"command": "az vm list", "reasoning": "r", "shell": True}), "invalid_arguments"),
        (("capture_traffic", {"target": "x", "resource_group": "rg", "storage_account": "sa", "duration_seconds": 301}),
         "invalid_arguments"),
        (command("az vm list --query \"[?name='x'\""), "preflight"),
        (command("az vm list --query \"[?name='x']\" --query"), None),
        (("complete_investigation", {"confidence": "certain", "root_cause_summary": "x"}), "invalid_arguments"),
    ],
)  # fmt: skip
def test_a_wrong_call_comes_back_as_an_error_the_brain_can_read(bench, call, error):
    run(bench.investigation([turn("", call), turn("", complete())]))
    result = bench.desk.results[0][1]
    if error is not None:
        assert result["status"] == "error"
        assert result["error"] == error
        assert result.get("message") or result.get("suggestion")


def test_a_preflight_mistake_costs_no_process_no_prompt_and_no_record(bench):
    done = run(bench.investigation([turn("", command("az vm list --query '[?'")), turn("", complete())]))
    assert bench.ran == []
    assert len(Evidence(done.session.paths(bench.root).shell_audit)) == 0


def test_a_question_is_answered_by_the_engineer(bench):
    bench.desk.answers = ["it is vm-2"]
    done = run(bench.investigation([turn("Which one?"), turn("", complete())]))
    assert UserMessage("it is vm-2") in done.conversation


def test_where_nobody_answers_the_brain_is_told_once_and_then_it_ends(bench):
    done = run(bench.investigation([turn("Which one?"), turn("Still: which one?")]))
    assert UserMessage(NO_ONE_CAN_ANSWER) in done.conversation
    assert done.session.completion["confidence"] == "low"


def test_the_turn_limit_offers_ten_more_and_then_the_report(bench):
    bench.max_turns = 2
    bench.desk.choices = ["e"]
    turns = [turn("", command("az vm list -g rg"), number=n) for n in range(20)]
    done = run(bench.investigation(turns))
    assert done.session.turn_count == 12
    assert "limit of 12 turns" in done.session.completion["root_cause_summary"]


def test_a_brain_that_fails_leaves_a_session_that_can_be_resumed(bench):
    with pytest.raises(BrainError):
        run(bench.investigation([turn("", command("az vm list -g rg"))]))
    session, intact = load_session(bench.workspace.session_file)
    assert intact
    again = bench.investigation([turn("", command("az vm list -g rg")), turn("", complete())], session)
    again.resume()
    again.run()
    assert again.session.completion is not None
    assert any(isinstance(m, ResumeNote) for m in again.conversation)


class Killed(BaseException):
    """Stands for the end of the process: nothing after it runs but what already reached the disk."""


@pytest.mark.parametrize("survive", range(1, 24))
def test_wherever_it_is_killed_it_goes_on_with_the_evidence_it_had(bench, monkeypatch, survive):
    """The process ends after `survive` writes; what is on disk then must be enough to finish with sound citations."""
    from ghost.agent import loop
    from ghost.records import ChainedLog

    def evidence_of(conversation) -> list[str]:
        results = [r.result for m in conversation if isinstance(m, ToolResults) for r in m.results]
        return [r["audit_id"] for r in results if r.get("output", "").startswith("[{")]

    script = [
        turn("", hypothesis("register"), number=1),
        turn("", command("az vm list -g rg"), command("ping -c 1 127.0.0.1"), number=2),
        lambda seen: turn("", hypothesis("confirm", audit_ids=evidence_of(seen)), number=3),
        lambda seen: turn("", complete(statements=[{"text": "s", "audit_ids": evidence_of(seen)}]), number=4),
    ]
    writes = {"left": survive}

    def counted(real):
        def write(*args, **kwargs):
            if writes["left"] == 0:
                raise Killed
            writes["left"] -= 1
            return real(*args, **kwargs)

        return write

    with monkeypatch.context() as patch:
        patch.setattr(ChainedLog, "append", counted(ChainedLog.append))
        patch.setattr(loop, "save_session", counted(loop.save_session))
        first = bench.investigation(script)
        killed = False
        try:
            run(first)
        except Killed:
            killed = True
    if not bench.workspace.session_file.exists():
        assert survive == 1
        return
    session, intact = load_session(bench.workspace.session_file)
    assert intact
    again = bench.investigation(script, session)
    if not again.conversation:
        again.begin("vm-1 cannot reach vm-2")
    again.run()
    assert killed or survive > 15, "it was never killed"
    assert again.session.completion is not None
    assert [h.state.value for h in again.session.hypothesis_log] == ["CONFIRMED"]
    cited = again.session.completion["statements"][0]["audit_ids"]
    assert cited
    assert Evidence(session.paths(bench.root).shell_audit).problems(cited) == []
    called = [r.call_id for m in again.conversation if isinstance(m, ToolResults) for r in m.results]
    assert len(called) == len(set(called)), "a call was answered twice"


def test_a_capture_that_had_begun_is_taken_up_not_begun_twice(bench):
    capture = ("capture_traffic", {"target": "vm-1", "resource_group": "rg", "storage_account": "sa"})
    first = bench.investigation([])
    first.begin("s")
    first.turns.turn(1, turn("", capture))
    bench.orchestrator.answers = {
        "list_tasks": {"status": "ok", "tasks": [{"task_id": "ghost_vm-1_x", "target": "vm-1", "state": "WAITING"}]},
        "check_task": {"status": "task_pending", "task_id": "ghost_vm-1_x", "state": "WAITING"},
    }
    again = bench.investigation([turn("", capture), turn("", complete(), number=2)], first.session)
    again.run()
    assert [r["intent"] for r in bench.orchestrator.requests] == ["list_tasks", "check_task"]
    results = next(m for m in again.conversation if isinstance(m, ToolResults))
    assert results.results[0].name == "capture_traffic"
    assert results.results[0].result["task_id"] == "ghost_vm-1_x"


def test_secrets_in_what_is_said_do_not_reach_the_disk(bench):
    token = "ghp_" + "a1B2" * 9
    done = run(bench.investigation([turn(f"I was given {token}", complete())]))
    assert token not in done.session.paths(bench.root).turns.read_text()


def test_secrets_in_answers_and_in_the_arguments_of_calls_do_not_reach_the_disk(bench):
    password, token = "Hunter2-Hunter2", "ghp_" + "z9Y8" * 9
    bench.desk.answers = [f"password={password}"]
    call = command(f"curl -H 'Authorization: Bearer {token}' http://127.0.0.1/")
    done = run(bench.investigation([turn("Which one?"), turn("", hypothesis("register"), call), turn("", complete())]))
    written = done.session.paths(bench.root).turns.read_text() + bench.workspace.session_file.read_text()
    assert done.session.hypothesis_log[0].denial_events
    assert password not in written
    assert token not in written


def test_an_approved_command_runs_and_is_evidence(bench):
    bench.decide = lambda command: HitlDecision("approve")
    bench.outputs["az vm restart"] = (0, "{}")
    done = run(bench.investigation([turn("", command("az vm restart -g rg -n vm-1")), turn("", complete())]))
    record = json.loads(done.session.paths(bench.root).shell_audit.read_text().splitlines()[0])
    assert record["action"] == "user_approved"
    assert Evidence(done.session.paths(bench.root).shell_audit).problems([record["audit_id"]]) == []
