"""The sources of a thought: what it rests on, and whether a question asks for what its source lacks.

A thought shares a name, number or address with each source and contains none that no source has. This holds whoever
wrote it; a text that does not is no thought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ghost.mind.answer_fields import type_name, type_of, wondered
from ghost.mind.facts_in_text import Mentions, mentions
from ghost.mind.questions import FILLER, stem
from ghost.mind.thought_parsing import ParsedThought
from ghost.providers import Item

_NEEDED = re.compile(r"\s*\bNeeded:[^?]*$")
_NEGATIONS = frozenset({"not", "no", "cannot", "can't", "doesn't", "isn't"})
_TAG = re.compile(r"^#\w+\s+")


def sources_of(thought: ParsedThought, items: Sequence[Item]) -> tuple[str, ...]:
    """Return the ids of the sources among the stimuli, memories and the task; empty if it is not grounded.

    The sources that the thought states are used; without any, those that together contain its names. A question rests
    on one source, which lacks what it asks for.
    """
    text = _plain(thought)
    said = mentions(text)
    known = {item.id for item in items}
    stated = set(thought.sources) & known
    related = [item for item in items if (not stated or item.id in stated) and said.shared_with(mentions(item.text))]
    if thought.tag == "question":
        return _source_of_question(thought, text, said, related, items)
    chosen = related if stated else _covering(said, related)
    words = frozenset[str]().union(*(mentions(item.text).words for item in chosen))
    return tuple(item.id for item in chosen) if chosen and said.exact <= words else ()


def _plain(thought: ParsedThought) -> str:
    return _NEEDED.sub("", _TAG.sub("", thought.content))


def _covering(said: Mentions, related: Sequence[Item]) -> list[Item]:
    """Return few items that together contain what the thought shares with any of them."""
    shared = {item: said.shared_with(mentions(item.text)) for item in related}
    missing = frozenset[str]().union(*shared.values()) if shared else frozenset()
    chosen: list[Item] = []
    while missing:
        best = max(related, key=lambda item: len(shared[item] & missing))
        chosen.append(best)
        missing -= shared[best]
    return chosen


def _source_of_question(
    thought: ParsedThought, text: str, said: Mentions, related: Sequence[Item], items: Sequence[Item]
) -> tuple[str, ...]:
    """Return the one source that contains all names of the question, if no item about them gives the answer."""
    about = [item for item in related if said.exact <= mentions(item.text).words]
    fields = thought.required_fields or (wondered(text),)
    answering = [item for item in items if said.exact <= mentions(item.text).words] if about else []
    if not about or any(_gives(field, text, said, item.text) for field in fields for item in answering):
        return ()
    return (about[0].id,)


def _gives(field: str, question: str, said: Mentions, source: str) -> bool:
    """Return whether a text contains what a field of the question asks for."""
    kind = type_name(field)
    if kind == "name":  # who or what else: a text with further names says it
        return not mentions(source).resources <= said.resources
    if (giving := type_of(field).giving) is not None:
        return giving.search(source) is not None
    return _content_words(question) <= _content_words(source)


def _content_words(text: str) -> frozenset[str]:
    words = (stem(word) for word in mentions(text).words if word not in FILLER | _NEGATIONS)
    return frozenset(word.removesuffix("ed").removesuffix("ing") for word in words)
