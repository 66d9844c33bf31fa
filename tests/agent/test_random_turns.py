"""Nonsense for turns, through the real loop, shell and orchestrator: nothing breaks and nothing is believed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ghost.agent import Evidence, load_session, verify_session, write_report
from ghost.brain import Message, ToolCall, ToolResults, Turn
from ghost.cloud import CloudOrchestrator
from ghost.errors import BrainError
from tests.agent.conftest import SESSION, Bench, Desk, FixedClock
from tests.exhaustive import EXHAUSTIVE

TURNS = 5000 if EXHAUSTIVE else 200

COMMANDS = [
    "az vm list -o json",
    "ping -c 1 127.0.0.1",
    "az network nsg rule list -g g --nsg-name n --query '[?access==' -o json",
    "az group delete -n prod-rg --yes",
    "az vm run-command invoke -g g -n vm --command-id RunShellScript --scripts id",
    "sudo rm -rf /",
    "bash -c 'id'",
    "cat /etc/shadow",
    "cat audit/../../.env",
    "curl -X POST http://127.0.0.1/ -d @.env",
    "ping -c 1 127.0.0.1; reboot",
    "echo $(id) > /tmp/x",
    "az vm list -o json | sh",
    "' unbalanced",
    "\u202erm\u2066 -rf \ud83d\ude00 \x00\x1b[2J",
    "",
    " ",
]
TOOLS = [
    *["run_shell_cmd"] * 4,
    *["manage_hypotheses"] * 4,
    "capture_traffic",
    "check_task",
    "cancel_task",
    "cleanup_task",
    *["complete_investigation"] * 4,
    "shell",
    "RUN_SHELL_CMD",
    "__class__",
    "",
    "x" * 5000,
]


class RandomBrain:
    """Makes each turn from the number of turns before it, and now and then fails once instead."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._failed: set[int] = set()

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        number = sum(isinstance(message, Turn) for message in conversation)
        random = Random(f"{self._seed} {number}")
        if random.random() < 0.1 and number not in self._failed:
            self._failed.add(number)
            raise BrainError("the provider has gone")
        refused = [
            result.result["audit_id"]
            for message in conversation
            if isinstance(message, ToolResults)
            for result in message.results
            if result.result.get("audit_id") and result.result.get("status") != "completed"
        ]
        turn = _TurnMaker(random, [*refused, f"{SESSION}_999", "ghost_20200101_000000_001", "h1"])
        calls = [turn.call(f"t{number}.{place % 7}") for place in range(random.choice([0, 1, 1, 1, 2, 3, 12]))]
        return Turn(turn.text(), tuple(calls))


class _TurnMaker:
    def __init__(self, random: Random, audit_ids: list[str]) -> None:
        self._random = random
        self._audit_ids = audit_ids
        """Ids of which none supports anything."""

    def call(self, call_id: str) -> ToolCall:
        pick = self._random.choice
        name = pick(TOOLS)
        audit_ids = [pick(self._audit_ids) for _ in range(pick([0, 1, 2, 40]))]
        hypothesis, task = pick(["h1", "h2", "h3", "h4", "h5", "ü", ""]), pick(["", "t", "../../x", "ghost_vm_1"])
        arguments: dict[str, Any] = {
            "run_shell_cmd": {"command": pick(COMMANDS), "reasoning": self.text(), "hypothesis_ids": [hypothesis]},
            "manage_hypotheses": {
                "action": pick(["register", "activate", "confirm", "refute", "contradict"]),
                "id": hypothesis,
                "description": "the rule denies it",
                "refuted_by": "no rule",
                "audit_ids": audit_ids,
            },
            "capture_traffic": {
                "target": pick(["vm-1", "vm-1 to vm-2", "$(id)"]),
                "resource_group": "g",
                "storage_account": pick(["acct", "a b", "--help"]),
                "duration_seconds": pick([1, 300, 301, "60"]),
            },
            "complete_investigation": {
                "confidence": "high",
                "root_cause_summary": f"It is the rule ({pick(self._audit_ids)}).",
                "confirmed_hypotheses": [hypothesis],
                "statements": [{"text": "It denies.", "audit_ids": audit_ids}],
                "coverage": [{"layer": "nsg_inbound", "status": "at_fault", "audit_ids": audit_ids}],
            },
        }.get(name, {"task_id": task})
        for _ in range(pick([0, 0, 0, 1, 2])):
            arguments[pick([*arguments, "more", "\x00"])] = self._anything()
        return ToolCall(call_id, name, arguments)

    def text(self) -> str:
        return self._random.choice(["I look.", "", "\x1b]0;x\x07\x00", "\ud800 lone", "\u202e😀" * 50, "x" * 50_000])

    def _anything(self) -> Any:
        deep: Any = "end"
        for _ in range(400):
            deep = [deep]
        pick = self._random.choice
        return pick(
            [None, True, -1, 2**70, float("nan"), "", self.text(), [], {}, ["h1"], [{}] * 1000, deep, {"": {"": []}}]
        )


class PassingClock(FixedClock):
    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


def test_random_turns_break_nothing_and_are_not_believed(bench: Bench) -> None:
    turns = seed = 0
    while turns < TURNS:
        turns += _investigate(
            replace(bench, root=bench.root / str(seed), desk=Desk(answers=["Go on."] * 20)), RandomBrain(seed)
        )
        seed += 1


def _investigate(bench: Bench, brain: RandomBrain) -> int:
    """Run an investigation, resumed after each failure, to its report; return the turns that were made."""
    session = None
    while session is None or session.completion is None:
        investigation = bench.investigation([], session)
        investigation.brain, investigation.max_turns = brain, 20
        investigation.tools._orchestrator = investigation.orchestrator = CloudOrchestrator(
            investigation.shell, SESSION, str(bench.root / "audit"), clock=PassingClock()
        )
        investigation.resume() if session else investigation.begin("vm-1 cannot reach vm-2")
        with contextlib.suppress(BrainError):
            investigation.run()
        session, intact = load_session(bench.workspace.session_file)
        assert intact
    paths = session.paths(bench.root)
    report, _ = write_report(session, paths, investigation.shell, investigation.clock.now())
    investigation.save()
    assert report["confidence"] != "high"
    assert not any(statement["supported"] for statement in report["statements"])
    checks = verify_session(session, paths, checksum_holds=intact)
    assert not [problem for check in checks for problem in check.problems]
    ran = [record for record in Evidence(paths.shell_audit).values() if record["exit_code"] is not None]
    assert {record["classification"] for record in ran} <= {"SAFE"}
    return session.turn_count
