"""Every recorded error of Azure, and what az says by itself, is read as the kind it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ghost.azure import ErrorKind, error_of, read_error

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"
OWN = Path(__file__).parents[1] / "corpora" / "az_errors.jsonl"
KIND_OF_FILE = {  # by the beginning of a file's name; the first that fits
    "error-400-activity-log": "bad_request",
    "error-400": "conflict",
    "error-401": "login_expired",
    "error-403": "forbidden",
    "error-404": "not_found",
    "error-409": "conflict",
    "error-412": "conflict",
    "error-429-retryable": "conflict",
    "error-429": "throttled",
    "error-500": "service_fault",
    "network-watcher-create-400": "quota",
    "operation-failed": "conflict",
    "private-dns-record-404": "not_found",
    "stderr-403": "forbidden",
    "stderr-404-subscription": "wrong_subscription",
    "stderr-404": "not_found",
    "stderr-409": "conflict",
    "stderr-packet-capture-stop-500": "service_fault",
    "stderr-refresh-token": "login_expired",
    "stderr-subscription": "wrong_subscription",
}


def printed(answer: dict[str, Any]) -> str | None:
    """What az prints of a recorded answer; None if it is no error."""
    if "stderr" in answer:
        return str(answer["stderr"])
    body = answer.get("body")
    if not isinstance(body, dict) or not (answer.get("status", 0) >= 400 or body.get("status") == "Failed"):
        return None
    error = body.get("error", body)
    details = "".join(f"\nException Details:\t({d['code']}) {d['message']}" for d in error.get("details") or [])
    return f"ERROR: ({error['code']}) {error['message']}\nCode: {error['code']}\nMessage: {error['message']}{details}"


@pytest.mark.skipif(not RECORDED.is_dir(), reason="takes answers that Azure gave, which are not in the project")
def test_each_recorded_error_has_its_kind() -> None:
    read = 0
    for file in sorted(RECORDED.glob("*.json")):
        answer = json.loads(file.read_text(encoding="utf-8"))
        if (stderr := printed(answer)) is None:
            continue
        expected = next(kind for start, kind in KIND_OF_FILE.items() if file.name.startswith(start))
        assert read_error(stderr, answer.get("exit_code")).kind == expected, file.name
        read += 1
    assert read >= 30


def test_what_az_says_by_itself_has_its_kind() -> None:
    for case in map(json.loads, OWN.read_text(encoding="utf-8").splitlines()):
        error = read_error(case["stderr"], case.get("exit_code", 1))
        told = {name: getattr(error, name) for name in case["told"]}
        assert told == case["told"], case["stderr"]
        assert "\n" not in str(error)


def test_only_a_command_of_az_that_failed_has_an_error() -> None:
    failed = {"status": "completed", "exit_code": 1, "stderr": "ERROR: Please run 'az login' to setup account."}
    behind_a_pipe = {**failed, "exit_code": 0}
    for command, response, kind in (
        ("az vm list", failed, ErrorKind.LOGIN_MISSING),
        ("az vm list | head -3", behind_a_pipe, ErrorKind.LOGIN_MISSING),
        ("az vm list", {**failed, "exit_code": 0, "stderr": "WARNING: This command is in preview"}, None),
        ("az vm list", {**failed, "exit_code": 127}, None),
        ("az vm list", {**failed, "status": "denied"}, None),
        ("cat notes.txt", failed, None),
    ):
        error = error_of(command, response)
        assert (error and error.kind) == kind, (command, response)
