"""Secrets in table columns whose header is a secret's name.

Tables of az, kubectl and databases, comma and tab separated values. Each line is read once: linear in the length of
the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ghost.patterns import lazy
from ghost.redaction.secret_names import lowered, secret_kind
from ghost.redaction.secret_values import MARKER, Counts, Rule, is_mixed, is_open, looks_random

Span = tuple[int, int]

_CORE = lazy(r"authentication_string|pass|pwd|secret|token|key|psk|credential|community|kennwort")
_LONGEST_HEADER = 2_000
_COLUMN = r"[A-Za-z][A-Za-z0-9_.-]{0,40}(?: [A-Za-z0-9_.()-]{1,40}){0,3}"
_ALIGNED = lazy(rf"[ ]{{0,8}}{_COLUMN}(?:(?: {{2,200}}|\t{{1,8}}){_COLUMN}){{1,60}}[ \t]{{0,200}}")
_PIPED = lazy(rf"[| ]{{0,8}}{_COLUMN}(?: {{0,80}}\| {{0,80}}{_COLUMN}){{1,60}}[| ]{{0,80}}")
_SEPARATED = lazy(rf"\"?{_COLUMN}\"?(?:[,;]\"?{_COLUMN}\"?){{1,60}}")
_OF_PEOPLE = frozenset({"user", "username", "login", "email", "account", "uid"})
_NAME = lazy(r"[^ \t|](?:[^ \t|]| (?! ))*")
_RULE = lazy(r"[-+|=: \t]{2,}")
_CELL = lazy(r"[^ \t](?:[^ \t\n]| (?! ))*")
_FIELD = lazy(r"\"(?:[^\"\n]|\"\")*\"|[^,;\n]*")


def redact_columns(text: str, counts: Counts) -> str:
    """Return `text` without the values of columns whose header is a secret's name."""
    pieces: list[str] = []
    done = 0
    for core in _CORE.finditer(lowered(text)):
        if core.start() < done:
            continue
        start = text.rfind("\n", max(0, core.start() - _LONGEST_HEADER), core.start()) + 1
        end = text.find("\n", core.end(), core.end() + _LONGEST_HEADER)
        if end < 0 or (start == 0 and core.start() > _LONGEST_HEADER):
            continue
        start = max(start, done)
        cells_of = _layout(text[start:end])
        if cells_of is None:
            pieces.append(text[done:end])
            done = end
            continue
        kinds = _secret_columns(text[start:end], cells_of)
        if kinds and _lists_settings(text, start, end, cells_of):
            kinds = {}
        pieces.append(text[done : end + 1])
        done = end + 1
        if kinds:
            rows, done = _redacted_rows(text, done, cells_of, kinds, counts)
            pieces.append(rows)
    return "".join([*pieces, text[done:]])


CellsOf = Callable[[str], list[Span] | None]


def _layout(header: str) -> CellsOf | None:
    """Return the function that finds the cells of a row below this header; None if it is no table header."""
    if "|" in header and _PIPED.fullmatch(header):
        return _piped_cells
    if _SEPARATED.fullmatch(header):
        columns = len(_fields(header))
        if columns == 2:
            return _two_cells if " " not in header else None
        return lambda row: _separated_cells(row, columns)
    if _ALIGNED.fullmatch(header):
        starts = [name.start() for name in _NAME.finditer(header)]
        tabs = "\t" in header
        if "\t\t" in header:
            return lambda row: _stopped_cells(row, header)
        return _tabbed_cells if tabs else lambda row: _aligned_cells(row, starts)
    return None


def row_reader(header: str) -> Callable[[str], bool] | None:
    """Return a test for lines that fit as rows of this header; None if it has no column of secrets."""
    cells_of = _layout(header)
    if cells_of is None or not _secret_columns(header, cells_of):
        return None
    return lambda row: cells_of(row) is not None or _RULE.fullmatch(row) is not None


