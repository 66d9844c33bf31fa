"""What a model said as a micro-thought: cleaned, tagged, cut to length.

Models wrap, number, repeat and chatter. The first tagged sentence counts; text without a tag is a question where it
ends with a question mark, else an insight; what holds no word at all is refused. Nothing that was said is obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

Redact = Callable[[str], str]
"""A text without its secrets, control characters and what nobody can see."""

MOST_WORDS = 60
"""Of a thought, its tag among them."""
MOST_CHARS = 600
MOST_FIELDS = 8
READ_CHARS = 8000
"""Of what a model returns; the rest is not looked at."""

_TAG = re.compile(r"(?<![\w#])#(plan|question|insight)\b[\s:,.–—-]*", re.IGNORECASE)
_NEEDED = re.compile(r"\s*\bNeeded:\s*(?P<fields>[a-z0-9_]+(?:\s*,\s*[a-z0-9_]+)*)\s*\.?\s*$", re.IGNORECASE)
_WRAPPING = re.compile(r"```\w*|^[\s>*\-\"'“”`]+|[\s\"'“”`*]+$")
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Spoken:
    """`content` begins with its tag. `required_fields`: what the answer to a question has to hold."""

    tag: str
    content: str
    required_fields: tuple[str, ...] = ()


def spoken(text: str, redact: Redact) -> Spoken | None:
    """None where the text holds no word."""
    whole = " ".join("".join(filter(str.isprintable, " ".join(redact(text[:READ_CHARS]).split()))).split())
    tag, sentence = _first_tagged(whole)
    sentence = _unwrapped(sentence)
    fields: tuple[str, ...] = ()
    if tag == "question" and (needed := _NEEDED.search(sentence)):
        fields = tuple(dict.fromkeys(name.strip().lower() for name in needed["fields"].split(",")))[:MOST_FIELDS]
        sentence = sentence[: needed.start()]
    if not _WORD.search(sentence):
        return None
    ending = f" Needed: {', '.join(fields)}." if fields else ""
    return Spoken(tag, _cut(f"#{tag} {sentence}", len(ending.split()), len(ending)) + ending, fields)


def _first_tagged(text: str) -> tuple[str, str]:
    """The first tag with words behind it, and the words up to the next tag."""
    tags = list(_TAG.finditer(text))
    for found, following in zip_longest(tags, tags[1:]):
        sentence = text[found.end() : following.start() if following else len(text)]
        if _WORD.search(sentence):
            return found[1].lower(), sentence
    untagged = _TAG.sub(" ", text)
    return ("question" if _unwrapped(untagged).endswith("?") else "insight"), untagged


def _unwrapped(text: str) -> str:
    return _WRAPPING.sub("", _WRAPPING.sub("", text)).strip()


def _cut(text: str, words_taken: int, chars_taken: int) -> str:
    words = text.split()
    most = MOST_WORDS - words_taken
    kept = " ".join(words[:most])
    if len(kept) > MOST_CHARS - chars_taken:
        kept = kept[: MOST_CHARS - chars_taken - 1].rstrip()
    elif len(words) <= most:
        return kept
    return kept.rstrip(",;:") + "…"
