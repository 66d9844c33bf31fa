"""Parsing of a model's micro-thought: cleaned, tagged, truncated.

The first tagged sentence counts; untagged text is a question if it ends with a question mark, else an insight; text
without words is refused. Nothing in the text is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

Redact = Callable[[str], str]
"""A text without secrets, control and invisible characters."""

MAX_WORDS = 60
"""Maximum words of a thought, including its tag."""
MAX_CHARS = 600
MAX_FIELDS = 8
READ_CHARS = 8000
"""Maximum characters read of a model's answer."""

_TAG = re.compile(r"(?<![\w#])#(plan|question|insight)\b[\s:,.–—-]*", re.IGNORECASE)
_NEEDED = re.compile(r"\s*\bNeeded:\s*(?P<fields>[a-z0-9_]+(?:\s*,\s*[a-z0-9_]+)*)\s*\.?\s*$", re.IGNORECASE)
_SOURCES = re.compile(r"\s*[(\[]?\bSources?:\s*(?P<ids>[^\s,]{1,200}(?:\s*,\s*[^\s,]{1,200}){0,15})\s*$", re.IGNORECASE)
_WRAPPING = re.compile(r"```\w*|^[\s>*\-\"'“”`]+|[\s\"'“”`*]+$")
_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class ParsedThought:
    """A parsed thought; `content` begins with its tag. `required_fields`: the fields an answer must contain."""

    tag: str
    content: str
    required_fields: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Ids of its sources, as the model states them; not part of `content`."""


def spoken(text: str, redact: Redact) -> ParsedThought | None:
    """Parse a thought; None if the text has no words."""
    whole = " ".join("".join(filter(str.isprintable, " ".join(redact(text[:READ_CHARS]).split()))).split())
    tag, sentence = _first_tagged(whole)
    sentence, sources = _without_sources(_unwrapped(sentence))
    fields: tuple[str, ...] = ()
    if tag == "question" and (needed := _NEEDED.search(sentence)):
        fields = tuple(dict.fromkeys(name.strip().lower() for name in needed["fields"].split(",")))[:MAX_FIELDS]
        sentence = sentence[: needed.start()]
    if not _WORD.search(sentence):
        return None
    ending = f" Needed: {', '.join(fields)}." if fields else ""
    return ParsedThought(tag, _cut(f"#{tag} {sentence}", len(ending.split()), len(ending)) + ending, fields, sources)


def _first_tagged(text: str) -> tuple[str, str]:
    """Return the first tag followed by words, and the words up to the next tag."""
    tags = list(_TAG.finditer(text))
    for found, following in zip_longest(tags, tags[1:]):
        sentence = text[found.end() : following.start() if following else len(text)]
        if _WORD.search(sentence):
            return found[1].lower(), sentence
    untagged = _TAG.sub(" ", text)
    return ("question" if _unwrapped(untagged).endswith("?") else "insight"), untagged


def _without_sources(sentence: str) -> tuple[str, tuple[str, ...]]:
    """Return the sentence and the ids of the sources stated at its end."""
    found = _SOURCES.search(sentence)
    if found is None:
        return sentence, ()
    ids = (name.strip(" []().;`\"'") for name in found["ids"].split(","))
    return sentence[: found.start()].rstrip(), tuple(dict.fromkeys(filter(None, ids)))


def _unwrapped(text: str) -> str:
    return _WRAPPING.sub("", _WRAPPING.sub("", text)).strip()


def _cut(text: str, words_taken: int, chars_taken: int) -> str:
    words = text.split()
    max_words = MAX_WORDS - words_taken
    text_of_thought = " ".join(words[:max_words])
    if len(text_of_thought) > MAX_CHARS - chars_taken:
        text_of_thought = text_of_thought[: MAX_CHARS - chars_taken - 1].rstrip()
    elif len(words) <= max_words:
        return text_of_thought
    return text_of_thought.rstrip(",;:") + "…"
