"""Truncation: keeps output within a model's budget, by its kind; JSON stays valid JSON.

Nothing is cut below the budget of 200 lines and about 4,000 tokens; nothing above it is returned. Long output is
shortened before it is redacted: to what may be shown, and what must be seen beside it to tell a secret.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from ghost.patterns import lazy
from ghost.redaction import opening_of
from ghost.shell.record.bounded_json import DEEPEST, is_too_large, read_first, read_json, written

MAX_LINES = 200
CHARACTERS_PER_TOKEN = 4
MAX_CHARACTERS = 4_000 * CHARACTERS_PER_TOKEN
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
_READ = 40  # items of an array that is too large to be read whole; each may have 262,144 characters
_IDENTIFIER = lazy(r"[A-Za-z_]\w*")
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
    if kind.startswith("json"):
        items = _items(value)[1] if isinstance(value, list) else None
        return _short_json(value, WIDE)[0], Extent(kind, lines, size, items)
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
        metadata |= {"items_total": _items(value)[1], "items_shown": len(_items(value)[0])}
    if within_budget(text):
        return text, metadata
    if kind.startswith("json"):
        if (compact := written(value, None, MAX_CHARACTERS)) is not None:
            return compact, metadata  # nothing is missing
        shortened, rows = _short_json(value)
        if kind == "json_array":
            metadata["items_shown"] = min(rows, metadata["items_shown"])
        if rows and (query := _next_rows(json.loads(shortened), rows)) is not None:
            metadata["narrowing_query"] = query
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
            value = _beginning_of_array(text) if is_too_large(text) else read_json(text)
        except ValueError:
            pass
        else:
            return ("json_array" if isinstance(value, list) else "json_object"), value
    return ("tabular" if _is_table(text) else "text"), None


def _beginning_of_array(text: str) -> list[Any]:
    """The first items of an array that is too large to be read whole, with a note of their number."""
    if not text.lstrip().startswith("["):
        raise ValueError("no array")
    first, total = read_first(text, _READ)
    return [*first, _note(len(first), total)]


def _is_table(text: str) -> bool:
    """A header, perhaps a row of dashes, and rows in which columns are parted by tabs or two blanks and more."""
    lines = [line for line in text[:WINDOW].splitlines()[:50] if line.strip()]
    if len(lines) < 2:
        return False
    if _DASHES.fullmatch(lines[1].strip()):
        return True
    parted = sum(_COLUMN_GAP.search(line) is not None for line in lines)
    return _COLUMN_GAP.search(lines[0]) is not None and not lines[0][0].isspace() and parted >= 0.8 * len(lines)


# JSON: ever shorter forms are tried until one is within the budget: first fewer rows, then less of each.


@dataclass(frozen=True)
class Form:
    rows: int
    """Items shown of an array."""
    inner: int
    """Items shown of an array of plain values inside a row."""
    longest: int | None
    """Characters shown of a string."""
    depth: int = DEEPEST


@dataclass(frozen=True)
class Budget:
    characters: int
    lines: float
    forms: tuple[Form, ...]


ROWS = (500, 200, 100, 70, 50, 40, 30, 20, 15, 10, 7, 5, 3, 2, 1)
_FORMS = (
    *(form for rows in ROWS for form in (Form(rows, rows, None), Form(rows, min(rows, 5), 1000))),
    *(Form(1, 1, longest, depth) for longest, depth in ((200, DEEPEST), (200, MAX_DEPTH), (60, 2), (60, 1))),
)
SHOWN = Budget(MAX_CHARACTERS, MAX_LINES, _FORMS)
WIDE = Budget(2 * WINDOW, math.inf, (Form(ROWS[0], ROWS[0], None), Form(ROWS[0], ROWS[0], MAX_CHARACTERS), *_FORMS))


def _short_json(value: Any, budget: Budget = SHOWN) -> tuple[str, int]:
    """`value` within the budget, and how many rows of an array are shown."""
    for form in budget.forms:
        if (text := _written_within(budget, _cut_to(value, form))) is not None:
            return text, form.rows
    if isinstance(value, list):
        return written([_note(0, _items(value)[1])], None, math.inf) or "[]", 0
    keys, text = list(value), None
    while text is None:  # thousands of keys: a part of them, none of their values
        keys = keys[: len(keys) // 2]
        note = f"[truncated: showing {len(keys)} of {len(value)} keys]"
        text = _written_within(budget, {**{k[:100]: ELISION for k in keys}, note: ELISION})
    return text, 0


def _cut_to(value: Any, form: Form, depth: int = 0, in_row: bool = False) -> Any:
    if isinstance(value, (dict, list)) and value and depth == form.depth:
        return ELISION
    if isinstance(value, dict):
        return {key[: form.longest]: _cut_to(inner, form, depth + 1, in_row) for key, inner in value.items()}
    if isinstance(value, list):
        real, total = _items(value)
        is_plain = in_row and not any(isinstance(inner, (dict, list)) for inner in real[: form.rows])
        shown = [_cut_to(inner, form, depth + 1, True) for inner in real[: form.inner if is_plain else form.rows]]
        return shown if len(shown) == total else [*shown, _note(len(shown), total)]
    return _cut(value, form.longest) if isinstance(value, str) else value


def _items(items: list[Any]) -> tuple[list[Any], int]:
    """The items and their number; for an array that was cut before, the number in its note."""
    if items and isinstance(items[-1], str) and (note := _CUT_ARRAY.fullmatch(items[-1])) is not None:
        return items[:-1], int(note[1])
    return items, len(items)


def _note(shown: int, total: int) -> str:
    return f"[truncated: showing {shown} of {total} items]"


def _next_rows(shown: Any, rows: int) -> str | None:
    """The JMESPath of the next rows of the outermost array of which the first `rows` are shown."""
    level: list[tuple[str, Any]] = [("", shown)]
    while level:
        for path, inner in level:
            if isinstance(inner, list) and len(inner) == rows + 1 and _items(inner)[1] > rows:
                return f"{path}[] | [{rows}:{2 * rows}]" if "[]" in path else f"{path}[{rows}:{2 * rows}]"
        level = [deeper for path, inner in level for deeper in _inside(path, inner)]
    return None


def _inside(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list):
        return [(f"{path}[]", inner) for inner in value]
    if isinstance(value, dict):
        return [(f"{path}.{_name(key)}".lstrip("."), inner) for key, inner in value.items()]
    return []


def _name(key: str) -> str:
    return key if _IDENTIFIER.fullmatch(key) else json.dumps(key)


def _written_within(budget: Budget, value: Any) -> str | None:
    for indent in (2, None):
        text = written(value, indent, budget.characters)
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
