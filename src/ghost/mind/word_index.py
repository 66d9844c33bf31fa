"""The word index in the database file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Protocol

from ghost.mind import keywords
from ghost.mind.store import Filter, HeldWord


class Words(Protocol):
    def search(self, connection: sqlite3.Connection, query: str, limit: int, where: Filter) -> list[str]:
        """Return ids, best first. `connection`: a snapshot of the store's file."""
        ...

    def rarer_words(self, connection: sqlite3.Connection, query: str, ids: Sequence[str]) -> list[HeldWord]: ...

    def close(self) -> None: ...


class WordsInFile:
    def search(self, connection: sqlite3.Connection, query: str, limit: int, where: Filter) -> list[str]:
        return keywords.search(connection, query, limit, where)

    def rarer_words(self, connection: sqlite3.Connection, query: str, ids: Sequence[str]) -> list[HeldWord]:
        return keywords.rarer_words(connection, query, ids)

    def close(self) -> None:
        pass
