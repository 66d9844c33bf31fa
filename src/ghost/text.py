"""Text from outside made safe to show, and changes applied to every text of nested values. The one place for both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

MAX_DEPTH = 32


def visible(text: str, keep: str = "") -> str:
    """`text` for a terminal: control, format, bidirectional and odd space characters written as escapes (`\\x1b`).

    `keep`: such characters that stay as they are; `"\\n\\t"` for output of several lines.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def plural(number: int, noun: str) -> str:
    """Return the number and the noun in the form that fits: `1 step`, `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sentence(text: str) -> str:
    """Return `text` with a full stop, unless it ends a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean X? ` for the known word nearest to a misspelt one; empty if none is near."""
    near = get_close_matches(word, known, n=1, cutoff=0.7)
    return f"did you mean {near[0]}? " if near else ""


def one_line(text: str, limit: int | None = 80) -> str:
    """`text` on one line, white space folded, other unprintable characters left out, at most `limit` characters."""
    part = text if limit is None else text[: limit * 8]
    line = " ".join("".join(c if c.isprintable() else " " for c in part).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def short_id(audit_id: str) -> str:
    """Return `#018` for `ghost_20260101_120000_018`."""
    return f"#{audit_id.rpartition('_')[2]}"


def short_ids(text: str, session_id: str) -> str:
    """Return `text` with the audit ids of a session as their numbers: `#018` for `ghost_20260101_120000_018`."""
    return re.sub(rf"{re.escape(session_id)}_(\d{{3,}})", r"#\1", text)


def map_text(
    value: Any, change: Callable[[str], str], *, depth: int = MAX_DEPTH, items: int | None = None, keys: bool = True
) -> Any:
    """`value` with `change` applied to every string in its dicts (`keys` too), lists and tuples, such as a redaction.

    None, numbers and booleans stay. Anything else, or nested deeper than `depth`, becomes changed text. `items`: how
    many entries of each dict or list are taken.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > 0 and isinstance(value, dict):
        return {
            change(str(key)) if keys else key: map_text(inner, change, depth=depth - 1, items=items, keys=keys)
            for key, inner in list(value.items())[:items]
        }
    if depth > 0 and isinstance(value, list | tuple):
        return [map_text(inner, change, depth=depth - 1, items=items, keys=keys) for inner in value[:items]]
    return change(str(value))
