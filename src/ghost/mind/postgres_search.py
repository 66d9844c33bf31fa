"""Keyword search with PostgreSQL's full-text search, like `keywords` in SQLite.

Rarer words are ranked by rarity; very common ones only fill the remaining results, newest first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import psycopg

from ghost.mind.keywords import COMMON, rarity, terms_of
from ghost.mind.postgres_connections import Row
from ghost.mind.store import Filter, HeldWord

Connection = psycopg.Connection[Row]

_WORD: Final = re.compile(r"[^\W_]+")
_HOLDERS: Final = """
SELECT id FROM memory WHERE id = ANY(%s) AND ts_filter(words, '{d}') @@ phraseto_tsquery('ghost.words', %s)
"""
"""Weight D is content; tags have A, but where an older Ghost wrote the memory."""
_INDEXED_CHARACTERS: Final = 200_000
"""A tsvector holds at most 1 MB; further text is stored but not found by keywords."""


def words_of(text: str) -> str:
    """Return the searchable part of a text, for `to_tsvector('ghost.words', ...)`; tags get the weight A."""
    return _phrase(text[:_INDEXED_CHARACTERS])


def conditions(where: Filter) -> tuple[str, list[object]]:
    """Return an SQL condition for the selected memories, and its parameters."""
    parts: list[str] = ["TRUE"]
    values: list[object] = []
    if where.types:
        parts.append("type = ANY(%s)")
        values.append(sorted(kind.value for kind in where.types))
    if where.since is not None:
        parts.append("created_at >= %s")
        values.append(where.since)
    if where.until is not None:
        parts.append("created_at < %s")
        values.append(where.until)
    if where.tags:
        parts.append("tags @> %s::bytea[]")
        values.append([tag.encode("utf-8", "surrogatepass") for tag in sorted(where.tags)])
    return " AND ".join(parts), values


def search(connection: Connection, query: str, limit: int, where: Filter) -> list[str]:
    """Return ids, best first."""
    phrases = _phrases(query)
    if limit <= 0 or not phrases:
        return []
    counted = [(phrase, _matches(connection, phrase)) for phrase in phrases]
    rare = [(phrase, n) for phrase, n in counted if 0 < n < COMMON]
    common = [phrase for phrase, n in counted if n >= COMMON]
    found = _ranked(connection, rare, limit, where) if rare else []
    if len(found) < limit and common:
        newest = _newest(connection, common, limit + len(found), where)
        found = list(dict.fromkeys(found + newest))
    return found[:limit]


def rarer_words(connection: Connection, query: str, ids: Sequence[str]) -> list[HeldWord]:
    """Return the terms of the query that are not common, with those of `ids` whose content holds them."""
    total = _total(connection)
    found = list[HeldWord]()
    for term in terms_of(query):
        phrase = _phrase(term)
        count = _matches(connection, phrase) if phrase else COMMON
        if count < COMMON:
            rows = connection.execute(_HOLDERS, (list(ids), phrase)) if count else ()
            found.append(HeldWord(term, count, rarity(total, count), frozenset(name for (name,) in rows)))
    return found


def _read_tables(connection: Connection, *, allowed: bool) -> None:
    """Let the planner read the whole table for the first matches, or not: it has no statistics of phrases, takes each
    for frequent, and among a million memories spends seconds on a rare one.
    """
    connection.execute("SET LOCAL enable_seqscan = on" if allowed else "SET LOCAL enable_seqscan = off")


def _total(connection: Connection) -> int:
    """Return a number that memories do not exceed: a count would read them all, and idf needs no more."""
    [(highest,)] = connection.execute("SELECT coalesce(max(place), 0) FROM memory").fetchall()
    return int(highest)


def _phrases(query: str) -> list[str]:
    return list(dict.fromkeys(phrase for term in terms_of(query) if (phrase := _phrase(term))))


def _phrase(text: str) -> str:
    """Return letters and digits as separate words: `ghost.words` would treat `10.0.1.4` or a URL as one word."""
    return " ".join(_WORD.findall(text))


def _matches(connection: Connection, phrase: str) -> int:
    """Return how many memories contain the phrase; counting stops at `COMMON`."""
    _read_tables(connection, allowed=" " not in phrase)
    query = (
        "SELECT count(*) FROM (SELECT 1 FROM memory WHERE words @@ phraseto_tsquery('ghost.words', %s) LIMIT %s) AS n"
    )
    [(n,)] = connection.execute(query, (phrase, COMMON)).fetchall()
    return int(n)


def _ranked(connection: Connection, rare: Sequence[tuple[str, int]], limit: int, where: Filter) -> list[str]:
    """Rank by the sum over the phrases of rarity (BM25's idf) times relative frequency, in tags as in content."""
    _read_tables(connection, allowed=False)
    condition, values = conditions(where)
    any_of = " || ".join(["phraseto_tsquery('ghost.words', %s)"] * len(rare))
    score = " + ".join(
        ["%s * ts_rank('{0.1, 0.1, 0.1, 0.1}', words, phraseto_tsquery('ghost.words', %s), 1)"] * len(rare)
    )
    total = _total(connection)
    weighed = [part for phrase, n in rare for part in (rarity(total, n), phrase)]
    query = (
        f"SELECT id FROM memory WHERE words @@ ({any_of}) AND {condition} "  # noqa: S608
        f"ORDER BY {score} DESC, created_at DESC, id LIMIT %s"
    )
    phrases = [phrase for phrase, _ in rare]
    return [name for (name,) in connection.execute(query.encode(), (*phrases, *values, *weighed, limit))]


def _newest(connection: Connection, common: Sequence[str], limit: int, where: Filter) -> list[str]:
    """Return memories with all of the phrases, then those with any; the newest of each first."""
    _read_tables(connection, allowed=True)
    condition, values = conditions(where)
    found: dict[str, None] = {}
    for join in (" && ", " || "):
        wanted = join.join(["phraseto_tsquery('ghost.words', %s)"] * len(common))
        query = f"SELECT id FROM memory WHERE words @@ ({wanted}) AND {condition} ORDER BY place DESC LIMIT %s"  # noqa: S608
        found |= dict.fromkeys(name for (name,) in connection.execute(query.encode(), (*common, *values, limit)))
        if len(found) >= limit:
            break
    return list(found)[:limit]
