"""Scenarios: a world, its symptom, and answers to approvals.

Each is a TOML file in `scenarios/`. `expected` is for tests only: investigating rooms may not read it.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ghost.errors import LabError
from ghost.lab.world import World
from ghost.lab.world_validation import check_world
from ghost.policy import from_dict, to_dict

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Approval:
    """The answer to every command that begins with the words of `match`."""

    match: str
    answer: Literal["approve", "deny"]
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.answer == "approve"


NO_RULE = Approval("", "deny", "no approval of this scenario covers the command")


@dataclass(frozen=True)
class Approvals:
    """Answers for a demonstration without a person: the first matching rule decides; no match denies."""

    rules: tuple[Approval, ...] = ()

    def decide(self, command: str) -> Approval:
        try:
            words = shlex.split(command)
        except ValueError:
            return NO_RULE
        for rule in self.rules:
            wanted = rule.match.split()
            if words[: len(wanted)] == wanted:
                return rule
        return NO_RULE


@dataclass(frozen=True)
class ExpectedCause:
    kind: Literal["nsg_deny", "packet_loss", "none"]
    source: str
    """The machine at which the flow concerned begins."""
    destination: str
    port: int
    resource: str | None = None
    """The resource at fault, such as the network security group."""
    rule: str | None = None
    direction: Literal["Inbound", "Outbound"] | None = None
    lossy_from: str | None = None
    """For loss: the machine whose packets are lost on their way."""


@dataclass(frozen=True)
class Briefing:
    """The public part of a scenario: neither the world nor the cause."""

    name: str
    symptom: str
    """What the engineer types."""
    approvals: Approvals = Approvals()


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    symptom: str
    world: World
    expected: ExpectedCause
    approvals: Approvals = Approvals()

    @property
    def briefing(self) -> Briefing:
        return Briefing(self.name, self.symptom, self.approvals)

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = to_dict(self)
        return content

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], place: str = "scenario") -> Scenario:
        scenario = from_dict(cls, value, place, LabError)
        check_world(scenario.world)
        scenario.world.machine(scenario.expected.source), scenario.world.machine(scenario.expected.destination)
        return scenario


def scenario_names() -> list[str]:
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def load_scenario(name: str) -> Scenario:
    """Load a scenario by name, or a user's own by path (`./mine.toml`, `./mine.json`).

    Raises `LabError` if it does not exist or its file is invalid.
    """
    if Path(name).suffix in {".toml", ".json"}:
        return read_scenario(Path(name))
    if name not in scenario_names():
        raise LabError(f"there is no scenario {name!r}; there are {', '.join(scenario_names())}")
    return read_scenario(SCENARIOS / f"{name}.toml")


def read_scenario(path: Path) -> Scenario:
    """Read a TOML or JSON scenario, named after the file. Raises `LabError` if it is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(f"cannot read the scenario {path} ({error}): correct the file") from error
    if not isinstance(content, dict):
        raise LabError(f"the scenario {path} holds no table of settings: correct the file")
    return Scenario.from_dict({"name": path.stem, **content}, path.name)
