"""Truncation: keeps output within a model's budget, by its kind; JSON stays valid JSON.

Nothing is cut below the budget of 200 lines and about 4,000 tokens; nothing above it is returned. Long output is
shortened before it is redacted: to what may be shown, and what must be seen beside it to tell a secret.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ghost.patterns import lazy
from ghost.redaction import opening_of
from ghost.shell.record.bounded_json import is_too_large, read_ends, read_json, written

MAX_LINES = 200
CHARACTERS_PER_TOKEN = 4
MAX_CHARACTERS = 4_000 * CHARACTERS_PER_TOKEN
ARRAY_HEAD, ARRAY_TAIL = 3, 1
TEXT_HEAD, TEXT_TAIL = 20, 10
MAX_DEPTH = 3
ELISION = "..."
_TEXT: tuple[str, Any] = ("text", None)

_DASHES = lazy(r"-{2,}(?:[ \t]+-{2,})*[ \t]*")
_COLUMN_GAP = lazy(r"\S(?: {2,}|\t+)\S")
_CUT_LINE_NOTE = 50  # room for the note at the end of a cut line
_WORD_EDGE = lazy(r"[\s\"'<>]")
_LONGEST_WORD = 1_024
_CUT_LINE = lazy(r" ?\[truncated: (\d+) characters omitted\]$")
_CUT_ARRAY = lazy(r"\[truncated: showing \d+ of (\d+) items\]")

# Shortened: a line as far as one may be shown and some more; at either end as much as 20 such lines, so that a key
# of hundreds of lines is seen from its beginning.
LONGEST_LINE = MAX_CHARACTERS + 2_432
WINDOW = (TEXT_HEAD + 1) * LONGEST_LINE


@dataclass(frozen=True)
class Extent:
    """Kind and size of an output before it was shortened."""

    kind: str
    lines: int
    size: int
    items: int | None = None


def shorten(text: str, *, whole: bool = True) -> tuple[str, Extent | None]:
    """The parts of a long output that truncation may keep, with its `Extent`; a short output stays, without one."""
    if len(text) <= 2 * WINDOW:
        return text, None
    kind, value = _recognise(text) if whole else _TEXT
    lines = text.count("\n") + (not text.endswith("\n"))
    size = len(text.encode("utf-8", "replace"))
    if kind == "json_array":
        return _short_array(value, WIDE)[0], Extent(kind, lines, size, _items(value)[1])
    if kind == "json_object":
        return _short_object(value, WIDE), Extent(kind, lines, size)
    return _both_ends(text, lines), Extent(kind, lines, size)


def truncate(text: str) -> tuple[str, dict[str, Any]]:
    """Truncate `text` to the budget. Returns the text and the metadata."""
    return truncate_as(*_recognise(text), text)


def truncate_text(text: str) -> tuple[str, dict[str, Any]]:
    """`truncate` for parts of a longer text, which are never taken for JSON or a table."""
    return truncate_as("text", None, text)


def truncate_shortened(text: str, extent: Extent) -> tuple[str, dict[str, Any]]:
    """`truncate` for a text that was shortened and then redacted."""
    kind, value = _recognise(text) if extent.kind.startswith("json") else (extent.kind, None)
    shortened, metadata = truncate_as(kind, value, text, extent.lines)
    metadata |= {"truncation_applied": True, "total_lines": extent.lines, "total_bytes": extent.size}
    metadata["lines_shown"] = min(metadata["lines_shown"], extent.lines)
    if kind == "json_array":
        metadata |= {"items_total": extent.items}
    return shortened, metadata


def truncate_as(kind: str, value: Any, text: str, total_lines: int | None = None) -> tuple[str, dict[str, Any]]:
    lines = text.splitlines()
    total = len(lines) if total_lines is None else total_lines
    metadata: dict[str, Any] = {
        "truncation_applied": False,
        "total_lines": len(lines),
        "lines_shown": len(lines),
        "total_bytes": len(text.encode("utf-8", "replace")),
        "output_type": kind,
    }
    if kind == "json_array":
        metadata |= {"items_total": len(value), "items_shown": len(_items(value)[0])}
    if within_budget(text):
        return text, metadata
    if kind == "json_array":
        shortened, metadata["items_shown"] = _short_array(value)
    elif kind == "json_object":
        shortened = _short_object(value)
    elif kind == "tabular":
        shortened, metadata["lines_shown"] = _short_table(lines, total)
    else:
        shortened, metadata["lines_shown"] = _short_text(lines, total)
    if kind.startswith("json"):
        metadata["lines_shown"] = min(len(lines), len(shortened.splitlines()))
    metadata["truncation_applied"] = True
    return shortened, metadata


def within_budget(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and len(text.splitlines()) <= MAX_LINES


def _recognise(text: str) -> tuple[str, Any]:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            value = _ends_of_array(text) if is_too_large(text) else read_json(text)
        except ValueError:
            pass
        else:
            return ("json_array" if isinstance(value, list) else "json_object"), value
    return ("tabular" if _is_table(text) else "text"), None


def _ends_of_array(text: str) -> list[Any]:
    """The first and last items of an array that is too large to be read whole, with a note between them."""
    if not text.lstrip().startswith("["):
        raise ValueError("no array")
    first, last, total = read_ends(text, ARRAY_HEAD, ARRAY_TAIL)
    return [*first, _note(len(first) + len(last), total), *last]


def _is_table(text: str) -> bool:
    """A header, perhaps a row of dashes, and rows in which columns are parted by tabs or two blanks and more."""
    lines = [line for line in text[:WINDOW].splitlines()[:50] if line.strip()]
    if len(lines) < 2:
        return False
    if _DASHES.fullmatch(lines[1].strip()):
        return True
    parted = sum(_COLUMN_GAP.search(line) is not None for line in lines)
    return _COLUMN_GAP.search(lines[0]) is not None and not lines[0][0].isspace() and parted >= 0.8 * len(lines)


# JSON: ever shorter forms are tried until one is within the budget: first the depth, then the longest string.


@dataclass(frozen=True)
class Budget:
    characters: int
    lines: float
    forms: tuple[tuple[int, int | None], ...]


_STEPS = ((MAX_DEPTH, None), (MAX_DEPTH, 1000), (MAX_DEPTH, 200), (2, 200), (2, 60), (1, 60))
SHOWN = Budget(MAX_CHARACTERS, MAX_LINES, _STEPS)
WIDE = Budget(2 * WINDOW, math.inf, (*_STEPS[:1], (MAX_DEPTH, MAX_CHARACTERS), (MAX_DEPTH, 2000), *_STEPS[1:]))


def _short_array(items: list[Any], budget: Budget = SHOWN) -> tuple[str, int]:
    for head, tail in ((ARRAY_HEAD, ARRAY_TAIL), (1, 0)):
        shown, count = _ends(items, head, tail)
        if (text := _first_within(budget, _forms(shown, budget))) is not None:
            return text, count
    return written([_note(0, _items(items)[1])], None, math.inf) or "[]", 0


def _short_object(value: dict[str, Any], budget: Budget = SHOWN) -> str:
    text = _first_within(budget, _forms(value, budget, unshortened=False))
    keys = list(value)
    while text is None:  # thousands of keys: a part of them, none of their values
        keys = keys[: len(keys) // 2]
        note = f"[truncated: showing {len(keys)} of {len(value)} keys]"
        text = _first_within(budget, iter([{**{k[:100]: ELISION for k in keys}, note: ELISION}]))
    return text


def _forms(value: Any, budget: Budget, unshortened: bool = True) -> Iterator[Any]:
    if unshortened:
        yield value
    for depth, longest in budget.forms:
        yield _shallow(value, depth, longest)


def _shallow(value: Any, depth: int, longest: int | None) -> Any:
    """`value` with `depth` levels of containers, nested arrays cut to their ends, strings to `longest` characters."""
    if isinstance(value, (dict, list)) and value and depth == 0:
        return ELISION
    if isinstance(value, dict):
        return {key[:longest]: _shallow(inner, depth - 1, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shallow(inner, depth - 1, longest) for inner in _ends(value, ARRAY_HEAD, ARRAY_TAIL)[0]]
    return _cut(value, longest) if isinstance(value, str) else value


def _ends(items: list[Any], head: int, tail: int) -> tuple[list[Any], int]:
    """The first and last items with a note between them, and how many of the items are shown."""
    real, total = _items(items)
    if len(real) <= head + tail:
        return items, len(real)
    shown = head + tail
    return [*real[:head], _note(shown, total), *real[len(real) - tail :]], shown


def _items(items: list[Any]) -> tuple[list[Any], int]:
    """The items and their number; for an array that was cut before, the number in its note."""
    if len(items) <= ARRAY_HEAD + ARRAY_TAIL + 1:
        for index, item in enumerate(items):
            if isinstance(item, str) and (note := _CUT_ARRAY.fullmatch(item)) is not None:
                return items[:index] + items[index + 1 :], int(note[1])
    return items, len(items)


def _note(shown: int, total: int) -> str:
    return f"[truncated: showing {shown} of {total} items]"


def _first_within(budget: Budget, forms: Iterator[Any]) -> str | None:
    for form in forms:
        for indent in (2, None):
            text = written(form, indent, budget.characters)
            if text is not None and len(text.splitlines()) <= budget.lines:
                return text
    return None


# Lines


def _short_table(lines: list[str], total: int) -> tuple[str, int]:
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
    return "\n".join([*shown, f"[truncated: showing {count} of {total - header_size} rows]"]), header_size + count


def _short_text(lines: list[str], total: int) -> tuple[str, int]:
    """The first 20 and last 10 lines; longer ones than the budget has room for are cut themselves."""
    if len(lines) <= TEXT_HEAD + TEXT_TAIL:
        shown, kept = lines, len(lines)
    else:
        kept = TEXT_HEAD + TEXT_TAIL
        note = f"[truncated: {total - kept} lines omitted]"
        shown = [*lines[:TEXT_HEAD], note, *lines[-TEXT_TAIL:]]
    if not within_budget("\n".join(shown)):
        longest = MAX_CHARACTERS // len(shown) - 1
        shown = [_cut_line(line, longest) for line in shown]
    return "\n".join(shown), kept


def _both_ends(text: str, total: int) -> str:
    """A window at both ends of a text, with long lines cut. Before the last window, lines that may explain it.

    That is never shown: far more lines follow it than truncation leaves.
    """
    head: list[str] = []
    start, used = 0, 0
    while start < len(text) and used < WINDOW:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        head.append(_cut_line_at(text, start, end))
        used += len(head[-1]) + 1
        start = end + 1
    tail: list[str] = []
    end, used = len(text) - text.endswith("\n"), 0
    while end >= start and used < WINDOW:
        line = text.rfind("\n", start, end) + 1 or start
        tail.append(_cut_line_at(text, line, end))
        used += len(tail[-1]) + 1
        end = line - 1
    omitted = total - len(head) - len(tail)
    note = [f"[truncated: {omitted} lines omitted]", *opening_of(text, end + 1)] if omitted > 0 else []
    return "\n".join([*head, *note, *reversed(tail)]) + "\n" * text.endswith("\n")


def _cut_line_at(text: str, start: int, end: int) -> str:
    if end - start <= LONGEST_LINE:
        return text[start:end]
    kept = _before_broken_word(text, start, start + LONGEST_LINE - _CUT_LINE_NOTE) - start
    return f"{text[start : start + kept].rstrip()} [truncated: {end - start - kept} characters omitted]"


def _cut_line(line: str, longest: int) -> str:
    if len(line) <= longest:
        return line
    earlier = _CUT_LINE.search(line, max(0, len(line) - _CUT_LINE_NOTE))
    omitted, end = (int(earlier[1]), earlier.start()) if earlier is not None else (0, len(line))
    kept = _before_broken_word(line, 0, min(end, longest - _CUT_LINE_NOTE))
    return f"{line[:kept].rstrip()} [truncated: {end - kept + omitted} characters omitted]"


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    kept = _before_broken_word(text, 0, longest - len(ELISION) - 1)
    return f"{text[:kept].rstrip()} {ELISION}"


def _before_broken_word(text: str, start: int, end: int) -> int:
    """The start of the word that a cut would break: part of a secret no longer looks like one.

    Not further back than words usually are long: of what is longer, a part is still known for what it is.
    """
    if end >= len(text):
        return end
    while end > start and text[end - 1].isspace():
        end -= 1
    earliest = max(start, end - _LONGEST_WORD)
    edges = [edge.end() for edge in _WORD_EDGE.finditer(text, earliest, end)]
    word = edges[-1] if edges else earliest
    if text.startswith("/subscriptions/", word) or (not edges and earliest > start):
        return end
    return word
