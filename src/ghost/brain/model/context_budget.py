"""What of a conversation a model is sent: old results become their record, verdict and first lines, then old turns the
beginnings of what was said, and at last the oldest are left out.

Nothing is lost: the audit keeps each result, and the shortened one names its record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ghost.brain.conversation import Message, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.text import map_text

CHARACTERS_PER_TOKEN: Final = 3
"""A cautious estimate: JSON, addresses and ids take more tokens than prose."""
KEPT_WHOLE: Final = 2
"""The newest messages of results, which the model is about to read. They are shortened only if nothing else is left."""
FIRST_LINES, FIRST_CHARACTERS, FIRST_ITEMS = 3, 300, 20
SPARE: Final = 0.7
"""Once over the budget, results are shortened to this part of it, so that the beginning seldom changes (a provider's
cache of it holds)."""
LEFT_OUT: Final = "The oldest turns are left out here. Records that they cite: {}."
MAX_CITED: Final = 100


class ContextBudget:
    """Decides what is shortened; remembers its decisions for the next turn."""

    def __init__(self, tokens: int, reserved: int) -> None:
        """`tokens` of the whole request; `reserved` of them for the system prompt and the tools."""
        self._tokens = tokens - reserved
        self._shortened: set[str] = set()
        self._first = 0
        """Index of the first turn that is sent."""

    def fitted(self, conversation: Sequence[Message]) -> list[Message] | None:
        """Return the conversation within the budget; None if even the shortened one is too long."""
        size = _size(self._applied(conversation))
        if size > self._tokens:
            for pieces, part in zip(_pieces(conversation), (SPARE, 1.0), strict=True):
                for key, saved in pieces:
                    if size <= self._tokens * part:
                        break
                    size -= saved if key not in self._shortened else 0
                    self._shortened.add(key)
        fitted = self._applied(conversation)
        if _size(fitted) > self._tokens:
            for self._first in [i for i, m in enumerate(conversation) if isinstance(m, Turn) and i > self._first]:
                fitted = self._applied(conversation)
                if _size(fitted) <= self._tokens * SPARE:
                    break
        return fitted if _size(fitted) <= self._tokens else None

    def _applied(self, conversation: Sequence[Message]) -> list[Message]:
        before = [m for m in conversation[: self._first] if not isinstance(m, Turn | ToolResults)]
        if self._first:
            before.append(
                UserMessage(
                    LEFT_OUT.format(", ".join(sorted(_cited(conversation[: self._first]))[:MAX_CITED]) or "none")
                )
            )
        return [*before, *(self._one(i, m) for i, m in enumerate(conversation) if i >= self._first)]

    def _one(self, index: int, message: Message) -> Message:
        if isinstance(message, Turn):
            return _short_turn(message) if _key(index) in self._shortened else message
        if not isinstance(message, ToolResults):
            return message
        return ToolResults(
            tuple(
                ToolResult(result.call_id, result.name, _short(result.result))
                if result.call_id in self._shortened
                else result
                for result in message.results
            )
        )


def _size(conversation: Sequence[Message]) -> int:
    return sum(tokens_of(message) for message in conversation)


def tokens_of(value: Any) -> int:
    """Estimate the tokens of a message or of anything that becomes JSON. Of a turn's state only thoughts are sent."""
    if isinstance(value, Turn):
        parts = (value.state or {}).get("parts") or []
        value = [value.text, value.tool_calls, [part for part in parts if part.get("part_kind") == "thinking"]]
    return len(json.dumps(value, default=vars, ensure_ascii=False)) // CHARACTERS_PER_TOKEN


Piece = tuple[str, int]
"""The key of a result or of a turn, and the tokens that shortening it saves."""


def _pieces(conversation: Sequence[Message]) -> tuple[list[Piece], list[Piece]]:
    """Return what can be shortened, in this order: old results, those that a hypothesis cites, and old turns; and
    apart, for when that is not enough, the newest.
    """
    answered = [index for index, message in enumerate(conversation) if isinstance(message, ToolResults)]
    newest = answered[-KEPT_WHOLE:][0] - 1 if answered else 0
    cited = _cited(conversation)
    old: tuple[list[Piece], list[Piece], list[Piece]] = ([], [], [])
    new: list[Piece] = []
    for index, message in enumerate(conversation):
        is_old = index < newest
        if isinstance(message, Turn) and (saved := tokens_of(message) - tokens_of(_short_turn(message))) > 0:
            (old[2] if is_old else new).append((_key(index), saved))
        for result in message.results if isinstance(message, ToolResults) else ():
            if (saved := tokens_of(result.result) - tokens_of(_short(result.result))) > 0:
                (old[result.result.get("audit_id") in cited] if is_old else new).append((result.call_id, saved))
    return [*old[0], *old[1], *old[2]], new


def _key(index: int) -> str:
    return f"turn at {index}"


def _cited(conversation: Sequence[Message]) -> set[str]:
    calls = [call for message in conversation if isinstance(message, Turn) for call in message.tool_calls]
    lists = [call.arguments.get("audit_ids") for call in calls]
    return {audit_id for ids in lists if isinstance(ids, list) for audit_id in ids if isinstance(audit_id, str)}


def _short(result: dict[str, Any]) -> dict[str, Any]:
    output = str(result.get("output") or "")
    first = "\n".join(output.splitlines()[:FIRST_LINES])[:FIRST_CHARACTERS]
    kept: dict[str, Any] = {
        key: result[key] for key in ("status", "exit_code", "error", "task_id", "state", "audit_id") if key in result
    }
    record = result.get("audit_id")
    where = f"; the whole result is record {record}: to see more, read again, narrowed by --query" if record else ""
    return {**kept, "output": first, "note": f"shortened{where}"}


def _short_turn(turn: Turn) -> Turn:
    """Return a turn with the beginnings of its texts, without thoughts."""
    calls = (ToolCall(c.id, c.name, map_text(c.arguments, _beginning, items=FIRST_ITEMS)) for c in turn.tool_calls)
    state = turn.state
    if state is not None:
        state = {**state, "parts": [part for part in state.get("parts", ()) if part.get("part_kind") != "thinking"]}
    return replace(turn, text=_beginning(turn.text), tool_calls=tuple(calls), state=state)


def _beginning(text: str) -> str:
    return text if len(text) <= FIRST_CHARACTERS else f"{text[:FIRST_CHARACTERS]} [shortened]"
