"""Memories as database rows: written, read, deleted, and passed to the vector matrix as changes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ghost.errors import StoreError
from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.encryption import Seal
from ghost.mind.keywords import conditions
from ghost.mind.record_validation import are_times, embedding_of, json_of, vector_of
from ghost.mind.store import Filter
from ghost.mind.vector_search import TYPE_CODES, Floats

_FIELDS = "memory.id, memory.type, memory.created_at, memory.last_access, memory.importance, memory.space, "
_FIELDS += "memory.content, memory.tags, memory.metadata"


@dataclass(frozen=True)
class ChangedRows:
    """Rows of the vector matrix as in the database; type 0 without an embedding of the space."""

    places: list[int]
    vectors: Floats
    types: list[int]
    created: list[float]
    tags: list[Sequence[str]]


class MemoryRows:
    def __init__(self, seal: Seal, space: str, dim: int) -> None:
        self._seal = seal
        self._space = space
        self.dim = dim

    # --- writing ---

    def put(self, connection: sqlite3.Connection, memories: Sequence[Memory]) -> None:
        if not memories:
            return
        change = _next_change(connection)
        places = _free_rows(connection)
        for memory in memories:
            self._put(connection, memory, change, places)

    def _put(self, connection: sqlite3.Connection, memory: Memory, change: int, places: Iterator[int]) -> None:
        vector = self.checked(memory)
        old = connection.execute("SELECT place, content, tags FROM memory WHERE id = ?", (memory.id,)).fetchone()
        place = old[0] if old else next(places)
        if old:
            self._take_words(connection, *old)
        tags = json_of(list(memory.tags), f"the tags of {memory.id!a}")
        metadata = json_of(memory.metadata, f"the metadata of {memory.id!a}")
        written = [
            self._seal.write(f"memory {what} {memory.id}", text)
            for what, text in (("content", memory.content.encode()), ("tags", tags), ("metadata", metadata))
        ]
        columns = written if self._seal.is_secret else [text.decode() for text in written]
        connection.execute(
            "REPLACE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                place,
                memory.id,
                memory.type.value,
                memory.created_at,
                memory.last_access,
                memory.importance,
                change,
                memory.embedding_model if memory.embedding else "",
                *columns,
            ),
        )
        if not old:
            connection.execute("DELETE FROM hole WHERE place = ?", (place,))
        if vector is None:
            connection.execute("DELETE FROM embedding WHERE place = ?", (place,))
        else:
            self._put_vector(connection, memory.id, place, vector)
        if not self._seal.is_secret:
            connection.execute(
                "INSERT INTO words (rowid, content, tags) VALUES (?, ?, ?)", (place, memory.content, tags.decode())
            )
            connection.executemany("INSERT OR IGNORE INTO tag VALUES (?, ?)", ((tag, place) for tag in memory.tags))

    def checked(self, memory: Memory) -> Floats | None:
        """Return the memory's embedding. Raises `StoreError` if the memory cannot be stored."""
        return embedding_of(memory, self._space, self.dim)

    def _put_vector(self, connection: sqlite3.Connection, name: str, place: int, vector: Floats) -> None:
        sealed = self._seal.write(f"memory vector {name}", vector.astype("<f4").tobytes())
        connection.execute("REPLACE INTO embedding VALUES (?, ?)", (place, sealed))

    def _take_words(self, connection: sqlite3.Connection, place: int, content: str, tags: str) -> None:
        if not self._seal.is_secret:
            connection.execute(
                "INSERT INTO words (words, rowid, content, tags) VALUES ('delete', ?, ?, ?)", (place, content, tags)
            )
            connection.execute("DELETE FROM tag WHERE place = ?", (place,))

    def forget(self, connection: sqlite3.Connection, ids: Sequence[str]) -> int:
        """Delete memories; return how many existed."""
        if not ids:
            return 0
        change, released = _next_change(connection), 0
        for name in ids:
            old = connection.execute("SELECT place, content, tags FROM memory WHERE id = ?", (name,)).fetchone()
            if old is None:
                continue
            self._take_words(connection, *old)
            connection.execute("DELETE FROM memory WHERE place = ?", old[:1])
            connection.execute("DELETE FROM embedding WHERE place = ?", old[:1])
            connection.execute("REPLACE INTO hole VALUES (?, ?)", (old[0], change))
            released += 1
        return released

    def set_embeddings(
        self, connection: sqlite3.Connection, vectors: Mapping[str, Sequence[float]], of: Mapping[str, str]
    ) -> None:
        change = _next_change(connection)
        for name, numbers in vectors.items():
            vector = vector_of(numbers, self.dim, f"the embedding of {name}")
            row = connection.execute("SELECT place, content FROM memory WHERE id = ?", (name,)).fetchone()
            if row is not None and (name not in of or of[name] == self._text(f"memory content {name}", row[1])):
                self._put_vector(connection, name, row[0], vector)
                connection.execute(
                    "UPDATE memory SET space = ?, change = ? WHERE place = ?", (self._space, change, row[0])
                )

    # --- reading ---

    def by_id(self, connection: sqlite3.Connection, ids: Iterable[str]) -> Iterator[Memory]:
        sql = f"SELECT {_FIELDS}, vector FROM memory LEFT JOIN embedding USING (place) WHERE memory.id = ?"  # noqa: S608
        for name in dict.fromkeys(ids):
            row = connection.execute(sql, (name,)).fetchone()
            if row is not None:
                yield self._memory(row)

    def every(self, connection: sqlite3.Connection, where: Filter, *, with_embeddings: bool) -> Iterator[Memory]:
        """Yield memories, oldest first."""
        vector = "vector" if with_embeddings else "NULL"
        joined = "LEFT JOIN embedding USING (place) " if with_embeddings else ""
        sealed = self._seal.is_secret
        sql, values = conditions(replace(where, tags=frozenset()) if sealed else where)
        sql = f"SELECT {_FIELDS}, {vector} FROM memory {joined}WHERE 1{sql} ORDER BY memory.created_at, memory.id"  # noqa: S608
        for memory in map(self._memory, connection.execute(sql, values)):
            if not sealed or where.tags <= set(memory.tags):
                yield memory

    def without_embedding(self, connection: sqlite3.Connection, limit: int) -> Iterator[Memory]:
        sql = f"SELECT {_FIELDS}, vector FROM memory LEFT JOIN embedding USING (place) WHERE memory.space != ? "  # noqa: S608
        sql += "ORDER BY memory.created_at, memory.id LIMIT ?"
        yield from map(self._memory, connection.execute(sql, (self._space, max(limit, 0))))

    def _memory(self, row: Sequence[Any]) -> Memory:
        name, kind, created_at, last_access, importance, space, content, tags, metadata, vector = row
        if not are_times(created_at, last_access):
            raise StoreError(f"the memory {name!a} has an invalid time: restore the database from a backup")
        return Memory(
            id=name,
            type=MemoryType(kind),
            content=self._text(f"memory content {name}", content),
            tags=tuple(self._tags(name, tags)),
            embedding=() if vector is None else tuple(self._vector(name, vector).tolist()),
            embedding_model=space,
            importance=importance,
            created_at=created_at,
            last_access=last_access,
            metadata=json.loads(self._text(f"memory metadata {name}", metadata)),
        )

    def _text(self, owner: str, written: str | bytes) -> str:
        return written if isinstance(written, str) else self._seal.read(owner, written).decode()

    def _tags(self, name: str, written: str | bytes) -> list[str]:
        tags: list[str] = json.loads(self._text(f"memory tags {name}", written))
        return tags

    def _vector(self, name: str, written: bytes) -> Floats:
        return np.frombuffer(self._seal.read(f"memory vector {name}", written), dtype="<f4")

    # --- for the matrix, and for an index of words in memory ---

    def released_since(self, connection: sqlite3.Connection, applied: int) -> list[int]:
        """Return the rows released since a change."""
        rows = connection.execute("SELECT place FROM hole WHERE change > ?", (applied,)).fetchall()
        return [place for (place,) in rows]

    def words_since(
        self, connection: sqlite3.Connection, applied: int
    ) -> Iterator[tuple[int, str, str, float, str, str]]:
        """Return row, id, type, time, content and tags (JSON) of changed memories."""
        rows = connection.execute(
            "SELECT place, id, type, created_at, content, tags FROM memory WHERE change > ?", (applied,)
        )
        for place, name, kind, created_at, content, tags in rows:
            text = self._text(f"memory content {name}", content)
            yield place, name, kind, created_at, text, self._text(f"memory tags {name}", tags)

    def changed_since(self, connection: sqlite3.Connection, applied: int, batch: int) -> Iterator[ChangedRows]:
        released = self.released_since(connection, applied)
        if released:
            yield self._empty(released)
        rows = connection.execute(
            "SELECT memory.place, memory.id, memory.type, memory.created_at, memory.tags, "
            "CASE WHEN memory.space = ? THEN vector END "
            "FROM memory LEFT JOIN embedding USING (place) WHERE memory.change > ?",
            (self._space, applied),
        )
        while part := list(islice(rows, batch)):
            yield self._changed(part)

    def _empty(self, places: list[int]) -> ChangedRows:
        n = len(places)
        return ChangedRows(places, np.zeros((n, self.dim), dtype=np.float32), [0] * n, [0.0] * n, [()] * n)

    def _changed(self, rows: list[tuple[int, str, str, float, str | bytes, bytes | None]]) -> ChangedRows:
        vectors: npt.NDArray[np.float32] = np.zeros((len(rows), self.dim), dtype=np.float32)
        types = [0] * len(rows)
        tags: list[Sequence[str]] = [()] * len(rows)
        for number, (_, name, kind, _, its_tags, written) in enumerate(rows):
            if written is not None:
                vectors[number] = self._vector(name, written)
                types[number] = TYPE_CODES[MemoryType(kind)]
                tags[number] = self._tags(name, its_tags)
        return ChangedRows([row[0] for row in rows], vectors, types, [row[3] for row in rows], tags)

    def vector_at(self, connection: sqlite3.Connection, place: int, where: Filter) -> tuple[str, Floats] | None:
        """Return id and embedding at a row; None without one of the space, or if `where` excludes it."""
        sql = "SELECT memory.id, type, created_at, tags, vector FROM memory JOIN embedding USING (place) "
        row = connection.execute(sql + "WHERE place = ? AND space = ?", (place, self._space)).fetchone()
        if row is None:
            return None
        name, kind, created_at, tags, vector = row
        is_meant = (
            (not where.types or kind in where.types)
            and (where.since is None or created_at >= where.since)
            and (where.until is None or created_at < where.until)
            and (not where.tags or where.tags <= set(self._tags(name, tags)))
        )
        return (name, self._vector(name, vector)) if is_meant else None


def _next_change(connection: sqlite3.Connection) -> int:
    (change,) = connection.execute("UPDATE counter SET changes = changes + 1 RETURNING changes").fetchone()
    return int(change)


def _free_rows(connection: sqlite3.Connection) -> Iterator[int]:
    """Return released row numbers, then those after the last."""
    for (place,) in connection.execute("SELECT place FROM hole ORDER BY place").fetchall():
        yield place
    (last,) = connection.execute("SELECT max(place) FROM memory").fetchone()
    yield from count((last or 0) + 1)
