"""`--json-events`: each event is one line of JSON on standard output as it happens, and nothing else is there."""

from __future__ import annotations

import io
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from ghost.brain import ToolCall, Turn
from ghost.cli.event_lines import EventLines
from ghost.cli.investigation_command import INCONCLUSIVE
from ghost.cli.narration import Narration, TerminalGoneError
from ghost.records import SystemClock
from ghost.shell import ApprovalRequest, HitlDecision
from tests.cli.ready_ghost import run_ghost


def test_events_of_an_investigation_are_told_line_by_line_and_the_exit_status_follows_the_outcome(tmp_path: Path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "GEMINI_"))}
    words = ("investigate", "--lab", "blocked-port", "--port", "6379", "--json-events", "--max-turns")
    for turns, outcome, status in (("1", "inconclusive", INCONCLUSIVE), ("50", "cause_found", 0)):
        done = run_ghost(*words, turns, cwd=tmp_path, environment={**clean, "FORCE_COLOR": "1"}, in_process=True)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = [event["event"] for event in events]
        assert (kinds[0], kinds[-2:]) == ("session", ["report", "ended"])
        assert {"command", "turn", "call", "result"} <= set(kinds)
        assert events[0]["stated"] == "tcp/6379"
        assert "\x1b" not in done.stdout
        assert (events[-1]["outcome"], events[-1]["exit_status"], done.returncode) == (outcome, status, status)
        report = json.loads(Path(events[-2]["json"]).read_text())
        told = [event["audit_id"] for event in events if event["event"] == "command"]
        assert told == [row["audit_id"] for row in report["evidence"]]
        assert [c["id"] for c in events if c["event"] == "call"] == [r["id"] for r in events if r["event"] == "result"]
        assert kinds.count("question") == (outcome == "inconclusive")


def test_nothing_an_attacker_names_breaks_a_line_and_secrets_and_private_values_stay_inside(monkeypatch):
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    narration = Narration(Console(file=io.StringIO()), interactive=False)
    narration.events = EventLines(SystemClock())
    narration.events.hide = lambda text: text.replace("10.9.8.7", "[PRIVATE_IP_1]")
    hostile = 'x"}\n{"event": "ended"}\r\x1b[31m\u2028\x85 password=Hunter2hunter2 10.9.8.7'
    call = ToolCall("t1.1", hostile, {hostile: [hostile]})
    narration.said(Turn(hostile, (call,)))
    narration.calling(call)
    narration.returned(call, {"status": "error", "message": hostile, "output": "what it printed"})
    request = ApprovalRequest("once", (hostile,), hostile, hostile, 1, True, hostile)
    narration.decide(lambda _: HitlDecision("deny", reason=hostile), request)
    narration.ran({"classification": hostile, "error": hostile}, hostile, hostile)
    assert narration.answer(hostile) is narration.choose(hostile, {"a": hostile}) is None
    text = out.getvalue()
    assert [json.loads(line)["event"] for line in text.splitlines()] == [
        *("turn", "call", "result", "approval_asked", "approval_answered", "command"),
        *("question", "answer", "question", "answer"),
    ]
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    for hidden in ("Hunter2hunter2", "10.9.8.7", "what it printed"):
        assert hidden not in text
    times = [datetime.fromisoformat(json.loads(line)["time"]) for line in text.splitlines()]
    assert all(at.tzinfo == UTC for at in times)


def test_a_reader_that_is_gone_ends_it_like_a_closed_terminal(monkeypatch):
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    narration = Narration(Console(file=io.StringIO()), interactive=False)
    narration.events = EventLines(SystemClock())
    with pytest.raises(TerminalGoneError):
        narration.said(Turn("I look."))
