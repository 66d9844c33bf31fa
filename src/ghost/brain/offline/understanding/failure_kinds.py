"""How the traffic fails, by whole words: "exchange" does not hang and "installed" does not stall."""

from __future__ import annotations

from typing import Final

from ghost.brain.offline.complaint import Kind
from ghost.brain.offline.understanding.word_lists import any_of

_ORDER: Final[tuple[Kind, ...]] = ("dns", "unreachable", "intermittent", "slow", "refused", "reset")


def failure_kind(sentence: str) -> Kind:
    """Return the first kind with a word in the sentence; without one, as with "hangs" and "times out", unreachable."""
    told = any_of("kinds", "noise").sub(" ", sentence.replace("’", "'"))
    return next((kind for kind in _ORDER if any_of("kinds", kind).search(told)), "unreachable")
