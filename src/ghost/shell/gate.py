"""Stage 2: a person decides what RISKY commands may run. Fails closed: whatever goes wrong here is a denial.

A modified command is a new command: it is classified again from Tier 0, and asks again when it is RISKY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ghost.shell.call_timeout import call_within
from ghost.shell.judge.decision import FORBIDDEN, SAFE, Decision
from ghost.text import visible

Action = Literal["auto_approved", "user_approved", "user_denied", "user_modified", "user_abandoned"]

CHANGED = "Your own command, instead of one that was asked for with this reason: {}"
MAX_PROMPTS = 10  # for one command: a person who modifies more often than that is a program in a loop


@dataclass(frozen=True)
class HitlDecision:
    """A person's answer: `action` is `approve`, `deny` or `modify`, the last with `modified_command`."""

    action: str
    modified_command: str | None = None
    reason: str | None = None


HitlCallback = Callable[[str, str, str, int | None], HitlDecision]


@dataclass(frozen=True)
class GateOutcome:
    """The outcome of the gate. `command` and `decision` are the last ones judged."""

    status: Literal["passed", "denied", "error"]
    command: str
    decision: Decision
    action: Action | None
    user_decision: str | None = None
    denial_reason: str | None = None
    modified_command: str | None = None
    error: str | None = None
    interrupted: KeyboardInterrupt | None = None


def ask_for_approval(
    command: str,
    decision: Decision,
    reasoning: str,
    judge: Callable[[str], Decision],
    callback: HitlCallback | None,
    timeout_seconds: float | None = None,
) -> GateOutcome:
    """Pass SAFE commands, ask about RISKY ones, refuse FORBIDDEN ones. Never raises."""
    if decision.classification == FORBIDDEN:
        return GateOutcome("error", command, decision, None, error="forbidden_command")
    if decision.refused_unasked:
        return GateOutcome("error", command, decision, None, error=decision.problem)
    if decision.classification == SAFE:
        return GateOutcome("passed", command, decision, "auto_approved")
    if callback is None:
        return GateOutcome("denied", command, decision, "user_abandoned")  # nobody is there to ask

    modified: str | None = None
    for _ in range(MAX_PROMPTS):
        try:
            why = reasoning if modified is None else CHANGED.format(reasoning)
            answer = _ask(callback, command, why, decision, timeout_seconds)
        except KeyboardInterrupt as interrupt:
            return GateOutcome(
                "denied", command, decision, "user_abandoned", modified_command=modified, interrupted=interrupt
            )
        if answer is None:
            break
        reason = answer.reason.strip() if isinstance(answer.reason, str) and answer.reason.strip() else None
        if answer.action == "deny":
            return GateOutcome("denied", command, decision, "user_denied", "deny", reason, modified)
        if answer.action == "approve":
            action: Action = "user_approved" if modified is None else "user_modified"
            return GateOutcome(
                "passed", command, decision, action, "approve" if modified is None else "modify", None, modified
            )
        if answer.action != "modify" or not _is_command(answer.modified_command):
            break
        command = modified = str(answer.modified_command)
        decision = judge(command)
        if decision.classification == FORBIDDEN or decision.refused_unasked:
            error = "forbidden_command" if decision.classification == FORBIDDEN else decision.problem
            return GateOutcome("error", command, decision, "user_modified", "modify", None, modified, error)
        if decision.classification == SAFE:
            return GateOutcome("passed", command, decision, "user_modified", "modify", None, modified)
    return GateOutcome("denied", command, decision, "user_abandoned", modified_command=modified)


def _ask(
    callback: HitlCallback, command: str, reasoning: str, decision: Decision, timeout_seconds: float | None
) -> HitlDecision | None:
    """Prompt once. Returns None where the callback failed, timed out or returned no decision."""
    shown, why, risk = visible(command), visible(reasoning, "\n"), visible(decision.explanation, "\n")
    try:
        answer = call_within(timeout_seconds, lambda: callback(shown, why, risk, decision.tier))
    except KeyboardInterrupt:
        raise
    except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001 - the boundary to a person: fail closed
        return None
    return answer if isinstance(answer, HitlDecision) else None


def _is_command(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())
