"""TCP segments that were split or merged on the path (segmentation offload): the same bytes in other segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.compare.packet_identity import Ids, Table, is_tcp
from ghost.pcap.compare.packet_matching import Rows

_HALF = 1 << 31
Spans = list[tuple[int, int]]


def resegmented(
    a: Table, a_flow: Ids, a_rows: Rows, b: Table, b_flow: Ids, b_rows: Rows
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of unmatched rows of each capture that are fully covered by unmatched rows of the other."""
    carries = [is_tcp(table)[rows] & (table["length"][rows] > 0) for table, rows in ((a, a_rows), (b, b_rows))]
    both = np.intersect1d(a_flow[a_rows[carries[0]]], b_flow[b_rows[carries[1]]])
    covered = np.zeros(len(a_rows), bool), np.zeros(len(b_rows), bool)
    if not len(both):
        return covered
    bases: dict[int, int] = {}
    spans = [
        _spans(table, flow, rows, carry & np.isin(flow[rows], both), bases)
        for table, flow, rows, carry in ((a, a_flow, a_rows, carries[0]), (b, b_flow, b_rows, carries[1]))
    ]
    for mine, theirs, result in ((0, 1, covered[0]), (1, 0, covered[1])):
        whole = {flow: _union([(start, end) for _, start, end in held]) for flow, held in spans[theirs].items()}
        for flow, held in spans[mine].items():
            for place, start, end in held:
                result[place] = _inside(start, end, whole.get(flow, []))
    return covered


def _spans(
    table: Table, flow: Ids, rows: Rows, wanted: NDArray[np.bool_], bases: dict[int, int]
) -> dict[int, list[tuple[int, int, int]]]:
    """Return by flow: row, and byte range relative to one sequence number of the flow."""
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    places = np.flatnonzero(wanted)
    chosen = rows[places]
    values = (places, flow[chosen], table["seq"][chosen], table["length"][chosen])
    for place, name, seq, length in zip(*(column.tolist() for column in values), strict=True):
        base = bases.setdefault(name, seq)
        start = ((seq - base + _HALF) & 0xFFFFFFFF) - _HALF
        found[name].append((place, start, start + length))
    return found


def _union(spans: Spans) -> Spans:
    joined: Spans = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _inside(start: int, end: int, whole: Spans) -> bool:

    place = bisect_right(whole, (start, 1 << 62)) - 1
    return place >= 0 and whole[place][0] <= start and end <= whole[place][1]
