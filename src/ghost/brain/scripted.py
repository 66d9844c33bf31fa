"""A brain that plays a fixed list of turns; a test tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ghost.brain.conversation import Message, Turn
from ghost.errors import BrainError
from ghost.text import plural

Line = Turn | Callable[[Sequence[Message]], Turn]
"""A turn, or a function that makes one from the conversation."""


class ScriptedBrain:
    """Plays the script from the turn count of the conversation, so that a resumed one continues."""

    name = "scripted"
    prompt_hash = None

    def __init__(self, turns: Sequence[Line]) -> None:
        self._lines = tuple(turns)

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        spoken = sum(isinstance(message, Turn) for message in conversation)
        if spoken >= len(self._lines):
            raise BrainError(
                f"the script of {plural(len(self._lines), 'turn')} is at its end: add a turn that concludes"
            )
        line = self._lines[spoken]
        return line if isinstance(line, Turn) else line(conversation)
