"""Memories, vectors and threads for the tests of stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ghost.mind import (
    Memory,
    MemoryStore,
    MemoryType,
)

SPACE, DIM = "one/8", 8
Open = Callable[..., MemoryStore]
"""`open_one()`, `open_one(space=..., dim=...)`: opens the test's store, the same one each time."""

EPISODIC, SEMANTIC, PROCEDURAL = MemoryType


def unit(*numbers: float) -> tuple[float, ...]:
    """A vector of `DIM` float32 numbers and length 1."""
    vector = np.zeros(DIM, dtype=np.float64)
    vector[: len(numbers)] = numbers
    return tuple(np.asarray(vector / np.linalg.norm(vector), dtype=np.float32).tolist())


def memory(name: str, content: str = "something", **fields: Any) -> Memory:
    at = fields.pop("created_at", 1_700_000_000.0)
    if "embedding" in fields:
        fields.setdefault("embedding_model", SPACE)
    return Memory(
        id=name, type=fields.pop("type", SEMANTIC), content=content, created_at=at, **{"last_access": at, **fields}
    )


def names(memories: Iterable[Memory]) -> list[str]:
    return [one.id for one in memories]


FULL = memory(
    "mem:1700000000123",
    "NSG prod-subnet-nsg denies 10.0.1.4:443 – „Grüße“ 🙂\nsecond\0line",
    type=PROCEDURAL,
    tags=("#insight", "prüfung", "a b"),
    embedding=unit(0.1, -0.2, 0.3),
    importance=0.1 + 0.2,
    created_at=1_700_000_000.123456,
    last_access=1_700_000_001.5,
    metadata={"audit_ids": ["s_1", "s_2"], "n": 2**60, "x": 0.1, "none": None, "deep": {"ü": [True, {}]}},
)


class Opened:
    """Fixtures that a store's tests replace: how it is opened."""

    @pytest.fixture
    def open_one(self, tmp_path: Path) -> Open:
        raise NotImplementedError

    @pytest.fixture
    def open_other(self, tmp_path: Path) -> Open:
        """Opens another store, empty at first."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_one: Open) -> MemoryStore:
        return open_one()


def in_threads(jobs: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
