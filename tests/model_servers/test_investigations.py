"""A model that knows what to do solves the lab's scenarios through each real SDK, past faults and a kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from ghost.agent import tool_declarations
from ghost.brain import Message, Turn
from ghost.lab import load_scenario
from tests.exhaustive import sample
from tests.model_servers.dialects import DIALECTS
from tests.model_servers.exchange import KEY, MODEL, Answer, ApiError, Dialect
from tests.model_servers.expert import EXPERTS, expert
from tests.model_servers.ready_ghost import run_ghost, starter
from tests.model_servers.server import ModelServer, serving
from tests.model_servers.test_answers import INVALID_UTF8
from tests.providers.servers import answer, dripping_body, huge_body
from tests.test_end_to_end import Finished, the_cause_is_right

KILLED_AT = {"blocked-port": 3, "wire-loss": 5}
"""The turns before the kill: the rules are read, the capture runs."""
FAULTS: list[tuple[str, Answer]] = [
    ("Check the model's name (model-x)", ApiError("unknown_model", MODEL)),
    ("check GHOST_LLM_KEY", ApiError("wrong_key")),
    ("quota of this key is used up", ApiError("quota")),
    ("tools.0.parameters: not accepted", ApiError("bad_request", "tools.0.parameters: not accepted")),
    ("over the size limit", huge_body),
    ("GHOST_BRAIN_TIMEOUT", dripping_body),
    ("gave a", answer(200, INVALID_UTF8)),
]
"""What a server answers, and what the line says that is read then."""


def ghost(*words: str, server: ModelServer, cwd: Path, **variables: str) -> CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GHOST_")}
    model = {"GHOST_LLM_URL": server.url, "GHOST_LLM_KEY": KEY, "GEMINI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    result = run_ghost(*words, cwd=cwd, environment={**clean, **model, "GHOST_LAB_SPEED": "1000", **variables})
    assert "Traceback" not in result.stderr
    return result


def the_session(directory: Path) -> str:
    session: str = json.loads((directory / "ghost_session.json").read_text())["session_id"]
    return session


def test_through_faults_and_a_kill_the_cause_is_found(tmp_path: Path) -> None:
    cases = sample(product(EXPERTS, DIALECTS), 3, seed=4)
    for number, (scenario, dialect) in enumerate(cases):
        faults = FAULTS[number :: len(cases)]
        _investigate(tmp_path / f"{scenario} {dialect.name}", scenario, dialect, faults)


def _investigate(directory: Path, scenario: str, dialect: Dialect, faults: Sequence[tuple[str, Answer]]) -> None:
    """One session: begun with a server at fault, killed, resumed, and concluded."""
    directory.mkdir()

    before_the_kill = [KILLED_AT[scenario]]

    def killing(conversation: Sequence[Message]) -> Answer:
        if [sum(isinstance(message, Turn) for message in conversation)] == before_the_kill:
            before_the_kill.clear()
            os.kill(starter().running, signal.SIGKILL)
        return expert(scenario)(conversation)

    with serving(dialect, killing) as server:
        words = ["--lab", scenario, "--brain", dialect.name, "--model", MODEL]
        for line, fault in faults:
            server.script = lambda _, fault=fault: fault
            seconds = "0.5" if fault is dripping_body else "30"
            failed = ghost("investigate", *words, server=server, cwd=directory, GHOST_BRAIN_TIMEOUT=seconds)
            assert failed.returncode == 1, failed.stderr[-2000:]
            said, saved = failed.stderr.splitlines()[-2:]
            assert line in said + saved
            assert f"Resume with: ghost investigate --resume {the_session(directory)}" in said + saved
            words = ["--resume", the_session(directory)]
        server.script = killing
        killed = ghost("investigate", *words, server=server, cwd=directory)
        assert killed.returncode == -signal.SIGKILL
        resumed = ghost("investigate", "--resume", the_session(directory), "--json", server=server, cwd=directory)
        assert resumed.returncode == 0, resumed.stderr[-2000:]
        verified = ghost("audit", "verify", the_session(directory), server=server, cwd=directory)
    report: dict[str, Any] = json.loads(resumed.stdout)
    the_cause_is_right(Finished(report, resumed.stderr, directory), load_scenario(scenario))
    assert report["confidence"] == "medium"
    assert all(statement["supported"] for statement in report["statements"])
    assert verified.returncode == 0, verified.stdout
    assert server.refused == []
    assert all(set(request.tools) == {tool.name for tool in tool_declarations()} for request in server.understood)
