"""A person decides what RISKY commands may run, and whatever goes wrong on the way to that decision is a denial."""

from __future__ import annotations

import threading
import time
from typing import Any

from ghost.shell import HitlDecision
from ghost.shell.gate import CHANGED, MAX_PROMPTS, Gate, GateOutcome
from ghost.shell.judge.decision import Decision
from ghost.text import visible
from tests.each_row import each

VERDICTS = {
    "safe": Decision("SAFE", None, "allowed", "It only reads.", "safe", ("safe",)),
    "forbidden": Decision("FORBIDDEN", 0, "forbidden", "It destroys.", "forbidden"),
    "long": Decision("RISKY", 3, "syntax", "Too long.", problem="command_too_long"),
}


def judge(command: str) -> Decision:
    return VERDICTS.get(command, Decision("RISKY", 1, "unknown", "Nobody knows it.", command, (command,)))


class Person:
    """Answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str, int | None]] = []

    def __call__(self, *question: Any) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def gate(command: str, person: Any, timeout_seconds: float | None = None, reasoning: str = "why") -> GateOutcome:
    return Gate(judge, person, timeout_seconds).ask(command, judge(command), reasoning)


def test_a_safe_command_asks_nobody() -> None:
    person = Person()
    outcome = gate("safe", person)
    assert (outcome.status, outcome.action, outcome.user_decision, person.asked) == (
        "passed",
        "auto_approved",
        None,
        [],
    )


def test_a_forbidden_command_asks_nobody_and_is_refused() -> None:
    person = Person()
    outcome = gate("forbidden", person)
    assert (outcome.status, outcome.action, outcome.error) == ("error", None, "forbidden_command")
    assert person.asked == []


def test_a_command_that_is_too_long_is_an_error_and_no_prompt() -> None:
    assert gate("long", Person()).error == "command_too_long"


def test_the_prompt_carries_command_reasoning_risk_and_tier() -> None:
    person = Person(HitlDecision("approve"))
    outcome = gate("odd", person)
    assert person.asked == [("odd", "why", "Nobody knows it.", 1)]
    assert (outcome.status, outcome.action, outcome.user_decision) == ("passed", "user_approved", "approve")


def test_a_denial_carries_its_reason() -> None:
    outcome = gate("odd", Person(HitlDecision("deny", reason=" not now ")))
    assert (outcome.status, outcome.action, outcome.denial_reason) == ("denied", "user_denied", "not now")
    assert gate("odd", Person(HitlDecision("deny", reason=""))).denial_reason is None


def test_nobody_to_ask_is_a_denial() -> None:
    assert (gate("odd", None).status, gate("odd", None).action) == ("denied", "user_abandoned")


def test_a_modified_command_that_is_safe_runs_at_once() -> None:
    person = Person(HitlDecision("modify", "safe"))
    outcome = gate("odd", person)
    assert (outcome.status, outcome.action, outcome.command, outcome.modified_command) == (
        "passed", "user_modified", "safe", "safe",
    )  # fmt: skip
    assert len(person.asked) == 1


def test_a_modified_command_that_is_risky_asks_again() -> None:
    person = Person(HitlDecision("modify", "odder"), HitlDecision("approve"))
    outcome = gate("odd", person)
    assert [question[:2] for question in person.asked] == [("odd", "why"), ("odder", CHANGED.format("why"))]
    assert (outcome.status, outcome.action, outcome.command) == ("passed", "user_modified", "odder")
    denied = gate("odd", Person(HitlDecision("modify", "odder"), HitlDecision("deny")))
    assert (denied.status, denied.action, denied.modified_command) == ("denied", "user_denied", "odder")


def test_a_modified_command_that_is_forbidden_is_refused() -> None:
    outcome = gate("odd", Person(HitlDecision("modify", "forbidden")))
    assert (outcome.status, outcome.error, outcome.action) == ("error", "forbidden_command", "user_modified")
    assert outcome.decision.classification == "FORBIDDEN"


def test_a_modified_command_that_is_too_long_is_an_error() -> None:
    assert gate("odd", Person(HitlDecision("modify", "long"))).error == "command_too_long"


@each(
    "answer",
    [
        *(EOFError(), OSError("the terminal is gone"), RuntimeError(), SystemExit(1), TimeoutError(), None, "approve"),
        *(HitlDecision("APPROVE"), HitlDecision(""), HitlDecision("modify"), HitlDecision("modify", "  "), True),
    ],
)
def test_whatever_goes_wrong_is_a_denial(answer: Any) -> None:
    outcome = gate("odd", Person(answer))
    assert (outcome.status, outcome.action, outcome.user_decision) == ("denied", "user_abandoned", None)


def test_an_answer_that_comes_too_late_is_a_denial() -> None:
    answered = threading.Event()

    def slow(*_: Any) -> HitlDecision:
        time.sleep(0.3)
        answered.set()
        return HitlDecision("approve")

    outcome = gate("odd", slow, timeout_seconds=0.05)
    assert (outcome.status, outcome.action) == ("denied", "user_abandoned")
    assert answered.wait(2)


def test_an_answer_in_time_counts() -> None:
    assert gate("odd", lambda *_: HitlDecision("approve"), timeout_seconds=5).status == "passed"


def test_an_interruption_is_a_denial_that_goes_on() -> None:
    outcome = gate("odd", Person(KeyboardInterrupt()))
    assert (outcome.status, outcome.action) == ("denied", "user_abandoned")
    assert isinstance(outcome.interrupted, KeyboardInterrupt)


def test_endless_modifying_ends_in_a_denial() -> None:
    person = Person(*(HitlDecision("modify", f"odd{n}") for n in range(MAX_PROMPTS + 5)))
    assert gate("odd", person).action == "user_abandoned"
    assert len(person.asked) == MAX_PROMPTS


def test_the_prompt_shows_nothing_a_terminal_would_obey() -> None:
    person = Person(HitlDecision("deny"))
    gate("rm\x1b[2K\rls\n", person, reasoning="a\x1b]0;x\x07b\u202ec\nd")
    assert person.asked[0][:2] == (r"rm\x1b[2K\rls\n", "a\\x1b]0;x\\x07b\\u202ec\nd")
    assert visible("ping -c 1 10.0.0.4 'é'") == "ping -c 1 10.0.0.4 'é'"
    assert visible("\ud800") == r"\ud800"
