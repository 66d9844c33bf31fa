"""What a result says beyond the command's own answer: repeated reads, and results that disagree with a decision."""

from __future__ import annotations

import json

import pytest

from ghost.shell import HitlDecision
from tests.agent.conftest import SESSION, Bench, command, complete, hypothesis, turn

READ = command("az vm list -g rg")
ONE, TWO = f"{SESSION}_001", f"{SESSION}_002"


def investigate(bench: Bench, *turns, session=None):
    investigation = bench.investigation([*turns, turn("", complete())], session)
    if session is None:
        investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    return [(call, result) for call, result in bench.desk.results if call.name != "complete_investigation"]


def at(bench: Bench, seconds: int, *calls):
    """A turn that is spoken so many seconds after the start."""

    def spoken(_):
        bench.now = f"2026-01-01T12:{seconds // 60:02d}:{seconds % 60:02d}.000Z"
        return turn("", *calls)

    return spoken


RISKY = command("az vm restart -g rg -n vm-1")
PROBE = command("ping -c 1 127.0.0.1")
POLL = ("check_task", {"task_id": "t"})
REPEATED = {
    "in one turn": ([(0, READ, READ)], 0),
    "within a minute": ([(0, READ), (60, READ)], 60),
    "in one turn, denied in between": ([(0, READ, RISKY, READ)], 0),
    "after more than a minute": ([(0, READ), (61, READ)], None),
    "a probe": ([(0, PROBE, PROBE)], None),
    "after an approved change": ([(0, READ, command("az vm start -g rg -n vm-1"), READ)], None),
    "after a capture was asked for": ([(0, READ, POLL, READ)], None),
    "after it failed": ([(0, command("az vm show -g rg -n x"), command("az vm show -g rg -n x"))], None),
    "another command": ([(0, READ, command("az vm list -g other"))], None),
}


@pytest.mark.parametrize("case", REPEATED)
def test_a_repeated_read_is_answered_from_its_record_while_nothing_can_have_changed_it(bench, case):
    turns, age = REPEATED[case]
    bench.decide = lambda line: HitlDecision("approve" if "start -g" in line and "restart" not in line else "deny")
    results = [r for _, r in investigate(bench, *(at(bench, seconds, *calls) for seconds, *calls in turns))]
    told = results[-1]["_meta"].get("answered_from_record")
    assert told == (None if age is None else {"audit_id": ONE, "age_seconds": age})
    assert (results[-1]["audit_id"] == ONE) is (age is not None)
    assert len(bench.ran) == sum(r["status"] == "completed" for r in results) - (age is not None)


def test_after_a_resume_a_read_runs_again(bench):
    investigation = bench.investigation([turn("", READ), turn("", READ), turn("", complete())])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation._step()
    again = bench.investigation([turn("", READ), turn("", READ), turn("", complete())], investigation.session)
    again.run()
    assert len(bench.ran) == 2


def test_a_result_that_disagrees_with_a_decision_is_told_with_the_four_steps(bench):
    """Mechanical: the same command answers differently, or a capture comes later. A probe's times are no difference."""
    summary = command("cat captures/ghost_vm-1_executive_summary.md")
    decided = [hypothesis("register"), hypothesis("confirm", audit_ids=[ONE])]
    probed = [hypothesis("register", "h2"), hypothesis("refute", "h2", audit_ids=[TWO])]
    bench.decide = lambda _: HitlDecision("approve")
    bench.outputs["cat"] = (0, "3 of 100 segments lost")
    rows = [{"name": f"vm-{n}", "text": "x" * 200} for n in range(200)]
    bench.outputs["az vm list"] = (0, json.dumps(rows))

    def change(_):
        changed = json.dumps([*rows[:-1], rows[0]])  # beyond what is shown
        bench.outputs["az vm list"], bench.outputs["ping"] = (0, changed), (1, "100% packet loss, time 5 ms")
        bench.now = "2026-01-01T12:05:00.000Z"
        return turn("", READ, PROBE, summary)

    first = turn("", READ, PROBE, *decided, *probed)
    results = [r for c, r in investigate(bench, first, at(bench, 99, READ), change) if c.name == "run_shell_cmd"]
    told = [r["_meta"].get("possible_conflicts") for r in results]
    differently, later = "the same command answers differently", "a capture (tier 1) arrived after the decision"
    h1, h2 = {"hypothesis_id": "h1", "state": "CONFIRMED"}, {"hypothesis_id": "h2", "state": "REFUTED"}
    new, report = results[3]["audit_id"], results[5]["audit_id"]
    assert told[:3] == [None, None, None]
    assert told[3] == [{**h1, "audit_ids": [ONE, new], "reason": differently}]
    assert told[4] is None
    assert told[5] == [
        {**h1, "audit_ids": [ONE, report], "reason": later},
        {**h2, "audit_ids": [TWO, report], "reason": later},
    ]
    for step in ("(1)", "(2)", "(3)", "(4)"):
        assert step in results[3]["_meta"]["conflict_instruction"]


def test_code_of_this_process_gets_all_that_a_command_printed_also_after_a_resume(bench):
    """Not the result, nor a file of the conversation. What was cut in the record is whole for code."""
    rows = [{"name": f"vm-{n}", "text": "x" * 200} for n in range(200)]
    bench.outputs["az vm list"] = (0, json.dumps(rows))
    investigation = bench.investigation([turn("", READ, PROBE, READ), turn("", complete())])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    again = bench.investigation([], investigation.session)
    for conversation in (investigation.conversation, again.conversation):
        listed, probed, repeated = conversation[2].results
        assert json.loads(listed.real_output) == json.loads(repeated.real_output) == rows
        assert listed.result["output_metadata"]["truncation_applied"]
        assert "vm-150" not in json.dumps(listed.result) + repr(listed)
        assert probed.real_output is None  # its last line was not ended
    assert "vm-150" not in investigation.session.paths(bench.root).turns.read_text()
    (bench.root / "audit" / "output" / f"{ONE}.txt").write_text("[]")
    assert bench.investigation([], investigation.session).conversation[2].results[0].real_output is None
