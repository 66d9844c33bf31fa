"""A conclusion goes back while its records do not carry it; then it stands, no more confident than they allow."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from ghost.agent import Evidence, SessionPaths
from ghost.agent.completion import bounded_confidence, settled_outcome
from ghost.records import isoformat
from tests.agent.conftest import SESSION, STATE, Bench, command, complete, hypothesis, turn

ONE, TWO, THREE = (f"{SESSION}_{n:03d}" for n in (1, 2, 3))
READS = turn("", command(STATE), command("ping -c 1 127.0.0.1"), command("az vm restart -g rg -n vm-1"))
H1 = hypothesis("register")
CONFIRMED = turn("", H1, hypothesis("confirm", audit_ids=[ONE]))
VM = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-2"
CAUSE = {"kind": "machine_stopped", "resource": VM, "confidence": "high", "audit_ids": [ONE]}
AT_FAULT = [{"layer": "vm_state", "status": "at_fault", "audit_ids": [ONE]}]
HIGH = {"confidence": "high", "confirmed_hypotheses": ["h1"]}


def concluded(bench: Bench, *before, **arguments):
    """The results of a brain that concludes alike three times, and the session after it."""
    arguments = {"coverage": AT_FAULT, "causes": [CAUSE], **arguments}
    investigation = bench.investigation([READS, *before, *(turn("", complete(**arguments)) for _ in range(3))])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    return [r for call, r in bench.desk.results if call.name == "complete_investigation"], investigation.session


PROBLEMS = {
    "statement 1: cites no audit record": {"statements": [{"text": "x"}]},
    f"statement 1: {THREE} was denied": {"statements": [{"text": "x", "audit_ids": [THREE]}]},
    f"coverage of dns: {SESSION}_099 is not": {
        "coverage": [{"layer": "dns", "status": "cleared", "audit_ids": [f"{SESSION}_099"]}]
    },
    f"root_cause_summary: {THREE} was denied": {**HIGH, "root_cause_summary": f"It is the rule ({THREE})."},
    "cause 1: unknown kind 'security_rules'; near: security_rule": {"causes": [{**CAUSE, "kind": "security_rules"}]},
    "cause 1: names no resource": {"causes": [{**CAUSE, "resource": " "}]},
    "cause 1: cites no audit record": {"causes": [{**CAUSE, "audit_ids": []}]},
    f"cause 2: {SESSION}_099 is not": {"causes": [CAUSE, {**CAUSE, "audit_ids": [f"{SESSION}_099"]}]},
    f"cause 1: {TWO}: no [CLOUD] record that succeeded": {"causes": [{**CAUSE, "audit_ids": [TWO]}]},
    f"cause 1: {ONE} does not show it: no power of vm-1": {"causes": [{**CAUSE, "resource": "vm-1"}]},
    f"cause 1: {ONE} does not show it: no access of vm-2": {"causes": [{**CAUSE, "kind": "security_rule"}]},
    f"coverage of dns: {TWO} failed (exit 1)": {
        "coverage": [{"layer": "dns", "status": "cleared", "audit_ids": [TWO]}]
    },
    f"root_cause_summary: {SESSION}_099 is not": {"root_cause_summary": f"It is the rule ({ONE}, {SESSION}_099)."},
    f"statement 1: {SESSION}_099 is not": {"statements": [{"text": f"See {SESSION}_099.", "audit_ids": [ONE]}]},
    f"statement 1: {ONE} does not show it: it says vm-2 power deallocated": {
        "statements": [
            {"text": "x", "audit_ids": [ONE], "facts": [{"subject": "vm-2", "property": "power", "value": "running"}]}
        ]
    },
    f"statement 1: {ONE} shows no power of vm-1": {
        "statements": [
            {"text": "x", "audit_ids": [ONE], "facts": [{"subject": "vm-1", "property": "power", "value": "running"}]}
        ]
    },
    "recommended_actions: rm -rf / is FORBIDDEN": {"recommended_actions": ["To be sure: rm -rf /"]},
    "causes: coverage blames vm_state; name the cause": {"causes": []},
    "outcome: cause_found needs a cause": {"causes": [], "outcome": "cause_found"},
    "outcome: inconclusive has no causes": {"outcome": "inconclusive"},
    "outcome: healthy, but coverage blames vm_state": {"causes": [], "outcome": "healthy"},
    "confirmed_hypotheses: no hypothesis 'h9'": {**HIGH, "confirmed_hypotheses": ["h9"]},
    "refuted_hypotheses: h1 is CONFIRMED": {**HIGH, "refuted_hypotheses": ["h1"]},
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_conclusion_with_a_problem_is_returned_twice_and_then_stands_with_less_confidence(bench, problem):
    results, session = concluded(bench, CONFIRMED, **PROBLEMS[problem])
    assert [r["status"] for r in results] == ["error", "error", "ok"]
    assert all(any(p.startswith(problem) for p in r["problems"]) for r in results)
    assert session.completion["confidence"] != "high" or "hypotheses" in problem


def test_a_corrected_conclusion_stands_at_once(bench):
    wrong = turn("", complete(**HIGH, statements=[{"text": "x"}], coverage=AT_FAULT, causes=[CAUSE]))
    results, session = concluded(bench, CONFIRMED, wrong, **HIGH, statements=[{"text": "x", "audit_ids": [ONE]}])
    assert [r["status"] for r in results] == ["error", "ok"]
    assert session.completion["confidence"] == "high"
    assert session.completion["confidence_bounds"] == []


def test_with_old_records_of_an_earlier_session_no_conclusion_is_more_than_medium(bench):
    _, session = concluded(bench, CONFIRMED, **HIGH, statements=[])
    paths, earlier = session.paths(bench.root), SessionPaths(bench.root / "audit", "ghost_20251231_120000")
    now = Evidence(paths.shell_audit)[THREE]["timestamp"]
    for minutes, confidence in ((5, "high"), (15, "medium")):
        then = datetime.fromisoformat(now) - timedelta(minutes=minutes)
        earlier.shell_audit.write_text(
            json.dumps({"audit_id": f"{earlier.session_id}_001", "timestamp": isoformat(then)})
        )
        paths.earlier_records.write_text(json.dumps({"session_id": earlier.session_id}))
        assert bounded_confidence(session.completion, session, Evidence(paths.shell_audit))[0] == confidence


CLEARED = [
    {"layer": layer, "status": "cleared", "audit_ids": [ONE]}
    for layer in ("vm_state", "nsg_outbound", "nsg_inbound", "routes", "wire")
]
HEALTHY = {"causes": [], "outcome": "healthy", "coverage": CLEARED}
OUTCOMES = {
    "a supported cause": ({}, "cause_found"),
    "a cause beside another outcome": ({"outcome": "inconclusive"}, "cause_found"),
    "one of two supported": ({"causes": [{**CAUSE, "audit_ids": []}, CAUSE]}, "cause_found"),
    "an unsupported cause": ({"causes": [{**CAUSE, "kind": "x"}], "outcome": "cause_found"}, "inconclusive"),
    "no cause": ({"causes": [], "outcome": "cause_found"}, "inconclusive"),
    "nothing stated": ({"causes": []}, "inconclusive"),
    "not begun": ({"causes": [], "outcome": "not_investigated"}, "not_investigated"),
    "all clear": (HEALTHY, "healthy"),
    "a layer left": ({**HEALTHY, "coverage": CLEARED[1:]}, "inconclusive"),
    "a layer cleared by a local probe alone": (
        {**HEALTHY, "coverage": [*CLEARED, {**CLEARED[0], "audit_ids": [TWO]}]},
        "inconclusive",
    ),
    "a layer at fault": ({**HEALTHY, "coverage": [*CLEARED, *AT_FAULT]}, "inconclusive"),
}


def test_the_outcome_is_what_the_records_allow(bench):
    refuted = turn("", H1, hypothesis("refute", audit_ids=[ONE]))
    _, session = concluded(bench, refuted)
    evidence = Evidence(session.paths(bench.root).shell_audit)
    found = {
        name: settled_outcome({"coverage": AT_FAULT, "causes": [CAUSE], **stated}, session, evidence)
        for name, (stated, _) in OUTCOMES.items()
    }
    assert found == {name: outcome for name, (_, outcome) in OUTCOMES.items()}
    untested = session.model_copy(update={"hypothesis_log": []})
    assert settled_outcome(HEALTHY, untested, evidence) == "inconclusive"
    session.hypothesis_log.append(session.hypothesis_log[0].model_copy(update={"id": "h2", "state": "ACTIVE"}))
    assert settled_outcome(HEALTHY, session, evidence) == "inconclusive"
    session.startup_audit_ids = list(evidence)
    assert settled_outcome({}, session, evidence) == "not_investigated"


DENIED = turn("", hypothesis("register", "h2"), *[command("az vm restart -g rg -n vm-1", hypothesis_ids=["h2"])] * 3)
DISAGREE = turn("", hypothesis("register", "h3"), hypothesis("contradict", "h3", audit_ids=[ONE, TWO]))
BOUNDS = {
    "all carried": ((CONFIRMED,), {}, "high"),
    "nothing confirmed": ((), {"root_cause_summary": f"It is the rule ({ONE})."}, "medium"),
    "nothing cited": ((), {}, "low"),
    "confirmed by a local probe alone": ((turn("", H1, hypothesis("confirm", audit_ids=[TWO])),), {}, "medium"),
    "no layer at fault": ((CONFIRMED,), {"coverage": []}, "medium"),
    "another record at fault": (
        (CONFIRMED,),
        {"coverage": [{"layer": "dns", "status": "at_fault", "audit_ids": [TWO]}]},
        "medium",
    ),
    "the layer at fault cites a bad record too": (
        (CONFIRMED,),
        {"coverage": [{"layer": "dns", "status": "at_fault", "audit_ids": [ONE, THREE]}]},
        "medium",
    ),
    "the layer at fault is cleared below": (
        (CONFIRMED,),
        {"coverage": [{"layer": "dns", "status": s, "audit_ids": [ONE]} for s in ("at_fault", "cleared")]},
        "medium",
    ),
    "no cause is named": ((CONFIRMED,), {"causes": []}, "medium"),
    "no cause is more than likely": ((CONFIRMED,), {"causes": [{**CAUSE, "confidence": "medium"}]}, "medium"),
    "an unsupported statement": ((CONFIRMED,), {"statements": [{"text": "x"}]}, "medium"),
    "unverifiable, nothing confirmed": ((DENIED,), {"root_cause_summary": f"It is the rule ({ONE})."}, "low"),
    "unverifiable beside a confirmed cause": ((CONFIRMED, DENIED), {}, "medium"),
    "said to be unverifiable, but never denied, beside a confirmed cause": (
        (CONFIRMED, turn("", hypothesis("register", "h2"))),
        {"unverifiable_hypotheses": ["h2"]},
        "high",
    ),
    "contradicted": ((CONFIRMED, DISAGREE), {"contradicted_hypotheses": ["h3"]}, "medium"),
    "contradicted and resolved": (
        (CONFIRMED, DISAGREE, turn("", hypothesis("refute", "h3", audit_ids=[ONE]))),
        {"refuted_hypotheses": ["h3"]},
        "high",
    ),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_the_records_bound_the_confidence(bench, case):
    before, arguments, bound = BOUNDS[case]
    _, session = concluded(bench, *before, **{"confidence": "high", **arguments})
    assert session.completion["confidence"] == bound
    assert bool(session.completion["confidence_bounds"]) is (bound != "high")


def test_the_reads_of_the_start_confirm_nothing(bench):
    investigation = bench.investigation([READS, CONFIRMED, *[turn("", complete(**HIGH))] * 3])
    investigation.session.startup_audit_ids = [ONE]
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    assert investigation.session.completion["confidence"] == "medium"


def test_the_first_conclusion_stays_and_nothing_runs_after_it(bench):
    both = turn("", complete(), command("az vm list -g rg"), complete(root_cause_summary="Something else."))
    investigation = bench.investigation([both])
    investigation.begin("vm-1 cannot reach vm-2")
    investigation.run()
    assert bench.ran == []
    assert [r.get("error") for _, r in bench.desk.results] == [None, *["investigation_complete"] * 2]
    assert investigation.session.completion["root_cause_summary"] == "It is the rule."
