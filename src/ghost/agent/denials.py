"""The effect of a person's denial on the hypotheses that the denied call was to test.

Each result is counted once. A denial counts against the hypotheses the call names, or against all active ones; the
brain reads the count, the reason and the advice in `_meta`. A call that ran resets the consecutive count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from ghost.agent.hypotheses import DenialEvent, State
from ghost.agent.session import Session
from ghost.brain import ToolCall
from ghost.policy import load_policy

_TIDIES = frozenset({"cleanup_task", "cancel_task"})
_TIDYING = re.compile(r"(?:rm|az .*\b(?:delete|stop|cancel|remove)) ")
"""Calls and commands that test nothing: a denied one is no denied test."""
_RAN = frozenset({"completed", "task_completed", "task_pending"})


def was_denied(result: dict[str, Any]) -> bool:
    """Return whether a person denied a command of this call; a closed terminal or a failed prompt counts as denied."""
    return result.get("status") == "denied" or result.get("user_denied") is True


def count_denial(
    session: Session, call: ToolCall, result: dict[str, Any], *, turn: int, limit: int, at: str
) -> dict[str, Any]:
    """Record the result against the hypotheses it concerns; return the fields to add to its `_meta`.

    `call`: with its arguments as they are recorded.
    """
    named = call.arguments.get("hypothesis_ids")
    concerned = [h.id for h in session.hypothesis_log if isinstance(named, list) and h.id in named]
    concerned = concerned or list(session.active_hypothesis_ids)
    if not was_denied(result):
        if result.get("status") in _RAN:
            for hypothesis_id in concerned:
                session.consecutive_denial_counter[hypothesis_id] = 0
            session.hypotheses.succeeded(concerned)
        return {}

    reason = result.get("denial_reason") or None
    meta: dict[str, Any] = {"denial_reason": reason} if reason else {}
    command = str(call.arguments.get("command") or call.name)
    tidies = call.name in _TIDIES or _TIDYING.match(command) is not None
    if tidies or result.get("status") == "task_completed":  # of a capture that is there, only its clean-up was denied
        return meta
    event = DenialEvent(
        turn=turn,
        command=command,
        denial_reason=reason,
        audit_id=result.get("audit_id") or next(iter(reversed(result.get("shell_audit_ids") or [])), None),
    )
    for hypothesis_id in concerned:
        hypothesis = session.hypotheses.denied(hypothesis_id, event, limit, at=at)
        if hypothesis is None:
            continue
        count = hypothesis.denial_count
        session.denial_tracker[hypothesis_id] = count
        session.consecutive_denial_counter[hypothesis_id] = session.consecutive_denial_counter.get(hypothesis_id, 0) + 1
        meta["denial_count"] = max(count, meta.get("denial_count", 0))
        if hypothesis.state == State.UNVERIFIABLE:
            meta["denial_threshold_reached"] = True
            meta["instruction"] = (
                f"Hypothesis {hypothesis_id} marked UNVERIFIABLE. Move to the next hypothesis, or call "
                "complete_investigation if none is active."
            )
        elif count == limit - 1:
            meta["approaching_threshold"] = True
            meta["warning"] = f"Denial {count} for hypothesis {hypothesis_id}. One more denial marks it UNVERIFIABLE."
    return meta


@dataclass(frozen=True)
class Pivot:
    command: str
    """A regular expression that is searched in the denied command."""
    example: str
    instead: str


@dataclass(frozen=True)
class Pivots:
    generic: str
    pivots: tuple[Pivot, ...]


@cache
def pivots() -> Pivots:
    return load_policy(__file__, "pivots.toml", Pivots)


def pivot_of(command: str) -> str:
    """Return what to do instead of a denied command."""
    return next((p.instead for p in pivots().pivots if re.search(p.command, command)), pivots().generic)
