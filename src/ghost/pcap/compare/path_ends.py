"""Two captures of one path: packets lost, delayed, copied, reordered or changed between them, and lost before the first
or after the second. Both captures are read once more, headers only; only what both could have seen is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array
from ghost.pcap.compare.clock_offset import Clock, compare_clocks
from ghost.pcap.compare.header_rewrites import Rewrite, rewrites
from ghost.pcap.compare.packet_identity import Ids, Packets, hash_columns, repeated, two_captures
from ghost.pcap.compare.packet_matching import Matched, Rows, match, way
from ghost.pcap.compare.resegmentation import resegmented
from ghost.pcap.model import Analysis, Occurrences, Statistics
from ghost.pcap.sample_statistics import statistics

End = Literal["A", "B"]
Mask = NDArray[np.bool_]

SAMPLE_FRAMES = 10
_FEWEST, _LEAST_SHARE = 3, 0.01
"""Packets, and the share of the smaller capture, that both must hold to be taken for two ends of one path."""
_SILENCE_NS = 120_000_000_000
"""How long TCP repeats what nobody answers (tcp(7), tcp_syn_retries)."""
_FEWEST_LARGE, _SMALL_LOST, _LARGE_BYTES = 3, 0.05, 500
"""Large packets lost, share of the smaller ones that may be lost by chance, and least size of an MTU black hole."""
MOST_UNASKED = 3_000_000
"""Packets of a capture up to which common packets are looked for without being asked: each takes 250 bytes."""
_INITIAL_TTLS = (32, 64, 128, 255)
NOTHING = Occurrences()


@dataclass(frozen=True, slots=True)
class OneWay:
    """Packets in one direction. Frames of `lost` are of the sending end, all others of the receiving end."""

    sender: End
    hosts: tuple[str, ...]
    """Who sent it, most packets first, as the end it left knows them."""
    peers: tuple[str, ...]
    """To whom, as that end knows them."""
    arrived: int
    lost: Occurrences
    """Seen at the end it left and not at the other: lost between."""
    lost_before: Occurrences
    """TCP segments lost before the first end, by the sequence numbers seen there (frames of that end)."""
    lost_after: Occurrences
    """TCP segments lost behind the second end: seen there, and sent again because the receiver lacked them."""
    copied: Occurrences
    reordered: Occurrences
    """Arrived behind a packet of the same flow that left later."""
    resets_injected: Occurrences
    """Resets that the end they claim to come from never sent past the first capture."""
    appeared: Occurrences
    """Other packets seen at the second end alone: by another way, or missed by the first capture."""
    other_pieces: int
    """Packets that were cut or joined on the way (segmentation offload): all their bytes arrived."""
    delay_ms: Statistics | None
    hops: int | None
    """Routers between the ends, by TTL."""
    rewritten: tuple[Rewrite, ...]
    size_limit: tuple[int, int] | None = None
    """Bytes of the largest packet that arrived and of the smallest lost, where only large ones are lost."""

    @property
    def receiver(self) -> End:
        return "B" if self.sender == "A" else "A"

    @property
    def sent(self) -> int:
        return self.arrived + self.lost.count

    @property
    def loss_pct(self) -> float:
        return 100.0 * self.lost.count / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class TwoEnds:
    a: str
    b: str
    matched: int
    clock: Clock | None
    """None where no packet is in both captures."""
    round_trip_ms: float | None
    """The shortest between the two ends."""
    ways: tuple[OneWay, ...]
    not_judged: int
    """Packets of hosts on the path that the other capture was not running for."""


def two_ends(a: Path, b: Path, a_analysis: Analysis, b_analysis: Analysis, *, certain: bool) -> TwoEnds | None:
    """Return the comparison of two ends; None if the captures share no packets, unless it is `certain` that they are
    two ends."""
    len_a, len_b = a_analysis.summary.total_packets, b_analysis.summary.total_packets
    if a_analysis.summary.sha256 == b_analysis.summary.sha256 or not len_a or not len_b:
        return None
    if not certain and max(len_a, len_b) > MOST_UNASKED:
        return None
    left, right = two_captures(a, b)
    found = match(left, right)
    share = len(found.a) / min(len_a, len_b)
    names = a_analysis.summary.file, b_analysis.summary.file
    if len(found.a) < _FEWEST or share < _LEAST_SHARE:
        return _nothing_arrived(left, right, names) if certain else None
    return _Judge(left, right, found, a_analysis, b_analysis).judged(names)


@dataclass(frozen=True)
class _Side:
    """One capture, seen from one direction."""

    end: End
    packets: Packets
    rows: Rows
    """Its packets of this way that are in both captures, in the order of the pairs."""
    matched: Mask
    identity: Ids
    flow: Ids
    ways: Ids
    analysis: Analysis


class _Judge:
    def __init__(self, a: Packets, b: Packets, found: Matched, a_analysis: Analysis, b_analysis: Analysis) -> None:
        self._a, self._b, self._found = a, b, found
        self._analyses = a_analysis, b_analysis
        self._difference = found.difference(a, b)
        self._a_way, self._b_way = way(a.table), way(b.table)
        self._a_back, self._b_back = (way_back(packets) for packets in (a, b))
        self._to_b = self._directions()
        at = a.table["time"][found.a]
        self._clock = compare_clocks(
            at[self._to_b], self._difference[self._to_b], at[~self._to_b], self._difference[~self._to_b]
        )

    def judged(self, names: tuple[str, str]) -> TwoEnds:
        clock = self._clock
        assert clock is not None  # some packets match
        ways = []
        not_judged = 0
        for to_b in (True, False):
            one, left_out = self._one_way(to_b, clock)
            not_judged += left_out
            if one is not None:
                ways.append(one)
        known = clock.uncertainty_ns is not None and not clock.changed_ns
        trip = 2 * clock.uncertainty_ns / 1e6 if known and clock.uncertainty_ns is not None else None
        return TwoEnds(*names, len(self._found.a), clock, trip, tuple(ways), not_judged)

    # ------------------------------------------------------------------------------------------------- direction

    def _directions(self) -> Mask:
        """Return bool[n]: the packet went from A to B, by its TTL, else by the clock."""
        ways, which = np.unique(self._a_way[self._found.a], return_inverse=True)
        back = self._a_back[self._found.a]
        fallen = self._a.table["ttl"][self._found.a].astype(np.int64) - self._b.table["ttl"][self._found.b]
        middle = _medians(which, self._difference, len(ways))
        place = dict(zip(ways.tolist(), range(len(ways)), strict=True))
        first = np.unique(which, return_index=True)[1]
        votes = np.bincount(which, np.sign(fallen), len(ways))
        verdict = np.sign(votes)
        for n in np.flatnonzero(verdict == 0).tolist():
            other = place.get(int(back[first[n]]))
            if other is not None:
                verdict[n] = -verdict[other] or (1 if middle[n] >= middle[other] else -1)
        known = verdict != 0
        if not known.all():
            usual = float(np.median(middle[known])) if known.any() else float("-inf")
            verdict[~known] = np.where(middle[~known] >= usual, 1, -1)
        result: Mask = verdict[which] > 0
        return result

    # --------------------------------------------------------------------------------------------------- one way

    def _one_way(self, to_b: bool, clock: Clock) -> tuple[OneWay | None, int]:
        mine = self._to_b if to_b else ~self._to_b
        near, far = self._sides(mine, to_b)
        delay = self._delays(mine, clock, to_b)
        on_near, on_far = (self._on_path(side, to_b) for side in (near, far))
        usual = float(np.median(delay)) if len(delay) else 0.0
        lacking = np.flatnonzero(on_near & ~near.matched)
        # A copy of what arrived, taken twice by the first capture, was not lost.
        numbered = near.packets.table["ip_id"][lacking] > 0
        lacking = lacking[~(numbered & np.isin(near.identity[lacking], near.identity[near.rows]))]
        surplus = np.flatnonzero(on_far & ~far.matched)
        whole, joined = resegmented(near.packets.table, near.flow, lacking, far.packets.table, far.flow, surplus)
        unanswered = repeated(near.packets.table, near.flow)
        sent_by_far = np.flatnonzero(~near.matched & np.isin(way_back(near.packets), near.ways[lacking]))
        lost, unjudged = self._within(lacking[~whole], near, far, clock, usual, unanswered, sent_by_far)
        pieces, surplus = surplus[joined], surplus[~joined]
        copied = np.isin(far.identity[surplus], far.identity[far.rows])
        resets = far.packets.table["control"] & L.RST > 0
        strange, _ = self._within(surplus[~copied], far, near, clock, -usual, resets, surplus[~copied])
        reset = resets[strange]
        if not len(near.rows) and not len(lost):
            return None, len(unjudged)
        late = _overtaken(near, far)
        told = len(delay) > 0 and not clock.changed_ns
        statistics_ms = statistics(np.maximum(delay, 0.0) / 1e6) if told else None
        return (
            OneWay(
                sender=near.end,
                hosts=_hosts(near.packets, np.concatenate([near.rows, lost]), "source"),
                peers=_hosts(near.packets, np.concatenate([near.rows, lost]), "destination"),
                arrived=len(near.rows) + int(whole.sum()),
                lost=_frames(near, lost),
                lost_before=_lost(near, "lost_upstream", on_near),
                lost_after=_lost(far, "lost_downstream", on_far),
                copied=_frames(far, surplus[copied]),
                reordered=_frames(far, late),
                resets_injected=_frames(far, strange[reset]),
                appeared=_frames(far, strange[~reset]),
                other_pieces=int(whole.sum()),
                delay_ms=statistics_ms,
                hops=_hops(near, far) if len(near.rows) else None,
                rewritten=rewrites(near.packets, near.rows, far.packets, far.rows),
                size_limit=_size_limit(
                    near.packets.table["size"][lost],
                    np.concatenate([near.packets.table["size"][near.rows], far.packets.table["size"][pieces]]),
                ),
            ),
            len(unjudged),
        )

    def _sides(self, mine: Mask, to_b: bool) -> tuple[_Side, _Side]:
        found = self._found
        sides = []
        for end, packets, rows, identity, flow, ways, analysis in (
            ("A", self._a, found.a, found.a_identity, found.a_flow, self._a_way, self._analyses[0]),
            ("B", self._b, found.b, found.b_identity, found.b_flow, self._b_way, self._analyses[1]),
        ):
            matched = np.zeros(len(packets), bool)
            matched[rows] = True
            which: End = "A" if end == "A" else "B"
            sides.append(_Side(which, packets, rows[mine], matched, identity, flow, ways, analysis))
        return (sides[0], sides[1]) if to_b else (sides[1], sides[0])

    def _delays(self, mine: Mask, clock: Clock, to_b: bool) -> NDArray[np.float64]:
        offset = clock.offset_at(self._a.table["time"][self._found.a[mine]])
        delay = self._difference[mine] - offset
        result: NDArray[np.float64] = delay if to_b else -delay
        return result

    def _on_path(self, side: _Side, to_b: bool) -> Mask:
        """Return packets of this direction between hosts with at least one packet in both captures."""
        back = self._a_back if side.end == "A" else self._b_back
        rows = self._found.a if side.end == "A" else self._found.b
        this = self._to_b if to_b else ~self._to_b
        mine = np.unique(side.ways[rows[this]])
        theirs = np.unique(back[rows[~this]])  # what only ever came back must have been asked for
        result: Mask = np.isin(side.ways, mine) | np.isin(side.ways, theirs)
        return result

    def _within(
        self, rows: Rows, seen: _Side, other: _Side, clock: Clock, later: float, telling: Mask, sent: Rows
    ) -> tuple[Rows, Rows]:
        """Return the rows during which the other capture ran, and the others.

        It ran from its first packet to its last, and between packets of this way that both hold. Beyond them it may
        have stopped, or had nothing to record: `telling` packets show the latter, unless its own side `sent` then.
        """
        table, ours, theirs = seen.packets.table, seen.packets.table["time"], other.packets.table["time"]
        offset = clock.offset_at(ours[rows])
        expected = ours[rows] + (offset if seen.end == "A" else -offset) + later
        begin, end = int(theirs.min()), int(theirs.max())
        shift = float(clock.offset_ns if seen.end == "A" else -clock.offset_ns)
        missing = ours[sent[table["control"][sent] & L.RST == 0]] + shift
        first = begin if (missing < begin).any() else begin - _SILENCE_NS
        last = end if (missing > end).any() else end + _SILENCE_NS
        doubt = clock.changed_ns / 2
        inside = (expected - doubt >= begin) & (expected + doubt <= end)
        if len(seen.rows):
            inside |= (ours[rows] >= ours[seen.rows].min()) & (ours[rows] <= ours[seen.rows].max())
        inside |= telling[rows] & (expected - doubt >= first) & (expected + doubt <= last)
        return rows[inside], rows[~inside]


def way_back(packets: Packets) -> Ids:
    return hash_columns(packets.table["destination"], packets.table["source"])


def _medians(which: Rows, values: Array, groups: int) -> NDArray[np.float64]:
    order = np.lexsort((values, which))
    ends = np.cumsum(np.bincount(which, minlength=groups))
    starts = np.r_[0, ends[:-1]]
    result: NDArray[np.float64] = values[order[(starts + ends - 1) // 2]].astype(np.float64)
    return result


def _overtaken(near: _Side, far: _Side) -> Rows:
    """Return rows of the far end that arrived after a packet of their flow that was sent later (RFC 4737)."""
    flow = near.flow[near.rows]
    order = np.lexsort((far.rows, flow))
    left = near.rows[order].astype(np.int64)
    group = np.cumsum(np.r_[0, flow[order][1:] != flow[order][:-1]]) if len(order) else order
    left = left + group * (len(near.packets) + 1)
    late = np.flatnonzero(np.maximum.accumulate(left) > left) if len(left) else order
    return np.sort(far.rows[order[late]])


def _hops(near: _Side, far: _Side) -> int:
    fallen = near.packets.table["ttl"][near.rows].astype(np.int64) - far.packets.table["ttl"][far.rows]
    return int(np.median(fallen))


def _frames(side: _Side, rows: Rows) -> Occurrences:
    return Occurrences(len(rows), tuple(sorted(side.packets.table["frame"][rows].tolist())[:SAMPLE_FRAMES]))


def _size_limit(lost: Array, arrived: Array) -> tuple[int, int] | None:
    """Return the largest size that arrived and the smallest lost, if all large packets are lost and hardly any other
    is: by chance, loss takes packets of every size."""
    if not len(arrived):
        return None
    limit = int(arrived.max())
    large = lost[lost > limit]
    chance = len(lost) - len(large)
    if len(large) < _FEWEST_LARGE or int(large.min()) < _LARGE_BYTES or chance > _SMALL_LOST * len(arrived):
        return None
    return limit, int(large.min())


def _hosts(packets: Packets, rows: Rows, column: str) -> tuple[str, ...]:
    """Return the addresses in a column, most packets first."""
    numbers, counts = np.unique(packets.table[column][rows], return_counts=True)
    return tuple(packets.address(number) for number in numbers[np.argsort(-counts, kind="stable")][:3].tolist())


def _lost(side: _Side, what: str, on_path: Mask) -> Occurrences:
    """Return segments that this end's own analysis counts as lost, for flows of this direction."""
    if side.analysis.tcp is None:
        return NOTHING
    table = side.packets.table[on_path]
    pairs = np.unique(np.stack([table["source"], table["destination"]]), axis=1).T.tolist()
    hosts = {(side.packets.address(source), side.packets.address(destination)) for source, destination in pairs}
    totals = side.analysis.tcp.totals
    if not getattr(totals, what):
        return NOTHING
    found = [
        getattr(sender, what)
        for stream in side.analysis.tcp.streams
        for sender, receiver in ((stream.client, stream.server), (stream.server, stream.client))
        if (sender.endpoint.address, receiver.endpoint.address) in hosts
    ]
    return _together(found)


