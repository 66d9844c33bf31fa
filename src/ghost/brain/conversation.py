"""The conversation of a brain: a list of messages to which it adds one `Turn` at a time.

`Brain.next_turn(conversation) -> Turn` is the whole contract. Models, the offline brain and a scripted brain are
interchangeable, and an interrupted investigation is resumed by passing the conversation again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class StatedEnds:
    """What options state beside the sentence; they win over its words. Empty: not stated."""

    source: str = ""
    destination: str = ""
    port: int | None = None
    protocol: str = ""
    """`tcp`, `udp` or `icmp`."""

    def __str__(self) -> str:
        """`web-vm to 10.0.0.4 tcp/443`, or what there is of it; empty if nothing is stated."""
        protocol = self.protocol or ("tcp" if self.port else "")
        traffic = f"{protocol}/{self.port}" if self.port else protocol
        to = f"to {self.destination}" if self.source and self.destination else self.destination
        return " ".join(filter(None, (self.source, to, traffic)))


@dataclass(frozen=True)
class UserMessage:
    """Text from the engineer: the symptom first, then further instructions."""

    text: str
    stated: StatedEnds = StatedEnds()


@dataclass(frozen=True)
class ResumeNote:
    """The investigation was interrupted and resumed here; the network may have changed since."""

    text: str


@dataclass(frozen=True)
class EarlierSession:
    """A finished session of the same network whose records hold.

    They count for nothing until what its causes rest on was read anew, and the causes were seen in it.
    """

    session_id: str
    ended: str
    """`2026-11-28T07:12:00.000Z`."""
    causes: tuple[dict[str, Any], ...]
    """Those of its report that the records support: kind, resource, rule, direction."""
    wire: dict[str, Any]
    """The row of its coverage about the wire: status, audit_ids, note."""
    results: dict[str, dict[str, Any]] = field(repr=False, compare=False)
    """By command: what `run_shell_cmd` returned, with `real_output`."""


@dataclass(frozen=True)
class MemoryNote:
    """Results of earlier investigations as hints: where to look first, never citable."""

    text: str
    layers: tuple[str, ...] = ()
    """Layers of the path that were at fault, most similar investigation first."""
    earlier: tuple[EarlierSession, ...] = ()
    """Those that found a cause and whose records are at hand, most similar first."""


@dataclass(frozen=True)
class ToolCall:
    """A tool call. `id` is unique in the conversation (`t3.1`: third turn, first call)."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolDeclaration:
    """A tool as a model is told of it. `parameters`: a JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None if the price is not known."""


@dataclass(frozen=True)
class Turn:
    """The brain's text, for the engineer and the record, and its tool calls in order."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    state: dict[str, Any] | None = None
    """The turn in the provider's own form (call ids, thought signatures), which the next request must repeat. Opaque to
    all but the brain that made it; JSON."""


@dataclass(frozen=True)
class ToolResult:
    call_id: str
    name: str
    result: dict[str, Any]
    real_output: str | None = field(default=None, repr=False, compare=False)
    """All that a command printed, with real values in private mode, for code of this process; None where a part is not
    on record. Never written to a file, never part of a text for a model."""


@dataclass(frozen=True)
class ToolResults:
    """The results of the previous turn's calls, in their order."""

    results: tuple[ToolResult, ...]


Message = UserMessage | ResumeNote | MemoryNote | Turn | ToolResults


class Brain(Protocol):
    name: str
    """`offline`, or a model (`gemini/gemini-flash-latest`): the name in the session file and the report."""

    @property
    def prompt_hash(self) -> str | None:
        """SHA-256 of the system prompt; None without one."""
        ...

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        """Return the next turn. Raises `BrainError` if there is none (a provider's error, the end of a script)."""
        ...
