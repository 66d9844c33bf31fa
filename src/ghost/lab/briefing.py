"""The public part of a scenario: its symptom, and what is answered without a person."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal

_WORD = re.compile(r"[\w.-]*\w")


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
class Answer:
    """The answer to every question that holds the words of `match`, in their order."""

    match: str
    answer: str


@dataclass(frozen=True)
class Briefing:
    """The public part of a scenario: neither the world nor its truth."""

    name: str
    symptom: str
    """What the engineer types."""
    approvals: Approvals = Approvals()
    answers: tuple[Answer, ...] = ()

    @property
    def network(self) -> str:
        """As sessions and reports name the network of a lab."""
        return f"lab {self.name} (SIMULATED)"

    @property
    def network_of_az(self) -> str:
        """As they name that of a lab which az asks."""
        return f"lab {self.name} (SIMULATED, asked by az)"

    def answer(self, question: str) -> str | None:
        """Return the first answer that matches; None if nobody can answer."""
        asked = _words(question)
        return next((answer.answer for answer in self.answers if f" {_words(answer.match)} " in f" {asked} "), None)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
