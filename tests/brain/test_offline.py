"""The offline brain on small incidents of the base worlds: it must find what is wrong in each, and only that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ghost.policy import load_policy
from tests.cli.ready_ghost import run_ghost

INCIDENTS = load_policy(__file__, "incidents.toml")["incidents"]
ALLOWED = ["az network watcher packet-capture", "az storage blob", "az vm run-command invoke", "rm", "cat"]
CONCLUDED = {"cause_found": 0, "healthy": 0, "inconclusive": 3, "not_investigated": 3}
"""Exit status by outcome."""


def report_of(incident: dict[str, Any], directory: Path) -> dict[str, Any]:
    refused = [{"match": each, "answer": "deny", "reason": "not now"} for each in incident.get("denies", [])]
    source, destination, port = incident["flow"].split()
    expect = "blocked" if incident["causes"] else "works"
    scenario = {
        "format": 2,
        "title": incident["name"],
        "base": incident["base"],
        "edits": incident.get("edits", []),
        "flows": [{"name": "main", "source": source, "destination": destination, "port": int(port), "expect": expect}],
        "answers": [{"match": each, "answer": "nobody can answer"} for each in incident.get("unanswered", [])],
        "symptoms": [{"style": "service", "text": incident["symptom"]}],
        "approvals": {"rules": [*refused, *({"match": each, "answer": "approve"} for each in ALLOWED)]},
    }
    (directory / "incident.json").write_text(json.dumps(scenario))
    words = ["investigate", incident["symptom"], "--lab", "./incident.json", "--brain", "offline", "--json"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GHOST_")}
    done = run_ghost(*words, cwd=directory, environment={**kept, "GHOST_LAB_SPEED": "500"}, in_process=True)
    assert done.returncode in CONCLUDED.values(), done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert CONCLUDED[report["outcome"]] == done.returncode
    return report


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident["name"])
def test_the_cause_and_only_the_cause(incident: dict[str, Any], tmp_path: Path) -> None:
    report = report_of(incident, tmp_path)
    summary = report["summary"]["text"]
    expected = [each.split(maxsplit=2) for each in incident["causes"]]
    found = [[cause["kind"], cause["resource"].split("/")[-1], cause["rule"]] for cause in report["causes"]]
    assert [row[: len(wanted)] for row, wanted in zip(found, expected, strict=False)] == expected, summary
    assert len(found) == len(expected), summary
    assert report["outcome"] == incident.get("outcome", report["outcome"]), summary
    assert report["confidence"] == incident.get("confidence", report["confidence"]), summary
    assert all(cause["supported"] for cause in report["causes"])
    assert [word for word in incident.get("says", []) if word not in summary] == [], summary
    assert [word for word in incident.get("never", []) if word in summary] == [], summary
