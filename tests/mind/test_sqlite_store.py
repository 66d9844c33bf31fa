"""The SQLite store keeps what every store promises, in the clear and sealed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ghost.mind import MemoryStore
from ghost.mind.sealed import KeySeal, NoSeal, Seal
from ghost.mind.sqlite_store import SqliteStore
from tests.mind.store_promises import DIM, SPACE, Open, StorePromises

KEY = bytes(range(32))


def _opener(path: Path, seal: Seal) -> Iterator[Open]:
    opened: list[MemoryStore] = []

    def open_one(space: str = SPACE, dim: int = DIM) -> MemoryStore:
        store = SqliteStore(path, space, dim, seal)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


class TestInTheClear(StorePromises):
    seal: Seal = NoSeal()

    @pytest.fixture
    def open_one(self, tmp_path: Path) -> Iterator[Open]:
        yield from _opener(tmp_path / "data" / "one.sqlite3", self.seal)

    @pytest.fixture
    def open_other(self, tmp_path: Path) -> Iterator[Open]:
        yield from _opener(tmp_path / "data" / "other.sqlite3", self.seal)


class TestSealed(TestInTheClear):
    seal = KeySeal(KEY)
