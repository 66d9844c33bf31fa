"""Keyword search with PostgreSQL's full-text search, like `keywords` in SQLite.

Rarer words are ranked by rarity; very common ones only fill the remaining results, newest first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import psycopg

from ghost.mind.data_model import Memory
from ghost.mind.keywords import COMMON, RARE, terms_of
from ghost.mind.postgres_connections import Row
from ghost.mind.store import Filter

Connection = psycopg.Connection[Row]

_WORD: Final = re.compile(r"[^\W_]+")
_INDEXED_CHARACTERS: Final = 200_000
"""A tsvector holds at most 1 MB; further text is stored but not found by keywords."""


def words_of(memory: Memory) -> str:
    """Return the searchable part of a text, for `to_tsvector('ghost.words', ...)`."""
    return _phrase(" ".join([memory.content[:_INDEXED_CHARACTERS], *memory.tags]))


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
    [(total,)] = connection.execute("SELECT count(*) FROM memory").fetchall()
    counted = [(phrase, _matches(connection, phrase)) for phrase in phrases]
    rare = [(phrase, n) for phrase, n in counted if 0 < n < COMMON]
    common = [phrase for phrase, n in counted if n >= COMMON]
    found = _ranked(connection, rare, int(total), limit, where) if rare else []
    if len(found) < limit and common:
        newest = _newest(connection, common, limit + len(found), where)
        found = list(dict.fromkeys(found + newest))
    return found[:limit]


def with_rare_word(connection: Connection, query: str, ids: Sequence[str]) -> set[str]:
    """Return those of `ids` that hold a rare phrase of the query."""
    rare = [phrase for phrase in _phrases(query) if 0 < _matches(connection, phrase, RARE) < RARE] if ids else []
    if not rare:
        return set()
    any_of = " || ".join(["phraseto_tsquery('ghost.words', %s)"] * len(rare))
    sql = f"SELECT id FROM memory WHERE words @@ ({any_of})"  # noqa: S608
    return set(ids).intersection(name for (name,) in connection.execute(sql.encode(), rare))


def _phrases(query: str) -> list[str]:
    return list(dict.fromkeys(phrase for term in terms_of(query) if (phrase := _phrase(term))))


def _phrase(text: str) -> str:
    """Return letters and digits as separate words: `ghost.words` would treat `10.0.1.4` or a URL as one word."""
    return " ".join(_WORD.findall(text))


def _matches(connection: Connection, phrase: str, most: int = COMMON) -> int:
    """Return how many memories contain the phrase; counting stops at `most`."""
    query = (
        "SELECT count(*) FROM (SELECT 1 FROM memory WHERE words @@ phraseto_tsquery('ghost.words', %s) LIMIT %s) AS n"
    )
    [(n,)] = connection.execute(query, (phrase, most)).fetchall()
    return int(n)


def _ranked(
    connection: Connection, rare: Sequence[tuple[str, int]], total: int, limit: int, where: Filter
) -> list[str]:
    """Rank by the sum over the phrases of rarity (BM25's idf) times relative frequency."""
    condition, values = conditions(where)
    any_of = " || ".join(["phraseto_tsquery('ghost.words', %s)"] * len(rare))
    score = " + ".join(["%s * ts_rank(words, phraseto_tsquery('ghost.words', %s), 1)"] * len(rare))
    weighed = [part for phrase, n in rare for part in (math.log(1 + (total - n + 0.5) / (n + 0.5)), phrase)]
    query = (
        f"SELECT id FROM memory WHERE words @@ ({any_of}) AND {condition} "  # noqa: S608
        f"ORDER BY {score} DESC, created_at DESC, id LIMIT %s"
    )
    phrases = [phrase for phrase, _ in rare]
    return [name for (name,) in connection.execute(query.encode(), (*phrases, *values, *weighed, limit))]


def _newest(connection: Connection, common: Sequence[str], limit: int, where: Filter) -> list[str]:
    """Return memories with all of the phrases, then those with any; the newest of each first."""
    condition, values = conditions(where)
    found: dict[str, None] = {}
    for join in (" && ", " || "):
        wanted = join.join(["phraseto_tsquery('ghost.words', %s)"] * len(common))
        query = f"SELECT id FROM memory WHERE words @@ ({wanted}) AND {condition} ORDER BY place DESC LIMIT %s"  # noqa: S608
        found |= dict.fromkeys(name for (name,) in connection.execute(query.encode(), (*common, *values, limit)))
        if len(found) >= limit:
            break
    return list(found)[:limit]
