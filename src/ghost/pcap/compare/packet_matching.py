"""Matches packets of two captures by addresses, IP id and sequence numbers, and through NAT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array
from ghost.pcap.compare.packet_identity import Ids, Packets, Table, flows, hash_columns, identities, is_tcp

Rows = NDArray[np.intp]
_NAT_VOTES = 2
"""Packets without sequence numbers that must agree before two flows are taken for one behind NAT."""


@dataclass(frozen=True)
class Matched:
    """Matching rows of A and B, and the flows translated by NAT."""

    a: Rows
    b: Rows
    a_flow: Ids
    """Of every packet of A, by the addresses that B sees."""
    b_flow: Ids
    a_identity: Ids
    b_identity: Ids
    translated: dict[int, int]
    """Flows of A to flows of B whose addresses or ports were rewritten."""

    def difference(self, a: Packets, b: Packets) -> Array:
        """Return time at B minus time at A of each pair, in ns."""
        result: Array = b.table["time"][self.b] - a.table["time"][self.a]
        return result


def match(a: Packets, b: Packets) -> Matched:
    a_flow, b_flow = flows(a.table), flows(b.table)
    translated = _translated(a.table, b.table, a_flow, b_flow)
    if translated:
        known = np.array(sorted(translated), np.uint64)
        to = np.array([translated[int(flow)] for flow in known], np.uint64)
        place = np.minimum(np.searchsorted(known, a_flow), len(known) - 1)
        a_flow = np.where(known[place] == a_flow, to[place], a_flow)
    a_identity, b_identity = identities(a.table, a_flow), identities(b.table, b_flow)
    in_a, in_b = _pairs(a_identity, b_identity, a.table["time"], b.table["time"])
    return Matched(in_a, in_b, a_flow, b_flow, a_identity, b_identity, translated)


def _translated(a: Table, b: Table, a_flow: Ids, b_flow: Ids) -> dict[int, int]:
    """Return pairs of flows of one capture each, matched by header values that NAT does not change."""
    only_a = np.flatnonzero(~np.isin(a_flow, b_flow))
    only_b = np.flatnonzero(~np.isin(b_flow, a_flow))
    if not len(only_a) or not len(only_b):
        return {}
    nothing = np.zeros(1, np.uint64)
    keys_a, keys_b = (
        identities(table[rows], np.broadcast_to(nothing, len(rows))) for table, rows in ((a, only_a), (b, only_b))
    )
    in_a, in_b = _alone(keys_a, keys_b)
    from_a, to_b = a_flow[only_a[in_a]], b_flow[only_b[in_b]]
    sequenced = is_tcp(a)[only_a[in_a]] & (a["seq"][only_a[in_a]] > 0xFFFF)
    pairs, which = np.unique(np.stack([from_a, to_b], axis=1), axis=0, return_inverse=True)
    votes = np.bincount(which.ravel(), np.where(sequenced, _NAT_VOTES, 1), len(pairs))
    best_a: dict[int, tuple[float, int]] = {}
    best_b: dict[int, tuple[float, int]] = {}
    for (one, other), vote in zip(pairs.tolist(), votes.tolist(), strict=True):
        best_a[one] = max(best_a.get(one, (0.0, 0)), (vote, other))
        best_b[other] = max(best_b.get(other, (0.0, 0)), (vote, one))
    return {one: other for one, (vote, other) in best_a.items() if vote >= _NAT_VOTES and best_b[other][1] == one}


def _alone(a: Ids, b: Ids) -> tuple[Rows, Rows]:
    """Return rows of keys that occur exactly once on each side."""
    found = []
    for keys in (a, b):
        values, first, counts = np.unique(keys, return_index=True, return_counts=True)
        found.append((values[counts == 1], first[counts == 1]))
    (left, left_rows), (right, right_rows) = found
    _, in_left, in_right = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return left_rows[in_left], right_rows[in_right]


def _pairs(a: Ids, b: Ids, a_time: Array, b_time: Array) -> tuple[Rows, Rows]:
    """Return pairs of packets with the same identity; repeated ones are matched in order and then by time."""
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    sorted_a, sorted_b = a[order_a], b[order_b]
    values, starts, counts = np.unique(sorted_a, return_index=True, return_counts=True)
    begin = np.searchsorted(sorted_b, values, "left")
    others = np.searchsorted(sorted_b, values, "right") - begin
    equal = np.flatnonzero((counts == others) & (counts > 0))
    places_a, places_b = _spread(starts[equal], counts[equal]), _spread(begin[equal], counts[equal])
    in_a, in_b = order_a[places_a], order_b[places_b]
    unequal = np.flatnonzero((counts != others) & (others > 0))
    if not len(unequal):
        return in_a, in_b
    # The usual difference of the clocks says which of several copies arrived.
    usual = int(np.median(b_time[in_b] - a_time[in_a])) if len(in_a) else None
    more_a: list[int] = []
    more_b: list[int] = []
    for group in unequal.tolist():
        left = order_a[starts[group] : starts[group] + counts[group]].tolist()
        right = order_b[begin[group] : begin[group] + others[group]].tolist()
        for one, other in _nearest(left, right, a_time, b_time, usual):
            more_a.append(one)
            more_b.append(other)
    return np.concatenate([in_a, np.array(more_a, np.intp)]), np.concatenate([in_b, np.array(more_b, np.intp)])


def _nearest(
    left: list[int], right: list[int], a_time: Array, b_time: Array, usual: int | None
) -> Iterator[tuple[int, int]]:
    """Yield pairs in order on both sides: each of the fewer takes the nearest of the more that leaves enough for the
    rest."""
    if usual is None:
        yield from zip(left, right, strict=False)
        return
    flip = len(left) > len(right)
    few, many = (right, left) if flip else (left, right)
    at = 0
    for n, one in enumerate(few):
        last = len(many) - (len(few) - n)

        def apart(place: int, one: int = one) -> int:
            a, b = (many[place], one) if flip else (one, many[place])
            return abs(int(b_time[b]) - int(a_time[a]) - usual)

        best = min(range(at, min(last, at + 64) + 1), key=apart)
        yield (many[best], one) if flip else (one, many[best])
        at = best + 1


def _spread(starts: NDArray[Any], counts: NDArray[Any]) -> Rows:
    """`start, start + 1, ...` of each group, one after another."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    result: Rows = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(starts, counts)
    return result


def way(table: Table) -> Ids:
    """Return a hash of source and destination address."""
    return hash_columns(table["source"], table["destination"])
