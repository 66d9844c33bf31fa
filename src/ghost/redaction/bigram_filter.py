"""Bigram filter: rules out most strings of a table at once, because a long text lacks one of their character pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise

_LONG = 32_768
"""Characters from which on it pays to look at all of the text once."""
_BLOCK = 1 << 20


def sieve(text: str) -> Callable[[str], bool]:
    """Return a function that tells whether a string may be in the text. False is certain, True is not."""
    return _sieve_of_long(text) if len(text) >= _LONG else lambda _: True


@lru_cache(maxsize=2)
def _sieve_of_long(text: str) -> Callable[[str], bool]:
    """The same for a long text, cached because several rules ask in a row."""
    import numpy as np  # only here: a short text must not wait for it

    raw = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    seen = np.zeros(1 << 16, bool)
    for start in range(0, len(raw), _BLOCK):
        block = raw[start : start + _BLOCK + 1]
        seen[(block[:-1].astype(np.uint16) << 8) | block[1:]] = True
    pairs = seen.tobytes()
    return lambda wanted: all(pairs[a << 8 | b] for a, b in pairwise(wanted.encode()))


def present(text: str, strings: Iterable[str]) -> tuple[str, ...]:
    """Return the strings that are in the text, in their order."""
    may_hold = sieve(text)
    return tuple(string for string in strings if may_hold(string) and string in text)
