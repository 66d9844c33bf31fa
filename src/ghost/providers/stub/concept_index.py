"""What a word is about: the concepts of `concepts.txt`, found by the stem of a word."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ies", "ied", "ed", "es", "ly", "s", "e")


@cache
def concepts() -> tuple[tuple[str, ...], ...]:
    """The words of each, in the file's order: its place is its number."""
    lines = (Path(__file__).parent / "concepts.txt").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(line.split()) for line in lines if line and not line.startswith("#"))


def concepts_of(term: str) -> tuple[int, ...]:
    """Numbers of the concepts that a term in small letters names; two words that name one are joined by a hyphen."""
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
    """Without its English ending: `retransmitted` and `retransmits` are one word. Short ones and identifiers stay."""
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
