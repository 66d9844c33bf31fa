"""Keyword search in SQLite with BM25.

Very common words carry little information and are expensive, since BM25 reads every occurrence. So the rarer words of a
query are ranked first, within a budget of matches; common words only fill the remaining results, from the newest
memories.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from ghost.mind.store import Filter, HeldWord

_TERM = re.compile(r"\w+(?:[-./:_@]\w+)*")
_MAX_TERMS = 24
_MAX_LETTERS = 64
COMMON = 3000
"""Number of memories from which a term is common."""
_BUDGET = 9000
"""Maximum matches of rarer terms ranked per query."""
_SELECTIVE_ROWS = 400
"""Up to this many filtered memories are indexed for the single query."""
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
    """Return the distinct words and identifiers (`prod-subnet`, `10.0.1.4`) of a text, in lower case."""
    found = (match.group().lower()[:_MAX_LETTERS] for match in _TERM.finditer(query))
    terms = dict.fromkeys(term for term in found if term not in stop_words())
    return list(terms)[:_MAX_TERMS]


def conditions(where: Filter) -> tuple[str, list[object]]:
    """Return SQL on the tables `memory` and `tag`, beginning with ` AND `, and its parameters."""
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
    """Return ids, best first, from the connection's tables `memory`, `tag` and `words`."""
    terms = terms_of(query)
    if limit <= 0 or not terms:
        return []
    few = _selective_rows(connection, where)
    if few is not None:
        return _ranked_among(connection, few, terms, limit, where)
    rare, common = _by_frequency(connection, terms)
    found = _ranked(connection, rare, limit, where) if rare else []
    if len(found) < limit and common:
        newest = _newest(connection, common, limit + len(found), where)
        found = list(dict.fromkeys(found + newest))
    return found[:limit]


def rarer_words(connection: sqlite3.Connection, query: str, ids: Sequence[str]) -> list[HeldWord]:
    """Return the terms of the query that are not common, with those of `ids` whose content holds them."""
    asked = "SELECT place, id FROM memory WHERE id IN (SELECT value FROM json_each(?))"
    names = dict(connection.execute(asked, (json.dumps(list(ids)),)).fetchall())
    (total,) = connection.execute("SELECT coalesce(max(place), 0) FROM memory").fetchone()
    found = list[HeldWord]()
    for term in terms_of(query):
        count = _matches(connection, term)
        if count < COMMON:
            rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (f"content : {_quoted(term)}",))
            holders = frozenset(names[place] for (place,) in rows if place in names)
            found.append(HeldWord(term, count, rarity(total, count), holders))
    return found


def rarity(total: int, count: int) -> float:
    """Return BM25's inverse document frequency; `total` may be too high, as the highest row number is."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _by_frequency(connection: sqlite3.Connection, terms: list[str]) -> tuple[list[str], list[str]]:
    """Return the rarer terms, within the budget, and the common ones; terms without matches are dropped."""
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
    """Return how many memories contain the term; counting stops at `COMMON`."""
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
    """Return memories with all of the terms, then those with any; the newest of each first."""
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
    """Rank with an in-memory index of these memories alone, which is faster than looking up each among all."""
    connection.execute(_AMONG)
    sql, values = conditions(where)
    connection.execute("SAVEPOINT among")
    try:
        condition = f"place IN (SELECT value FROM json_each(?)){sql}"  # noqa: S608
        copied = f"INSERT INTO among (rowid, content, tags) SELECT place, content, tags FROM memory WHERE {condition}"  # noqa: S608
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


def _selective_rows(connection: sqlite3.Connection, where: Filter) -> list[int] | None:
    """Return the row numbers that one part of the filter selects, if they are few."""
    parts: list[tuple[str, list[object]]] = [("tag WHERE tag.tag = ?", [tag]) for tag in sorted(where.tags)]
    for part in (Filter(since=where.since, until=where.until), Filter(types=where.types)):
        sql, values = conditions(part)
        if sql:
            parts.append((f"memory WHERE 1{sql}", values))
    for source, values in parts:
        rows = connection.execute(f"SELECT place FROM {source} LIMIT ?", (*values, _SELECTIVE_ROWS + 1)).fetchall()  # noqa: S608
        if len(rows) <= _SELECTIVE_ROWS:
            return [place for (place,) in rows]
    return None