def _secret_columns(header: str, cells_of: CellsOf) -> dict[int, tuple[str, bool]]:
    names = [header[start:end].strip('" ') for start, end in cells_of(header) or ()]
    if {"keyname", "value"} <= {name.lower() for name in names}:
        return {index: ("storage_key", True) for index, name in enumerate(names) if name.lower() == "value"}
    kinds = {index: kind for index, name in enumerate(names) if (kind := secret_kind(name)) is not None}
    if set(kinds) == {0} and len(names) > 2 and _SQL_TYPE.fullmatch(names[1]) and _is_column_of_sql(names[1:]):
        return {}
    if names and _CONSTRAINT.fullmatch(names[0]) is not None:
        return {}  # `users_pkey | password_hash | text` is a row itself
    if not _OF_PEOPLE.isdisjoint(name.lower() for name in names):  # `user | pass`: of people, not of tests
        kinds |= {index: ("password", True) for index, name in enumerate(names) if name.lower() in ("pass", "pw")}
    if {"NAME", "AGE"} <= set(names):  # of kubectl, whose SECRET is the name of one and whose SECRETS is a number
        kinds = {index: kind for index, kind in kinds.items() if names[index] not in ("SECRET", "SECRETS")}
    if {"enabled", "expires"} <= {name.lower() for name in names} and names[0] in ("Secret", "SECRET"):
        kinds.pop(0)  # the names of what a vault keeps
    if 0 in kinds and names[0].islower() and not {",", ";", "|"} & set(header):
        return {}  # `password  include  su` of PAM heads no table
    return kinds if len(names) > 1 else {}


_SETTINGS_READ = 8  # so many lines are enough to tell a list of settings from a table


def _lists_settings(text: str, start: int, end: int, cells_of: CellsOf) -> bool:
    """Whether a line is a row of a name and its value (`DB_PASSWORD  X`), not a header.

    Then a value follows the name, not another column's name; or the rows below begin with names as well.
    """
    name, *others = _texts(text[start:end], cells_of)
    if secret_kind(name) is None:
        return False
    if _is_below_row(text, start, cells_of):
        return True
    if any(is_mixed(cell) or looks_random(cell) for cell in others):
        return True
    for _ in range(_SETTINGS_READ):
        start, end = end + 1, text.find("\n", end + 1, end + 1 + _LONGEST_HEADER)
        if end < 0 or not (cells := _texts(text[start:end], cells_of)):
            return False
        if _SETTING.fullmatch(cells[0]) is not None and _is_spelled_as(cells[0], name):
            return True
    return False


def _is_below_row(text: str, start: int, cells_of: CellsOf) -> bool:
    """Whether a row with the same cells precedes, so that no table begins here. A rule between them is skipped."""
    for _ in range(2):
        end, start = start - 1, text.rfind("\n", max(0, start - 1 - _LONGEST_HEADER), max(0, start - 1)) + 1
        above = text[start : max(start, end)]
        if not above.strip():
            return False
        if _RULE.fullmatch(above) is None:
            return sum(map(bool, _texts(above, cells_of))) > 1
    return False


def _texts(row: str, cells_of: CellsOf) -> list[str]:
    """Return the cells of a row without the empty one before a double bar."""
    cells = [row[first:last].strip('" ') for first, last in cells_of(row) or ()]
    return cells[1:] if len(cells) > 1 and not cells[0] else cells


_SETTING = lazy(
    r"[A-Za-z][a-z0-9]*(?:[_.-][a-z0-9]+){1,8}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){1,8}|[a-z]+(?:[A-Z][a-z0-9]+){1,8}"
)


def _is_spelled_as(name: str, other: str) -> bool:
    """Whether a name is a secret's, or a setting written like another: in capitals, with the same separator."""
    if secret_kind(name) is not None:
        return True
    return all((mark in name) == (mark in other) for mark in "_.-") and name.isupper() and other.isupper()


_SQL_TYPE = lazy(
    r"(?i:text|bytea|uuid|jsonb?|citext|n?varchar2?|n?char|character(?: varying)?|(?:var)?binary|blob"
    r"|(?:big|small|tiny)?int(?:eger)?|string|number"
    r"|timestamp(?:tz)?|boolean)(?:\(\d{1,5}\))?"
)
_CONSTRAINT = lazy(r"[a-z][a-z0-9_]{0,60}_(?:pkey|fkey|idx)")
_SQL_REST = frozenset({"not null", "nullable", ""})
_TYPES_OF_FIELDS = frozenset({"string", "number"})


def _is_column_of_sql(described: list[str]) -> bool:
    """Whether the cells after a name describe a database column or a field: `password | text | not null`."""
    of_field = described[0].lower() in _TYPES_OF_FIELDS
    return of_field or "(" in described[0] or any(cell.lower() in _SQL_REST for cell in described[1:])


