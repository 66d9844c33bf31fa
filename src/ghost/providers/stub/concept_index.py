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
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3:
            if ending in ("ies", "ied"):
                return root + "y"
            if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "ls":
                root = root[:-1]
            return root.removesuffix("e")
    return word
