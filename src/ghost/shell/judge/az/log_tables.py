"""Tables whose rows a Kusto query may show: `[tables]` of `policy/kql.toml`.

A table of logs holds whatever was written to it. Rows of the network's own tables are shown, of some tables named
columns alone, and of AzureDiagnostics what a `where` narrows to the network. Every other table is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.policy_tables import policy_table

Token = tuple[str, str]
_END: Token = ("sign", ";")

_TAKES_TABLES = frozenset(("union", "join", "lookup"))
_TAKES_ROWS = frozenset(("in", "in~", "has_any", "has_all", "toscalar", "materialize"))
"""Behind one of these a bracket may hold a table."""
_SHAPES = frozenset(("project", "project-keep", "summarize", "distinct", "count"))
_CONSTANTS = frozenset(("true", "false", "null", "asc", "desc", "nulls", "first", "last", "$left", "$right")) | {
    *("table", "timechart", "areachart", "barchart", "columnchart", "linechart", "piechart")
}
_PROBES = lazy(r"(?:contains|startswith|endswith|has|hasprefix|hassuffix)(?:_cs)?|has_any|has_all|matches")
_NO_COLUMN = lazy(
    rf"(?:count|countif|sum|avg|min|max|dcount|percentile|stdev|list|set)_\w{{0,80}}|{_PROBES.pattern}", re.ASCII
)
"""Names that Kusto gives to what is counted, and comparisons."""


class _Tables(NamedTuple):
    open: frozenset[str]
    free_text: frozenset[str]
    narrowed: Mapping[str, Mapping[str, frozenset[str]]]
    """Of a table the columns, in lower case, of which one must have a listed value, in lower case."""
    closed: Mapping[str, frozenset[str]]


@cache
def _tables() -> _Tables:
    table = policy_table("kql.toml")["tables"]
    return _Tables(
        open=frozenset(table["open"].split()),
        free_text=frozenset(table["free_text"].split()),
        narrowed={
            name: {column.lower(): frozenset(values.lower().split()) for column, values in columns.items()}
            for name, columns in table["narrowed"].items()
        },
        closed={name: frozenset(columns.split()) for name, columns in table["closed"].items()},
    )


@dataclass
class _Bracket:
    holds_rows: bool
    takes_tables: bool = False
    """Whether the step inside, up to its `on`, names tables."""
    piped: bool = False


@dataclass
class _Named:
    """The tables that a query names, with the place of each, without those it makes itself by `let`."""

    tables: list[tuple[int, str]] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    in_making: str | None = None


def fault_of_tables(tokens: Sequence[Token], words: Set[str], steps: Set[str]) -> str | None:
    """Why the query may show rows of unlisted tables; `words` and `steps` are those of the language."""
    if fault := _fault_of_accesses(tokens, words, steps):
        return fault
    named = _named(tokens)
    known = _tables()
    for at, table in named.tables:
        if table in known.open or _is_narrowed(tokens, at, table):
            continue
        if table not in known.closed:
            return f"asks the table {table[:60]}, whose rows may hold text from anybody. Ask a table of the network"
        if named.own or len(named.tables) > 1:
            return f"combines {table} with other rows; query it alone, for named columns"
        if fault := _fault_of_closed(tokens, table, words | steps):
            return fault
    return _fault_of_probes(tokens)


def _fault_of_accesses(tokens: Sequence[Token], words: Set[str], steps: Set[str]) -> str | None:
    """`['x']` is a field behind a value, and else may be the name of a table."""
    for at, token in enumerate(tokens):
        if token != ("sign", "["):
            continue
        kind, before = tokens[at - 1] if at else _END
        of_value = before in (")", "]") or (kind == "name" and before not in words and before not in steps)
        of_list = before == "(" and at > 1 and tokens[at - 2][1] == "dynamic"
        if not (of_value or of_list):
            return "names something in brackets, which may be a table; write the name itself"
    return None


def _named(tokens: Sequence[Token]) -> _Named:
    named = _Named()
    brackets = [_Bracket(holds_rows=True)]
    for at, (kind, text) in enumerate(tokens):
        inside = brackets[-1]
        if kind == "name":
            _note(named, tokens, at, inside)
        elif text == "(":
            brackets.append(_Bracket(holds_rows=_holds_rows(tokens, at, inside)))
        elif text == ")" and len(brackets) > 1:
            brackets.pop()
        elif text == "|":
            inside.takes_tables, inside.piped = False, True
        elif text == ";":
            inside.takes_tables, inside.piped = False, False
            if named.in_making is not None:
                named.own.add(named.in_making)
                named.in_making = None
    return named


def _holds_rows(tokens: Sequence[Token], at: int, inside: _Bracket) -> bool:
    before = tokens[at - 1][1] if at else ";"
    return (
        inside.takes_tables
        or before in _TAKES_ROWS
        or before == ";"
        or (before == "(" and inside.holds_rows)
        or _is_let(tokens, at)
    )


def _note(named: _Named, tokens: Sequence[Token], at: int, inside: _Bracket) -> None:
    name = tokens[at][1]
    before = tokens[at - 1][1] if at else ";"
    following = tokens[at + 1][1] if at + 1 < len(tokens) else ";"
    if before == "|" or (name == "union" and before in (";", "(")):
        inside.takes_tables = name in _TAKES_TABLES
    elif before == "let":
        named.in_making = name
    elif name == "on":
        inside.takes_tables = False
    elif name == "let" or following in ("(", "=") or before == ".":
        return
    elif (
        (inside.takes_tables and before != "=")
        or before == ";"
        or (before == "(" and (inside.holds_rows or following == "|"))
        or (before == "," and inside.holds_rows and not inside.piped)
        or _is_let(tokens, at)
    ) and name not in named.own:
        named.tables.append((at, name))


def _is_let(tokens: Sequence[Token], at: int) -> bool:
    """Whether a `let NAME =` stands before this place."""
    return at > 2 and tokens[at - 1][1] == "=" and tokens[at - 3][1] == "let"


def _is_narrowed(tokens: Sequence[Token], at: int, table: str) -> bool:
    """Whether a `where` right behind the table leaves only rows of a listed value."""
    columns = _tables().narrowed.get(table)
    if columns is None:
        return False
    end = at + 1
    while end + 1 < len(tokens) and tokens[end][1] == "|" and tokens[end + 1][1] in ("where", "filter"):
        start = end + 2
        end = next((place for place in range(start, len(tokens)) if tokens[place][1] == "|"), len(tokens))
        if _leaves_listed([token for _, token in tokens[start:end]], columns):
            return True
    return False


def _leaves_listed(condition: Sequence[str], columns: Mapping[str, frozenset[str]]) -> bool:
    """Whether one of the conditions that must all hold is `Column == 'listed'` or `Column in ('listed', ...)`."""
    if {"or", "not", ";"}.intersection(condition):
        return False
    depth = 0
    texts = ["and", *condition, "and"]
    for at, text in enumerate(texts):
        depth += (text == "(") - (text == ")")
        if depth < 0:
            return False
        values = columns.get(text.lower()) if depth == 0 and texts[at - 1] == "and" else None
        if values is None:
            continue
        if texts[at + 1] in ("==", "=~"):
            given, end = texts[at + 2 : at + 3], at + 3
        elif texts[at + 1] in ("in", "in~") and ")" in texts[at:]:
            end = texts.index(")", at) + 1
            given = [value for value in texts[at + 3 : end - 1] if value != ","]
        else:
            continue
        ends = texts[end : end + 1] in (["and"], [")"])
        if ends and given and all(value.strip("@'\"").lower() in values for value in given):
            return True
    return False


def _fault_of_closed(tokens: Sequence[Token], table: str, language: Set[str]) -> str | None:
    """Why the query takes more of a closed table than its listed columns."""
    columns = _tables().closed[table]
    own: set[str] = set()
    in_making: set[str] = set()
    is_shaped = False
    for at, (kind, text) in enumerate(tokens):
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ";"
        if text == "|":
            own |= in_making
            is_shaped = is_shaped or following in _SHAPES
        elif text == "*" or (text == "[" and tokens[at - 1][1] != "("):
            return f"may take any column of {table}; name columns such as {' '.join(sorted(columns)[:6])}"
        elif kind != "name" or following == "(":
            continue
        elif following == "=":
            in_making.add(text)
        elif text not in columns | language | own | _CONSTANTS | {table} and not _NO_COLUMN.fullmatch(text):
            return f"takes the column {text[:60]} of {table}, which may hold text from anybody"
    return None if is_shaped else f"shows whole rows of {table}; name the columns with project or summarize"


def _fault_of_probes(tokens: Sequence[Token]) -> str | None:
    """Why a test for letters of a text is refused: repeated tests spell the text out."""
    free_text = next((name for kind, name in tokens if kind == "name" and name in _tables().free_text), None)
    for at, (kind, name) in enumerate(tokens):
        if kind != "name" or at == 0 or not _PROBES.fullmatch(name):
            continue
        asked_kind, asked = tokens[at - 2] if tokens[at - 1][1] == "!" and at > 1 else tokens[at - 1]
        if asked_kind != "name" or free_text is not None:
            return (
                f"tests which characters {free_text or asked} holds, which anybody may have written; compare a column"
            )
    return None
