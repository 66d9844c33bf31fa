"""An investigation that was killed at a random point and resumed: the same cause, nothing lost, nothing twice.

Five kills in `make test`; `GHOST_KILLS=200` tries as many. Every other one is killed again while it is resumed. A point
is a change of a file, or a moment after one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from ghost.agent import Workspace
from ghost.cli.investigation_command import CONCLUDED, INCONCLUSIVE
from ghost.lab import load_scenario, score
from tests.cli.ready_ghost import SIGNAL_AT, run_ghost
from tests.exhaustive import EXHAUSTIVE

KILLS = int(os.environ.get("GHOST_KILLS") or (200 if EXHAUSTIVE else 5))


@dataclass(frozen=True)
class Known:
    """What an investigation that nobody kills comes to."""

    outcome: str
    captures: int
    changes: int
    """About how many changes of files it makes."""


SCENARIOS = {
    "blocked-port": Known("cause_found", 0, 190),
    "guest-broker-queue": Known("cause_found", 0, 195),
    "wire-loss": Known("cause_found", 2, 560),
    "wire-order-answers": Known("inconclusive", 2, 330),  # its captures are denied
    "calm-night-shift": Known("healthy", 2, 590),
}


def ghost(directory: Path, *words: str, at: str = "") -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "GEMINI_"))}
    environment = {**clean, "GHOST_LAB_SPEED": "500"} | ({SIGNAL_AT: at} if at else {})
    done = run_ghost(*words, cwd=directory, environment=environment, in_process=True)
    assert "Traceback" not in done.stderr
    return done


def records(directory: Path, kind: str) -> list[dict]:
    """Records of the one session; a line that was cut off is none."""
    lines = [line for path in directory.glob(f"audit/{kind}_ghost_*.jsonl") for line in path.read_bytes().split(b"\n")]
    return [json.loads(line) for line in lines if line.endswith(b"}")]


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_anywhere_it_resumes_to_the_same_cause_and_nothing_is_lost_or_doubled(tmp_path: Path, number: int):
    name, known = list(SCENARIOS.items())[number % len(SCENARIOS)]
    random = Random(number)

    name_of_signal = "SIGINT" if number % 4 == 3 else "SIGKILL"

    def point() -> str:
        later = random.choice((0, random.uniform(0, 0.05)))
        return f"{name_of_signal} {random.randint(1, known.changes)} {later:.4f}"

    at = point()
    words = ("investigate", "--lab", name, "--brain", "offline", "--json-events")
    killed = ghost(tmp_path, *words, at=at)
    session = Workspace(tmp_path).current_id()
    if session is None:  # killed before there was one: started again, it finds nothing in its way
        assert all(json.loads(line)["event"] == "ended" for line in killed.stdout.splitlines())
        killed = ghost(tmp_path, *words)
        session = Workspace(tmp_path).current_id()
    before = [record["audit_id"] for record in records(tmp_path, "shell_audit")]
    if number % 2:
        ghost(tmp_path, "investigate", "--resume", session, "--json-events", at=point())
    resumed = ghost(tmp_path, "investigate", "--resume", session, "--json-events")
    print(name, killed.returncode, len(before), at)

    assert resumed.stdout, resumed.stderr
    told = [json.loads(line) for line in resumed.stdout.splitlines()]
    (report,) = (json.loads(Path(event["json"]).read_text()) for event in told if event["event"] == "report")
    assert killed.returncode in (-signal.SIGKILL, 130, resumed.returncode)
    assert killed.returncode != 130 or killed.stderr.count(f"Resume with: ghost investigate --resume {session}\n") == 1
    assert resumed.returncode == (0 if known.outcome in CONCLUDED else INCONCLUSIVE)
    assert (report["outcome"], report["session_id"]) == (known.outcome, session)
    scenario = load_scenario(name)
    assert report["symptom"] == scenario.symptom
    judged = score(scenario, report)
    assert judged.false_causes == 0
    assert judged.root_cause_right or known.outcome not in CONCLUDED
    assert not [note for note in report["advisories"] if "Integrity" in note]

    ran = Counter(record["audit_id"] for record in records(tmp_path, "shell_audit"))
    assert set(ran.values()) == {1}
    assert Counter(event["audit_id"] for event in told if event["event"] == "command") == ran
    assert set(before) <= set(ran) == {row["audit_id"] for row in report["evidence"]}
    assert len({record["task_id"] for record in records(tmp_path, "orchestrator_tasks")}) == known.captures
    assert len(report["captures"]) == known.captures
    state = json.loads((tmp_path / "lab" / session / "state.json").read_text())
    assert not state.get("captures")
    assert not state.get("blobs")
    assert len(list(tmp_path.glob("audit/ghost_rca_*"))) == 2
    verified = ghost(tmp_path, "audit", "verify", session)
    assert verified.returncode == 0, verified.stdout
