"""The connections of one store: one that writes, one that notes what was looked at, and a reader for each thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ghost.errors import StoreError
from ghost.mind.sqlite_file import connect, errors_in_words


class Connections:
    """To a file that `make_private` made. Raises `StoreError` where it cannot be opened, and after `close`."""

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
        """For who begins and ends transactions of its own. Nobody else of this process writes meanwhile."""
        with self._writing, errors_in_words(self._path, doing):
            self._check_open()
            yield self._writer

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Written and on the disk when it ends, or nothing of it."""
        with self.writer() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def note(self, write: Callable[[sqlite3.Connection], None]) -> bool:
        """Writes without waiting for the disk, where nobody writes now. Returns whether it did.

        What was noted survives a `kill -9`, and may be lost with the machine's power.
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
        """A connection that no other thread uses meanwhile."""
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
        """One moment of the file, through all that is read with it."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    def close(self) -> None:
        """Who reads goes on until it has read."""
        with self._writing, self._lock:
            self._is_closed = True
            for connection in (*self._idle, self._noter, self._writer):
                connection.close()
            self._idle.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the memory {self._path} was closed: open it again")
