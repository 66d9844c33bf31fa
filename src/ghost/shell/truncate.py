"""Keeps output within a model's budget, by its kind: what stays is still readable, and JSON stays JSON.

Nothing is cut below the budget of 200 lines and about 4,000 tokens; nothing above it is returned.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_LINES = 200
CHARACTERS_PER_TOKEN = 4
MAX_CHARACTERS = 4_000 * CHARACTERS_PER_TOKEN
ARRAY_HEAD, ARRAY_TAIL = 3, 1
TEXT_HEAD, TEXT_TAIL = 20, 10
MAX_DEPTH = 3
ELISION = "..."

_DASHES = re.compile(r"-{2,}(?:[ \t]+-{2,})*[ \t]*")
_COLUMN_GAP = re.compile(r"\S(?: {2,}|\t+)\S")
_CUT_LINE_NOTE = 50  # room for the note at the end of a cut line


def truncate(text: str) -> tuple[str, dict[str, Any]]:
    """`text` within the budget, and what was done to it."""
    return truncate_as(*_recognise(text), text)


def truncate_text(text: str) -> tuple[str, dict[str, Any]]:
    """The same for what is text whatever it looks like: parts of something longer."""
    return truncate_as("text", None, text)


def truncate_as(kind: str, value: Any, text: str) -> tuple[str, dict[str, Any]]:
    lines = text.splitlines()
    metadata: dict[str, Any] = {
        "truncation_applied": False,
        "total_lines": len(lines),
        "lines_shown": len(lines),
        "total_bytes": len(text.encode("utf-8", "replace")),
        "output_type": kind,
    }
    if kind == "json_array":
        metadata |= {"items_total": len(value), "items_shown": len(value)}
    if within_budget(text):
        return text, metadata
    if kind == "json_array":
        shortened, metadata["items_shown"] = _short_array(value)
    elif kind == "json_object":
        shortened = _short_object(value)
    elif kind == "tabular":
        shortened, metadata["lines_shown"] = _short_table(lines)
    else:
        shortened, metadata["lines_shown"] = _short_text(lines)
    if kind.startswith("json"):
        metadata["lines_shown"] = min(len(lines), len(shortened.splitlines()))
    metadata["truncation_applied"] = True
    return shortened, metadata


def within_budget(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and len(text.splitlines()) <= MAX_LINES


def _recognise(text: str) -> tuple[str, Any]:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(text, parse_constant=_refuse, parse_float=_float)
        except (ValueError, RecursionError):
            pass
        else:
            return ("json_array" if isinstance(value, list) else "json_object"), value
    return ("tabular" if _is_table(text) else "text"), None


def _is_table(text: str) -> bool:
    """A header, perhaps a row of dashes, and rows in which columns are parted by tabs or two blanks and more."""
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    if len(lines) < 2:
        return False
    if _DASHES.fullmatch(lines[1].strip()):
        return True
    parted = sum(_COLUMN_GAP.search(line) is not None for line in lines)
    return _COLUMN_GAP.search(lines[0]) is not None and not lines[0][0].isspace() and parted >= 0.8 * len(lines)


# JSON: ever shorter forms are tried until one is within the budget.


def _short_array(items: list[Any]) -> tuple[str, int]:
    for head, tail in ((ARRAY_HEAD, ARRAY_TAIL), (1, 0)):
        shown, count = _ends(items, head, tail)
        if (text := _first_within_budget(_forms(shown))) is not None:
            return text, count
    return _dump([_note(0, len(items))]), 0


def _short_object(value: dict[str, Any]) -> str:
    text = _first_within_budget(_forms(value, unshortened=False))
    keys = list(value)
    while text is None:  # thousands of keys: a part of them, none of their values
        keys = keys[: len(keys) // 2]
        note = f"[truncated: showing {len(keys)} of {len(value)} keys]"
        text = _first_within_budget(iter([{**{_cut(k, 100): ELISION for k in keys}, note: ELISION}]))
    return text


def _forms(value: Any, unshortened: bool = True) -> Iterator[Any]:
    if unshortened:
        yield value
    for depth, longest in ((MAX_DEPTH, None), (MAX_DEPTH, 1000), (MAX_DEPTH, 200), (2, 200), (2, 60), (1, 60)):
        yield _shallow(value, depth, longest)


def _shallow(value: Any, depth: int, longest: int | None) -> Any:
    """`value` with `depth` levels of containers, nested arrays cut to their ends, strings to `longest` characters."""
    if isinstance(value, (dict, list)) and value and depth == 0:
        return ELISION
    if isinstance(value, dict):
        return {_cut(key, longest): _shallow(inner, depth - 1, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shallow(inner, depth - 1, longest) for inner in _ends(value, ARRAY_HEAD, ARRAY_TAIL)[0]]
    return _cut(value, longest) if isinstance(value, str) else value


def _ends(items: list[Any], head: int, tail: int) -> tuple[list[Any], int]:
    """The first and last items with a note between them, and how many of the items are shown."""
    if len(items) <= head + tail or _is_shortened(items):
        return items, len(items)
    shown = head + tail
    return [*items[:head], _note(shown, len(items)), *items[len(items) - tail :]], shown


def _is_shortened(items: list[Any]) -> bool:
    """Whether these are the ends of an array already, with their note."""
    return len(items) <= ARRAY_HEAD + ARRAY_TAIL + 1 and any(
        isinstance(item, str) and item.startswith("[truncated: showing ") for item in items
    )


def _note(shown: int, total: int) -> str:
    return f"[truncated: showing {shown} of {total} items]"


def _first_within_budget(forms: Iterator[Any]) -> str | None:
    for form in forms:
        for indent in (2, None):
            text = _dump(form, indent)
            if within_budget(text):
                return text
    return None


def _dump(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _float(literal: str) -> float | str:
    number = float(literal)
    return number if math.isfinite(number) else literal


# Lines


def _short_table(lines: list[str]) -> tuple[str, int]:
    """The header and as many first rows as fit."""
    header_size = 2 if len(lines) > 1 and _DASHES.fullmatch(lines[1].strip()) else 1
    header, rows = lines[:header_size], lines[header_size:]
    room = MAX_CHARACTERS - 80
    shown = [_cut(line, room // 4) for line in header]
    used = sum(len(line) + 1 for line in shown)
    count = 0
    for row in rows[: MAX_LINES - header_size - 1]:
        line = _cut(row, room // 4)
        if used + len(line) + 1 > room:
            break
        shown.append(line)
        used += len(line) + 1
        count += 1
    return "\n".join([*shown, f"[truncated: showing {count} of {len(rows)} rows]"]), header_size + count


def _short_text(lines: list[str]) -> tuple[str, int]:
    """The first 20 and last 10 lines; longer ones than the budget has room for are cut themselves."""
    if len(lines) <= TEXT_HEAD + TEXT_TAIL:
        shown, kept = lines, len(lines)
    else:
        kept = TEXT_HEAD + TEXT_TAIL
        note = f"[truncated: {len(lines) - kept} lines omitted]"
        shown = [*lines[:TEXT_HEAD], note, *lines[-TEXT_TAIL:]]
    if not within_budget("\n".join(shown)):
        longest = MAX_CHARACTERS // len(shown) - 1
        shown = [_cut_line(line, longest) for line in shown]
    return "\n".join(shown), kept


def _cut_line(line: str, longest: int) -> str:
    if len(line) <= longest:
        return line
    kept = longest - _CUT_LINE_NOTE
    return f"{line[:kept]}[truncated: {len(line) - kept} characters omitted]"


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else text[: longest - len(ELISION)] + ELISION
