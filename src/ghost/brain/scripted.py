"""A brain that plays a fixed list of turns: the test tool for everything that talks to a brain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ghost.brain.conversation import Message, Turn
from ghost.errors import BrainError

Line = Turn | Callable[[Sequence[Message]], Turn]
"""A turn, or what makes one of the conversation so far."""


class ScriptedBrain:
    """Its place in the script is the number of turns the conversation holds, so a resumed one goes on where it was."""

    name = "scripted"

    def __init__(self, turns: Sequence[Line]) -> None:
        self._lines = tuple(turns)

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        spoken = sum(isinstance(message, Turn) for message in conversation)
        if spoken >= len(self._lines):
            raise BrainError(f"the script of {len(self._lines)} turns is at its end: add a turn that concludes")
        line = self._lines[spoken]
        return line if isinstance(line, Turn) else line(conversation)
