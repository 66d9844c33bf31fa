"""Statistics of many samples: nearest rank, exact up to 10,000 samples of one key, within 1% beyond.

Once a key has more than `EXACT` samples they move to a histogram whose buckets grow by 2%, so memory grows with keys,
not with packets. What two parts of a capture hold adds up to what the whole holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array
from ghost.pcap.model import Statistics

EXACT = 10_000
_GROWTH = math.log(1.02)
_BUCKETS = 2400
"""1.02 ** 2400 ns is over 10^20."""
_COMPACT_AT = 1_000_000
_AT_ONCE = 1 << 18
_FIRST_ROOM = 1024
_SHORT = 0xFFFFFFFF
_KEY_SHIFT = np.uint64(32)


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
    """Samples by key.

    A sample is one number, the key above 32 bits of nanoseconds, so that one sort puts keys together and values in
    order. Longer times are rare and kept apart.
    """

    def __init__(self) -> None:
        self._packed = np.empty(_FIRST_ROOM, np.uint64)
        self._held = 0
        self._long: list[Array] = []  # pairs of key and value
        self._long_held, self._most_long = 0, _COMPACT_AT
        self._histograms: dict[int, Histogram] = {}
        self._ordered = True

    def add(self, keys: Array, values: Array) -> None:
        """Add samples; keys and values are not negative, and keys are below 2 ** 31."""
        short = values <= _SHORT
        if not short.all():
            self._take_in_long(np.stack([keys[~short], values[~short]], axis=1).astype(np.int64))
            keys, values = keys[short], values[short]
        self._take_in((keys.astype(np.uint64) << _KEY_SHIFT) | values.astype(np.uint64))

    def take(self, log: Array, size: int = 1, numbers: Array | None = None) -> None:
        """Add a kernel's log: a sample is its key above 32 bits of nanoseconds, or -1 - key and then them. Of every
        `size` keys, those from `n * size` on are here those of `numbers[n]`."""

        def key_of(keys: Array) -> Array:
            return keys if numbers is None else numbers[keys // size] * size + keys % size

        if len(log) and int(log.min()) < 0:
            long = np.flatnonzero(log < 0)
            self._take_in_long(np.stack([key_of(-1 - log[long]), log[long + 1]], axis=1))
            log = np.delete(log, np.concatenate([long, long + 1]))
        self._take_in((key_of(log >> 32) << 32 | log & _SHORT).view(np.uint64))

    def _take_in_long(self, long: Array) -> None:
        self._long.append(long)
        self._long_held += len(long)
        self._ordered = False
        if self._long_held > self._most_long:
            self._spill()
            self._most_long = max(_COMPACT_AT, 2 * self._long_held)

    def _take_in(self, packed: NDArray[np.uint64]) -> None:
        if self._held + len(packed) > len(self._packed):
            if self._held >= _COMPACT_AT:
                self._spill()
            self._make_room(len(packed))
        self._packed[self._held : self._held + len(packed)] = packed
        self._held += len(packed)
        self._ordered = False  # making room may have sorted what was there

    def _make_room(self, count: int) -> None:
        """For so many more; for half as much again where what is held takes most of it, so that few spills follow."""
        if self._held + count > len(self._packed) // 4 * 3:
            room = len(self._packed)
            wanted = min(2 * room, _COMPACT_AT) if room < _COMPACT_AT else room // 2 * 3
            grown = np.empty(max(self._held + count, wanted), np.uint64)
            grown[: self._held] = self._packed[: self._held]
            self._packed = grown

    def _spill(self) -> None:
        """Move keys with too many samples to histograms."""
        short, long = self._columns()
        starts = _starts(short)
        names, which = np.unique(np.concatenate([_keys(short[starts]), long[:, 0]]), return_inverse=True)
        held = np.bincount(which, np.r_[np.diff(np.r_[starts, len(short)]), np.ones(len(long), np.int64)], len(names))
        grown = names[(held > EXACT) | np.isin(names, np.fromiter(self._histograms, np.int64))]
        ends = [np.searchsorted(short, (grown + over).astype(np.uint64) << _KEY_SHIFT) for over in (0, 1)]
        long_ends = [np.searchsorted(long[:, 0], grown + over) for over in (0, 1)]
        long_stays = np.ones(len(long), np.bool_)
        kept = 0  # what stays moves to the front, over what has gone
        begin = 0
        for key, start, stop, long_start, long_stop in np.stack([grown, *ends, *long_ends], axis=1).tolist():
            histogram = self._histograms.setdefault(key, Histogram())
            histogram.add(_values(short[start:stop]))
            histogram.add(long[long_start:long_stop, 1])
            long_stays[long_start:long_stop] = False
            kept = _moved(short, begin, start, kept)
            begin = stop
        self._held = _moved(short, begin, len(short), kept)
        self._long, self._long_held = [long[long_stays]], int(long_stays.sum())

    def _columns(self) -> tuple[NDArray[np.uint64], Array]:
        """All samples that no histogram has taken, in order of key and value; the long ones apart."""
        short = self._packed[: self._held]
        if not self._ordered:
            short.sort()
            long = np.concatenate(self._long) if self._long else np.zeros((0, 2), np.int64)
            self._long = [long[np.lexsort((long[:, 1], long[:, 0]))]]
            self._ordered = True
        return short, self._long[0] if self._long else np.zeros((0, 2), np.int64)

    def _of_key(self, key: int) -> Array:
        """In order."""
        short, long = self._columns()
        start, stop = np.searchsorted(short, np.array([key << 32, (key + 1) << 32], np.uint64))
        values = _values(short[start:stop])
        if not len(long):
            return values
        start, stop = np.searchsorted(long[:, 0], [key, key + 1])
        return np.concatenate([values, long[start:stop, 1]])

    def of(self, key: int) -> Statistics | None:
        short, long = self._columns()
        if not len(long) and key not in self._histograms:
            start, stop = short.searchsorted(np.array([key << 32, (key + 1) << 32], np.uint64)).tolist()
            if stop - start <= EXACT:
                return _of_ordered(short[start:stop])
        values = self._of_key(key)
        if key not in self._histograms and len(values) <= EXACT:
            return statistics(values / 1e6)
        whole = Histogram()
        whole.add(values)
        if key in self._histograms:
            whole.merge(self._histograms[key])
        return whole.statistics()

    def of_kind(self, kind: int, kinds: int) -> tuple[Array, Array]:
        """Rows and values of the samples of one kind that no histogram has taken, where key = row * kinds + kind."""
        short, long = self._columns()
        more = long[long[:, 0] % kinds == kind]
        rows, values = [more[:, 0] // kinds], [more[:, 1]]
        for begin in range(0, len(short), _AT_ONCE):  # a part at a time: each step makes a copy
            part = short[begin : begin + _AT_ONCE]
            part = part[_of_kind(part >> _KEY_SHIFT, kind, kinds)]
            rows.append(_keys(part) // kinds)
            values.append(_values(part))
        return np.concatenate(rows), np.concatenate(values)

    def of_all(self, kind: int, kinds: int) -> Statistics | None:
        """Over every key of one kind, where key = row * kinds + kind."""
        _, mine = self.of_kind(kind, kinds)
        spilled = [key for key in self._histograms if key % kinds == kind]
        if not spilled and len(mine) <= EXACT:
            return statistics(mine / 1e6)
        whole = Histogram()
        whole.add(mine)
        for key in spilled:
            whole.merge(self._histograms[key])
        return whole.statistics()


def _of_ordered(packed: NDArray[np.uint64]) -> Statistics | None:
    """Return statistics of the sorted samples of one key."""
    count = len(packed)
    if not count:
        return None
    places = (0, math.ceil(count / 2) - 1, math.ceil(95 / 100 * count) - 1, count - 1)
    low, middle, high, top = (round((int(packed[place]) & _SHORT) / 1e6, 6) for place in places)
    return Statistics(count, low, middle, high, top)


def _starts(ordered: NDArray[np.uint64]) -> Array:
    """Return where each key begins."""
    found = [np.zeros(min(len(ordered), 1), np.int64)]
    for begin in range(1, len(ordered), _AT_ONCE):  # a part at a time: each step makes a copy
        keys = ordered[begin - 1 : begin + _AT_ONCE] >> _KEY_SHIFT
        found.append(np.flatnonzero(keys[1:] != keys[:-1]) + begin)
    return np.concatenate(found)


def _of_kind(keys: NDArray[np.uint64], kind: int, kinds: int) -> NDArray[np.bool_]:
    """Return which keys are of this kind; division is slow, and seldom needed."""
    mine: NDArray[np.bool_]
    mine = (keys & np.uint64(kinds - 1) if kinds & (kinds - 1) == 0 else keys % np.uint64(kinds)) == kind
    return mine


def _moved(packed: NDArray[np.uint64], begin: int, stop: int, to: int) -> int:
    """Move a range to an earlier place; return the place after it."""
    for start in range(begin, stop, _AT_ONCE):
        part = packed[start : min(start + _AT_ONCE, stop)]
        packed[to : to + len(part)] = part
        to += len(part)
    return to


def _keys(packed: NDArray[np.uint64]) -> Array:
    return (packed >> _KEY_SHIFT).astype(np.int64)


def _values(packed: NDArray[np.uint64]) -> Array:
    return (packed & np.uint64(_SHORT)).astype(np.int64)
