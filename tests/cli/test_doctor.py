"""`ghost doctor`: one line per check, with what to do; nobody is asked and no value of a key is shown."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ghost.cli import doctor_command
from ghost.records import workspace_lock

from .ready_ghost import run_ghost
from .test_in_a_labs_shell import InLab, person  # noqa: F401 - a fixture

AZ = """#!/bin/sh
case "$*" in
  version*) echo '{"azure-cli": "2.91.0"}' ;;
  account*) [ -z "@LOGIN@" ] && { echo "ERROR: Please run 'az login' to setup account." >&2; exit 1; }
    echo '{"name": "Production", "id": "3f6c", "user": "someone@example.com"}' ;;
  *vnet*) [ -z "@NETWORKS@" ] && { echo "ERROR: (AuthorizationFailed) The client may not read." >&2; exit 1; }
    echo '{"count": 2, "first": ["prod-vnet", "hub-vnet"]}' ;;
  *watcher*) echo '{"count": 0, "first": []}' ;;
  *role*) echo '["Reader", "Network Contributor", "Reader"]' ;;
  *) echo "unexpected: $*" >&2; exit 9 ;;
esac
"""


def doctor(
    tmp_path: Path, *options: str, login: str = "yes", networks: str = "yes", **further: str
) -> subprocess.CompletedProcess[str]:
    az = tmp_path / "az"
    az.write_text(AZ.replace("@LOGIN@", login).replace("@NETWORKS@", networks))
    az.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GHOST_")}
    environment = {**kept, "GHOST_AZ": str(az), **further}
    return run_ghost("doctor", "--workspace", "w", *options, cwd=tmp_path, environment=environment)


def checks(run: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in json.loads(run.stdout)["checks"]}


def test_where_all_is_there_it_ends_with_0(tmp_path: Path) -> None:
    run = doctor(tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert all(line[0] in "✓!✗" and line.endswith(".") for line in lines[:-1])
    assert "✗" not in run.stdout
    found = checks(doctor(tmp_path, "--json"))
    assert "someone@example.com in Production" in found["az login"]["detail"]
    assert found["networks"] == {
        "check": "networks", "status": "ok", "detail": "2 can be read", "advice": "prod-vnet, hub-vnet",
    }  # fmt: skip
    assert found["roles"]["detail"] == "Network Contributor, Reader"


def test_every_command_is_safe_and_on_record(tmp_path: Path) -> None:
    doctor(tmp_path)
    (audit,) = (tmp_path / "w" / "audit").glob("shell_audit_doctor_*.jsonl")
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {record["action"] for record in records} == {"auto_approved"}
    assert len(records) == 5


@pytest.mark.parametrize(
    ("broken", "check", "advice"),
    [
        ({"GHOST_AZ": "/nowhere/az"}, "az", "install it"),
        ({"login": ""}, "az login", "run az login"),
        ({"networks": ""}, "networks", "Reader"),
    ],
)
def test_what_is_missing_is_one_line_with_the_way_out(
    tmp_path: Path, broken: dict[str, str], check: str, advice: str
) -> None:
    run = doctor(tmp_path, **broken)
    assert run.returncode == 1
    (bad,) = [line for line in run.stdout.splitlines() if line.startswith("✗")]
    assert bad.startswith(f"✗ {check} ")
    assert advice in bad


def test_a_workspace_in_use_is_told(tmp_path: Path) -> None:
    with workspace_lock(tmp_path / "w"):
        run = doctor(tmp_path)
    assert run.returncode == 1
    assert "in use by another process: wait for it to end" in run.stdout


def test_a_directory_that_is_none_is_told_and_az_is_still_asked(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("a file")
    run = doctor(tmp_path)
    assert run.returncode == 1
    assert "✗ workspace" in run.stdout
    assert "✓ networks" in run.stdout


def test_keys_are_named_and_not_shown(tmp_path: Path) -> None:
    run = doctor(tmp_path, GEMINI_API_KEY="not-to-be-shown")
    assert "GEMINI_API_KEY" in run.stdout
    assert "stub2-128, 128 numbers: VECTOR_DIM=384 finds more" in run.stdout
    assert "not-to-be-shown" not in run.stdout
    (tmp_path / "w" / ".env").write_text("OPENAI_API_KEY=hidden-too\n")
    (tmp_path / "w" / ".env").chmod(0o644)
    readable = doctor(tmp_path)
    assert readable.returncode == 1
    assert "chmod 600" in readable.stdout
    assert "hidden-too" not in readable.stdout


def test_a_brain_that_cannot_begin_is_a_failure(tmp_path: Path) -> None:
    for brain in ("gemini", "nonsense"):
        run = doctor(tmp_path, GHOST_BRAIN=brain)
        assert run.returncode == 1
        assert "✗ model keys" in run.stdout


def test_without_a_sandbox_it_says_what_that_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_command, "missing_sandbox", lambda: "This system has no sandbox.")
    assert "! sandbox" in str(doctor_command._sandbox())


def test_in_a_labs_shell_it_says_simulated(person: InLab, tmp_path: Path) -> None:  # noqa: F811
    shown = person("doctor", "--workspace", str(tmp_path / "w")).stdout
    assert "(SIMULATED, the lab blocked-port)" in shown
    assert "prod-vnet" in shown
