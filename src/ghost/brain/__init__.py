"""Brains: they choose the next step of an investigation. A brain speaks and requests tools; it executes nothing.

`OfflineBrain` investigates without a model, `model_brain` makes one of a model; `ScriptedBrain` plays the turns of a
test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ghost.brain.conversation import (
    Brain,
    EarlierSession,
    MemoryNote,
    Message,
    ResumeNote,
    StatedEnds,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    ToolResults,
    Turn,
    Usage,
    UserMessage,
)
from ghost.brain.offline import CHECKS, Checks, OfflineBrain
from ghost.brain.opening import OpenedBrain
from ghost.brain.scripted import ScriptedBrain

if TYPE_CHECKING:
    from ghost.providers import ChatServer

__all__ = [
    "CHECKS",
    "Brain",
    "Checks",
    "EarlierSession",
    "MemoryNote",
    "Message",
    "OfflineBrain",
    "OpenedBrain",
    "ResumeNote",
    "ScriptedBrain",
    "StatedEnds",
    "ToolCall",
    "ToolDeclaration",
    "ToolResult",
    "ToolResults",
    "Turn",
    "Usage",
    "UserMessage",
    "model_brain",
]


def model_brain(
    server: ChatServer,
    tools: Sequence[ToolDeclaration],
    *,
    prompt: str | None = None,
    outside: Callable[[str], str],
    context_tokens: int,
    max_output_tokens: int,
    max_cost: float | None = None,
) -> Brain:
    """Return the model behind `server` as a brain. `outside` is applied to every text that it is sent; `prompt` stands
    for that of investigations.

    Raises `ConfigurationError` if `max_cost` (US dollars) cannot be held, since the model's price is not known.
    """
    from ghost.brain.model.model_brain import ModelBrain
    from ghost.brain.model.system_prompt import SystemPrompt, assembled_prompt

    limits = {"context_tokens": context_tokens, "max_output_tokens": max_output_tokens}
    system = assembled_prompt() if prompt is None else SystemPrompt(prompt, 1)
    return ModelBrain(server, tools, system, outside=outside, max_cost=max_cost, **limits)
