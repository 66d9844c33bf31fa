"""The store in one SQLite file, with its word index, and a vector matrix derived from it.

WAL with synchronous FULL: a finished `apply` survives `kill -9` and a power failure. Several threads and processes may
open the same file: each read has its own connection, writers take turns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ghost.mind import vector_search
from ghost.mind.data_model import Memory, MemoryType, Query, QueryStatus, Task, Thought
from ghost.mind.encrypted_word_index import WordsInMemory
from ghost.mind.encryption import NoSeal, Seal
from ghost.mind.ids import IdRegister
from ghost.mind.jsonl import read_jsonl, write_jsonl
from ghost.mind.memory_rows import MemoryRows
from ghost.mind.record_validation import body_of, json_of, vector_of
from ghost.mind.sqlite_connections import Connections
from ghost.mind.sqlite_file import SCRUB_DUE, lay_out, make_private
from ghost.mind.store import EVERYTHING, OPEN_QUERY, Changes, Filter, HeldWord
from ghost.mind.vector_file import VectorFile
from ghost.mind.vector_search import Floats, Rows, RowsInMemory, rows_of, unit_rows
from ghost.mind.word_index import Words, WordsInFile

_BUSY_SECONDS = 15.0
_IMPORT_BATCH = 500
_SYNC_BATCH = 2000
_SCRUB_SECONDS = 1.0
"""Seconds that forgetting waits for active readers; afterwards the next write removes the data."""
_Kept = TypeVar("_Kept", Thought, Task, Query)


class SqliteStore:
    """Compares embeddings of one `space` with `dim` numbers. Raises `StoreError` if the file cannot be used."""

    def __init__(
        self, path: Path, space: str, dim: int, seal: Seal | None = None, *, busy_seconds: float = _BUSY_SECONDS
    ) -> None:
        self.path = path
        self.space = space
        self._seal = seal or NoSeal()
        self._rows = MemoryRows(self._seal, space, dim)
        self._ids = IdRegister(path.with_name(path.name + "-ids"))
        self._lock = threading.Lock()
        self._touched: dict[str, float] = {}
        make_private(path)
        self._connections = Connections(path, busy_seconds)
        try:
            with self._connections.writer("open") as connection:
                uid = lay_out(connection, path, self._seal, busy_seconds)
                self._matrix = self._open_matrix(connection, uid)
        except BaseException:
            self._connections.close()
            raise
        self._words: Words = WordsInMemory(self._rows) if self._seal.is_secret else WordsInFile()
        self._scrub()

    def _open_matrix(self, connection: sqlite3.Connection, uid: bytes) -> Rows:
        """Open the matrix beside the database, or in memory if encryption or lack of space prevents a file."""
        if not self._seal.is_secret:
            try:
                path = self.path.with_name(self.path.name + "-vectors")
                matrix = VectorFile(path, uid, self.space, self._rows.dim)
                (changes,) = connection.execute("SELECT changes FROM counter").fetchone()
                if matrix.applied > changes:  # the database is an older copy, put back
                    matrix.restart()
                return matrix
            except OSError:
                pass
        return RowsInMemory(self._rows.dim)

    # --- writing ---

    def apply(self, changes: Changes) -> None:
        with self._writing() as connection:
            self._write_memories(connection, iter(changes.memories))
            if self._rows.forget(connection, changes.forgotten):
                connection.execute("REPLACE INTO fact VALUES (?, '')", (SCRUB_DUE,))
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
                body = self._seal.write(f"preference {name}", json_of(value, f"the preference {name!a}"))
                connection.execute("REPLACE INTO preference VALUES (?, ?)", (name, body))
            connection.executemany("DELETE FROM thought WHERE id = ?", ((name,) for name in changes.dropped_thoughts))
        self._scrub()

    def _write_memories(self, connection: sqlite3.Connection, memories: Iterator[Memory]) -> None:
        while batch := list(islice(memories, _IMPORT_BATCH)):
            self._rows.put(connection, batch)

    def _body(self, kind: str, kept: Thought | Task | Query) -> bytes:
        return self._seal.write(f"{kind} {kept.id}", body_of(kept))

    def touch(self, ids: Sequence[str], at: float) -> None:
        """Set access times at once, or with the next change if somebody is writing, so that searches never wait."""
        with self._lock:
            self._touched.update(dict.fromkeys(ids, at))
        self._connections.note(self._write_touched)

    def _write_touched(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            touched, self._touched = self._touched, {}
        connection.executemany(
            "UPDATE memory SET last_access = ? WHERE id = ?", ((at, name) for name, at in touched.items())
        )

    def set_embeddings(self, vectors: Mapping[str, Sequence[float]], of: Mapping[str, str] | None = None) -> None:
        with self._writing() as connection:
            self._rows.set_embeddings(connection, vectors, of or {})

    def new_ids(self, kind: str, at: float, count: int = 1) -> list[str]:
        with self._connections.reading() as connection:

            def taken(name: str) -> bool:
                sql = "SELECT 1 FROM memory WHERE id = :id UNION ALL SELECT 1 FROM thought WHERE id = :id "
                sql += "UNION ALL SELECT 1 FROM query WHERE id = :id UNION ALL SELECT 1 FROM task WHERE id = :id"
                return connection.execute(sql, {"id": name}).fetchone() is not None

            return self._ids.take(kind, at, count, taken)

    # --- memories ---

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        with self._connections.reading() as connection:
            return {memory.id: memory for memory in self._rows.by_id(connection, ids)}

    def memories(self, where: Filter = EVERYTHING, *, with_embeddings: bool = True) -> Iterator[Memory]:
        with self._connections.reading() as connection:
            yield from self._rows.every(connection, where, with_embeddings=with_embeddings)

    def counts(self) -> dict[MemoryType, int]:
        with self._connections.reading() as connection:
            rows = dict(connection.execute("SELECT type, count(*) FROM memory GROUP BY type").fetchall())
        return {kind: rows.get(kind.value, 0) for kind in MemoryType}

    def keyword_ids(self, query: str, limit: int, where: Filter = EVERYTHING) -> list[str]:
        with self._connections.snapshot() as connection:
            return self._words.search(connection, query, limit, where)

    def rarer_words(self, query: str, ids: Sequence[str]) -> list[HeldWord]:
        with self._connections.snapshot() as connection:
            return self._words.rarer_words(connection, query, ids)

    def vector_ids(self, vector: Sequence[float], limit: int, where: Filter = EVERYTHING) -> list[tuple[str, float]]:
        query_vector = vector_of(vector, self._rows.dim, "the vector that is looked for")
        if limit <= 0 or not query_vector.any():
            return []
        with self._connections.snapshot() as connection:
            matrix = self._bring_up_to_date(connection)
            found = (
                self._rows.vector_at(connection, place, where)
                for place in vector_search.nearest(matrix.table(), query_vector, where)
            )
            return _with_similarity(query_vector, list(islice((one for one in found if one is not None), limit)))

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> Rows:
        """Return the matrix, at least as new as this connection's transaction."""
        (changes,) = connection.execute("SELECT changes FROM counter").fetchone()
        matrix = self._matrix
        try:
            if isinstance(matrix, VectorFile):
                matrix.rebuild()
            self._write_changed_rows(connection, matrix, changes)
        except OSError:  # the disk is full, or the file's system fails: what can be read is searched all the same
            matrix = self._matrix_in_memory()
            self._write_changed_rows(connection, matrix, changes)
        return matrix

    def _matrix_in_memory(self) -> Rows:
        """Replace the matrix file by one in memory for all threads."""
        with self._lock:
            if not isinstance(self._matrix, RowsInMemory):
                self._matrix.close()
                self._matrix = RowsInMemory(self._rows.dim)
            return self._matrix

    def _write_changed_rows(self, connection: sqlite3.Connection, matrix: Rows, changes: int) -> None:
        if matrix.applied >= changes:
            return
        with matrix.exclusive():
            if matrix.applied >= changes:
                return
            for batch in self._rows.changed_since(connection, matrix.applied, _SYNC_BATCH):
                numbers = np.asarray(batch.places, dtype=np.int64) - 1
                matrix.write(numbers, rows_of(self._rows.dim, batch.vectors, batch.types, batch.created, batch.tags))
            matrix.finish(changes)

    def without_embedding(self, limit: int) -> list[Memory]:
        with self._connections.reading() as connection:
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
        queries = self._bodies("SELECT id, body FROM query", (), "query", Query, OPEN_QUERY if open_only else b"")
        selected = (query for query in queries if not open_only or query.status is QueryStatus.OPEN)
        return sorted(selected, key=lambda query: (query.created_ts, query.id))

    def preferences(self) -> dict[str, Any]:
        with self._connections.reading() as connection:
            rows = connection.execute("SELECT name, body FROM preference ORDER BY name").fetchall()
            return {name: json.loads(self._seal.read(f"preference {name}", body)) for name, body in rows}

    def _bodies(
        self, sql: str, values: Sequence[object], kind: str, model: type[_Kept], holding: bytes = b""
    ) -> list[_Kept]:
        with self._connections.reading() as connection:
            rows = connection.execute(sql, values).fetchall()
            bodies = (self._seal.read(f"{kind} {name}", body) for name, body in rows)
            return [model.model_validate_json(body) for body in bodies if holding in body]

    # --- files ---

    def export_jsonl(self, path: Path) -> int:
        return write_jsonl(path, self.memories())

    def import_jsonl(self, path: Path) -> int:
        count = 0

        def counted() -> Iterator[Memory]:
            nonlocal count
            for count, memory in enumerate(read_jsonl(path, self._rows.checked), start=1):  # noqa: B007
                yield memory

        with self._writing() as connection:
            self._write_memories(connection, counted())
        return count

    def close(self) -> None:
        if self._touched:
            self._connections.note(self._write_touched)
        self._connections.close()
        self._matrix.close()
        self._words.close()

    # --- within ---

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connections.transaction() as connection:
            self._write_touched(connection)
            yield connection

    def _scrub(self) -> None:
        """Remove deleted data from the files: old index segments, the matrix, the write-ahead log.

        An active reader prevents emptying the log; then the next write or opening does it.
        """
        with self._connections.writer() as connection:
            if connection.execute("SELECT 1 FROM fact WHERE name = ?", (SCRUB_DUE,)).fetchone() is None:
                return
            if not self._seal.is_secret:
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._bring_up_to_date(connection)
            (busy_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
            connection.execute(f"PRAGMA busy_timeout = {int(_SCRUB_SECONDS * 1000)}")
            try:
                (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not is_busy:
                    connection.execute("DELETE FROM fact WHERE name = ?", (SCRUB_DUE,))
            finally:
                connection.execute(f"PRAGMA busy_timeout = {busy_ms}")


def _with_similarity(query_vector: Floats, found: list[tuple[str, Floats]]) -> list[tuple[str, float]]:
    """Return ids with the similarity stored in the database, most similar first, lower id first among equals."""
    if not found:
        return []
    units = unit_rows(np.stack([vector for _, vector in found]))
    scores = np.clip(np.vecdot(units, unit_rows(query_vector.reshape(1, -1))[0]), -1.0, 1.0)
    pairs = [(name, float(score)) for (name, _), score in zip(found, scores, strict=True)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
