"""A subscription of the lab as a plain function from a tool call to its result; and a loop that plays it.

The lab's `az` answers, in the process of the test. Captures and reads of guests are refused.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ghost import lab
from ghost.brain import Brain, Message, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.scenario import world_from_source
from tests.lab.in_process import run_main

NOBODY = "No one can answer questions now. Go on with the tools, or conclude with what the records show."
Edit = dict[str, Any]
_ROOT = TemporaryDirectory()
_NUMBERS = itertools.count()


def deny(port: int, name: str = "deny-it", priority: int = 90) -> Edit:
    """Return the edit that denies a port at the data subnet of the world `two-tier`."""
    rule = {"direction": "Inbound", "access": "Deny", "protocol": "Tcp", "sourcePortRange": "*"}
    anybody = {"sourceAddressPrefix": "*", "destinationAddressPrefix": "*", "destinationPortRange": str(port)}
    place = f"networkSecurityGroups/data-nsg/securityRules/{name}"
    return {"put": place, "properties": {"priority": priority, **rule, **anybody}}


class LabTenant:
    """Results carry audit ids in the order of the commands."""

    def __init__(self, *edits: Edit, base: str = "two-tier", denied: Sequence[str] = (), first: int = 1) -> None:
        """`denied`: words of commands that are refused; `first`: number of the first record."""
        world = world_from_source({"base": base, "edits": list(edits)}, "")
        scenario = replace(lab.load_scenario("blocked-port"), world=world)
        home = LabDirectory.create(Path(_ROOT.name) / str(next(_NUMBERS)), scenario, LabClock(1_700_000_000.0, 1e-12))
        self._environment = {"GHOST_LAB_DIR": str(home.path)}
        self._denied = ("run-command", *denied)
        self._numbers: Iterator[int] = itertools.count(first)
        self.commands: list[str] = []
        self.hypotheses: dict[str, str] = {}

    def call(self, call: ToolCall) -> ToolResult:
        if call.name == "run_shell_cmd":
            return self._shell(call)
        result: dict[str, Any] = {"status": "ok"}
        if call.name == "manage_hypotheses":
            states = {"confirm": "CONFIRMED", "refute": "REFUTED"}
            self.hypotheses[call.arguments["id"]] = states.get(call.arguments["action"], "ACTIVE")
        if call.name == "capture_traffic":
            result = {"status": "task_cancelled", "user_denied": True, "denial_reason": "not now"}
        return ToolResult(call.id, call.name, result)

    def _shell(self, call: ToolCall) -> ToolResult:
        command = str(call.arguments["command"])
        self.commands.append(command)
        record = {"audit_id": f"s_{next(self._numbers):03d}"}
        words = shlex.split(command)
        if any(word in self._denied for word in words):
            return ToolResult(call.id, call.name, {"status": "denied", "denial_reason": "not now", **record})
        done = run_main("ghost.lab.programs.az", words[1:], self._environment)
        output, stderr = done.stdout.decode(), done.stderr.decode()
        result = {"status": "completed", "exit_code": done.returncode, "output": output[:200], "stderr": stderr}
        return ToolResult(call.id, call.name, {**result, "classification": "SAFE", **record}, output)


@dataclass
class Played:
    conversation: list[Message]
    tenant: LabTenant

    @property
    def turns(self) -> list[Turn]:
        return [message for message in self.conversation if isinstance(message, Turn)]

    @property
    def completion(self) -> dict[str, Any]:
        return dict(self.turns[-1].tool_calls[-1].arguments)

    @property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.turns)

    def coverage(self, layer: str) -> str:
        return next(c["status"] for c in self.completion["coverage"] if c["layer"] == layer)


def play(
    brain: Brain,
    symptom: str,
    tenant: LabTenant,
    answer: Callable[[str], str] = lambda question: NOBODY,
    conversation: Sequence[Message] = (),
    most_turns: int = 60,
) -> Played:
    """The agent's loop, without the agent: until the brain concludes."""
    told: list[Message] = list(conversation) or [UserMessage(symptom)]
    for _ in range(most_turns):
        turn = brain.next_turn(told)
        told.append(turn)
        if not turn.tool_calls:
            told.append(UserMessage(answer(turn.text)))
            continue
        told.append(ToolResults(tuple(tenant.call(call) for call in turn.tool_calls)))
        if turn.tool_calls[-1].name == "complete_investigation":
            return Played(told, tenant)
    raise AssertionError(f"no conclusion within {most_turns} turns; the last said: {told[-2]}")
