"""A model's conclusion against the walk of the traffic that the symptom means goes back with that walk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ghost.brain import OpenedBrain
from tests.agent.lab_bench import Investigated, investigated
from tests.agent.played_turns import PlayedModel

WALKED = "{t2.1 coverage}"
BY = ["{t2.1 causes.0.audit_ids}"]
CAUSE = {
    "kind": "security_rule", "resource": "cache-nsg", "rule": "close-legacy-ports", "direction": "Inbound",
    "confidence": "high", "audit_ids": BY,
    "flow": {"source": "web-vm-01", "destination": "redis-cache-01", "port": 6379},
}  # fmt: skip
RIGHT = {
    "outcome": "cause_found", "confidence": "high", "root_cause_summary": "{t2.1 statements.0.text}",
    "confirmed_hypotheses": ["h1"], "causes": [CAUSE], "coverage": [WALKED],
}  # fmt: skip
HEALTHY = {
    **RIGHT, "outcome": "healthy", "causes": [], "confirmed_hypotheses": [], "refuted_hypotheses": ["h1"],
    "coverage": [
        {"layer": layer, "status": "cleared", "audit_ids": BY}
        for layer in ("vm_state", "nsg_outbound", "nsg_inbound", "routes", "wire")
    ],
}  # fmt: skip
WALK = "TCP 10.20.1.4 -> 10.20.2.5:6379 blocked"
AGAINST: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    # what is concluded: the problems that are told, and with what outcome and confidence it stands in the end
    "healthy": (HEALTHY, ["coverage of nsg_inbound: the walk says otherwise", "healthy, but TCP", "no capture"],
                "inconclusive", "low"),
    "nothing found": (RIGHT | {"outcome": "inconclusive", "causes": []}, ["outcome: inconclusive, but TCP"],
                      "inconclusive", "medium"),
    "another rule": (RIGHT | {"causes": [CAUSE | {"rule": "allow-ssh"}]},
                     ["cause 1: walked again from the records, what stops"], "inconclusive", "medium"),
    "another kind": (RIGHT | {"causes": [CAUSE | {"kind": "route_none", "resource": "web-vm-01-nic", "rule": "r"}]},
                     ["cause 1: walked again from the records, what stops"], "inconclusive", "medium"),
    "the way back": (RIGHT | {"causes": [CAUSE | {"flow": {"source": "redis-cache-01", "destination": "web-vm-01"}}]},
                     ["cause 1:"], "inconclusive", "medium"),
    "other traffic": (RIGHT | {"causes": [CAUSE | {"flow": CAUSE["flow"] | {"port": 6001}}]},
                      ["cause 1: high needs the symptom's own traffic"], "cause_found", "medium"),
    "what is so": (RIGHT, [], "cause_found", "high"),
}  # fmt: skip


def concluded(root: Path, conclusion: dict[str, Any]) -> Investigated:
    h1 = {"id": "h1", "description": "A rule denies it.", "refuted_by": "The walk passes."}
    resolve = {"action": "refute" if conclusion["outcome"] == "healthy" else "confirm", "id": "h1", "audit_ids": BY}
    turn = [["manage_hypotheses", {"action": "register", **h1}], ["manage_hypotheses", resolve]]
    model = PlayedModel([[*turn, ["complete_investigation", conclusion]], [["complete_investigation", conclusion]]])
    return investigated("blocked-port", root, OpenedBrain(model))


def test_a_conclusion_against_the_walk_goes_back_with_the_walk_and_is_never_certain(tmp_path: Path) -> None:
    for name, (conclusion, problems, outcome, confidence) in AGAINST.items():
        done = concluded(tmp_path / name, conclusion)
        answers = [result for call, result in done.desk.results if call.name == "complete_investigation"]
        told = " | ".join(answers[0].get("problems") or ())
        assert [problem for problem in problems if problem not in told] == [], (name, told)
        if problems[:1] and "high needs" not in problems[0] and name != "the way back":
            assert WALK in told, (name, told)
            assert "security_group cache-nsg drop (close-legacy-ports" in told, (name, told)
        assert len(answers) == (3 if problems else 1), name
        assert (done.report["outcome"], done.report["confidence"]) == (outcome, confidence), name
        assert done.problems == [], name
        cleared = [row["layer"] for row in done.report["coverage"] if row["status"] == "cleared"]
        assert "nsg_inbound" not in cleared, name
