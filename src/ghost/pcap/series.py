"""What happened when, and between whom: packets, bytes, repeats and round trips in bins of time. It judges nothing.

Bins are of a width that doubles when a capture outgrows them, so memory grows with pairs of hosts, never with packets
or hours. They lie on multiples of their width since 1970, whatever comes first: parts of a capture added up give
exactly what the whole gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.layout import (
    DESTINATION,
    E_DUPLICATE_ACK,
    E_LOST_SEGMENT,
    E_RETRANSMISSION,
    E_ZERO_WINDOW,
    FLAGS,
    NETWORK,
    ROUND_TRIP,
    SOURCE,
    TIME,
    WIRE,
)
from ghost.pcap.vectors import Array

BINS = 240
TICK_NS = 15_625
"""The finest width; 64 of them are a millisecond, so that wider bins have round widths."""
MOST_ENTRIES = 200_000
"""Bins of pairs of hosts that are kept before these bins, too, grow wider."""

_FLAGGED = (E_RETRANSMISSION, E_LOST_SEGMENT, E_DUPLICATE_ACK, E_ZERO_WINDOW)
_PACKETS, _BYTES, _FIRST_FLAG = 0, 1, 2
_COLUMNS = _FIRST_FLAG + len(_FLAGGED)
_INTERESTING = sum(1 << kind for kind in _FLAGGED)

# Round trips: a histogram of each bin whose buckets grow by 15%, from a microsecond on.
_BUCKETS = 128
_GROWTH = math.log(1.15)

_ID_BITS = 27
_BIN_BITS = 8


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Of the segments acknowledged in one bin, in ms; to 15%."""

    count: int
    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class PairTraffic:
    """What one address sent to another."""

    source: str
    destination: str
    packets: int
    wire_bytes: int
    retransmissions: int


