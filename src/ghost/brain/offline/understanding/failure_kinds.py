"""How the traffic fails, by whole words: "exchange" does not hang and "installed" does not stall."""

from __future__ import annotations

from typing import Final

from ghost.brain.offline.complaint import Kind
from ghost.brain.offline.understanding.word_lists import any_of

_ORDER: Final[tuple[Kind, ...]] = ("dns", "unreachable", "intermittent", "slow", "refused", "reset")


def failure_kind(*texts: str) -> Kind:
    """Return the kind that the first of the texts tells; without one, as with "hangs" and "times out", unreachable."""
    for text in texts:
        told = any_of("kinds", "noise").sub(" ", text.replace("’", "'"))
        found = next((kind for kind in _ORDER if any_of("kinds", kind).search(told)), None)
        if found or any_of("kinds", "plain").search(told):
            return found or "unreachable"
    return "unreachable"