def _together(found: Iterable[Occurrences]) -> Occurrences:
    found = [each for each in found if each]
    frames = sorted(frame for each in found for frame in each.frames)
    return Occurrences(sum(each.count for each in found), tuple(frames[:SAMPLE_FRAMES]))


def _nothing_arrived(a: Packets, b: Packets, names: tuple[str, str]) -> TwoEnds:
    """Return the result without common packets: what each end sent to the other's own address while the other capture
    ran, by clocks that cannot be compared, was lost."""
    ways = []
    for end, packets, other in (("A", a, b), ("B", b, a)):
        peer = _own_address(other)
        time, theirs = packets.table["time"], other.table["time"]
        if peer is None or not len(theirs):
            continue
        both_ran = (time >= theirs.min()) & (time <= theirs.max())
        lost = np.flatnonzero((packets.table["destination"] == peer) & both_ran)
        if not len(lost):
            continue
        frames = tuple(packets.table["frame"][lost[:SAMPLE_FRAMES]].tolist())
        ways.append(
            OneWay(
                sender="A" if end == "A" else "B", hosts=_hosts(packets, lost, "source"),
                peers=_hosts(packets, lost, "destination"), arrived=0,
                lost=Occurrences(len(lost), frames), lost_before=NOTHING, lost_after=NOTHING, copied=NOTHING,
                reordered=NOTHING, resets_injected=NOTHING, appeared=NOTHING, other_pieces=0, delay_ms=None,
                hops=None, rewritten=(),
            )
        )  # fmt: skip
    return TwoEnds(*names, 0, None, None, tuple(ways), 0)


def _own_address(packets: Packets) -> int | None:
    """Return the address of the capturing host: the one that sends most packets with an initial TTL."""
    table = packets.table
    if not len(table):
        return None
    fresh = np.isin(table["ttl"], _INITIAL_TTLS)
    numbers, counts = np.unique(table["source"][fresh if fresh.any() else ~fresh], return_counts=True)
    return int(numbers[np.argmax(counts)])