@dataclass(frozen=True, slots=True)
class PairSeries:
    """Bytes of a pair of hosts by bin of `Series.pair_width_ns`, each way; `a` sent more."""

    a: str
    b: str
    a_to_b: tuple[int, ...]
    b_to_a: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A capture over time; every tuple has one item a bin."""

    start_ns: int
    """Of the first bin."""
    width_ns: int
    packets: tuple[int, ...]
    wire_bytes: tuple[int, ...]
    retransmissions: tuple[int, ...]
    gaps: tuple[int, ...]
    """Segments after a gap: what lies before them was lost, or is late."""
    duplicate_acks: tuple[int, ...]
    zero_windows: tuple[int, ...]
    round_trips: tuple[RoundTrips | None, ...]
    pair_start_ns: int
    pair_width_ns: int
    busiest: tuple[PairSeries, ...]
    """By bytes, both ways."""
    traffic: tuple[PairTraffic, ...]
    """Between the hosts that moved most, every direction among them."""
    hosts: tuple[str, ...]
    """These hosts, most bytes first."""
    hosts_total: int


class SeriesCollector:
    """Takes batches of packets that TCP has been followed in; `merge` adds what another took."""

    def __init__(self, bins: int = BINS, most_entries: int = MOST_ENTRIES) -> None:
        assert bins <= 1 << _BIN_BITS
        self._most_bins, self._most_entries = bins, most_entries
        self._shift = self._pair_shift = 0
        self._first = 0
        self._used = 0
        self._bins: Array = np.zeros((bins, _COLUMNS), np.int64)
        self._trips: Array = np.zeros((bins, _BUCKETS), np.int64)
        self._entries = _Entries()
        self._pending: list[_Entries] = []
        self._held = 0

    def follow(self, columns: Array) -> None:
        """Count one batch, a row a packet."""
        if not len(columns):
            return
        ticks = columns[:, TIME] // TICK_NS
        self._make_room(int(ticks.min()), int(ticks.max()))
        at = (ticks >> self._shift) - self._first
        # Columns lie far apart in memory: each is gathered once. A batch lies in few bins: only these are added to.
        wire, flags, trips = (
            columns[:, WIRE].astype(np.float64),
            columns[:, FLAGS].copy(),
            columns[:, ROUND_TRIP].copy(),
        )
        low = int(at.min())
        at -= low
        count = int(at.max()) + 1
        bins = self._bins[low : low + count]
        bins[:, _PACKETS] += np.bincount(at, minlength=count)
        bins[:, _BYTES] += np.bincount(at, wire, count).astype(np.int64)
        flagged = np.flatnonzero(flags & _INTERESTING)
        for column, kind in enumerate(_FLAGGED, _FIRST_FLAG):
            mine = flagged[flags[flagged] >> kind & 1 > 0]
            bins[:, column] += np.bincount(at[mine], minlength=count)
        timed = np.flatnonzero(trips)
        buckets = np.clip(np.log(trips[timed] / 1000) / _GROWTH, 0, _BUCKETS - 1).astype(np.int64)
        counted = np.bincount(at[timed] * _BUCKETS + buckets, minlength=count * _BUCKETS)
        self._trips[low : low + count] += counted.reshape(count, _BUCKETS)
        self._follow_pairs(columns, ticks, wire, flags)

    def merge(self, other: SeriesCollector) -> None:
        """Add what another collector counted of the same capture, with the same address ids."""
        if not other._used:
            return
        low, high = other._first << other._shift, ((other._first + other._used) << other._shift) - 1
        # The last tick of its last bin may lie beyond the last packet; only the bin it lies in matters.
        self._make_room(low, max(low, high), at_least=other._shift)
        by = self._shift - other._shift
        to = ((other._first + np.arange(other._used)) >> by) - self._first
        np.add.at(self._bins, to, other._bins[: other._used])
        np.add.at(self._trips, to, other._trips[: other._used])
        other._compact()
        self._compact()
        self._pair_shift = max(self._pair_shift, other._pair_shift)
        self._pending.append(other._entries)
        self._compact()

    def result(self, address: Callable[[int], str], *, busiest: int = 4, hosts: int = 12) -> Series | None:
        """The series, with the text of address ids."""
        if not self._used:
            return None
        self._compact()
        table, start = self._bins[: self._used], (self._first << self._shift) * TICK_NS
        flagged = {name: tuple(table[:, _FIRST_FLAG + n].tolist()) for n, name in enumerate(_FLAG_NAMES)}
        pairs = _Pairs(self._entries)
        names = [address(number) for number in pairs.hosts[:hosts].tolist()]
        pair_first = (self._first << self._shift) >> self._pair_shift
        pair_bins = (((self._first + self._used - 1) << self._shift) >> self._pair_shift) - pair_first + 1
        return Series(
            start_ns=start,
            width_ns=TICK_NS << self._shift,
            packets=tuple(table[:, _PACKETS].tolist()),
            wire_bytes=tuple(table[:, _BYTES].tolist()),
            **flagged,
            round_trips=tuple(_round_trips(row) for row in self._trips[: self._used]),
            pair_start_ns=(pair_first << self._pair_shift) * TICK_NS,
            pair_width_ns=TICK_NS << self._pair_shift,
            busiest=tuple(
                PairSeries(address(a), address(b), *(pairs.over_time(x, y, pair_first, pair_bins) for x, y in both))
                for a, b in pairs.busiest(busiest)
                for both in [((a, b), (b, a))]
            ),
            traffic=pairs.among(hosts, address),
            hosts=tuple(names),
            hosts_total=len(pairs.hosts),
        )

    # ------------------------------------------------------------------------------------------------------ time

    def _make_room(self, low: int, high: int, at_least: int = 0) -> None:
        """Widen and move the bins until ticks `low` to `high` have one."""
        shift = max(self._shift, at_least)
        if self._used:
            low = min(low, self._first << self._shift)
            high = max(high, (self._first + self._used - 1) << self._shift)
        while (high >> shift) - (low >> shift) >= self._most_bins:
            shift += 1
        first, used = low >> shift, (high >> shift) - (low >> shift) + 1
        if (shift, first) != (self._shift, self._first) and self._used:
            to = ((self._first + np.arange(self._used)) >> (shift - self._shift)) - first
            for name in ("_bins", "_trips"):
                old = getattr(self, name)
                new = np.zeros_like(old)
                np.add.at(new, to, old[: self._used])
                setattr(self, name, new)
        self._shift, self._first, self._used = shift, first, used
        self._pair_shift = max(self._pair_shift, shift)

    # ----------------------------------------------------------------------------------------------------- pairs

    def _follow_pairs(self, columns: Array, ticks: Array, wire: NDArray[np.float64], flags: Array) -> None:
        place = ticks >> self._pair_shift
        pair = columns[:, SOURCE] << _ID_BITS | columns[:, DESTINATION]
        addressed = columns[:, NETWORK] >= 4
        if not addressed.all():
            if not addressed.any():
                return
            place, pair, wire, flags = place[addressed], pair[addressed], wire[addressed], flags[addressed]
        first = int(place.min())
        keys, inverse = np.unique(pair << _BIN_BITS | (place - first), return_inverse=True)
        repeats = inverse[flags >> E_RETRANSMISSION & 1 > 0]
        count = len(keys)
        values = np.empty((count, 3), np.int64)
        values[:, 0] = np.bincount(inverse, minlength=count)
        values[:, 1] = np.bincount(inverse, wire, count)
        values[:, 2] = np.bincount(repeats, minlength=count)
        self._pending.append(
            _Entries(keys >> _BIN_BITS, (keys & (1 << _BIN_BITS) - 1) + first, values, self._pair_shift)
        )
        self._held += count
        if self._held > max(self._most_entries, 2 * len(self._entries.pairs)):
            self._compact()

    def _compact(self) -> None:
        """Add up entries of one pair and bin; widen the bins until there are no more than the most."""
        parts = [self._entries, *self._pending]
        while True:
            merged = _added(parts, self._pair_shift)
            # Bins need not be wider than all time.
            if len(merged.pairs) <= self._most_entries or self._pair_shift >= self._shift + _BIN_BITS:
                break
            parts, self._pair_shift = [merged], self._pair_shift + 1
        self._entries, self._pending, self._held = merged, [], 0


_FLAG_NAMES = ("retransmissions", "gaps", "duplicate_acks", "zero_windows")


class _Entries:
    """Packets, bytes and repeats of a directed pair of address ids in a bin of `shift`."""

    __slots__ = ("pairs", "places", "shift", "values")

    def __init__(
        self, pairs: Array | None = None, places: Array | None = None, values: Array | None = None, shift: int = 0
    ) -> None:
        self.pairs: Array = np.zeros(0, np.int64) if pairs is None else pairs
        self.places: Array = np.zeros(0, np.int64) if places is None else places
        self.values: Array = np.zeros((0, 3), np.int64) if values is None else values
        self.shift = shift


def _added(parts: Sequence[_Entries], shift: int) -> _Entries:
    pairs = np.concatenate([part.pairs for part in parts])
    places = np.concatenate([part.places >> (shift - part.shift) for part in parts])
    values = np.concatenate([part.values for part in parts])
    if not len(pairs):
        return _Entries(shift=shift)
    order = np.lexsort((places, pairs))
    pairs, places, values = pairs[order], places[order], values[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(pairs) != 0) | (np.diff(places) != 0)])
    return _Entries(pairs[starts], places[starts], np.add.reduceat(values, starts, axis=0), shift)


class _Pairs:
    """Entries summed over time, for questions about who talks to whom."""

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries
        starts = np.flatnonzero(np.r_[True, np.diff(entries.pairs) != 0]) if len(entries.pairs) else np.zeros(0, int)
        self._pairs = entries.pairs[starts]
        self._sums = np.add.reduceat(entries.values, starts, axis=0) if len(starts) else entries.values
        self._sources, self._destinations = self._pairs >> _ID_BITS, self._pairs & (1 << _ID_BITS) - 1
        ends = np.concatenate([self._sources, self._destinations])
        hosts, which = np.unique(ends, return_inverse=True)
        moved = np.bincount(which, np.tile(self._sums[:, 1], 2), len(hosts))
        self.hosts: NDArray[np.int64] = hosts[np.argsort(-moved, kind="stable")]

    def busiest(self, most: int) -> list[tuple[int, int]]:
        """Pairs by the bytes of both directions, the side that sent more first."""
        low = np.minimum(self._sources, self._destinations) << _ID_BITS
        both, which = np.unique(low | np.maximum(self._sources, self._destinations), return_inverse=True)
        moved = np.bincount(which, self._sums[:, 1], len(both))
        found = []
        for key in both[np.argsort(-moved, kind="stable")[:most]].tolist():
            a, b = key >> _ID_BITS, key & (1 << _ID_BITS) - 1
            found.append((a, b) if self._bytes(a, b) >= self._bytes(b, a) else (b, a))
        return found

    def _bytes(self, source: int, destination: int) -> int:
        at = int(np.searchsorted(self._pairs, source << _ID_BITS | destination))
        known = at < len(self._pairs) and self._pairs[at] == source << _ID_BITS | destination
        return int(self._sums[at, 1]) if known else 0

    def over_time(self, source: int, destination: int, first: int, bins: int) -> tuple[int, ...]:
        key = source << _ID_BITS | destination
        start, stop = np.searchsorted(self._entries.pairs, [key, key + 1])
        row = np.zeros(bins, np.int64)
        np.add.at(row, self._entries.places[start:stop] - first, self._entries.values[start:stop, 1])
        return tuple(row.tolist())

    def among(self, most: int, address: Callable[[int], str]) -> tuple[PairTraffic, ...]:
        """Every direction among the `most` hosts that moved most bytes."""
        named = {number: address(number) for number in self.hosts[:most].tolist()}
        inside = np.isin(self._sources, self.hosts[:most]) & np.isin(self._destinations, self.hosts[:most])
        return tuple(
            PairTraffic(named[source], named[destination], *map(int, sums))
            for source, destination, sums in zip(
                self._sources[inside].tolist(), self._destinations[inside].tolist(), self._sums[inside], strict=True
            )
        )


def _round_trips(buckets: Array) -> RoundTrips | None:
    total = int(buckets.sum())
    if not total:
        return None
    reached = np.cumsum(buckets)

    def rank(percent: int) -> float:
        bucket = int(np.searchsorted(reached, math.ceil(percent / 100 * total)))
        return round(math.exp((bucket + 0.5) * _GROWTH) / 1000, 6)

    return RoundTrips(total, rank(50), rank(95))
