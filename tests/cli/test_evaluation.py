"""`ghost eval`: a row for each investigation, whatever becomes of it."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ghost.errors import UsageError
from ghost.lab import Job, run_side_by_side

from .ready_ghost import run_ghost

ROW = {
    "name", "wording", "root_cause_right", "faults_found", "faults_present", "false_causes", "confidence", "commands",
    "risky_asked", "questions", "turns", "tokens", "seconds",
}  # fmt: skip


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GHOST_LAB_SPEED": "200", "GHOST_BRAIN": "offline"}


def test_an_investigation_becomes_a_row_and_a_table_of_80_columns(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ("eval", "--scenarios", "denied-*", "--json", "score.json", "--workspace", "kept")
    done = run_ghost(*words, cwd=tmp_path, environment=environment)
    told = json.loads((tmp_path / "score.json").read_text())
    (row,) = told["scenarios"]

    assert done.returncode == 0, done.stderr
    assert told["brain"] == "offline"
    assert row.keys() >= ROW
    assert "error" not in row
    assert row["commands"] > 3
    assert row["turns"] > 2
    assert (told["summary"]["runs"], told["summary"]["classes"].keys()) == (1, {"nsg"})
    assert "[1/1] denied-by-default 1: " in done.stderr
    assert "total" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list(tmp_path.glob("kept/eval-*/001/audit/ghost_rca_*.json"))


def test_memory_halves_a_second_run_and_one_that_misleads_costs_next_to_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("eval", "blocked-port", "--memory", "--json", "-")
    done = run_ghost(*words, cwd=tmp_path, environment=environment, seconds=240)
    told = json.loads(done.stdout)
    (effect,) = told["scenarios"]

    assert (done.returncode, effect["worse"]) == (0, []), done.stderr
    assert effect["second"]["seen_at"] < effect["first"]["seen_at"]
    assert 2 * effect["second"]["row"]["commands"] <= effect["first"]["row"]["commands"]
    assert (told["summary"]["misled"], told["summary"]["misled_same_verdict"]) == (1, 1)
    assert told["summary"]["misled_most_more"] <= 3
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_a_time_out_is_a_row_with_an_error_and_below_the_wanted_percentage(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ("eval", "ssh-is-let-in", "--repeat", "2", "--timeout", "0.1", "--json", "-")
    done = run_ghost(*words, cwd=tmp_path, environment=environment)
    rows = json.loads(done.stdout)["scenarios"]

    assert done.returncode == 0
    assert [(row["error"], row["root_cause_right"]) for row in rows] == [("no report within 0.1 s", False)] * 2
    assert run_ghost(*words, "--fail-under", "1", cwd=tmp_path, environment=environment).returncode == 1


@pytest.mark.parametrize("words", [("no-such-*",), ("./none.toml",), ("blocked-port", "--brain", "no-such-brain")])
def test_what_cannot_be_evaluated_is_a_usage_error(
    words: tuple[str, ...], tmp_path: Path, environment: dict[str, str]
) -> None:
    done = run_ghost("eval", *words, cwd=tmp_path, environment=environment)

    assert done.returncode == UsageError.exit_status
    assert len(done.stderr.splitlines()) == 1


def test_who_stops_early_leaves_nothing_running(tmp_path: Path) -> None:
    def job(name: str, program: str) -> Job:
        return Job((sys.executable, "-I", "-c", program), tmp_path / name)

    jobs = [
        job("short", "print('done')"),
        job("long", "import pathlib, os, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"),
        job("late", "print('never')"),
    ]
    with closing(run_side_by_side(jobs, at_once=2, timeout_seconds=30, environment={})) as ended:
        first = next(ended)
        while not (jobs[1].directory / "pid").exists() or not (jobs[1].directory / "pid").read_text():
            time.sleep(0.01)
    assert (first.job, first.status, first.job.output.read_text()) == (jobs[0], 0, "done\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((jobs[1].directory / "pid").read_text()), 0)
