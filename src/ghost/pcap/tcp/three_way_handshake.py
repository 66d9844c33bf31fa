"""The TCP three-way handshake."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, EventLog, PacketRows, SideTable, StreamTable
from ghost.pcap.tcp.scoreboard import note


def handshake(
    p: int,
    stream: int,
    sender: int,
    rows: PacketRows,
    streams: StreamTable,
    sides: SideTable,
    events: EventLog,
    counts: Counters,
) -> None:
    """Follow SYN, SYN-ACK and the client's ACK."""
    t = stream * L.STREAM
    side = stream * 2 + sender
    peer = stream * 2 + 1 - sender
    f = side * L.SIDE
    r = peer * L.SIDE
    control = rows[p + L.CONTROL]
    now = rows[p + L.TIME]
    if control & L.SYN:
        offered = rows[p + L.SCALE] - 1
        sides[f + L.D_OFFERED_SCALE] = offered
        sides[f + L.D_SCALE] = offered if offered >= 0 else -2
        if rows[p + L.MSS]:
            sides[f + L.D_MSS] = rows[p + L.MSS]
        if rows[p + L.SACK_PERMITTED]:
            sides[f + L.D_SACK] = 1
        if control & L.ACK:
            if sides[r + L.D_OFFERED_SCALE] < 0 or offered < 0:
                # RFC 7323: scaling is on only if both offer it.
                sides[f + L.D_SCALE] = -2
                if sides[r + L.D_SCALE] != -1:
                    sides[r + L.D_SCALE] = -2
            if streams[t + L.S_KNOWN_BY] > 1:
                streams[t + L.S_CLIENT] = 1 - sender
                streams[t + L.S_KNOWN_BY] = 1
            if sides[f + L.D_EVENTS + L.E_SYN_ACK] and not rows[p + L.DUPLICATE]:
                streams[t + L.S_SYN_ACK_REPEATS] = streams[t + L.S_SYN_ACK_REPEATS] + 1
            if streams[t + L.S_SYN_ACK_TIME] < 0 and streams[t + L.S_CLIENT_SYN_TIME] >= 0:
                streams[t + L.S_TO_SERVER] = max(now - streams[t + L.S_CLIENT_SYN_TIME], 0)
            if not streams[t + L.S_COMPLETED]:
                streams[t + L.S_SYN_ACK_TIME] = now
            note(L.E_SYN_ACK, side, rows[p + L.FRAME], sides, events, counts)
        else:
            if streams[t + L.S_KNOWN_BY] > 0:
                streams[t + L.S_CLIENT] = sender
                streams[t + L.S_KNOWN_BY] = 0
            if sides[f + L.D_EVENTS + L.E_SYN] and not rows[p + L.DUPLICATE]:
                streams[t + L.S_SYN_REPEATS] = streams[t + L.S_SYN_REPEATS] + 1
            if streams[t + L.S_SYN_ACK_TIME] < 0:
                streams[t + L.S_CLIENT_SYN_TIME] = now
            streams[t + L.S_SYN_TIME] = now
            note(L.E_SYN, side, rows[p + L.FRAME], sides, events, counts)
            if offered < 0:
                sides[r + L.D_SCALE] = -2
    elif control & L.ACK:
        if streams[t + L.S_SYN_TIME] >= 0 and streams[t + L.S_INITIAL_RTT] < 0:
            streams[t + L.S_INITIAL_RTT] = max(now - streams[t + L.S_SYN_TIME], 0)
        if (
            streams[t + L.S_SYN_ACK_TIME] >= 0
            and not streams[t + L.S_COMPLETED]
            and sender == streams[t + L.S_CLIENT]
            and not control & L.RST
        ):
            streams[t + L.S_COMPLETED] = 1
            streams[t + L.S_TO_CLIENT] = max(now - streams[t + L.S_SYN_ACK_TIME], 0)


KERNELS = (handshake,)
