"""PostgreSQL connections, each used by one thread at a time; errors omit secrets of the address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    import psycopg
    from psycopg import Connection
except ImportError as missing:  # the extra is not installed
    from ghost.errors import ConfigurationError

    raise ConfigurationError(
        "GHOST_DATABASE_URL needs psycopg: install it with pip install 'ghost-investigator[postgres]'"
    ) from missing

from ghost.errors import StoreError

_CONNECT_SECONDS = 10
_KEPT = 8
_WRITER = 0x6768_6F73_74
"""The advisory lock that serialises writers and prevents deadlocks."""

Row = tuple[Any, ...]


class Connections:
    """A pool of connections. Raises `StoreError` if the server cannot be reached."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[Connection[Row]] = []
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[Connection[Row]]:
        """Open a read-only transaction with one snapshot."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection[Row]]:
        """Open a transaction; durable when it ends, rolled back if it raises."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITER,))
            yield connection

    @contextmanager
    def maintaining(self) -> Iterator[Connection[Row]]:
        """Open a connection outside a transaction, for commands that need that."""
        with self._lent() as connection:
            yield connection

    @contextmanager
    def _lent(self) -> Iterator[Connection[Row]]:
        try:
            connection = self._taken()
            try:
                yield connection
            finally:
                self._back(connection)
        except psycopg.Error as error:
            raise StoreError(f"PostgreSQL: {_words(error)}") from error
        except UnicodeEncodeError as error:
            raise StoreError(f"PostgreSQL: a value is not Unicode ({error})") from error

    def _taken(self) -> Connection[Row]:
        while True:
            with self._lock:
                if self._closed:
                    raise StoreError("the memory is closed: open it again")
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._opened()
            if _works(idle):
                return idle
            idle.close()

    def _opened(self) -> Connection[Row]:
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
            connection.execute("SET search_path TO ghost, public")
            return connection
        except psycopg.Error as error:
            raise StoreError(
                f"PostgreSQL cannot be reached as GHOST_DATABASE_URL says ({_words(error)}): check host, port, "
                "database, user and password"
            ) from error

    def _back(self, connection: Connection[Row]) -> None:
        with self._lock:
            if not (self._closed or connection.broken or connection.closed or len(self._idle) >= _KEPT):
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for connection in idle:
            connection.close()


def _works(connection: Connection[Row]) -> bool:
    """Return whether a pooled connection still works: the server may have restarted, or a firewall dropped the flow."""
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _words(error: psycopg.Error) -> str:
    """Return the server's message, or the kind of error; never the address, which may hold a password."""
    if error.diag.message_primary:
        return error.diag.message_primary
    lines = str(error).strip().splitlines()
    known = (
        *("refused", "timeout", "timed out", "does not exist", "authentication", "could not translate", "No such"),
        "cannot contain NUL",
    )
    return next((line.strip() for line in lines if any(word in line for word in known)), type(error).__name__)
