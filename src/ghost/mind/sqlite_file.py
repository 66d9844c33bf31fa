"""The database file: private, validated, always opened the same way; SQLite errors as messages."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ghost.errors import RecordError, StoreError
from ghost.mind.encryption import Seal
from ghost.records import private_dir

APPLICATION = 0x47484F53  # "GHOS", in the file's header
SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (changes INTEGER NOT NULL);
INSERT INTO counter VALUES (0);

CREATE TABLE memory (
    place INTEGER PRIMARY KEY,      -- row of the vector matrix and of the index of words
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    created_at REAL NOT NULL,
    last_access REAL NOT NULL,
    importance REAL NOT NULL,
    change INTEGER NOT NULL,        -- counter.changes when content, tags or embedding last changed
    space TEXT NOT NULL,            -- of the embedding; empty without one
    content BLOB NOT NULL,
    tags BLOB NOT NULL,
    metadata BLOB NOT NULL
);
CREATE INDEX memory_by_age ON memory (created_at, id);
CREATE INDEX memory_by_change ON memory (change);
CREATE INDEX memory_by_space ON memory (space, created_at, id);
CREATE INDEX memory_by_type ON memory (type);
CREATE TABLE embedding (place INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE hole (place INTEGER PRIMARY KEY, change INTEGER NOT NULL);
CREATE INDEX hole_by_change ON hole (change);

CREATE TABLE thought (id TEXT PRIMARY KEY, ts REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX thought_by_age ON thought (ts);
CREATE TABLE task (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE query (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE preference (name TEXT PRIMARY KEY, body BLOB NOT NULL);
"""
SCRUB_DUE = "scrub due"
"""Name of the fact that deleted data may remain in the word index or the write-ahead log."""

WORDS = """
CREATE TABLE tag (tag TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (tag, place)) WITHOUT ROWID;
CREATE INDEX tag_by_place ON tag (place);
CREATE VIRTUAL TABLE words USING fts5 (
    content, tags, content = 'memory', content_rowid = 'place', tokenize = 'porter unicode61 remove_diacritics 2'
);
"""
"""The word index: in the file, or in memory if the file is encrypted."""

_MAKING = threading.Lock()
"""No thread connects to a file that another one is creating."""


def make_private(path: Path) -> None:
    """Create the file and its directory, if missing, for their owner only. Raises `StoreError`.

    An existing file keeps its mode until `lay_out` has recognised it: it may belong to somebody else. It is not even
    opened: closing it again would drop the locks that SQLite holds on it in this process, and another process would
    then remove the write-ahead log while it is in use (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    try:
        private_dir(path.parent)
        with _MAKING:
            try:
                is_file = stat.S_ISREG(path.stat().st_mode)
            except FileNotFoundError:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                is_file = True
        if not is_file:
            raise StoreError(f"cannot open the memory {path} (it is not a regular file): name a file with DB_PATH")
    except RecordError as error:
        raise StoreError(str(error)) from error
    except OSError as error:
        raise StoreError(f"cannot open the memory {path} ({error.strerror}): check DB_PATH and permissions") from error


def connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection with durable commits (WAL, synchronous FULL) that overwrites deleted data."""
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def lay_out(connection: sqlite3.Connection, path: Path, seal: Seal, busy_seconds: float) -> bytes:
    """Create the tables in an empty file, or validate them and the key. Returns the database's unique id.

    Raises `StoreError` and changes nothing if the file belongs to another program, a newer Ghost, or another key.
    """
    connection.execute("BEGIN")  # both of one moment: another process may be making the tables
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    connection.execute("COMMIT")
    if application != APPLICATION and tables:
        raise StoreError(f"{path} is a database of another program: name another file with DB_PATH")
    _make_owners(path)
    _use_wal(connection, busy_seconds)
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{path} was written by a newer Ghost (schema {version}, this one knows {SCHEMA_VERSION}): "
                "use that one, or export there and import here into a new file"
            )
        if version == 0:
            _make_tables(connection, seal)
        uid = _recognise(connection, path, seal)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after some errors SQLite has ended it itself
            connection.execute("ROLLBACK")
        raise
    return uid


def _make_owners(path: Path) -> None:
    """Restrict the file to its owner before the files beside it are created, which copy its mode."""
    try:
        path.chmod(0o600)
    except OSError as error:
        raise StoreError(f"cannot make {path} private ({error.strerror}): check who owns it") from error


def _make_tables(connection: sqlite3.Connection, seal: Seal) -> None:
    for statement in (_TABLES + ("" if seal.is_secret else WORDS)).split(";\n"):
        connection.execute(statement)
    uid = os.urandom(16)
    connection.execute("INSERT INTO fact VALUES ('uid', ?)", (uid,))
    if seal.is_secret:
        connection.execute("INSERT INTO fact VALUES ('sealed uid', ?)", (seal.write("database", uid),))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _recognise(connection: sqlite3.Connection, path: Path, seal: Seal) -> bytes:
    facts = dict(connection.execute("SELECT name, value FROM fact").fetchall())
    sealed = facts.get("sealed uid")
    if sealed is not None and not seal.is_secret:
        raise StoreError(f"{path} is encrypted: set GHOST_MEMORY_KEY or GHOST_MEMORY_KEY_FILE")
    if sealed is None and seal.is_secret:
        raise StoreError(
            f"{path} is not encrypted and a memory key is set: to encrypt it, `ghost export` without the key, then "
            "`ghost import` with the key and another DB_PATH"
        )
    if sealed is not None and _opened(seal, sealed, path) != facts["uid"]:
        raise StoreError(f"{path} holds the key's mark of another database: restore it from a copy")
    return bytes(facts["uid"])


def _opened(seal: Seal, sealed: bytes, path: Path) -> bytes:
    try:
        return seal.read("database", sealed)
    except StoreError as error:
        raise StoreError(
            f"{path} is encrypted with a different key: set the one it was made with, or another DB_PATH"
        ) from error


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to WAL, waiting as needed: SQLite itself does not wait during a change of journal mode."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process is writing to it: try again later",
    sqlite3.SQLITE_LOCKED: "another thread is writing to it: try again later",
    sqlite3.SQLITE_FULL: "the disk is full: make room; nothing was changed",
    sqlite3.SQLITE_READONLY: "it, or its directory, may not be written to: check the permissions",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, cannot be opened: check the directory and its permissions",
    sqlite3.SQLITE_PERM: "it may not be opened: check the permissions",
    sqlite3.SQLITE_IOERR: "reading or writing it failed: check the disk",
    sqlite3.SQLITE_NOTADB: "it is not a database: restore it from a backup, or name another file with DB_PATH",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a backup, or import an export into a new file",
}


@contextmanager
def errors_in_words(path: Path, doing: str) -> Iterator[None]:
    """Convert SQLite errors, unsupported values, and malformed rows into `StoreError`.

    `doing`: `read`, `write`, `open`. SQLite has no checksums: a flipped bit on disk is not an error to it and may yield
    a malformed record.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) or 0
        advice = _ADVICE.get(code & 0xFF, str(error))
        raise StoreError(f"cannot {doing} the memory {path}: {advice}") from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise StoreError(f"cannot {doing} the memory {path}: a value cannot be kept ({error})") from error
    except MemoryError as error:
        raise StoreError(f"cannot {doing} the memory {path}: this machine has too little memory for it") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        advice = f"{_ADVICE[sqlite3.SQLITE_CORRUPT]} ({type(error).__name__}: {str(error)[:200]!a})"
        raise StoreError(f"cannot {doing} the memory {path}: {advice}") from error
