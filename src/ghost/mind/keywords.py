"""Search by words: which words of a query are asked for, and who ranks what they find.

A word that thousands of memories hold says little and costs much, for BM25 reads every place where it stands. So the
rarer words of a query rank first, within a budget of matches; the common ones only fill up what is left, over the
newest memories that hold them.
"""

from __future__ import annotations

import json
import re
import sqlite3
from functools import cache
from importlib.resources import files

from ghost.mind.store import Filter

_TERM = re.compile(r"\w+(?:[-./:_@]\w+)*")
_MOST_TERMS = 24
_MOST_LETTERS = 64
COMMON = 3000
"""A term in so many memories is common."""
_BUDGET = 9000
"""So many matches of rarer terms are ranked for one query."""
_FEW = 400
"""Where a filter leaves so many memories, or fewer, those are indexed for the one query."""
_AMONG = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.among USING fts5 "
    "(content, tags, content = '', tokenize = 'porter unicode61 remove_diacritics 2')"
)
_MATCHING = "SELECT memory.id FROM words JOIN memory ON memory.place = words.rowid WHERE words MATCH ?"


@cache
def stop_words() -> frozenset[str]:
    lines = (files("ghost.mind") / "stop_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def terms_of(query: str) -> list[str]:
    """The words and identifiers (`prod-subnet`, `10.0.1.4`) of any text, small letters, each once."""
    found = (match.group().lower()[:_MOST_LETTERS] for match in _TERM.finditer(query))
    wanted = dict.fromkeys(term for term in found if term not in stop_words())
    return list(wanted)[:_MOST_TERMS]


def conditions(where: Filter) -> tuple[str, list[object]]:
    """SQL on a table `memory` beside a table `tag`, beginning with ` AND `, and its values."""
    sql, values = "", list[object]()
    if where.types:
        sql += f" AND memory.type IN ({', '.join('?' * len(where.types))})"
        values += sorted(kind.value for kind in where.types)
    if where.since is not None:
        sql += " AND memory.created_at >= ?"
        values.append(where.since)
    if where.until is not None:
        sql += " AND memory.created_at < ?"
        values.append(where.until)
    for tag in sorted(where.tags):
        sql += " AND EXISTS (SELECT 1 FROM tag WHERE tag.tag = ? AND tag.place = memory.place)"
        values.append(tag)
    return sql, values


def search(connection: sqlite3.Connection, query: str, limit: int, where: Filter) -> list[str]:
    """Ids, best first, from the tables `memory`, `tag` and `words` of the connection."""
    terms = terms_of(query)
    if limit <= 0 or not terms:
        return []
    few = _few_places(connection, where)
    if few is not None:
        return _ranked_among(connection, few, terms, limit, where)
    rare, common = _by_frequency(connection, terms)
    found = _ranked(connection, rare, limit, where) if rare else []
    if len(found) < limit and common:
        newest = _newest(connection, common, limit + len(found), where)
        found = list(dict.fromkeys(found + newest))
    return found[:limit]


def _by_frequency(connection: sqlite3.Connection, terms: list[str]) -> tuple[list[str], list[str]]:
    """The rarer terms, within the budget, and the common ones; without those that nothing holds."""
    rare, common, spent = list[str](), list[str](), 0
    for count, term in sorted((_matches(connection, term), term) for term in terms):
        if count >= COMMON or spent + count > _BUDGET:
            common.append(term)
        elif count:
            rare.append(term)
            spent += count
    return rare, common


def _quoted(term: str) -> str:
    return f'"{term}"'


def _matches(connection: sqlite3.Connection, term: str) -> int:
    """How many memories hold the term; counting stops at `COMMON`."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    (count,) = connection.execute(sql, (_quoted(term), COMMON)).fetchone()
    return int(count)


def _ranked(connection: sqlite3.Connection, terms: list[str], limit: int, where: Filter) -> list[str]:
    sql, values = conditions(where)
    match, best = " OR ".join(map(_quoted, terms)), "ORDER BY rank, words.rowid DESC LIMIT ?"
    if sql:
        rows = connection.execute(f"{_MATCHING}{sql} {best}", (match, *values, limit))
    else:  # without a look at each match's memory
        inner = f"SELECT words.rowid AS place, rank AS score FROM words WHERE words MATCH ? {best}"  # noqa: S608
        joined = f"SELECT memory.id FROM ({inner}) JOIN memory USING (place) ORDER BY score, place DESC"  # noqa: S608
        rows = connection.execute(joined, (match, limit))
    return [name for (name,) in rows]


def _newest(connection: sqlite3.Connection, terms: list[str], limit: int, where: Filter) -> list[str]:
    """Those with all of the terms first, then those with any of them; the newest of each first."""
    sql, values = conditions(where)
    sql = f"{_MATCHING}{sql} ORDER BY words.rowid DESC LIMIT ?"
    found: dict[str, None] = {}
    for join in (" AND ", " OR ") if len(terms) > 1 else (" OR ",):
        rows = connection.execute(sql, (join.join(map(_quoted, terms)), *values, limit))
        found |= dict.fromkeys(name for (name,) in rows)
        if len(found) >= limit:
            break
    return list(found)[:limit]


# --- a filter that leaves few ---


def _ranked_among(
    connection: sqlite3.Connection, places: list[int], terms: list[str], limit: int, where: Filter
) -> list[str]:
    """By an index of these memories alone, in memory: to look each of them up among all would take longer."""
    connection.execute(_AMONG)
    sql, values = conditions(where)
    connection.execute("SAVEPOINT among")
    try:
        meant = f"place IN (SELECT value FROM json_each(?)){sql}"  # noqa: S608
        copied = f"INSERT INTO among (rowid, content, tags) SELECT place, content, tags FROM memory WHERE {meant}"  # noqa: S608
        connection.execute(copied, (json.dumps(places), *values))
        rows = connection.execute(
            "SELECT memory.id FROM among JOIN memory ON memory.place = among.rowid WHERE among MATCH ? "
            "ORDER BY rank, memory.place DESC LIMIT ?",
            (" OR ".join(map(_quoted, terms)), limit),
        ).fetchall()
    finally:
        connection.execute("ROLLBACK TO among")
        connection.execute("RELEASE among")
    return [name for (name,) in rows]


def _few_places(connection: sqlite3.Connection, where: Filter) -> list[int] | None:
    """The places that one part of the filter leaves, where they are few."""
    parts: list[tuple[str, list[object]]] = [("tag WHERE tag.tag = ?", [tag]) for tag in sorted(where.tags)]
    for part in (Filter(since=where.since, until=where.until), Filter(types=where.types)):
        sql, values = conditions(part)
        if sql:
            parts.append((f"memory WHERE 1{sql}", values))
    for source, values in parts:
        rows = connection.execute(f"SELECT place FROM {source} LIMIT ?", (*values, _FEW + 1)).fetchall()  # noqa: S608
        if len(rows) <= _FEW:
            return [place for (place,) in rows]
    return None
