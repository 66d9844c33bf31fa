"""The store of a team in PostgreSQL with pgvector: the `MemoryStore` protocol on a server.

Keywords use PostgreSQL's full-text search (`postgres_search`); vectors are compared exactly. All tables are in the
schema `ghost` of the database. A forgotten row is deleted and vacuumed; backups and the server's write-ahead log are
outside its control.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import psycopg

from ghost.errors import StoreError
from ghost.mind import postgres_search
from ghost.mind.data_model import Memory, MemoryType, Query, QueryStatus, Task, Thought
from ghost.mind.ids import id_at
from ghost.mind.jsonl import read_jsonl, write_jsonl
from ghost.mind.postgres_connections import Connections, Row
from ghost.mind.postgres_search import conditions, words_of
from ghost.mind.record_validation import body_of, embedding_of, json_of, vector_of
from ghost.mind.store import EVERYTHING, OPEN_QUERY, Changes, Filter, HeldWord
from ghost.mind.vector_search import Floats

Connection = psycopg.Connection[Row]
_Kept = TypeVar("_Kept", Thought, Task, Query)

VERSION: Final = 1
_LAYING_OUT: Final = 0x6768_6F73_75
"""The advisory lock for creating the tables."""
_FIELDS: Final = "id, type, created_at, last_access, importance, content, tags, metadata, space"
_PUT: Final = """
INSERT INTO memory (id, type, created_at, last_access, importance, content, tags, metadata, space, embedding, words)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::real[]::vector,
    to_tsvector('ghost.words', %s) || setweight(to_tsvector('ghost.words', %s), 'A'))
ON CONFLICT (id) DO UPDATE SET (type, created_at, last_access, importance, content, tags, metadata, space, embedding,
    words) = (excluded.type, excluded.created_at, excluded.last_access, excluded.importance, excluded.content,
    excluded.tags, excluded.metadata, excluded.space, excluded.embedding, excluded.words)
