"""Secrets in rows that a statement of SQL inserts: the value whose place is that of a column with a secret's name.

Each row is read once, and of rows that do not end no more than a few times the text: linear in its length.
"""

from __future__ import annotations

import re

from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import MARKER, Counts, is_open, looks_random

_LONGEST_STATEMENT = 2_000  # but for its rows
_LONGEST_ROW = 1 << 20
_INSERT = re.compile(
    r"(?i:\b(?:INSERT|REPLACE)(?:[ ]\w{1,10})?[ ]INTO)[ ][^\s(]{1,200}\s{0,8}"
    r"\((?P<columns>[^()]{1,2000})\)\s{0,8}(?i:VALUES)\s{0,8}(?=\()"
)
_TUPLE = re.compile(
    r"\((?P<fields>(?:[^()'\"]|'(?:[^'\\]|''|\\.)*+'|\"[^\"]*+\"|\([^()]{0,200}\)){0,4000}+)\)[\s,]{0,8}"
)
_SQL_FIELD = re.compile(r"\s*+(?P<value>[NEe]?'(?:[^'\\]|''|\\.)*+'|\"[^\"]*+\"|(?:[^,()]|\([^()]*+\))++)?,?")


def redact_inserts(text: str, counts: Counts) -> str:
    """Replaces what a statement of SQL inserts into columns that have a secret's name."""
    pieces: list[str] = []
    done = 0
    in_vain = 0  # characters that were read of rows that do not end
    for insert in _INSERT.finditer(text) if "VALUES" in text or "values" in text else ():
        names = [name.strip(' `"[]\n\t') for name in insert["columns"].split(",")]
        kinds = {index: kind for index, name in enumerate(names) if (kind := secret_kind(name)) is not None}
        if not kinds or insert.start() < done:
            continue
        pieces.append(text[done : insert.end()])
        done = insert.end()
        reach = _LONGEST_ROW if in_vain <= 4 * len(text) else _LONGEST_STATEMENT
        while (row := _TUPLE.match(text, done, done + reach)) is not None:
            pieces.append(_redacted_tuple(row, kinds, counts))
            done = row.end()
        in_vain += min(reach, len(text) - done)
    return "".join([*pieces, text[done:]])


def insertion_before(text: str, position: int) -> str | None:
    """The last statement that inserts rows before `position` and has not ended there; None where there is none."""
    values = max(text.rfind("VALUES", 0, position), text.rfind("values", 0, position))
    if values < 0 or text.find(";\n", values, position) >= 0:
        return None
    found = list(_INSERT.finditer(text, max(0, values - 3 * _LONGEST_STATEMENT), min(position, values + 32)))
    return found[-1][0] if found else None


def _redacted_tuple(row: re.Match[str], kinds: dict[int, tuple[str, bool]], counts: Counts) -> str:
    whole, shift = row[0], row.start()
    fields = [field.span("value") for field in _SQL_FIELD.finditer(row.string, *row.span("fields"))]
    for index in sorted(kinds, reverse=True):
        if index >= len(fields) or fields[index][0] < 0:
            continue
        start, end = fields[index][0] - shift, fields[index][1] - shift
        value = whole[start:end].strip("NEe'\"")
        category, certain = kinds[index]
        if len(value) < 3 or is_open(value) or not (certain or looks_random(value)):
            continue
        counts[category] += 1
        whole = f"{whole[:start]}'{MARKER}'{whole[end:]}"
    return whole
