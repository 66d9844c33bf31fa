"""The words that the understanding of a sentence goes by, from `vocabulary.toml`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ghost.policy import load_policy


@cache
def vocabulary() -> dict[str, Any]:
    return load_policy(__file__, "vocabulary.toml")


@cache
def word_set(name: str) -> frozenset[str]:
    return frozenset(vocabulary()[name].split())


@cache
def any_of(table: str, name: str) -> re.Pattern[str]:
    """Return a pattern that matches each entry of a list as whole words."""
    entries: list[str] = vocabulary()[table][name]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(entries)})(?![\w-]|['’]s\b)", re.IGNORECASE)


def service_of(word: str) -> tuple[str, int] | None:
    """Return protocol and usual port of a product or protocol."""
    found = vocabulary()["services"].get(word.casefold())
    return (str(found[0]), int(found[1])) if found else None
