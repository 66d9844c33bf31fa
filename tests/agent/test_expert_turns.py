"""Recorded turns of an expert over ten scenarios: with the checks each is solved, in this many turns of the model."""

from __future__ import annotations

import json
from pathlib import Path

from ghost.brain import OpenedBrain
from ghost.lab import load_case, score
from tests.agent.lab_bench import investigated
from tests.agent.played_turns import PlayedModel
from tests.each_row import each

RECORDED = {
    row["scenario"]: row["turns"]
    for row in map(json.loads, (Path(__file__).parent / "expert_turns.jsonl").read_text().splitlines())
}


@each("scenario", RECORDED)
def test_an_expert_solves_each_scenario_in_the_turns_that_it_took(tmp_path: Path, scenario: str) -> None:
    model = PlayedModel(RECORDED[scenario])
    done = investigated(scenario, tmp_path / scenario, OpenedBrain(model))
    judged = score(load_case(scenario), done.report)
    assert (judged.root_cause_right, judged.false_causes, done.report["confidence"]) == (True, 0, "high")
    assert model.asked == len(RECORDED[scenario])
    assert all(statement["supported"] for statement in done.report["statements"])
    assert done.problems == []
