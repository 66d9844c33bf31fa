"""A server or a terminal killed while an approval waits, or just as it is answered: asked again, nothing run unapproved
or twice.

One kill of each in `make test`, with the lab's programs in its process; `GHOST_KILLS=30` tries as many, with real ones:
before, at and after the answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from ghost.agent import Workspace
from tests.cli.test_shared_questions import GHOST, investigating
from tests.exhaustive import EXHAUSTIVE

KILLS = int(os.environ.get("GHOST_KILLS") or (30 if EXHAUSTIVE else 1))
QUICK = """
import os, sys
from tests.cli.ready_ghost import IN_PROCESS, main
os.environ[IN_PROCESS] = "1"
sys.exit(main(sys.argv[1:]))
"""
STARTED = [sys.executable, "-c", QUICK] if KILLS == 1 else [GHOST]
TOKEN = "a-token-of-this-test"
PATIENCE = 300.0


@contextlib.contextmanager
def serving(root: Path) -> Iterator[tuple[subprocess.Popen[str], httpx2.Client]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "GEMINI_"))}
    given = {"GHOST_LAB_SPEED": "500", "GHOST_API_TOKEN": TOKEN, "SOC_ENABLED": "false", "GHOST_BRAIN": "offline"}
    words = [*STARTED, "serve", "--port", "0", "--workspace", str(root)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**clean, **given}) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split("dashboard: ")[1].split("/ui")[0]
            headers = {"Authorization": f"Bearer {TOKEN}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as client:
                yield server, client
        finally:
            server.kill()


def until(find: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := find()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def approvals(client: httpx2.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/approvals").json()["approvals"]
    return found


def approve(client: httpx2.Client, asked: dict[str, Any]) -> int:
    answer = {"sha256": asked["sha256"], "answer": "approve"}
    return client.post(f"/approvals/{asked['id']}/answer", json=answer).status_code


@pytest.mark.parametrize("number", range(KILLS))
def test_killed_while_an_approval_waits_it_is_asked_again_and_nothing_runs_twice(tmp_path: Path, number: int) -> None:
    random = Random(number)
    with serving(tmp_path) as (server, client):
        order = client.post("/investigations", json={"symptom": "app-vm-01 to db-vm-01 stalls", "lab": "wire-loss"})
        (asked,) = until(lambda: approvals(client))
        if number % 3:
            assert approve(client, asked) == 200
        time.sleep(random.uniform(0, 2.0 if number % 3 == 2 else 0.3))
        server.kill()
    before = len(_records(tmp_path, "approvals"))
    with serving(tmp_path) as (_, client):
        (left,) = client.get("/queue").json()["orders"]
        assert left["id"] == order.json()["id"]
        assert left["state"] == "interrupted"
        assert approve(client, asked) in (404, 409)  # nobody waits for that one any more
        again = client.post(f"/queue/{left['id']}/again").json()["id"]

        def ended() -> bool:
            for each in approvals(client):
                assert each["id"] != asked["id"]
                approve(client, each)
            orders = {each["id"]: each for each in client.get("/queue").json()["orders"]}
            return orders[again]["state"] not in ("queued", "running")

        until(ended)
        (done,) = client.get("/queue").json()["orders"]
    session = Workspace(tmp_path).current_id()
    assert (done["state"], done["session_id"], done["outcome"]) == ("ended", session, "cause_found")
    if number % 3 == 0:
        assert [record["kind"] for record in _records(tmp_path, "approvals")[before:]] == ["plan"]  # asked again, once
    _check_what_ran(tmp_path, session)


@pytest.mark.parametrize("number", range(KILLS))
def test_of_a_terminal_killed_while_an_approval_waits_the_same_holds(tmp_path: Path, number: int) -> None:
    random = Random(number)
    with investigating(tmp_path, *STARTED) as terminal:
        terminal.until("Your choice: ")
        if number % 3:
            terminal.type("a")
        time.sleep(random.uniform(0, 2.0 if number % 3 == 2 else 0.3))
    before = len(_records(tmp_path, "approvals"))
    session = Workspace(tmp_path).current_id()
    assert session is not None
    with investigating(tmp_path, *STARTED, resume=session) as terminal:
        while "Your choice: " in terminal.until("Your choice: ", "RCA REPORT WRITTEN", "This session is finished"):
            terminal.shown = ""
            terminal.type("a")
    if number % 3 == 0:
        assert [record["kind"] for record in _records(tmp_path, "approvals")[before:]] == ["plan"]  # asked again, once
    _check_what_ran(tmp_path, session)


def _check_what_ran(tmp_path: Path, session: str) -> None:
    ran = [record for record in _records(tmp_path, "shell_audit") if record.get("exit_code") is not None]
    risky = [record for record in ran if record["classification"] == "RISKY"]
    assert all(record["action"] == "user_approved" and record["approval_id"] for record in risky)
    created = Counter(record["command"] for record in risky if "packet-capture create" in record["command"])
    assert created
    assert set(created.values()) == {1}
    state = json.loads((tmp_path / "lab" / session / "state.json").read_text())
    assert not state.get("captures")
    assert not state.get("blobs")
    verified = subprocess.run(
        [GHOST, "audit", "verify", session, "--workspace", tmp_path], capture_output=True, text=True
    )
    assert verified.returncode == 0, verified.stdout


def _records(root: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for path in root.glob(f"audit/{kind}_ghost_*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]
