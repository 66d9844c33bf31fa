"""What happened when, and between whom: packets, bytes, repeats and round trips in bins of time. It judges nothing.

Bins are of a width that doubles when a capture outgrows them, so memory grows with pairs of hosts, never with packets
or hours. They lie on multiples of their width since 1970, whatever comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_queries import narrow
from ghost.pcap.array_types import Array, Kernel, PacketArray, RowIndices, Vector
from ghost.pcap.kernels.time_bins import (
    B_BYTES,
    B_DUPLICATE_ACKS,
    B_GAPS,
    B_PACKETS,
    B_REPEATS,
    B_ZERO_WINDOWS,
    BIN,
    C_FIRST,
    C_PAIR_SHIFT,
    C_PAIRS,
    C_SEED,
    C_SHIFT,
    COUNTERS,
    ID_BITS,
    P_PACKETS,
    P_PAIR,
    P_PLACE,
    PAIR,
    TICK_NS,
    fill_bins,
)

BINS = 240
MOST_ENTRIES = 200_000
"""Bins of pairs of hosts that are kept before these bins, too, grow wider."""
_TIMES_WIDER = 8
"""Doublings by which they may be wider than the bins of all traffic: those are all time, then."""
_SLOTS = 8192
"""Of the table in which a kernel gathers pairs of hosts before they are sorted in."""

# Round trips: a histogram of each bin whose buckets grow by 15%, from a microsecond on.
_BUCKETS = 128
_GROWTH = math.log(1.15)
_NONE: Array = np.zeros(0, np.int64)
_EDGES: Array = np.array([0, *(math.ceil(1000 * math.exp(n * _GROWTH)) for n in range(1, _BUCKETS))], np.int64)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Round trips of the segments acknowledged in one bin, in ms, accurate to 15%."""

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
    """Collects the series from batches whose TCP columns are complete; `state` is the result."""

    def __init__(
        self,
        vector: Vector,
        kernels: Kernel,
        seed: int = 0,
        *,
        bins: int = BINS,
        most_entries: int = MOST_ENTRIES,
        slots: int = _SLOTS,
    ) -> None:
        self._vector, self._kernels = vector, kernels
        self._state = SeriesState(bins, most_entries)
        self._pairs = np.zeros(slots * PAIR, np.int64)
        self._counts = np.zeros(COUNTERS, np.int64)
        self._counts[C_SEED] = seed

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def follow(self, rows: PacketArray, count: int) -> None:
        """Count one batch of flat rows."""
        self.expect(rows[: count * L.PACKET].reshape(-1, L.PACKET)[:, L.TIME])
        done = 0
        while True:
            done = self._kernels(fill_bins)(self._vector(rows), done, count, *map(self._vector, self.arrays()))
            if done >= count:
                return
            self.make_room()

    def expect(self, times: Array) -> None:
        """Make bins for packets of these times."""
        if len(times):
            self._state.make_room(int(times.min()) // TICK_NS, int(times.max()) // TICK_NS)

    def arrays(self) -> tuple[Array, ...]:
        """The state, in the order in which `fill_bins` takes it."""
        state, counts = self._state, self._counts
        if counts[C_PAIR_SHIFT] != state.pair_shift:
            self._sort_in()
        counts[C_SHIFT], counts[C_FIRST], counts[C_PAIR_SHIFT] = state.shift, state.first, state.pair_shift
        return state.bins.reshape(-1), state.trips.reshape(-1), _EDGES, self._pairs, counts

    def make_room(self) -> None:
        """Half of the slots of pairs are taken."""
        self._sort_in()

    def state(self) -> SeriesState:
        """The counts so far."""
        self._sort_in()
        return self._state

    def _sort_in(self) -> None:
        table = self._pairs.reshape(-1, PAIR)
        found = table[np.flatnonzero(table[:, P_PAIR])]
        if len(found):
            shift = int(self._counts[C_PAIR_SHIFT])
            self._state.add(_Entries(found[:, P_PAIR] - 1, found[:, P_PLACE], found[:, P_PACKETS:].T, shift))
            self._pairs[:] = 0
            self._counts[C_PAIRS] = 0


class SeriesState:
    """Counts of a capture."""

    def __init__(self, bins: int = BINS, most_entries: int = MOST_ENTRIES) -> None:
        self._most_bins, self._most_entries = bins, most_entries
        self.shift = self.pair_shift = 0
        self.first = 0
        self._used = 0
        self.bins: Array = np.zeros((bins, BIN), np.int64)
        self.trips: Array = np.zeros((bins, _BUCKETS), np.int64)
        self._entries = _Entries()
        self._pending: list[_Entries] = []
        self._held = 0

    def add(self, entries: _Entries) -> None:
        """Take in pairs of hosts."""
        self._pending.append(entries)
        self._held += len(entries.pairs)
        if self._held > max(self._most_entries, len(self._entries.pairs)):
            self._compact()

    def result(self, address: Callable[[int], str], *, busiest: int = 4, hosts: int = 12) -> Series | None:
        """The series, with the text of address ids."""
        if not self._used:
            return None
        self._compact()
        table, start = self.bins[: self._used], (self.first << self.shift) * TICK_NS
        pairs = _Pairs(self._entries)
        names = [address(number) for number in pairs.hosts[:hosts].tolist()]
        pair_first = (self.first << self.shift) >> self.pair_shift
        pair_bins = (((self.first + self._used - 1) << self.shift) >> self.pair_shift) - pair_first + 1
        return Series(
            start_ns=start,
            width_ns=TICK_NS << self.shift,
            packets=tuple(table[:, B_PACKETS].tolist()),
            wire_bytes=tuple(table[:, B_BYTES].tolist()),
            retransmissions=tuple(table[:, B_REPEATS].tolist()),
            gaps=tuple(table[:, B_GAPS].tolist()),
            duplicate_acks=tuple(table[:, B_DUPLICATE_ACKS].tolist()),
            zero_windows=tuple(table[:, B_ZERO_WINDOWS].tolist()),
            round_trips=tuple(_round_trips(row) for row in self.trips[: self._used]),
            pair_start_ns=(pair_first << self.pair_shift) * TICK_NS,
            pair_width_ns=TICK_NS << self.pair_shift,
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

    def make_room(self, low: int, high: int) -> None:
        """Widen and move the bins until ticks `low` to `high` have one."""
        shift = self.shift
        if self._used:
            low = min(low, self.first << self.shift)
            high = max(high, (self.first + self._used - 1) << self.shift)
        while (high >> shift) - (low >> shift) >= self._most_bins:
            shift += 1
        first, used = low >> shift, (high >> shift) - (low >> shift) + 1
        if (shift, first) != (self.shift, self.first) and self._used:
            to = ((self.first + np.arange(self._used)) >> (shift - self.shift)) - first
            for name in ("bins", "trips"):
                old = getattr(self, name)
                new = np.zeros_like(old)
                np.add.at(new, to, old[: self._used])
                setattr(self, name, new)
        self.shift, self.first, self._used = shift, first, used
        self.pair_shift = max(self.pair_shift, shift)

    def _compact(self) -> None:
        """Add up entries of one pair and bin; widen the bins until there are no more than the most."""
        parts = [self._entries, *self._pending]
        while True:
            merged = _added(parts, self.pair_shift)
            # Bins need not be wider than all time.
            if len(merged.pairs) <= self._most_entries or self.pair_shift >= self.shift + _TIMES_WIDER:
                break
            parts, self.pair_shift = [merged], self.pair_shift + 1
        self._entries, self._pending, self._held = merged, [], 0


class _Entries:
    """Packets, bytes and repeats of a directed pair of address ids in a bin of `shift`, in few bytes."""

    __slots__ = ("pairs", "places", "shift", "values")

    def __init__(
        self, pairs: Array = _NONE, places: RowIndices = _NONE, values: Iterable[Array] = (_NONE,) * 3, shift: int = 0
    ) -> None:
        self.pairs, self.places, self.values, self.shift = pairs, narrow(places), tuple(map(narrow, values)), shift


def _added(parts: Sequence[_Entries], shift: int) -> _Entries:
    pairs = np.concatenate([part.pairs for part in parts])
    places = np.concatenate([part.places >> (shift - part.shift) for part in parts]).astype(np.int64, copy=False)
    if not len(pairs):
        return _Entries(shift=shift)
    order = _order(pairs, places)
    pairs, places = pairs[order], places[order]
    starts = np.flatnonzero(np.r_[True, (pairs[1:] != pairs[:-1]) | (places[1:] != places[:-1])])
    columns = (np.concatenate(column)[order] for column in zip(*(part.values for part in parts), strict=True))
    sums = (np.add.reduceat(column, starts, dtype=np.int64) for column in columns)
    return _Entries(pairs[starts], places[starts], sums, shift)


def _order(pairs: Array, places: RowIndices) -> NDArray[np.intp]:
    """By pair and then by place; entries that have both in common are added up, in whatever order."""
    sources, destinations, since = pairs >> ID_BITS, pairs & (1 << ID_BITS) - 1, places - places.min()
    widths = [int(each.max()).bit_length() for each in (sources, destinations, since)]
    if sum(widths) > 63:
        return np.lexsort((places, pairs))
    # As one number, which is sorted several times sooner.
    return np.argsort(((sources << widths[1]) | destinations) << widths[2] | since)


class _Pairs:
    """Entries summed over time, for questions about who talks to whom."""

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries
        starts = np.flatnonzero(np.r_[True, np.diff(entries.pairs) != 0]) if len(entries.pairs) else np.zeros(0, int)
        self._pairs = entries.pairs[starts]
        self._sums = [np.add.reduceat(each, starts, dtype=np.int64) if len(starts) else each for each in entries.values]
        self._sources, self._destinations = self._pairs >> ID_BITS, self._pairs & (1 << ID_BITS) - 1
        ends = (self._sources, self._destinations)
        room = max(int(each.max(initial=-1)) for each in ends) + 1
        hosts = np.flatnonzero(np.add(*(np.bincount(each, minlength=room) for each in ends)))
        moved = np.add(*(np.bincount(each, self._sums[1], room) for each in ends))
        self.hosts: NDArray[np.int64] = hosts[np.argsort(-moved[hosts], kind="stable")]

    def busiest(self, most: int) -> list[tuple[int, int]]:
        """Pairs by the bytes of both directions, the side that sent more first."""
        low = np.minimum(self._sources, self._destinations) << ID_BITS
        both, which = np.unique(low | np.maximum(self._sources, self._destinations), return_inverse=True)
        moved = np.bincount(which, self._sums[1], len(both))
        found = []
        for key in both[np.argsort(-moved, kind="stable")[:most]].tolist():
            a, b = key >> ID_BITS, key & (1 << ID_BITS) - 1
            found.append((a, b) if self._bytes(a, b) >= self._bytes(b, a) else (b, a))
        return found

    def _bytes(self, source: int, destination: int) -> int:
        at = int(np.searchsorted(self._pairs, source << ID_BITS | destination))
        known = at < len(self._pairs) and self._pairs[at] == source << ID_BITS | destination
        return int(self._sums[1][at]) if known else 0

    def over_time(self, source: int, destination: int, first: int, bins: int) -> tuple[int, ...]:
        key = source << ID_BITS | destination
        start, stop = np.searchsorted(self._entries.pairs, [key, key + 1])
        row = np.zeros(bins, np.int64)
        np.add.at(row, self._entries.places[start:stop] - first, self._entries.values[1][start:stop])
        return tuple(row.tolist())

    def among(self, most: int, address: Callable[[int], str]) -> tuple[PairTraffic, ...]:
        """Every direction among the `most` hosts that moved most bytes."""
        named = {number: address(number) for number in self.hosts[:most].tolist()}
        inside = np.isin(self._sources, self.hosts[:most]) & np.isin(self._destinations, self.hosts[:most])
        return tuple(
            PairTraffic(named[source], named[destination], *sums)
            for source, destination, *sums in zip(
                *(each[inside].tolist() for each in (self._sources, self._destinations, *self._sums)), strict=True
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