def _redacted_rows(
    text: str, start: int, cells_of: CellsOf, kinds: dict[int, tuple[str, bool]], counts: Counts
) -> tuple[str, int]:
    """Return the redacted rows of a table and the position of the first line that is no row."""
    rows: list[str] = []
    before = ""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        row = text[start:end]
        if not row.strip() or (cells := cells_of(row)) is None:
            break
        if cells_of is _piped_cells and _ends_table(row, before):
            break
        before = row
        if len(row) <= 8 * _LONGEST_HEADER and not _RULE.fullmatch(row):
            row = _redacted_row(row, cells, kinds, counts)
        rows.append(row + text[end : end + 1])
        start = end + 1
    return "".join(rows), min(start, len(text))


def _ends_table(row: str, before: str) -> bool:
    """Whether a line ends a table with bars: a prompt, or the edge of another table."""
    if "|" in row:
        return False
    return _RULE.fullmatch(row) is None or (row.lstrip().startswith("+") and before.lstrip().startswith("+"))


_BOOTSTRAP_TOKEN = lazy(r"[a-z0-9]{6}\.[a-z0-9]{16}")  # of kubeadm


def _redacted_row(row: str, cells: list[Span], kinds: dict[int, tuple[str, bool]], counts: Counts) -> str:
    padded = row.endswith(" ")
    for index in sorted(kinds, reverse=True):
        if index >= len(cells):
            continue
        start, end = cells[index]
        value = row[start:end]
        category, certain = kinds[index]
        telling = certain or looks_random(value) or _BOOTSTRAP_TOKEN.fullmatch(value) is not None
        if is_open(value) or not value.strip() or len(value) < 3 or not telling:
            continue
        counts[Rule(category, "column")] += 1
        quoted = f'"{MARKER}"' if value.startswith('"') else MARKER
        row = row[:start] + quoted.ljust(end - start) + row[end:]
    return row if padded else row.rstrip(" ")


def _aligned_cells(row: str, starts: list[int]) -> list[Span] | None:
    """Return the cells that begin below a header name; an empty span for a missing one."""
    cells: list[Span] = []
    for start in starts:
        if start > 1 and row[start - 2 : start].strip():
            return _shifted_cells(row, len(starts))
        begins = start < len(row) and (start == 0 or row[start - 1] in " \t")
        cell = _CELL.match(row, start) if begins else None
        cells.append(cell.span() if cell is not None else (start, start))
    return cells


def _shifted_cells(row: str, columns: int) -> list[Span] | None:
    """Return the cells of a row shifted by a long value; None unless every column has one."""
    cells = [cell.span() for cell in _CELL.finditer(row)]
    return cells if len(cells) == columns else None


def _separated_cells(row: str, columns: int) -> list[Span] | None:
    """Return the fields of a row; None for a sentence: too few fields, and a blank after a comma."""
    fields = _fields(row)
    sentence = any(row.startswith(" ", start) for start, _ in fields[1:])
    return None if sentence and len(fields) < columns else fields


def _two_cells(row: str) -> list[Span] | None:
    """Return the fields of a row of two; None if blank or more, because two words and a comma may be anything."""
    fields = _fields(row)
    plain = len(fields) == 2 and all(start < end and row[start] != " " for start, end in fields)
    return fields if plain else None


def _tabbed_cells(row: str) -> list[Span]:
    return _between(row, re.finditer(r"\t", row))


def _stopped_cells(row: str, header: str) -> list[Span]:
    """Return the cells of a row aligned by tabs; if some are missing, those that begin below a header name."""
    cells = _between(row, re.finditer(r"\t++", row))
    names = _between(header, re.finditer(r"\t++", header))
    if len(cells) == len(names):
        return cells
    begins = {_stop(row, start): (start, end) for start, end in cells}
    return [begins.get(_stop(header, start), (0, 0)) for start, _ in names]


def _stop(line: str, position: int) -> int:
    """Return the terminal column of a character."""
    return len(line[:position].expandtabs(8))


def _piped_cells(row: str) -> list[Span]:
    spans = _between(row, re.finditer(r"\|", row))
    if row.lstrip().startswith("|"):
        spans = spans[1:]
    cells = []
    for start, end in spans:
        content = row[start:end]
        left = start + len(content) - len(content.lstrip())
        cells.append((left, max(left, start + len(content.rstrip()))))
    return cells


def _between(row: str, marks: Iterator[re.Match[str]]) -> list[Span]:
    edges = [0, *(edge for mark in marks for edge in mark.span()), len(row)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _fields(row: str) -> list[Span]:
    spans: list[Span] = []
    position = 0
    while position <= len(row):
        field = _FIELD.match(row, position)
        assert field is not None
        spans.append(field.span())
        position = field.end() + 1
    return spans
