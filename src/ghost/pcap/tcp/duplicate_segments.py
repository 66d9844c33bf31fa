"""Distinguishes copies of a packet from retransmissions."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, EventLog, PacketRows, SideTable, StreamTable
from ghost.pcap.tcp.scoreboard import note

_TWO_TICKS_NS = 2_000_000
"""A timer of a sender waits for a round trip and two ticks at the least (RFC 6298, RFC 8985)."""


def is_copy(p: int, stream: int, sender: int, rows: PacketRows, streams: StreamTable, sides: SideTable) -> bool:
    """Return whether a packet that equals an earlier one is a copy and no retransmission.

    Without an IP id the time decides: a sender repeats after a timer, or after a round trip and duplicate ACKs.
    """
    t = stream * L.STREAM
    f = (stream * 2 + sender) * L.SIDE
    r = (stream * 2 + 1 - sender) * L.SIDE
    ago = abs(rows[p + L.DUPLICATE])
    if ago > 1:
        there = streams[t + L.S_TO_SERVER]
        back = streams[t + L.S_TO_CLIENT]
        round_trip = sides[f + L.D_MIN_RTT]
        if there >= 0 and back >= 0:
            # The first packets of a connection may be slow: addresses are resolved, paths set up.
            whole = (
                round_trip + sides[r + L.D_MIN_RTT] if round_trip >= 0 and sides[r + L.D_MIN_RTT] >= 0 else there + back
            )
            round_trip = min(whole, there + back)
        # What a timer sends again comes later, and has another time or IP id.
        timed = rows[p + L.TIMESTAMP] == 0 and rows[p + L.IP_ID] == 0 and ago >= max(round_trip, 0) + _TWO_TICKS_NS
        unasked = sides[r + L.D_PACKETS] > 0 and sides[r + L.D_SAME_ACK_TIME] < rows[p + L.TIME] - ago and not timed
        if rows[p + L.CONTROL] & L.SYN or unasked or ago < round_trip - round_trip // 8:
            rows[p + L.DUPLICATE] = 1
    return rows[p + L.DUPLICATE] == 1


def note_copy(
    p: int, side: int, flags: int, rows: PacketRows, sides: SideTable, events: EventLog, counts: Counters
) -> None:
    """Count a copy, and the flags it shares with a retransmission or a duplicate ACK."""
    frame = rows[p + L.FRAME]
    if rows[p + L.LENGTH]:
        note(L.E_COPY, side, frame, sides, events, counts)
    if flags & (1 << L.E_RETRANSMISSION):
        note(L.E_COPY_RETRANSMISSION, side, frame, sides, events, counts)
    if flags & (1 << L.E_RTO):
        note(L.E_COPY_RTO, side, frame, sides, events, counts)
    if flags & (1 << L.E_DUPLICATE_ACK):
        note(L.E_COPY_ACK, side, frame, sides, events, counts)


KERNELS = (
    is_copy,
    note_copy,
)
