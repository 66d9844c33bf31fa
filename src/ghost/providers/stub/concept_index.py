"""The concepts of a word, from `concepts.txt`, by word stem."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ies", "ied", "ed", "es", "ly", "s", "e")


@cache
def concepts() -> tuple[tuple[str, ...], ...]:
    """Return the words of each concept, in the file's order; the index is the concept's number."""
    lines = (Path(__file__).parent / "concepts.txt").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split()) for line in lines if line and not line.startswith("#"))


def concepts_of(term: str) -> tuple[int, ...]:
    """Return the concept numbers of a lower-case term; two words for one concept are joined by a hyphen."""
    return _by_stem().get(_stems(term), ())


@cache
def _by_stem() -> dict[str, tuple[int, ...]]:
    numbers: dict[str, dict[int, None]] = {}
    for number, words in enumerate(concepts()):
        for word in words:
            numbers.setdefault(_stems(word), {})[number] = None
    return {stems: tuple(found) for stems, found in numbers.items()}


def _stems(term: str) -> str:
    return "-".join(map(stem, term.split("-")))


def stem(word: str) -> str:
    """Return the word without its English ending: `retransmitted` and `retransmits` are equal. Short words and
    identifiers stay.
    """
    if len(word) <= 4 or not word.isalpha():
        return word
    for ending in _ENDINGS:
        kept = word[: -len(ending)]
        if word.endswith(ending) and len(kept) >= 3:
            if ending in ("ies", "ied"):
                return kept + "y"
            if len(kept) > 3 and kept[-1] == kept[-2] and kept[-1] not in "ls":
                kept = kept[:-1]
            return kept.removesuffix("e")
    return word
