"""Matching of words with names: exact parts first, then synonyms, beginnings and close spellings, weighted by rarity.

A word in every name counts for nothing. No resource name is built in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import pairwise
from typing import Final

from ghost.brain.offline.understanding.word_lists import vocabulary, word_set

CLOSE_SPELLING: Final = 0.84
ENOUGH: Final = 0.55
"""Minimum score of a match."""
CLEARLY_BETTER: Final = 1.15
"""Required ratio of the best score to the second; otherwise both are meant."""
SIMILAR: Final = 0.8
"""Of a name that does not exist to the one that was probably meant."""


@dataclass(frozen=True)
class Described:
    """What has a name: `strong` are words of it, `weak` those of its tags and surroundings."""

    name: str
    strong: frozenset[str]
    weak: frozenset[str] = frozenset()
    spoken: tuple[str, ...] = ()
    """Names and tag values as spoken (`redis cache 01`): words beside each other there count more."""


@dataclass
class NameIndex:
    described: Sequence[Described]
    _likeness: dict[str, Mapping[int, float]] = field(default_factory=dict)

    def likeness(self, word: str) -> Mapping[int, float]:
        """Return how much a word is like each of the described, by place; those that it is not like are left out."""
        if word not in self._likeness:
            known = {token: value for token in self._tokens if (value := _likeness(word, token))}
            scores: dict[int, float] = {}
            for place, each in enumerate(self.described if known else ()):
                strong = max((known[t] for t in each.strong if t in known), default=0.0)
                weak = max((known[t] for t in each.weak if t in known), default=0.0)
                if strong or weak:
                    scores[place] = max(strong, 0.8 * weak)
            self._likeness[word] = scores
        return self._likeness[word]

    @cached_property
    def _tokens(self) -> frozenset[str]:
        return frozenset().union(*(each.strong | each.weak for each in self.described))

    def matches(self, phrase: str) -> list[tuple[float, int]]:
        """Return scores and places of what the phrase may mean, best first."""
        words = [word for word in spoken(phrase).split() if word not in _ignored()]
        if not any(self.likeness(word) for word in words if not is_generic(word)):
            return []
        total = len(self.described)
        weight = {w: math.log((total + 1) / len(like)) if (like := self.likeness(w)) else 0.0 for w in words}
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words):
            for place, value in self.likeness(word).items():
                scores[place] = scores.get(place, 0.0) + weight[word] * value
        telling = {place for word in words if not is_generic(word) for place in self.likeness(word)}
        pairs = list(pairwise(spoken(phrase).split()))
        for place in telling:
            texts = [f" {text} " for text in self.described[place].spoken]
            scores[place] += sum(
                weight.get(a, 0) + weight.get(b, 0) for a, b in pairs if any(f" {a} {b} " in t for t in texts)
            )
        enough = [(scores[place], place) for place in telling if scores[place] >= ENOUGH]
        return sorted(enough, key=lambda pair: (-pair[0], self.described[pair[1]].name))

    def best(self, phrase: str) -> list[int]:
        """Return the best match and those about as good."""
        matches = self.matches(phrase)
        return [place for score, place in matches if score * CLEARLY_BETTER >= matches[0][0]]

    def similar(self, name: str) -> list[int]:
        """Return what a name that does not exist may have been meant to be, most similar first."""
        same = [place for place, each in enumerate(self.described) if spoken_number(each.name) == spoken_number(name)]
        if same:
            return same
        scored = [
            (SequenceMatcher(None, name.casefold(), each.name.casefold()).ratio(), i)
            for i, each in enumerate(self.described)
        ]
        close = [(ratio, place) for ratio, place in scored if ratio >= SIMILAR]
        return [place for ratio, place in sorted(close, key=lambda pair: (-pair[0], self.described[pair[1]].name))]


def spoken(text: str) -> str:
    """Return the words of a name or phrase, plurals as singulars."""
    return " ".join(_singular(word) for word in re.findall(r"[a-z]+|[0-9]+", text.casefold()))


def spoken_number(name: str) -> str:
    """Return a name without leading zeros of its numbers: `app-1` is `app-01`."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.casefold())


def tokens(text: str) -> frozenset[str]:
    """Return the parts of a name, also split between letters and digits."""
    whole = re.findall(r"[a-z0-9]+", text.casefold())
    return frozenset(map(_singular, whole)) | frozenset(spoken(text).split())


def is_generic(word: str) -> bool:
    """Return whether many names carry the word (`vm`, `prod`, a number), so that it does not identify one."""
    return word.isdigit() or len(word) < 2 or word in _generic()


@cache
def _generic() -> frozenset[str]:
    return word_set("generic_words") | frozenset(map(_singular, word_set("generic_words")))


@cache
def _ignored() -> frozenset[str]:
    return frozenset(map(_singular, word_set("stop_words") | word_set("machine_words")))


def _likeness(word: str, token: str) -> float:
    if word == token:
        return 1.0
    if token in _synonyms().get(word, ()):
        return 0.8
    if min(len(word), len(token)) < 3 or word.isdigit() or token.isdigit():
        return 0.0
    if token.startswith(word) or word.startswith(token):
        return 0.7 if min(len(word), len(token)) * 2 >= max(len(word), len(token)) else 0.0
    close = min(len(word), len(token)) >= 5 and word[0] == token[0] and abs(len(word) - len(token)) <= 2
    return 0.6 if close and SequenceMatcher(None, word, token).ratio() >= CLOSE_SPELLING else 0.0


@cache
def _synonyms() -> dict[str, frozenset[str]]:
    known: dict[str, list[str]] = vocabulary()["synonyms"]
    return {_singular(word): frozenset(map(_singular, others)) for word, others in known.items()}


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def words_in(text: str) -> Iterable[re.Match[str]]:
    return re.finditer(r"[A-Za-z0-9][\w'’-]*", text)
