"""The mind in one SQLite file, with its index of words, and a vector matrix made from it.

WAL with synchronous FULL: what `apply` returned from survives `kill -9` and a loss of power. Several threads and
several processes may have the same file open: each read has a connection of its own, writers take turns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ghost.errors import StoreError
from ghost.mind import keywords
from ghost.mind.ids import IdRegister
from ghost.mind.jsonl import read_jsonl, write_jsonl
from ghost.mind.memory_rows import MemoryRows, vector_of
from ghost.mind.model import Memory, MemoryType, Query, QueryStatus, Task, Thought
from ghost.mind.sealed import NoSeal, Seal
from ghost.mind.sqlite_file import connect, errors_in_words, lay_out, make_private
from ghost.mind.store import EVERYTHING, Changes, Filter
from ghost.mind.vectors import TYPE_CODES, VectorMatrix, unit_rows

_BUSY_SECONDS = 15.0
_IMPORT_BATCH = 500
_SYNC_BATCH = 2000
_Kept = TypeVar("_Kept", Thought, Task, Query)


class SqliteStore:
    """`space` and `dim`: of the embeddings that are compared. Raises `StoreError` where the file cannot be used."""

    def __init__(
        self, path: Path, space: str, dim: int, seal: Seal | None = None, *, busy_seconds: float = _BUSY_SECONDS
    ) -> None:
        self.path = path
        self.space = space
        self._seal = seal or NoSeal()
        self._busy_seconds = busy_seconds
        self._rows = MemoryRows(self._seal, space, dim)
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        self._writing = threading.RLock()
        self._ids = IdRegister(path.with_name(path.name + "-ids"))
        make_private(path)
        with errors_in_words(path, "open"):
            self._writer = connect(path, busy_seconds)
            try:
                lay_out(self._writer, path, words=not self._seal.is_secret, busy_seconds=busy_seconds)
            except BaseException:
                self._writer.close()
                raise
        self._matrix = VectorMatrix(dim)

    # --- writing ---

    def apply(self, changes: Changes) -> None:
        with self._transaction() as connection:
            self._write_memories(connection, changes.memories)
            gone = self._rows.forget(connection, changes.forgotten)
            for thought in changes.thoughts:
                body = self._body("thought", thought)
                connection.execute("REPLACE INTO thought VALUES (?, ?, ?)", (thought.id, thought.ts, body))
            for task in changes.tasks:
                connection.execute("REPLACE INTO task VALUES (?, ?)", (task.id, self._body("task", task)))
            for query in changes.queries:
                connection.execute("REPLACE INTO query VALUES (?, ?)", (query.id, self._body("query", query)))
            for name, value in changes.preferences.items():
                if value is None:
                    connection.execute("DELETE FROM preference WHERE name = ?", (name,))
                    continue
                body = self._seal.write(f"preference {name}", _json(value))
                connection.execute("REPLACE INTO preference VALUES (?, ?)", (name, body))
            connection.executemany("DELETE FROM thought WHERE id = ?", ((name,) for name in changes.dropped_thoughts))
        if gone:
            self._scrub()

    def _write_memories(self, connection: sqlite3.Connection, memories: Iterable[Memory]) -> None:
        batch: list[Memory] = []
        for memory in memories:
            batch.append(memory)
            if len(batch) == _IMPORT_BATCH:
                self._rows.put(connection, batch)
                batch = []
        self._rows.put(connection, batch)

    def _body(self, kind: str, kept: Thought | Task | Query) -> bytes:
        return self._seal.write(f"{kind} {kept.id}", kept.model_dump_json().encode())

    def touch(self, ids: Sequence[str], at: float) -> None:
        with self._transaction() as connection:
            connection.executemany("UPDATE memory SET last_access = ? WHERE id = ?", ((at, name) for name in ids))

    def set_embeddings(self, vectors: Mapping[str, Sequence[float]]) -> None:
        with self._transaction() as connection:
            self._rows.set_embeddings(connection, vectors)

    def new_ids(self, kind: str, at: float, count: int = 1) -> list[str]:
        with self._reading() as connection:

            def taken(name: str) -> bool:
                sql = "SELECT 1 FROM memory WHERE id = :id UNION ALL SELECT 1 FROM thought WHERE id = :id "
                sql += "UNION ALL SELECT 1 FROM query WHERE id = :id UNION ALL SELECT 1 FROM task WHERE id = :id"
                return connection.execute(sql, {"id": name}).fetchone() is not None

            return self._ids.take(kind, at, count, taken)

    # --- memories ---

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        with self._reading() as connection:
            return {memory.id: memory for memory in self._rows.by_id(connection, ids)}

    def memories(self, where: Filter = EVERYTHING, *, with_embeddings: bool = True) -> Iterator[Memory]:
        with self._reading() as connection:
            yield from self._rows.every(connection, where, with_embeddings=with_embeddings)

    def counts(self) -> dict[MemoryType, int]:
        with self._reading() as connection:
            rows = dict(connection.execute("SELECT type, count(*) FROM memory GROUP BY type").fetchall())
        return {kind: rows.get(kind.value, 0) for kind in MemoryType}

    def keyword_ids(self, query: str, limit: int, where: Filter = EVERYTHING) -> list[str]:
        with self._reading() as connection:
            return keywords.search(connection, query, limit, where)

    def vector_ids(self, vector: Sequence[float], limit: int, where: Filter = EVERYTHING) -> list[tuple[str, float]]:
        asked = vector_of(vector, self._rows.dim, "the vector that is looked for")
        if limit <= 0 or not asked.any():
            return []
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                self._bring_up_to_date(connection)
                places = self._matrix.search(
                    asked,
                    limit,
                    [TYPE_CODES[kind] for kind in where.types],
                    where.since,
                    where.until,
                    self._tagged(connection, where.tags) if where.tags else None,
                )
                return self._verified(connection, asked, places)
            finally:
                connection.execute("COMMIT")

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        """Makes the matrix hold at least what this connection's transaction sees."""
        (changes,) = connection.execute("SELECT changes FROM counter").fetchone()
        if self._matrix.applied >= changes:
            return
        with self._matrix.lock:
            if self._matrix.applied >= changes:
                return
            for batch in self._rows.changed_since(connection, self._matrix.applied, _SYNC_BATCH):
                self._matrix.put(batch.places, batch.vectors, batch.types, batch.created)
            self._matrix.applied = changes

    def _tagged(self, connection: sqlite3.Connection, tags: frozenset[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
        first, *others = sorted(tags)
        sql = "SELECT place FROM tag WHERE tag.tag = ?"
        sql += "".join(" INTERSECT SELECT place FROM tag WHERE tag.tag = ?" for _ in others)
        return np.fromiter((place for (place,) in connection.execute(sql, (first, *others))), dtype=np.int64)

    def _verified(
        self, connection: sqlite3.Connection, asked: np.ndarray[Any, np.dtype[np.float32]], places: list[int]
    ) -> list[tuple[str, float]]:
        """What the matrix found, with the similarity of what the database holds at those places now."""
        found = self._rows.vectors_at(connection, places)
        if not found:
            return []
        vectors = unit_rows(np.stack([vector for _, vector in found]))
        scores = np.clip(vectors @ unit_rows(asked.reshape(1, -1))[0], -1.0, 1.0)
        pairs = [(name, float(score)) for (name, _), score in zip(found, scores, strict=True)]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def without_embedding(self, limit: int) -> list[Memory]:
        with self._reading() as connection:
            return list(self._rows.without_embedding(connection, limit))

    # --- the rest of the mind ---

    def thoughts(self, limit: int) -> list[Thought]:
        newest = "SELECT id, body, ts FROM thought ORDER BY ts DESC, id DESC LIMIT ?"
        sql = f"SELECT id, body FROM ({newest}) ORDER BY ts, id"  # noqa: S608
        return self._bodies(sql, (max(limit, 0),), "thought", Thought)

    def tasks(self) -> list[Task]:
        tasks = self._bodies("SELECT id, body FROM task", (), "task", Task)
        return sorted(tasks, key=lambda task: (task.created_ts, task.id))

    def queries(self, *, open_only: bool = False) -> list[Query]:
        queries = self._bodies("SELECT id, body FROM query", (), "query", Query)
        wanted = (query for query in queries if not open_only or query.status is QueryStatus.OPEN)
        return sorted(wanted, key=lambda query: (query.created_ts, query.id))

    def preferences(self) -> dict[str, Any]:
        with self._reading() as connection:
            rows = connection.execute("SELECT name, body FROM preference ORDER BY name").fetchall()
        return {name: json.loads(self._seal.read(f"preference {name}", body)) for name, body in rows}

    def _bodies(self, sql: str, values: Sequence[object], kind: str, model: type[_Kept]) -> list[_Kept]:
        with self._reading() as connection:
            rows = connection.execute(sql, values).fetchall()
        return [model.model_validate_json(self._seal.read(f"{kind} {name}", body)) for name, body in rows]

    # --- files ---

    def export_jsonl(self, path: Path) -> int:
        return write_jsonl(path, self.memories())

    def import_jsonl(self, path: Path) -> int:
        count = 0

        def counted() -> Iterator[Memory]:
            nonlocal count
            for count, memory in enumerate(read_jsonl(path), start=1):  # noqa: B007
                yield memory

        with self._transaction() as connection:
            self._write_memories(connection, counted())
        return count

    def close(self) -> None:
        with self._writing, self._idle_lock:
            for connection in (self._writer, *self._idle):
                connection.close()
            self._idle.clear()

    # --- connections ---

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing, errors_in_words(self.path, "write"):
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that no other thread uses meanwhile."""
        with errors_in_words(self.path, "read"):
            with self._idle_lock:
                connection = self._idle.pop() if self._idle else None
            connection = connection or connect(self.path, self._busy_seconds)
            try:
                yield connection
            finally:
                with self._idle_lock:
                    self._idle.append(connection)

    def _scrub(self) -> None:
        """Takes what was forgotten out of the files: the index's old segments, and the write-ahead log."""
        with self._writing, errors_in_words(self.path, "write"):
            if not self._seal.is_secret:
                self._writer.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise StoreError(f"a value cannot be kept as JSON ({error})") from error
