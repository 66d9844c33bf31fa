"""Connections to PostgreSQL, each lent to one thread at a time, and its errors without the address's secrets."""

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
"""The advisory lock of writers: they take turns, so that none sees half of another's change and none deadlocks."""

Row = tuple[Any, ...]


class Connections:
    """Raises `StoreError` where the server cannot be reached."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[Connection[Row]] = []
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[Connection[Row]]:
        """A transaction with one view of what is there."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection[Row]]:
        """A transaction that is durable when this ends, and is nothing where it raised."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITER,))
            yield connection

    @contextmanager
    def maintaining(self) -> Iterator[Connection[Row]]:
        """Outside a transaction, for what PostgreSQL runs there only."""
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
            raise StoreError(f"PostgreSQL: a value is no Unicode ({error})") from error

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
    """One that was kept may have lost its server meanwhile: it was restarted, or a firewall forgot the flow."""
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _words(error: psycopg.Error) -> str:
    """The server's own message, or what kind of error it is; never the address, which may hold a password."""
    if error.diag.message_primary:
        return error.diag.message_primary
    lines = str(error).strip().splitlines()
    known = (
        *("refused", "timeout", "timed out", "does not exist", "authentication", "could not translate", "No such"),
        "cannot contain NUL",
    )
    return next((line.strip() for line in lines if any(word in line for word in known)), type(error).__name__)
