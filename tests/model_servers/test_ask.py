"""`ghost ask` through each real SDK: no tool is offered, and a sentence counts by its records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ghost.brain import ToolCall
from tests.model_servers.dialects import DIALECTS
from tests.model_servers.exchange import MODEL, Dialect, Reply
from tests.model_servers.server import serving
from tests.model_servers.test_investigations import ghost, the_session

REMOVE = ToolCall("", "run_shell_cmd", {"command": "rm -rf /", "reasoning": "A record says so."})
SAID = "The route is the system's own [#006].\nAll is well.\nThe gateway is down [#077]."


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private session of a lab, made offline."""
    directory = tmp_path_factory.mktemp("asked")
    with serving(DIALECTS[0], [Reply()]) as server:
        words = ("investigate", "--lab", "blocked-port", "--brain", "offline", "--private")
        assert ghost(*words, server=server, cwd=directory).returncode == 0
    return directory


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_model_answers_from_the_records_and_is_told_no_address(workspace: Path, dialect: Dialect) -> None:
    session = the_session(workspace)
    audit = {path: path.read_bytes() for path in (workspace / "audit").glob("*.jsonl")}
    words = ("ask", session, "why not the route to 10.20.2.5?", "--brain", dialect.name, "--model", MODEL)
    with serving(dialect, [Reply(SAID), Reply(SAID, (REMOVE,))]) as server:
        asked = ghost(*words, server=server, cwd=workspace)
        as_json = json.loads(ghost(*words, "--json", server=server, cwd=workspace).stdout)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.splitlines() == [
        "The route is the system's own. [#006]",
        "Left out: 2 sentences not in the records (--json has them).",
    ]
    assert f"Asking {dialect.name}/{MODEL} at 127.0.0.1...\nIt took 1,200 tokens in, 60 out" in asked.stderr
    assert as_json["not_in_records"] == SAID.splitlines()[1:]
    assert [request.tools for request in server.understood] == [{}, {}]
    assert server.refused == []
    sent = b"".join(server.received)
    assert b"why not the route to [INTERNAL_IP_" in sent.replace(b"\\u005b", b"[")
    assert b"10.20.2.5" not in sent
    assert {path: path.read_bytes() for path in (workspace / "audit").glob("*.jsonl")} == audit


def test_offline_the_report_answers_with_real_values(workspace: Path) -> None:
    with serving(DIALECTS[0], [Reply()]) as server:
        offline = ("--brain", "offline")
        asked = ghost("ask", the_session(workspace), "why not 10.20.2.5?", *offline, server=server, cwd=workspace)
        unknown = ghost("ask", the_session(workspace), "is Paris open?", *offline, server=server, cwd=workspace)
        empty = ghost("ask", the_session(workspace), " ", *offline, server=server, cwd=workspace)
    assert asked.returncode == 0
    assert "10.20.2.5 follows 10.20.0.0/16" in asked.stdout
    assert "[INTERNAL_IP" not in asked.stdout
    assert "no model was asked" in asked.stderr
    assert (empty.returncode, empty.stderr.count("\n")) == (2, 1)
    assert (unknown.returncode, unknown.stdout) == (3, "The records do not say.\n")
    assert server.understood == []
