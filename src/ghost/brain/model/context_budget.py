"""What of a conversation a model is sent: old results become their record, verdict and first lines.

Nothing is lost: the audit keeps each result, and the shortened one names its record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ghost.brain.conversation import Message, ToolResult, ToolResults, Turn

CHARACTERS_PER_TOKEN: Final = 3
"""A cautious estimate: JSON, addresses and ids take more tokens than prose."""
KEPT_WHOLE: Final = 2
"""The newest messages of results, which the model is about to read."""
FIRST_LINES, FIRST_CHARACTERS = 3, 300
SPARE: Final = 0.7
"""Once over the budget, results are shortened to this part of it, so that the beginning seldom changes (a provider's
cache of it holds)."""


class ContextBudget:
    """Decides which results are shortened; remembers its decisions for the next turn."""

    def __init__(self, tokens: int, reserved: int) -> None:
        """`tokens` of the whole request; `reserved` of them for the system prompt and the tools."""
        self._tokens = tokens - reserved
        self._shortened: set[str] = set()

    def fitted(self, conversation: Sequence[Message]) -> list[Message] | None:
        """Return the conversation within the budget; None if even the shortened one is too long."""
        if self._size(conversation) > self._tokens:
            for call_id in [*_oldest_first(conversation)]:
                self._shortened.add(call_id)
                if self._size(conversation) <= self._tokens * SPARE:
                    break
        return self._applied(conversation) if self._size(conversation) <= self._tokens else None

    def _applied(self, conversation: Sequence[Message]) -> list[Message]:
        return [self._one(message) for message in conversation]

    def _one(self, message: Message) -> Message:
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

    def _size(self, conversation: Sequence[Message]) -> int:
        return sum(tokens_of(message) for message in self._applied(conversation))


def tokens_of(value: Any) -> int:
    """Estimate the tokens of a message or of anything that becomes JSON."""
    return len(json.dumps(value, default=vars, ensure_ascii=False)) // CHARACTERS_PER_TOKEN


def _oldest_first(conversation: Sequence[Message]) -> Iterator[str]:
    """Return the call ids of the results to shorten: the oldest first, those that a hypothesis cites last."""
    messages = [message for message in conversation if isinstance(message, ToolResults)][:-KEPT_WHOLE]
    cited = _cited(conversation)
    results = [r for message in messages for r in message.results if tokens_of(_short(r.result)) < tokens_of(r.result)]
    for wanted in (False, True):
        yield from (r.call_id for r in results if (r.result.get("audit_id") in cited) is wanted)


def _cited(conversation: Sequence[Message]) -> set[Any]:
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
