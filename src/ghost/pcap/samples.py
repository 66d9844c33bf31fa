"""Statistics of many samples: nearest rank, exact up to 10,000 samples of one key, within 1% beyond.

Samples are kept as two columns, key and nanoseconds. Once a key has more than `EXACT` of them they move to a histogram
whose buckets grow by 2%, so memory grows with keys, not with packets. Histograms of two parts add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.model import Statistics
from ghost.pcap.vectors import Array

EXACT = 10_000
_GROWTH = math.log(1.02)
_BUCKETS = 2400
"""1.02 ** 2400 ns is over 10^20."""
_COMPACT_AT = 4_000_000


def nearest_rank(ordered: Sequence[float] | NDArray[np.float64], percent: float) -> float:
    """The smallest value with at least `percent` of the ordered values at or below it."""
    return float(ordered[max(math.ceil(percent / 100 * len(ordered)), 1) - 1])


def statistics(values_ms: Iterable[float] | NDArray[np.float64]) -> Statistics | None:
    ordered = np.sort(np.fromiter(values_ms, np.float64) if not isinstance(values_ms, np.ndarray) else values_ms)
    if not len(ordered):
        return None
    low, middle, high, top = (
        round(value, 6)
        for value in (float(ordered[0]), nearest_rank(ordered, 50), nearest_rank(ordered, 95), float(ordered[-1]))
    )
    return Statistics(len(ordered), low, middle, high, top)


class Histogram:
    """Logarithmic buckets of nanoseconds, with exact ends."""

    __slots__ = ("counts", "max", "min")

    def __init__(self) -> None:
        self.counts = np.zeros(_BUCKETS, np.int64)
        self.min, self.max = 1 << 62, 0

    def add(self, values: Array) -> None:
        if len(values):
            buckets = np.minimum(np.log(np.maximum(values, 1)) / _GROWTH, _BUCKETS - 1).astype(np.int64)
            self.counts += np.bincount(buckets, minlength=_BUCKETS)
            self.min, self.max = min(self.min, int(values.min())), max(self.max, int(values.max()))

    def merge(self, other: Histogram) -> None:
        self.counts += other.counts
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)

    def statistics(self) -> Statistics | None:
        total = int(self.counts.sum())
        if not total:
            return None
        reached = np.cumsum(self.counts)

        def rank(percent: float) -> float:
            bucket = int(np.searchsorted(reached, math.ceil(percent / 100 * total)))
            return min(max(math.exp((bucket + 0.5) * _GROWTH), self.min), self.max)

        return Statistics(total, *(round(value / 1e6, 6) for value in (self.min, rank(50), rank(95), self.max)))


class Samples:
    """Samples by key, in the order in which they came."""

    def __init__(self) -> None:
        self._keys: list[NDArray[np.int32]] = []
        self._values: list[Array] = []
        self._held = 0
        self._limit = _COMPACT_AT
        self._histograms: dict[int, Histogram] = {}
        self._index: dict[int, tuple[int, int]] | None = None
        self._sorted: Array = np.zeros(0, np.int64)

    def add(self, keys: Array, values: Array) -> None:
        self._keys.append(keys.astype(np.int32))
        self._values.append(values.copy())
        self._held += len(keys)
        self._index = None
        if self._held > self._limit:
            self._spill()
            self._limit = max(_COMPACT_AT, 2 * self._held)

    def _spill(self) -> None:
        """Move what has outgrown exactness to histograms."""
        keys, values = self._columns()
        keep = np.ones(len(keys), bool)
        many, counts = np.unique(keys, return_counts=True)
        grown = {int(key) for key in many[counts > EXACT]} | (self._histograms.keys() & set(many.tolist()))
        for key in sorted(grown):
            mine = keys == key
            self._histograms.setdefault(key, Histogram()).add(values[mine])
            keep &= ~mine
        self._keys, self._values = [keys[keep]], [values[keep]]
        self._held = int(keep.sum())

    def _columns(self) -> tuple[NDArray[np.int32], Array]:
        if not self._keys:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        return np.concatenate(self._keys), np.concatenate(self._values)

    def _prepare(self) -> dict[int, tuple[int, int]]:
        if self._index is None:
            keys, values = self._columns()
            order = np.argsort(keys, kind="stable")
            self._sorted = values[order]
            names, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
            self._index = {
                int(name): (int(start), int(start + count))
                for name, start, count in zip(names, starts, counts, strict=True)
            }
        return self._index

    def of(self, key: int) -> Statistics | None:
        start, stop = self._prepare().get(key, (0, 0))
        values = self._sorted[start:stop]
        if key in self._histograms or len(values) > EXACT:
            return self._histogram([key]).statistics()
        return statistics(values / 1e6)

    def of_kind(self, kind: int, kinds: int) -> tuple[Array, Array]:
        """Rows and values of the samples of one kind that no histogram has taken, where key = row * kinds + kind."""
        keys, values = self._columns()
        mine = keys % kinds == kind
        return keys[mine].astype(np.int64) // kinds, values[mine]

    def of_all(self, kind: int, kinds: int) -> Statistics | None:
        """Over every key of one kind, where key = row * kinds + kind."""
        keys, values = self._columns()
        mine = values[keys % kinds == kind]
        spilled = [key for key in self._histograms if key % kinds == kind]
        if not spilled and len(mine) <= EXACT:
            return statistics(mine / 1e6)
        whole = Histogram()
        whole.add(mine)
        for key in spilled:
            whole.merge(self._histograms[key])
        return whole.statistics()

    def _histogram(self, keys: Iterable[int]) -> Histogram:
        whole = Histogram()
        for key in keys:
            start, stop = self._prepare().get(key, (0, 0))
            whole.add(self._sorted[start:stop])
            if key in self._histograms:
                whole.merge(self._histograms[key])
        return whole
