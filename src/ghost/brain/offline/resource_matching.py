"""Matching of a phrase with resources by name, tag, address and subnet of the tenant.

Exact mentions come first; then words, weighted by rarity, so that a word in every name counts for nothing. No resource
name is built in.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise

from ghost.brain.offline.symptom import vocabulary, word_set, words_of

CLOSE_SPELLING = 0.84
ENOUGH = 0.55
"""Minimum score of a candidate."""
CLEARLY_BETTER = 1.15
"""Required ratio of the best score to the second; otherwise the engineer is asked."""


@dataclass(frozen=True)
class Described:
    """A named resource: `strong` are words of its name, `weak` those of its surroundings."""

    key: int
    name: str
    strong: frozenset[str]
    weak: frozenset[str]
    spoken: tuple[str, ...] = ()
    """Names and tag values as spoken (`redis cache 01`); adjacent words count more."""


def spoken(text: str) -> str:
    return " ".join(_singular(word) for word in re.findall(r"[a-z0-9]+", text.lower()))


def mentions(phrase: str, name: str) -> bool:
    """Return whether `text` contains the whole name, not as part of a longer one."""
    return re.search(rf"(?<![\w.\-]){re.escape(name)}(?![\w\-]|\.\w)", phrase, re.IGNORECASE) is not None


def tokens(text: str) -> frozenset[str]:
    """Return the parts of a name (also split between letters and digits) and the name itself, plurals as singulars."""
    pieces: set[str] = set()
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        pieces.add(word)
        pieces.update(re.findall(r"[a-z]+|[0-9]+", word))
    return frozenset(_singular(piece) for piece in pieces)


def meaningful(phrase: str) -> frozenset[str]:
    """Return the words of a phrase that can tell resources apart."""
    ignored = word_set("stop_words") | word_set("machine_words") | word_set("subnet_words") | word_set("network_words")
    cleaned = " ".join(word for word in re.findall(r"[\w.\-]+", phrase.lower()) if word.strip(".-") not in ignored)
    return tokens(cleaned)


def is_plural(phrase: str) -> bool:
    """Return whether more than one machine is meant, so that any of them will do."""
    return bool(word_set("plural_words") & set(re.findall(r"\w+", phrase.lower())))


def rank(phrase: str, described: Sequence[Described]) -> list[tuple[float, Described]]:
    """Return the matches that score enough, best first."""
    phrase_words = meaningful(phrase)
    if not phrase_words or not described:
        return []
    weight = _rarity(phrase_words, described)
    pairs = _adjacent(phrase, phrase_words)
    telling = [word for word in phrase_words if not is_generic(word)]
    matching = [item for item in described if any(_likeness(word, item.strong | item.weak) for word in telling)]
    scored = ((_score(phrase_words, item, weight) + _adjacency_score(pairs, item, weight), item) for item in matching)
    return sorted((pair for pair in scored if pair[0] >= ENOUGH), key=lambda pair: (-pair[0], pair[1].name))


def clear_winners(ranked: Sequence[tuple[float, Described]]) -> list[Described]:
    """Return the best match and those with an equal score."""
    if not ranked:
        return []
    best = ranked[0][0]
    return [item for score, item in ranked if score * CLEARLY_BETTER >= best]


def is_generic(word: str) -> bool:
    """Return whether many names carry the word (`vm`, `prod`, a number), so that it does not identify one."""
    return word.isdigit() or word in word_set("generic_words")


_NAME_LIKE = re.compile(r"(?=[a-z0-9-]*[a-z])(?:[a-z0-9]+(?:-[a-z0-9]+)+|[a-z]{2,}[a-z0-9]*\d[a-z0-9]*)")


def unknown_names(phrase: str, described: Sequence[Described]) -> list[str]:
    """Return words that look like a machine name (hyphens, numbers) and are not one.

    A hyphenated word without a number is a description (`redis-cache`, `app-server`) if one machine carries all its
    parts, or if it is not in the position of a name.
    """
    words = words_of(phrase)
    ignored = word_set("stop_words") | word_set("ordinary_words")
    content = [word for word in words if word not in word_set("stop_words")]
    head = content[0] if content else ""
    found = []
    for place, word in enumerate(words):
        parts = [part for part in word.split("-") if part]
        if not _NAME_LIKE.fullmatch(word) or word in ignored or all(part in ignored for part in parts):
            continue
        numbered = any(c.isdigit() for c in word)
        after = words[place - 1] if place else ""
        placed = word == head or after in word_set("naming_words") or any(p in word_set("machine_words") for p in parts)
        telling = [_singular(part) for part in parts if not is_generic(part)]
        spoken_texts = telling and any(all(_likeness(t, d.strong | d.weak) for t in telling) for d in described)
        if numbered or (placed and not spoken_texts):
            found.append(word)
    return found


def similar(name: str, described: Sequence[Described]) -> list[Described]:
    """Return the names that resemble an unknown one, most similar first."""
    scored = [(SequenceMatcher(None, name.lower(), item.name.lower()).ratio(), item) for item in described]
    return [item for score, item in sorted(scored, key=lambda pair: (-pair[0], pair[1].name)) if score >= 0.5]


def _score(phrase_words: Iterable[str], item: Described, weight: dict[str, float]) -> float:
    return sum(
        weight[word] * max(_likeness(word, item.strong), 0.8 * _likeness(word, item.weak)) for word in phrase_words
    )


def _adjacent(phrase: str, phrase_words: frozenset[str]) -> list[tuple[str, str]]:
    words = spoken(phrase).split()
    return [(a, b) for a, b in pairwise(words) if a in phrase_words and b in phrase_words]


def _adjacency_score(pairs: Iterable[tuple[str, str]], item: Described, weight: dict[str, float]) -> float:
    """Return a bonus for adjacent words that are adjacent in a name or tag too."""
    spoken_texts = [f" {text} " for text in item.spoken]
    return sum(weight[a] + weight[b] for a, b in pairs if any(f" {a} {b} " in text for text in spoken_texts))


def _likeness(word: str, known: frozenset[str]) -> float:
    if word in known:
        return 1.0
    if any(other in known for other in _synonyms().get(word, ())):
        return 0.8
    if len(word) < 3 or word.isdigit():
        return 0.0
    if any(len(other) >= 3 and (other.startswith(word) or word.startswith(other)) for other in known):
        return 0.7
    if len(word) >= 5 and any(
        len(other) >= 5 and SequenceMatcher(None, word, other).ratio() >= CLOSE_SPELLING for other in known
    ):
        return 0.6
    return 0.0


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    """Return the synonyms in the form that `tokens` produces."""
    known: dict[str, list[str]] = vocabulary()["synonyms"]
    return {_singular(word): tuple(map(_singular, others)) for word, others in known.items()}


def _rarity(phrase_words: Iterable[str], described: Sequence[Described]) -> dict[str, float]:
    """Return the weight of a word: lower the more resources carry it, zero if all do."""
    carried: Counter[str] = Counter()
    for word in phrase_words:
        carried[word] = sum(_likeness(word, item.strong | item.weak) > 0 for item in described)
    total = len(described)
    return {word: math.log((total + 1) / count) if (count := carried[word]) else 0.0 for word in phrase_words}


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
