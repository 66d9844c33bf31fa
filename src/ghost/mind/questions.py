"""Equality of questions: same names in the same order, and same words that carry meaning.

`Which port does web-vm use?` and `Please tell me the port that web-vm uses` are equal; a question about `db-vm`, or
about traffic in the other direction, is not. Deliberately strict: an extra question costs a person a glance, a missing
one costs the answer.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

_TERM = re.compile(r"[^\W_]+(?:['’._:/-]+[^\W_]+)*")
_TAG = re.compile(r"^\s*#\w+\s*")
_NEEDED = re.compile(r"\bNeeded:[^?]*$", re.IGNORECASE)
_DIRECTION = frozenset({"from", "to", "between", "through", "behind", "before", "after", "without", "not"})
FILLER = frozenset((Path(__file__).parent / "filler_words.txt").read_text(encoding="utf-8").split())

Essence = tuple[tuple[str, ...], frozenset[str]]


def essence(question: str) -> Essence:
    """Return identifiers in order, and other words without filler and endings, each with the direction before it."""
    text = unicodedata.normalize("NFKC", _NEEDED.sub("", _TAG.sub("", question))).casefold()
    identifiers: list[str] = []
    words: set[str] = set()
    direction = ""
    for term in _TERM.findall(text):
        if term in _DIRECTION:
            direction = f"{term} "
        elif is_identifier(term):
            identifiers.append(direction + term)
            direction = ""
        elif term not in FILLER:
            words.add(direction + stem(term))
            direction = ""
    return tuple(identifiers), frozenset(words)


def is_same_question(one: str, other: str) -> bool:
    first, second = essence(one), essence(other)
    if not any(first) or not any(second):  # no word in it: the texts themselves
        return " ".join(one.casefold().split()) == " ".join(other.casefold().split())
    return first == second


def names_in(text: str) -> frozenset[str]:
    """Return the identifiers of a text in lower case."""
    terms = _TERM.findall(unicodedata.normalize("NFKC", text).casefold())
    return frozenset(term for term in terms if is_identifier(term))


def is_identifier(term: str) -> bool:
    """Return whether a term is a name: it has a digit, or parts joined by `-`, `.`, `:`, `/` or `_`."""
    return any(character.isdigit() or character in "-.:/_" for character in term)


def stem(word: str) -> str:
    """Return a simple stem: `ports` is `port`, `uses` is `use`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
