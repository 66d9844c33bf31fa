"""A private investigation: the offline brain reasons on what is real; every record and report holds placeholders."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from rich.console import Console

from ghost.agent import Evidence, Workspace, load_session
from ghost.brain import OfflineBrain, StatedEnds
from ghost.cli.narration import Narration
from ghost.cli.session_opening import SessionOpening
from ghost.config import Settings
from ghost.lab import load_scenario, score
from ghost.records import SystemClock
from ghost.text import map_text
from tests.cli.ready_ghost import SIGNAL_AT, run_ghost
from tests.lab.variations import renamed

STEPS_BEFORE_KILL = 130


def test_it_finds_the_cause_though_it_was_killed_and_only_the_mapping_names_what_is_private(tmp_path):
    scenario = renamed(load_scenario("blocked-port"), 3)
    (tmp_path / "scenario.json").write_text(json.dumps(scenario.to_dict()))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GHOST_", "GEMINI_"))}

    def ghost(*words: str, **more: str):
        return run_ghost(*words, cwd=tmp_path, environment={**clean, "GHOST_LAB_SPEED": "500", **more}, in_process=True)

    begun = ("investigate", scenario.symptom, "--private", "--lab", "scenario.json")
    killed = ghost(*begun, **{SIGNAL_AT: f"SIGKILL {STEPS_BEFORE_KILL}"})
    assert killed.returncode == -9
    assert "? H1  " in killed.stdout
    session = json.loads((tmp_path / "ghost_session.json").read_text())["session_id"]
    nothing_private_is_written(tmp_path, scenario)

    resumed = ghost("investigate", "--resume", session, "--json")
    assert resumed.returncode == 0, resumed.stderr[-2000:]
    nothing_private_is_written(tmp_path, scenario)
    evidence = Evidence(tmp_path / "audit" / f"shell_audit_{session}.jsonl")
    judged = score(scenario, map_text(json.loads(resumed.stdout), evidence.restored))
    assert (judged.root_cause_right, judged.false_causes) == (True, 0)
    assert ghost("audit", "verify", session).returncode == 0
    assert scenario.symptom in resumed.stderr  # the engineer reads what is real
    assert "could not be run again" not in resumed.stderr


def test_what_was_typed_is_on_disk_from_the_start_and_only_in_the_mapping(tmp_path):
    opening = SessionOpening(
        Workspace(tmp_path), Settings(), Narration(Console(), interactive=False), SystemClock(), OfflineBrain(), True
    )
    session = opening.new(load_scenario("blocked-port"), "vm-1 is down", StatedEnds("vm-1", "10.0.0.4", 443)).session
    assert session.symptom == "vm-1 is down"
    saved, _ = load_session(tmp_path / "ghost_session.json")
    assert "vm-1" not in saved.model_dump_json()
    real = Evidence(session.paths(tmp_path).shell_audit).restored
    assert (real(saved.symptom), real(saved.stated.destination), saved.stated.port) == ("vm-1 is down", "10.0.0.4", 443)


def nothing_private_is_written(directory: Path, scenario) -> None:
    """The simulated tenant itself, `lab/` and the scenario, is no record of the investigation."""
    private = names_and_addresses(scenario)
    assert len(private) > 10
    for path in sorted({*directory.rglob("*")} - {*(directory / "lab").rglob("*"), directory / "scenario.json"}):
        if path.is_file() and "anonymization_map_" not in path.name:  # also one that the kill left half written
            text = path.read_text("utf-8", "replace")
            assert [each for each in private if each.casefold() in text.casefold()] == [], path.name


def names_and_addresses(scenario) -> set[str]:
    world = scenario.to_dict()["world"]
    addresses = set(re.findall(r"\b(?:10|172|192)\.\d+\.\d+\.\d+", json.dumps(world)))
    machines = {each["name"] for each in world["machines"]}
    return addresses | machines | {f"/subscriptions/{world['subscription']['id']}"}
