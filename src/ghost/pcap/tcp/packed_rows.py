"""Rows of numbers in a few bytes each, for the streams that no packet needs now. Nothing is lost.

A row of a stream is mostly zeros and repeats of other fields. Rows are packed a block at a time: the least value of
each field, and by how much every row exceeds it, in as few bytes as that takes. Fields with equal excess share one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_queries import distinct
from ghost.pcap.array_types import Array, RowIndices

BLOCK = 4_096
"""Rows; neighbours in time have similar values."""
_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
_LIMITS = np.array([1, 1 << 8, 1 << 16, 1 << 32], np.uint64)


class _Columns(NamedTuple):
    """Columns of one width."""

    fields: list[int]
    places: list[int]
    """Of each field, its column in `excess`."""
    excess: NDArray[Any]
    """[columns, rows]"""


class _Block:
    def __init__(self, rows: Array) -> None:
        self._least: Array = rows.min(axis=0)
        self._parts: list[_Columns] = []
        widths = np.searchsorted(_LIMITS, (rows.max(axis=0) - self._least).view(np.uint64), side="right")
        for width, kind in enumerate(_TYPES, 1):
            fields, columns = np.flatnonzero(widths == width).tolist(), dict[bytes, int]()
            excess = ((rows[:, field] - self._least[field]).astype(kind).tobytes() for field in fields)
            places = [columns.setdefault(column, len(columns)) for column in excess]
            self._parts.append(_Columns(fields, places, np.frombuffer(b"".join(columns), kind).reshape(-1, len(rows))))

    def take(self, rows: RowIndices) -> Array:
        found: Array = np.tile(self._least, (len(rows), 1))
        for part in self._parts:
            found[:, part.fields] += part.excess[:, rows][part.places].T.astype(np.int64)
        return found

    def add_excess(self, field: int, to: Array) -> None:
        to += self._least[field]
        for part in self._parts:
            if field in part.fields:
                to += part.excess[part.places[part.fields.index(field)]].astype(np.int64)


class PackedRows:
    """Rows that are only added; each has a place."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._starts: list[int] = [0]

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, rows: Array) -> RowIndices:
        """Add int64[n, fields]; return the places of these rows."""
        begin = len(self)
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            self._blocks.append(_Block(part))
            self._starts.append(len(self) + len(part))
        return np.arange(begin, len(self))

    def extend(self, other: PackedRows) -> int:
        """Add the rows of another; return by how much their places move."""
        moved = len(self)
        self._blocks += other._blocks
        self._starts += [moved + start for start in other._starts[1:]]
        return moved

    def take(self, places: RowIndices) -> Array:
        """Return whole rows."""
        found: Array | None = None
        blocks = np.searchsorted(self._starts, places, side="right") - 1
        for number in distinct(blocks).tolist():
            mine = blocks == number
            rows = self._blocks[number].take(places[mine] - self._starts[number])
            if found is None:
                found = np.empty((len(places), rows.shape[1]), np.int64)
            found[mine] = rows
        assert found is not None
        return found

    def column(self, field: int) -> Array:
        """Return one field of every row, by place."""
        found: Array = np.zeros(len(self), np.int64)
        for number, block in enumerate(self._blocks):
            block.add_excess(field, found[self._starts[number] : self._starts[number + 1]])
        return found
