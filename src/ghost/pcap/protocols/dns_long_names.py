"""Names that carry data, by client and registered name; a DNS tunnel makes one of every packet."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from ghost.pcap import layout as L
from ghost.pcap.model import DnsLongNames
from ghost.pcap.protocols.dns_question import registered

LONG = 40
"""Random characters; host names rarely exceed 30 below a domain, and a tunnel uses what it can."""
_SHORTEST_WORD = 8
"""Shorter ones look random by chance."""
_MOST_COUNTED = 10_000
_MOST_DOMAINS = 4_096
_WORD = re.compile(r"[^._-]+")
_VOWELS = frozenset("aeiouy")


@dataclass(slots=True)
class _Below:
    server: int
    names: int = 0
    frames: list[int] = field(default_factory=list)


class LongNames:
    def __init__(self) -> None:
        self._below: dict[tuple[int, str], _Below] = {}

    def add(self, name: str, client: int, server: int, frame: int) -> None:
        """Count a name that nobody asked for before, if it carries data."""
        key = client, registered(name)
        below = self._below.get(key)
        if (below is not None and below.names >= _MOST_COUNTED) or not carries_data(name):
            return
        if below is None:
            if len(self._below) >= _MOST_DOMAINS:
                ranked = sorted(self._below, key=lambda pair: -self._below[pair].names)
                self._below = {pair: self._below[pair] for pair in ranked[: _MOST_DOMAINS // 2]}
            below = self._below[key] = _Below(server)
        below.names += 1
        if len(below.frames) < L.SAMPLE_FRAMES:
            below.frames.append(frame)

    def section(self, address: Callable[[int], str]) -> tuple[DnsLongNames, ...]:
        """Most names first."""
        rows = [
            DnsLongNames(domain, below.names, address(client), address(below.server), tuple(below.frames))
            for (client, domain), below in self._below.items()
        ]
        return tuple(sorted(rows, key=lambda row: (-row.names, row.domain, row.client)))


def carries_data(name: str) -> bool:
    """Return whether the words below the registered name have at least `LONG` random characters."""
    head = name[: -len(registered(name))].lower()
    return len(head) > LONG and sum(len(word) for word in _WORD.findall(head) if looks_random(word)) >= LONG


def looks_random(word: str) -> bool:
    """Return whether a word looks random: few vowels, long runs of consonants, digits between letters, even
    distribution."""
    if len(word) < _SHORTEST_WORD:
        return False
    letters = sum(character.isalpha() for character in word)
    vowels = sum(character in _VOWELS for character in word)
    longest = max(map(len, re.split(r"[aeiouy-]", word)))
    switches = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
    entropy = -sum(n / len(word) * math.log2(n / len(word)) for n in Counter(word).values())
    return vowels < 0.22 * letters or longest >= 5 or switches >= 4 or entropy >= 3.6
