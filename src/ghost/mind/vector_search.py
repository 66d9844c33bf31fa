"""Exact search by cosine over a matrix of float32 rows, one row for each place of the database.

The matrix is a cache that can be made again from the database at any time: in a file beside it, which every process
maps and any may bring up to date, or in memory where nothing may be written in the clear. `applied` says up to which
change of the database it is right; rows are written before `applied` is, so that who is killed between leaves work to
do and nothing wrong. It is searched without a lock: who searches checks what was found against the database.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ghost.mind.data_model import MemoryType
from ghost.mind.store import EVERYTHING, Filter

Floats = npt.NDArray[np.float32]
Table = npt.NDArray[np.void]
TYPE_CODES = {kind: number for number, kind in enumerate(MemoryType, start=1)}
"""What rows call the types; 0 is a row without an embedding of this space."""
_FIRST_ROWS = 1024
_FIRST = 128
"""So many of the best are put in order at first, and eight times as many whenever those were not enough."""


def row_type(dim: int) -> np.dtype[np.void]:
    """One row, little-endian: when the memory was created, the marks of its tags, its type's code, its unit vector."""
    return np.dtype(
        {
            "names": ["created", "marks", "type", "vector"],
            "formats": ["<f8", ("<u8", (2,)), "u1", ("<f4", (dim,))],
            "offsets": [0, 8, 24, 32],
            "itemsize": 32 + 4 * dim,
        }
    )


def marks_of(tags: Iterable[str]) -> tuple[int, int]:
    """Three of 128 bits for each tag (a Bloom filter): a row without all of these bits does not have all of the tags.

    About one row in a hundred has them by chance; who searches checks that.
    """
    bits = 0
    for tag in tags:
        for number in hashlib.blake2b(tag.encode("utf-8", "surrogatepass"), digest_size=3).digest():
            bits |= 1 << (number & 127)
    return bits & (2**64 - 1), bits >> 64


class Rows(Protocol):
    """Where the rows are."""

    @property
    def applied(self) -> int:
        """The change of the database up to which the rows are right; -1 before any."""
        ...

    def table(self) -> Table:
        """The rows in use, as they are now and become."""
        ...

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else writes meanwhile."""
        ...

    def write(self, numbers: npt.NDArray[np.int64], rows: Table) -> None:
        """Raises `OSError` where there is no room. Wants `exclusive`, as `finish` does."""
        ...

    def finish(self, applied: int) -> None: ...

    def close(self) -> None: ...


class RowsInMemory:
    def __init__(self, dim: int) -> None:
        self._table: Table = np.zeros(_FIRST_ROWS, dtype=row_type(dim))
        self._used = 0
        self._lock = threading.Lock()
        self.applied = -1

    def table(self) -> Table:
        return self._table[: self._used]

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield

    def write(self, numbers: npt.NDArray[np.int64], rows: Table) -> None:
        needed = int(numbers.max()) + 1
        if needed > len(self._table):
            grown = np.zeros(grown_to(needed, len(self._table)), dtype=self._table.dtype)
            grown[: self._used] = self._table[: self._used]
            self._table = grown
        self._table[numbers] = rows
        self._used = max(self._used, needed)

    def finish(self, applied: int) -> None:
        self.applied = applied

    def close(self) -> None:
        self._table = self._table[:0]
        self._used = 0


def grown_to(needed: int, before: int) -> int:
    """So many rows, so that rows added one by one are moved seldom."""
    return max(needed, before * 5 // 4, _FIRST_ROWS)


def rows_of(
    dim: int, vectors: Floats, types: Sequence[int], created: Sequence[float], tags: Sequence[Iterable[str]]
) -> Table:
    rows = np.zeros(len(vectors), dtype=row_type(dim))
    rows["vector"] = unit_rows(vectors)
    rows["type"] = types
    rows["created"] = created
    rows["marks"] = np.array([marks_of(of) for of in tags], dtype=np.uint64).reshape(-1, 2)
    return rows


def nearest(table: Table, vector: Floats, where: Filter) -> Iterator[int]:
    """The places (row number + 1) of all that `where` leaves, the most similar to `vector` first; some by chance only.

    `np.vecdot` reads the matrix at the speed of the memory with one thread; several would wait for each other on a
    machine that has other things to do.
    """
    scores = np.vecdot(table["vector"], unit_rows(vector.reshape(1, -1))[0]) if len(table) else np.zeros(0, np.float32)
    if where == EVERYTHING:
        chosen = np.arange(len(table))
    else:
        chosen = np.flatnonzero(_allowed(table, where))
        scores = scores[chosen]
    wanted = _FIRST
    while len(chosen):
        best = _best(scores, wanted)
        yield from (int(number) + 1 for number in chosen[best] if table["type"][number])
        left = np.ones(len(chosen), dtype=np.bool_)
        left[best] = False
        chosen, scores, wanted = chosen[left], scores[left], wanted * 8


def _allowed(table: Table, where: Filter) -> npt.NDArray[np.bool_]:
    allowed: npt.NDArray[np.bool_] = table["type"] != 0
    if where.types:
        allowed &= np.isin(table["type"], [TYPE_CODES[kind] for kind in where.types])
    if where.since is not None:
        allowed &= table["created"] >= where.since
    if where.until is not None:
        allowed &= table["created"] < where.until
    for marks, bits in zip(table["marks"].T, marks_of(where.tags), strict=True):
        if bits:
            allowed &= (marks & np.uint64(bits)) == np.uint64(bits)
    return allowed


def _best(scores: Floats, limit: int) -> npt.NDArray[np.int64]:
    """The numbers of the highest, highest first."""
    best: npt.NDArray[np.int64] = np.arange(len(scores))
    if limit < len(scores):
        best = np.argpartition(scores, -limit)[-limit:]
    return best[np.argsort(-scores[best], kind="stable")]


def unit_rows(vectors: Floats) -> Floats:
    """Each row divided by its length; a row of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1.0
    unit: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return unit
