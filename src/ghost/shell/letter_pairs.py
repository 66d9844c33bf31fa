"""Tells at once of most strings that a long text does not hold them: a pair of their characters is not in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

_LONG = 32_768
"""Characters from which on it pays to look at all of the text once."""


def sieve(text: str) -> Callable[[str], bool]:
    """Whether a string may be in the text. False is certain; True asks for a look."""
    if len(text) < _LONG:
        return lambda _: True
    import numpy as np  # only here: a short text must not wait for it

    raw = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    seen = np.zeros(1 << 16, bool)
    seen[(raw[:-1].astype(np.uint16) << 8) | raw[1:]] = True
    pairs = seen.tobytes()
    return lambda wanted: all(pairs[a << 8 | b] for a, b in pairwise(wanted.encode()))


def held(text: str, strings: Iterable[str]) -> tuple[str, ...]:
    """Those of the strings that the text holds, in their order."""
    may_hold = sieve(text)
    return tuple(string for string in strings if may_hold(string) and string in text)
