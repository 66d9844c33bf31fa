"""Copies of a packet, told from repeats of its sender."""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    CONTROL,
    D_MIN_RTT,
    D_PACKETS,
    D_SAME_ACK_TIME,
    E_COPY,
    E_COPY_ACK,
    E_COPY_RETRANSMISSION,
    E_COPY_RTO,
    E_DUPLICATE_ACK,
    E_RETRANSMISSION,
    E_RTO,
    FRAME,
    IP_ID,
    LENGTH,
    S_TO_CLIENT,
    S_TO_SERVER,
    SIDE,
    STREAM,
    SYN,
    TIME,
    TIMESTAMP,
    TWIN,
)
from ghost.pcap.tcp.scoreboard import note

_TWO_TICKS_NS = 2_000_000
"""A timer of a sender waits for a round trip and two ticks at the least (RFC 6298, RFC 8985)."""


def is_copy(p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints) -> bool:
    """Whether a packet that looks like one before is that packet once more, and no repeat of its sender.

    Without an IP id that is told by time: who repeats has waited for a timer, or heard of the loss, which takes a
    round trip and duplicate ACKs of the peer.
    """
    t = stream * STREAM
    f = (stream * 2 + sender) * SIDE
    r = (stream * 2 + 1 - sender) * SIDE
    ago = abs(rows[p + TWIN])
    if ago > 1:
        there = streams[t + S_TO_SERVER]
        back = streams[t + S_TO_CLIENT]
        round_trip = sides[f + D_MIN_RTT]
        if there >= 0 and back >= 0:
            # The first packets of a connection may be slow: addresses are resolved, paths set up.
            whole = round_trip + sides[r + D_MIN_RTT] if round_trip >= 0 and sides[r + D_MIN_RTT] >= 0 else there + back
            round_trip = min(whole, there + back)
        # What a timer sends again comes later, and has another time or IP id.
        timed = rows[p + TIMESTAMP] == 0 and rows[p + IP_ID] == 0 and ago >= max(round_trip, 0) + _TWO_TICKS_NS
        unasked = sides[r + D_PACKETS] > 0 and sides[r + D_SAME_ACK_TIME] < rows[p + TIME] - ago and not timed
        if rows[p + CONTROL] & SYN or unasked or ago < round_trip - round_trip // 8:
            rows[p + TWIN] = 1
    return rows[p + TWIN] == 1


def note_copy(p: int, side: int, flags: int, rows: Ints, sides: Ints, events: Ints, counts: Ints) -> None:
    """Count a copy, and which flags it has that a repeat or a duplicate ACK would have as well."""
    frame = rows[p + FRAME]
    if rows[p + LENGTH]:
        note(E_COPY, side, frame, sides, events, counts)
    if flags & (1 << E_RETRANSMISSION):
        note(E_COPY_RETRANSMISSION, side, frame, sides, events, counts)
    if flags & (1 << E_RTO):
        note(E_COPY_RTO, side, frame, sides, events, counts)
    if flags & (1 << E_DUPLICATE_ACK):
        note(E_COPY_ACK, side, frame, sides, events, counts)


KERNELS = (
    is_copy,
    note_copy,
)