"""
_ID_TAKEN: Final = """
SELECT 1 FROM memory WHERE id = %(id)s UNION ALL SELECT 1 FROM thought WHERE id = %(id)s
UNION ALL SELECT 1 FROM query WHERE id = %(id)s UNION ALL SELECT 1 FROM task WHERE id = %(id)s
"""
_BATCH: Final = 500


class PostgresStore:
    """Compares embeddings of one `space` with `dim` numbers.

    Raises `StoreError` if the server cannot be reached or its database cannot hold the mind.
    """

    def __init__(self, url: str, space: str, dim: int) -> None:
        self.space = space
        self._dim = dim
        self._connections = Connections(url)
        try:
            self._lay_out()
        except BaseException:
            self._connections.close()
            raise

    def _lay_out(self) -> None:
        with self._connections.writing() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LAYING_OUT,))
            (is_there,) = _one(connection, "SELECT to_regclass('ghost.fact') IS NOT NULL")
            if not is_there:
                _make_vectors_known(connection)
                connection.execute((files("ghost.mind") / "postgres_schema.sql").read_bytes())
            (version,) = _one(connection, "SELECT value FROM fact WHERE name = 'version'")
        if int(version) > VERSION:
            raise StoreError(
                f"the database has schema version {version}, this Ghost supports {VERSION}: use a newer Ghost"
            )

    # --- writing ---

    def apply(self, changes: Changes) -> None:
        rows = [self._row(memory) for memory in changes.memories]
        with self._connections.writing() as connection:
            cursor = connection.cursor()
            _many(cursor, _PUT, rows)
            cursor.execute("DELETE FROM memory WHERE id = ANY(%s)", (list(changes.forgotten),))
            forgotten = cursor.rowcount
            _many(
                cursor,
                "INSERT INTO thought VALUES (%s, %s, %s) "
                "ON CONFLICT (id) DO UPDATE SET (ts, body) = (excluded.ts, excluded.body)",
                [(thought.id, thought.ts, body_of(thought)) for thought in changes.thoughts],
            )
            for table, records in (("task", changes.tasks), ("query", changes.queries)):
                put = f"INSERT INTO {table} VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET body = excluded.body"  # noqa: S608
                _many(cursor, put, [(one.id, body_of(one)) for one in records])
            for name, value in changes.preferences.items():
                if value is None:
                    cursor.execute("DELETE FROM preference WHERE name = %s", (name,))
                else:
                    put = "INSERT INTO preference VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET body = excluded.body"
                    cursor.execute(put, (name, json_of(value, f"the preference {name!a}")))
            cursor.execute("DELETE FROM thought WHERE id = ANY(%s)", (list(changes.dropped_thoughts),))
        if forgotten > 0:
            self._vacuum()

    def _row(self, memory: Memory) -> tuple[object, ...]:
        vector = self._checked(memory)
        return (
            memory.id,
            memory.type.value,
            memory.created_at,
            memory.last_access,
            memory.importance,
            memory.content.encode(),
            [tag.encode() for tag in memory.tags],
            json_of(memory.metadata, f"the metadata of {memory.id!a}"),
            memory.embedding_model if vector is not None else "",
            None if vector is None else vector.tolist(),
            words_of(memory.content),
            words_of(" ".join(memory.tags)),
        )

    def _checked(self, memory: Memory) -> Floats | None:
        return embedding_of(memory, self.space, self._dim)

    def _vacuum(self) -> None:
        with self._connections.maintaining() as connection:
            connection.execute("VACUUM ghost.memory")

    def touch(self, ids: Sequence[str], at: float) -> None:
        with self._connections.writing() as connection:
            connection.execute("UPDATE memory SET last_access = %s WHERE id = ANY(%s)", (at, list(ids)))

    def set_embeddings(self, vectors: Mapping[str, Sequence[float]], of: Mapping[str, str] | None = None) -> None:
        made_of = {name: content.encode() for name, content in (of or {}).items()}
        rows = [
            (
                self.space,
                vector_of(numbers, self._dim, f"the embedding of {name}").tolist(),
                name,
                name in made_of,
                made_of.get(name, b""),
            )
            for name, numbers in vectors.items()
        ]
        sql = "UPDATE memory SET space = %s, embedding = %s::real[]::vector "
        sql += "WHERE id = %s AND (NOT %s::boolean OR content = %s)"
        with self._connections.writing() as connection:
            _many(connection.cursor(), sql, rows)

    def new_ids(self, kind: str, at: float, count: int = 1) -> list[str]:
        moment = int(id_at(kind, at).partition(":")[2])
        ids: list[str] = []
        with self._connections.writing() as connection:
            sql = "SELECT number FROM last_id WHERE kind = %s AND moment = %s"
            before = _row_or_none(connection, sql, (kind, moment))
            number = before[0] if before else 0
            while len(ids) < count:
                number += 1
                candidate = id_at(kind, at, number)
                if _row_or_none(connection, _ID_TAKEN, {"id": candidate}) is None:
                    ids.append(candidate)
            connection.execute(
                "INSERT INTO last_id VALUES (%s, %s, %s) "
                "ON CONFLICT (kind, moment) DO UPDATE SET (number, given) = (excluded.number, now())",
                (kind, moment, number),
            )
            connection.execute("DELETE FROM last_id WHERE given < now() - interval '1 hour'")
        return ids

    # --- memories ---

    def get(self, ids: Sequence[str]) -> dict[str, Memory]:
        with self._connections.reading() as connection:
            query = f"SELECT {_FIELDS}, embedding::real[] FROM memory WHERE id = ANY(%s)"  # noqa: S608
            found = connection.execute(query, (list(ids),)).fetchall()
        return {row[0]: _memory(row) for row in found}

    def memories(self, where: Filter = EVERYTHING, *, with_embeddings: bool = True) -> Iterator[Memory]:
        condition, values = conditions(where)
        vector = "embedding::real[]" if with_embeddings else "NULL"
        query = f"SELECT {_FIELDS}, {vector} FROM memory WHERE {condition} ORDER BY created_at, id"  # noqa: S608
        with self._connections.reading() as connection, connection.cursor(name="memories") as cursor:
            cursor.itersize = _BATCH
            for row in cursor.execute(query, values):
                yield _memory(row)

    def counts(self) -> dict[MemoryType, int]:
        with self._connections.reading() as connection:
            rows = dict(connection.execute("SELECT type, count(*) FROM memory GROUP BY type").fetchall())
        return {kind: rows.get(kind.value, 0) for kind in MemoryType}

    def vector_ids(self, vector: Sequence[float], limit: int, where: Filter = EVERYTHING) -> list[tuple[str, float]]:
        query_vector = vector_of(vector, self._dim, "the vector that is looked for")
        if limit <= 0 or not query_vector.any():
            return []
        condition, values = conditions(where)
        query = (
            f"SELECT id, 1 - (embedding <=> %s::real[]::vector) AS similarity FROM memory "  # noqa: S608
            f"WHERE space = %s AND vector_norm(embedding) > 0 AND {condition} ORDER BY similarity DESC, id LIMIT %s"
        )
        with self._connections.reading() as connection:
            rows = connection.execute(query, (query_vector.tolist(), self.space, *values, limit)).fetchall()
        return [(name, min(1.0, max(-1.0, float(similarity)))) for name, similarity in rows]

    def without_embedding(self, limit: int) -> list[Memory]:
        query = f"SELECT {_FIELDS}, embedding::real[] FROM memory WHERE space != %s ORDER BY created_at, id LIMIT %s"  # noqa: S608
        with self._connections.reading() as connection:
            return [_memory(row) for row in connection.execute(query, (self.space, max(limit, 0)))]

    def keyword_ids(self, query: str, limit: int, where: Filter = EVERYTHING) -> list[str]:
        with self._connections.reading() as connection:
            return postgres_search.search(connection, query, limit, where)

    def rarer_words(self, query: str, ids: Sequence[str]) -> list[HeldWord]:
        with self._connections.reading() as connection:
            return postgres_search.rarer_words(connection, query, ids)

    # --- the rest of the mind ---

    def thoughts(self, limit: int) -> list[Thought]:
        newest = "SELECT id, ts, body FROM thought ORDER BY ts DESC, id DESC LIMIT %s"
        return self._bodies(f"SELECT body FROM ({newest}) AS newest ORDER BY ts, id", (max(limit, 0),), Thought)  # noqa: S608

    def tasks(self) -> list[Task]:
        return sorted(self._bodies("SELECT body FROM task", (), Task), key=lambda task: (task.created_ts, task.id))

    def queries(self, *, open_only: bool = False) -> list[Query]:
        still_open = "SELECT body FROM query WHERE position(%s::bytea IN body) > 0"
        queries = (
            self._bodies(still_open, (OPEN_QUERY,), Query)
            if open_only
            else self._bodies("SELECT body FROM query", (), Query)
        )
        selected = (query for query in queries if not open_only or query.status is QueryStatus.OPEN)
        return sorted(selected, key=lambda query: (query.created_ts, query.id))

    def preferences(self) -> dict[str, Any]:
        with self._connections.reading() as connection:
            rows = connection.execute("SELECT name, body FROM preference ORDER BY name").fetchall()
        return {name: json.loads(body) for name, body in rows}

    def _bodies(self, query: str, values: Sequence[object], model: type[_Kept]) -> list[_Kept]:
        with self._connections.reading() as connection:
            rows = connection.execute(query.encode(), values).fetchall()
        return [model.model_validate_json(body) for (body,) in rows]

    # --- files ---

    def export_jsonl(self, path: Path) -> int:
        return write_jsonl(path, self.memories())

    def import_jsonl(self, path: Path) -> int:
        done = 0
        rows = (self._row(memory) for memory in read_jsonl(path, self._checked))
        with self._connections.writing() as connection:
            cursor = connection.cursor()
            while batch := list(islice(rows, _BATCH)):
                _many(cursor, _PUT, batch)
                done += len(batch)
        return done

    def close(self) -> None:
        self._connections.close()


def _make_vectors_known(connection: Connection) -> None:
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    except psycopg.Error as error:
        raise StoreError(
            f"the database cannot use pgvector ({error.diag.message_primary or error}): install it on the server, and "
            "let an administrator run CREATE EXTENSION vector in this database once"
        ) from error


# --- rows ---


def _memory(row: Row) -> Memory:
    name, kind, created_at, last_access, importance, content, tags, metadata, space, vector = row
    return Memory(
        id=name,
        type=MemoryType(kind),
        content=bytes(content).decode(),
        tags=tuple(bytes(tag).decode() for tag in tags),
        embedding=() if vector is None else tuple(np.asarray(vector, dtype=np.float32).tolist()),
        embedding_model=space,
        importance=importance,
        created_at=created_at,
        last_access=last_access,
        metadata=json.loads(metadata),
    )


def _one(connection: Connection, query: str, values: Sequence[object] = ()) -> Row:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None  # an aggregate, or a row that the layout made
    return row


def _row_or_none(connection: Connection, query: str, values: Sequence[object] | Mapping[str, object]) -> Row | None:
    return connection.execute(query.encode(), values).fetchone()


def _many(cursor: psycopg.Cursor[Row], query: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        cursor.executemany(query.encode(), rows)
