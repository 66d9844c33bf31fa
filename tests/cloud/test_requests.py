"""What the brain may ask for, and what a wrong request gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ghost.cloud import CloudOrchestrator
from ghost.errors import UsageError

from .conftest import MakeDesk
from .scripted import (
    TASK,
    ScriptedShell,
    status,
)

WRONG_REQUESTS = [
    json.loads(line) for line in (Path(__file__).parent / "wrong_requests.jsonl").read_text().splitlines()
]
GOOD = {"resource_group": "prod-rg", "storage_account": "forensics"}


@pytest.mark.parametrize("case", WRONG_REQUESTS, ids=lambda case: case["says"])
def test_a_wrong_request_is_answered_and_makes_no_task(desk: MakeDesk, case: dict[str, Any]) -> None:
    d = desk()
    commands = len(d.shell.commands)
    response = d.orchestrator.orchestrate(case["request"])
    assert (response["status"], response["error"]) == ("error", case["error"])
    assert case["says"] in response["message"]
    assert (response["user_denied"], response["denial_reason"], response["shell_audit_ids"]) == (False, None, [])
    assert len(d.shell.commands) == commands
    assert not d.orchestrator.registry_path.exists()


@pytest.mark.parametrize(
    ("top", "inner", "default", "expected"),
    [
        (None, None, "login", "login"),
        (None, None, "key", "key"),
        (None, "key", "login", "key"),
        ("login", "key", "key", "login"),
    ],
)
def test_the_auth_mode_of_the_request_reaches_every_storage_command(
    desk: MakeDesk, top: str | None, inner: str | None, default: str, expected: str
) -> None:
    d = desk(storage_auth_mode=default)
    request = {"intent": "capture_traffic", "target": "web-vm-01", "parameters": {**GOOD, "storage_auth_mode": inner}}
    d.orchestrator.orchestrate(request if top is None else {**request, "storage_auth_mode": top})
    d.ask("check_task", task_id=TASK)
    d.ask("cleanup_task", task_id=TASK)
    storage = d.shell.matching("^az storage (container|blob)")
    assert len(storage) == 3
    assert all(f"--auth-mode {expected}" in command for command in storage)


def test_a_model_may_write_a_whole_number_as_a_float(desk: MakeDesk) -> None:
    d = desk()
    assert d.capture(duration_seconds=90.0)["state"] == "PROVISIONING"
    assert d.shell.matching("--time-limit 90 ")


def test_a_size_limit_reaches_the_creation(desk: MakeDesk) -> None:
    d = desk()
    d.capture(size_limit_bytes=1_000_000)
    assert d.shell.matching("--capture-limit 1000000 ")
    assert d.records()[-1]["parameters"]["size_limit_bytes"] == 1_000_000


def test_two_captures_of_one_machine_in_one_second_are_two_tasks(desk: MakeDesk) -> None:
    d = desk()
    assert [d.capture()["task_id"] for _ in range(3)] == [TASK, f"{TASK}_2", f"{TASK}_3"]


def test_a_shell_that_breaks_is_an_answer_and_the_task_goes_on(desk: MakeDesk) -> None:
    def explode(_: str) -> dict[str, object]:
        raise OSError("the disk is gone")

    d = desk(("show-status", [explode, status("Stopped")]))
    d.capture()
    response = d.ask("check_task", task_id=TASK)
    assert (response["status"], response["error"], response["task_id"]) == ("error", "internal_error", TASK)
    assert d.ask("check_task", task_id=TASK)["status"] == "task_completed"


@pytest.mark.parametrize(
    ("name", "value"),
    [("storage_auth_mode", "sas"), ("max_polls", 0), ("storage_container", "Bad_"), ("capture_name_prefix", "-x")],
)
def test_a_wrong_configuration_is_refused_at_once(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(UsageError, match=name):
        CloudOrchestrator(ScriptedShell(), "s1", tmp_path, **{name: value})


def test_a_session_id_that_cannot_name_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="session id"):
        CloudOrchestrator(ScriptedShell(), "../x", tmp_path)
