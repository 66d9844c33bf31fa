"""Exact search by cosine over a matrix of float32 rows, one row for each place of the database.

The matrix is a cache: what it holds can be made again from the embeddings in the database at any time. `applied` says
up to which change of the database it is right.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ghost.mind.model import MemoryType

Floats = npt.NDArray[np.float32]
TYPE_CODES = {kind: number for number, kind in enumerate(MemoryType, start=1)}
"""What the matrix calls the types; 0 is a row without an embedding of this space."""
_FIRST_ROWS = 1024


class VectorMatrix:
    """In memory. Searched without a lock: who searches verifies what it found against the database."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.applied = -1
        self.lock = threading.Lock()
        self._rows = 0
        self._vectors: Floats = np.zeros((_FIRST_ROWS, dim), dtype=np.float32)
        self._types: npt.NDArray[np.uint8] = np.zeros(_FIRST_ROWS, dtype=np.uint8)
        self._created: npt.NDArray[np.float64] = np.zeros(_FIRST_ROWS, dtype=np.float64)

    def _grow(self, rows: int) -> None:
        vectors = np.zeros((rows, self.dim), dtype=np.float32)
        types = np.zeros(rows, dtype=np.uint8)
        created = np.zeros(rows, dtype=np.float64)
        vectors[: self._rows] = self._vectors[: self._rows]
        types[: self._rows] = self._types[: self._rows]
        created[: self._rows] = self._created[: self._rows]
        self._vectors, self._types, self._created = vectors, types, created

    def put(self, places: Sequence[int], vectors: Floats, types: Sequence[int], created: Sequence[float]) -> None:
        """Writes whole rows; a row of type 0 is cleared. `places` count from 1. Wants the lock held."""
        if not places:
            return
        rows = np.asarray(places) - 1
        needed = int(rows.max()) + 1
        if needed > len(self._types):
            self._grow(max(needed, len(self._types) * 3 // 2))
        self._vectors[rows] = unit_rows(vectors)
        self._types[rows] = types
        self._created[rows] = created
        self._rows = max(self._rows, needed)

    def search(
        self,
        vector: Floats,
        limit: int,
        types: Sequence[int] = (),
        since: float | None = None,
        until: float | None = None,
        places: npt.NDArray[np.int64] | None = None,
    ) -> list[int]:
        """The places most similar to `vector`, best first, of those that the other arguments leave."""
        rows = self._rows
        vectors, kinds, created = self._vectors[:rows], self._types[:rows], self._created[:rows]
        allowed = kinds != 0 if not types else np.isin(kinds, types)
        if since is not None:
            allowed &= created >= since
        if until is not None:
            allowed &= created < until
        if places is not None:
            tagged = np.zeros(rows, dtype=bool)
            tagged[places[places <= rows] - 1] = True
            allowed &= tagged
        chosen = np.flatnonzero(allowed)
        if len(chosen) == 0:
            return []
        query = unit_rows(vector.reshape(1, -1))[0]
        few = len(chosen) * 4 < rows
        scores = vectors[chosen] @ query if few else (vectors @ query)[chosen]
        best = np.arange(len(scores)) if limit >= len(scores) else np.argpartition(scores, -limit)[-limit:]
        best = best[np.argsort(-scores[best], kind="stable")]
        return [int(place) for place in chosen[best] + 1]


def unit_rows(vectors: Floats) -> Floats:
    """Each row divided by its length; a row of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths == 0] = 1.0
    unit: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return unit
