"""Exact cosine search over a matrix of float32 rows, one per database row.

The matrix is a cache that can be rebuilt from the database: in a file beside it, mapped by every process and updated by
any, or in memory if nothing may be written in the clear. `applied` is the database change up to which it is valid; rows
are written before `applied`, so an interrupted update is only repeated. Searches take no lock and check their results
against the database.
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
"""Type codes of rows; 0 is a row without an embedding of this space."""
_FIRST_ROWS = 1024
_FIRST = 128
"""Number of best rows sorted first; eight times as many whenever those do not suffice."""


def row_type(dim: int) -> np.dtype[np.void]:
    """Return the dtype of a row, little-endian: creation time, tag bits, type code, unit vector."""
    return np.dtype(
        {
            "names": ["created", "marks", "type", "vector"],
            "formats": ["<f8", ("<u8", (2,)), "u1", ("<f4", (dim,))],
            "offsets": [0, 8, 24, 32],
            "itemsize": 32 + 4 * dim,
        }
    )


def marks_of(tags: Iterable[str]) -> tuple[int, int]:
    """Return a Bloom filter, three of 128 bits per tag: a row without these bits lacks one of the tags.

    About 1% of rows match by chance; the caller verifies.
    """
    bits = 0
    for tag in tags:
        for number in hashlib.blake2b(tag.encode("utf-8", "surrogatepass"), digest_size=3).digest():
            bits |= 1 << (number & 127)
    return bits & (2**64 - 1), bits >> 64


class Rows(Protocol):
    """Storage of the rows."""

    @property
    def applied(self) -> int:
        """The database change up to which the rows are valid; -1 before any."""
        ...

    def table(self) -> Table:
        """The rows in use, including later updates."""
        ...

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock against other writers."""
        ...

    def write(self, numbers: npt.NDArray[np.int64], rows: Table) -> None:
        """Write rows. Raises `OSError` without space. Requires `exclusive`, like `finish`."""
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
    """Return a capacity such that appending rows rarely moves them."""
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
    """Return the row numbers (from 1) selected by `where`, most similar to `vector` first; may include chance
    matches.

    `np.vecdot` reads the matrix at memory speed with one thread.
    """
    scores = np.vecdot(table["vector"], unit_rows(vector.reshape(1, -1))[0]) if len(table) else np.zeros(0, np.float32)
    if where == EVERYTHING:
        chosen = np.arange(len(table))
    else:
        chosen = np.flatnonzero(_allowed(table, where))
        scores = scores[chosen]
    batch = _FIRST
    while len(chosen):
        best = _best(scores, batch)
        yield from (int(number) + 1 for number in chosen[best] if table["type"][number])
        remaining = np.ones(len(chosen), dtype=np.bool_)
        remaining[best] = False
        chosen, scores, batch = chosen[remaining], scores[remaining], batch * 8


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
    """Return the indices of the highest values, highest first."""
    best: npt.NDArray[np.int64] = np.arange(len(scores))
    if limit < len(scores):
        best = np.argpartition(scores, -limit)[-limit:]
    return best[np.argsort(-scores[best], kind="stable")]


def unit_rows(vectors: Floats) -> Floats:
    """Return each row divided by its length; rows of zeros stay unchanged."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1.0
    unit: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return unit
