"""An investigation over the real shell: programs answer from a table, everything else is the product."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import Evidence, Investigation, Session, Tools, TurnLog, Workspace, read_conversation
from ghost.brain import ScriptedBrain, ToolCall, Turn
from ghost.records import Head
from ghost.shell import HitlDecision, SafeExecShell

SESSION = "ghost_20260101_120000"
STATE = "az vm get-instance-view -g rg -n vm-2"
MACHINE = {"name": "vm-2", "instanceView": {"statuses": [{"code": "PowerState/deallocated"}]}}


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")


class NoCaptures:
    """An orchestrator that answers from a table of intents."""

    registry_head = Head()

    def __init__(self, answers: dict[str, dict[str, Any]] | None = None) -> None:
        self.answers = answers or {}
        self.requests: list[dict[str, Any]] = []

    def orchestrate(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        return dict(self.answers.get(request["intent"], {"status": "error", "error": "unknown_intent"}))


@dataclass
class Desk:
    """The engineer's side of a test: what was shown, and the answers to give."""

    answers: list[str | None] = field(default_factory=list)
    choices: list[str | None] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    results: list[tuple[ToolCall, dict[str, Any]]] = field(default_factory=list)

    def said(self, turn: Turn) -> None:
        self.turns.append(turn)

    def calling(self, call: ToolCall) -> None: ...

    def returned(self, call: ToolCall, result: dict[str, Any]) -> None:
        self.results.append((call, result))

    def answer(self, question: str) -> str | None:
        return self.answers.pop(0) if self.answers else None

    def choose(self, question: str, choices: dict[str, str]) -> str | None:
        return self.choices.pop(0) if self.choices else None

    def choose_each(self, question: str, items: Sequence[str]) -> list[bool] | None:
        self.offered.append(list(items))
        answer = self.choices.pop(0) if self.choices else None
        return [letter == "y" for letter in answer] if answer else None


@dataclass
class Bench:
    """A workspace in which investigations are run and taken up again."""

    root: Path
    programs: Path
    outputs: dict[str, tuple[int, str]]
    decide: Callable[[str], HitlDecision] = lambda command: HitlDecision("deny", reason="not now")
    orchestrator: NoCaptures = field(default_factory=NoCaptures)
    desk: Desk = field(default_factory=Desk)
    ran: list[list[str]] = field(default_factory=list)
    max_turns: int = 50
    runs_programs: bool = False
    """Whether the programs on disk run, instead of the table."""
    now: str = "2026-01-01T12:00:00.000Z"

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root)

    def shell(self) -> SafeExecShell:
        return SafeExecShell(
            SESSION,
            hitl_callback=lambda command, reasoning, risk, tier: self.decide(command),
            audit_dir=str(self.root / "audit"),
            program_dirs=[self.programs],
            reads_only=[self.root / "captures"],
            runner=None if self.runs_programs else self._run,
        )

    def _run(self, arguments: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        self.ran.append(arguments)
        line = " ".join([Path(arguments[0]).name, *arguments[1:]])
        for beginning, (status, output) in self.outputs.items():
            if line.startswith(beginning):
                return subprocess.CompletedProcess(arguments, status, output.encode(), b"")
        return subprocess.CompletedProcess(arguments, 3, b"", b"ERROR: not found")

    def investigation(self, turns: list[Turn], session: Session | None = None) -> Investigation:
        session = session or Session(
            session_id=SESSION, created_at="2026-01-01T12:00:00.000Z", model="scripted", audit_dir="audit"
        )
        paths = session.paths(self.root)
        shell = self.shell()
        evidence = Evidence(paths.shell_audit).refreshed
        conversation, unanswered, _ = read_conversation(paths.turns, evidence())
        return Investigation(
            brain=ScriptedBrain(turns),
            tools=Tools(shell, self.orchestrator, session, evidence, lambda: self.now, BenchClock(self)),
            session=session,
            session_file=self.workspace.session_file,
            turns=TurnLog(paths.turns),
            shell=shell,
            orchestrator=self.orchestrator,
            console=self.desk,
            clock=FixedClock(),
            conversation=conversation,
            unanswered=unanswered,
            max_turns=self.max_turns,
            max_denials=3,
        )


@dataclass(frozen=True)
class BenchClock(FixedClock):
    bench: Bench

    def monotonic(self) -> float:
        return datetime.fromisoformat(self.bench.now).timestamp()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("az", "ping", "cat"):
        (programs / name).write_text("#!/bin/sh\nexit 99\n")
        (programs / name).chmod(0o755)
    return Bench(
        tmp_path / "work",
        programs,
        {
            "az vm list": (0, '[{"name": "vm-1"}]'),
            "az vm get-instance-view": (0, json.dumps(MACHINE)),
            "ping": (1, "100% packet loss"),
        },
    )


def turn(text: str, *calls: tuple[str, dict[str, Any]], number: int = 1) -> Turn:
    return Turn(text, tuple(ToolCall(f"t{number}.{n}", name, args) for n, (name, args) in enumerate(calls, 1)))


def command(line: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run_shell_cmd", {"command": line, "reasoning": "to see", **more}


def hypothesis(action: str, identity: str = "h1", **more: Any) -> tuple[str, dict[str, Any]]:
    if action == "register":
        more = {"description": "a rule denies it", "refuted_by": "no rule denies it", **more}
    return "manage_hypotheses", {"action": action, "id": identity, **more}


def complete(**more: Any) -> tuple[str, dict[str, Any]]:
    return "complete_investigation", {"confidence": "low", "root_cause_summary": "It is the rule.", **more}
