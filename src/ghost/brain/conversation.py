"""What a brain sees and says. One conversation is a list of messages; a brain adds one `Turn` at a time.

`Brain.next_turn(conversation) -> Turn` is the whole contract: a model, the offline brain and a scripted brain
are interchangeable, and an interrupted investigation is resumed by giving the conversation back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class UserMessage:
    """Text typed by the engineer: the symptom first, later instructions after it."""

    text: str


@dataclass(frozen=True)
class ResumeNote:
    """The investigation was interrupted here and goes on now; the network may have changed since."""

    text: str


@dataclass(frozen=True)
class MemoryNote:
    """What earlier investigations came to, as hints: where to look first, and nothing that can be cited."""

    text: str
    layers: tuple[str, ...] = ()
    """The layers of the path that were at fault then, nearest investigation first."""


@dataclass(frozen=True)
class ToolCall:
    """`id` is unique in the conversation (`t3.1`: third turn, first call)."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Turn:
    """What the brain says (for the engineer, and for the record) and the tools it calls, in order."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True)
class ToolResult:
    call_id: str
    name: str
    result: dict[str, Any]


@dataclass(frozen=True)
class ToolResults:
    """The answers to the calls of the turn before, in their order."""

    results: tuple[ToolResult, ...]


Message = UserMessage | ResumeNote | MemoryNote | Turn | ToolResults


class Brain(Protocol):
    name: str
    """`offline`, `gemini-2.0-flash`, ...: what the session file and the report call it."""

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        """The next turn. Raises `BrainError` when none can be had (a provider's error, a script at its end)."""
        ...
