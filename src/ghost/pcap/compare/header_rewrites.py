"""Header changes on the path: addresses and ports, SYN options, DSCP and ECN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.compare.packet_identity import Packets, is_tcp
from ghost.pcap.compare.packet_matching import Rows
from ghost.pcap.findings.phrasing import at

_EACH = 5
"""Different changes of one kind that are told apart."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    what: str
    """`source`, `destination`, `MSS`, `window scale`, `SACK permitted`, `timestamps`, `DSCP`, `ECN`."""
    before: str
    after: str
    count: int
    frame: int
    """The first it happened to, at the end where it arrived."""


def rewrites(near: Packets, near_rows: Rows, far: Packets, far_rows: Rows) -> tuple[Rewrite, ...]:
    """Return header changes, most frequent first within a kind."""
    if not len(near_rows):
        return ()
    return tuple(_all(near, near_rows, far, far_rows))


def _all(near: Packets, near_rows: Rows, far: Packets, far_rows: Rows) -> Iterator[Rewrite]:
    one, other = near.table[near_rows], far.table[far_rows]
    frames = other["frame"].astype(np.int64)

    def changed(
        what: str, before: NDArray[np.int64], after: NDArray[np.int64], where: NDArray[np.bool_]
    ) -> Iterator[Rewrite]:
        rows = np.flatnonzero(where & (before != after))
        if not len(rows):
            return
        pairs = np.stack([before[rows], after[rows]])
        kinds, first, counts = np.unique(pairs, axis=1, return_index=True, return_counts=True)
        for n in np.argsort(-counts, kind="stable")[:_EACH].tolist():
            was, became = (_word(what, int(value), near) for value in kinds[:, n])
            yield Rewrite(what, was, became, int(counts[n]), int(frames[rows[first[n]]]))

    everywhere = np.ones(len(one), bool)
    for what, address, port in (
        ("source", "source", "source_port"),
        ("destination", "destination", "destination_port"),
    ):
        before, after = (table[address].astype(np.int64) << 16 | table[port] for table in (one, other))
        yield from changed(what, before, after, everywhere)
    opening = is_tcp(one) & (one["control"] & L.SYN > 0)
    for what, name in (("MSS", "mss"), ("window scale", "scale"), ("SACK permitted", "sack")):
        yield from changed(what, one[name].astype(np.int64), other[name].astype(np.int64), opening)
    stamped = [(table["stamp"] > 0).astype(np.int64) for table in (one, other)]
    yield from changed("timestamps", stamped[0], stamped[1], is_tcp(one))
    marked = (one["tos"] >= 0) & (other["tos"] >= 0)
    yield from changed("DSCP", one["tos"].astype(np.int64) >> 2, other["tos"].astype(np.int64) >> 2, marked)
    yield from changed("ECN", one["tos"].astype(np.int64) & 3, other["tos"].astype(np.int64) & 3, marked)


_ECN = ("not capable", "ECT(1)", "ECT(0)", "congestion experienced")


def _word(what: str, value: int, packets: Packets) -> str:
    if what in ("source", "destination"):
        return at(packets.address(value >> 16), (value & 0xFFFF) or None)
    if what == "ECN":
        return _ECN[value]
    if what == "window scale":
        return f"shift {value - 1}" if value else "absent"
    if what in ("SACK permitted", "timestamps"):
        return "present" if value else "absent"
    return str(value) if value or what != "MSS" else "absent"
