"""The connections of one store: one writer, one for access times, and a reader per thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ghost.errors import StoreError
from ghost.mind.sqlite_file import connect, errors_in_words


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction that is written when it ends, or rolled back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Connections:
    """Connections to a file made by `make_private`. Raises `StoreError` if it cannot be opened, and after `close`."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self._writing = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False
        with errors_in_words(path, "open"):
            self._writer = connect(path, busy_seconds)
            try:
                self._noter = connect(path, busy_seconds)  # opening may meet another process that opens it
                self._noter.execute("PRAGMA busy_timeout = 0")
                self._noter.execute("PRAGMA synchronous = NORMAL")
                self._noter.execute("PRAGMA wal_autocheckpoint = 0")
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def writer(self, doing: str = "write") -> Iterator[sqlite3.Connection]:
        """Return the writing connection for a caller that manages transactions; excludes other writers of this
        process.
        """
        with self._writing, errors_in_words(self._path, doing):
            self._check_open()
            yield self._writer

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that is durable when it ends, or rolled back."""
        with self.writer() as connection, transaction(connection):
            yield connection

    def note(self, write: Callable[[sqlite3.Connection], None]) -> bool:
        """Write without waiting for the disk if nobody else is writing; return whether it was written.

        The write survives `kill -9` and may be lost in a power failure.
        """
        if not self._writing.acquire(blocking=False):
            return False
        try:
            with errors_in_words(self._path, "write"):
                self._check_open()
                try:
                    self._noter.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                        return False
                    raise
                try:
                    write(self._noter)
                    self._noter.execute("COMMIT")
                except BaseException:
                    if self._noter.in_transaction:
                        self._noter.execute("ROLLBACK")
                    raise
            return True
        finally:
            self._writing.release()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Return a connection that no other thread uses meanwhile."""
        with errors_in_words(self._path, "read"):
            with self._lock:
                self._check_open()
                connection = self._idle.pop() if self._idle else None
            connection = connection or connect(self._path, self._busy_seconds)
            try:
                yield connection
            finally:
                with self._lock:
                    if self._is_closed:
                        connection.close()
                    else:
                        self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Open a read transaction with one snapshot of the file."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connections; running reads finish."""
        with self._writing, self._lock:
            self._is_closed = True
            for connection in (*self._idle, self._noter, self._writer):
                connection.close()
            self._idle.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the memory {self._path} was closed: open it again")
