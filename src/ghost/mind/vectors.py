"""Exact search by cosine over a matrix of float32 rows, one row for each place of the database.

The matrix is a cache that can be made again from the database at any time: in a file beside it, which every process
maps and any may bring up to date, or in memory where nothing may be written in the clear. `applied` says up to which
change of the database it is right; rows are written before `applied` is, so that who is killed between leaves work to
do and nothing wrong. It is searched without a lock: who searches checks what was found against the database.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ghost.mind.model import MemoryType

Floats = npt.NDArray[np.float32]
Table = npt.NDArray[np.void]
TYPE_CODES = {kind: number for number, kind in enumerate(MemoryType, start=1)}
"""What rows call the types; 0 is a row without an embedding of this space."""
_FIRST_ROWS = 1024
_SPARE = 16
"""Rows without an embedding score 0; so many of them may be among the best before all are looked through."""


def row_type(dim: int) -> np.dtype[np.void]:
    """One row of the matrix, little-endian: when the memory was created, its type's code, its unit vector."""
    return np.dtype(
        {
            "names": ["created", "type", "vector"],
            "formats": ["<f8", "u1", ("<f4", (dim,))],
            "offsets": [0, 8, 16],
            "itemsize": 16 + 4 * dim,
        }
    )


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


def rows_of(dim: int, vectors: Floats, types: Sequence[int], created: Sequence[float]) -> Table:
    rows = np.zeros(len(vectors), dtype=row_type(dim))
    rows["vector"] = unit_rows(vectors)
    rows["type"] = types
    rows["created"] = created
    return rows


def nearest(
    table: Table,
    vector: Floats,
    limit: int,
    types: Sequence[int] = (),
    since: float | None = None,
    until: float | None = None,
    places: npt.NDArray[np.int64] | None = None,
) -> list[int]:
    """The places (row number + 1) most similar to `vector`, best first, of those that the other arguments leave."""
    if len(table) == 0:
        return []
    query = unit_rows(vector.reshape(1, -1))[0]
    if not types and since is None and until is None and places is None:
        return _nearest_of_all(table, query, limit)
    chosen = np.arange(len(table)) if places is None else np.unique(places[places <= len(table)]) - 1
    kinds = table["type"][chosen]
    allowed = kinds != 0 if not types else np.isin(kinds, types)
    if since is not None or until is not None:
        created = table["created"][chosen]
        allowed &= created >= (-np.inf if since is None else since)
        if until is not None:
            allowed &= created < until
    return _nearest_of(table, chosen[allowed], query, limit)


def _nearest_of_all(table: Table, query: Floats, limit: int) -> list[int]:
    best = _best(table["vector"] @ query, limit + _SPARE)
    usable = best[table["type"][best] != 0]
    if len(usable) < min(limit, len(table)) and len(best) < len(table):
        return _nearest_of(table, np.flatnonzero(table["type"] != 0), query, limit)
    return _places(usable[:limit])


def _nearest_of(table: Table, chosen: npt.NDArray[np.int64], query: Floats, limit: int) -> list[int]:
    few = len(chosen) * 4 < len(table)
    scores = table["vector"][chosen] @ query if few else (table["vector"] @ query)[chosen]
    return _places(chosen[_best(scores, limit)])


def _best(scores: Floats, limit: int) -> npt.NDArray[np.int64]:
    """The numbers of the highest, highest first."""
    best: npt.NDArray[np.int64] = np.arange(len(scores))
    if limit < len(scores):
        best = np.argpartition(scores, -limit)[-limit:]
    return best[np.argsort(-scores[best], kind="stable")]


def _places(numbers: npt.NDArray[Any]) -> list[int]:
    return [int(number) + 1 for number in numbers]


def unit_rows(vectors: Floats) -> Floats:
    """Each row divided by its length; a row of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1.0
    unit: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return unit
