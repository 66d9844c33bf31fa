"""The three packets that open a connection."""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    ACK,
    CONTROL,
    D_EVENTS,
    D_MSS,
    D_OFFERED_SCALE,
    D_SACK,
    D_SCALE,
    E_SYN,
    E_SYN_ACK,
    FRAME,
    MSS,
    RST,
    S_CLIENT,
    S_CLIENT_SYN_TIME,
    S_COMPLETED,
    S_INITIAL_RTT,
    S_KNOWN_BY,
    S_SYN_ACK_REPEATS,
    S_SYN_ACK_TIME,
    S_SYN_REPEATS,
    S_SYN_TIME,
    S_TO_CLIENT,
    S_TO_SERVER,
    SACK_PERMITTED,
    SCALE,
    SIDE,
    STREAM,
    SYN,
    TIME,
    TWIN,
)
from ghost.pcap.tcp.scoreboard import note


def handshake(
    p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints, events: Ints, counts: Ints
) -> None:
    """Follow SYN, SYN-ACK and the client's ACK."""
    t = stream * STREAM
    side = stream * 2 + sender
    peer = stream * 2 + 1 - sender
    f = side * SIDE
    r = peer * SIDE
    control = rows[p + CONTROL]
    now = rows[p + TIME]
    if control & SYN:
        offered = rows[p + SCALE] - 1
        sides[f + D_OFFERED_SCALE] = offered
        sides[f + D_SCALE] = offered if offered >= 0 else -2
        if rows[p + MSS]:
            sides[f + D_MSS] = rows[p + MSS]
        if rows[p + SACK_PERMITTED]:
            sides[f + D_SACK] = 1
        if control & ACK:
            if sides[r + D_OFFERED_SCALE] < 0 or offered < 0:
                # RFC 7323: scaling is on only if both offer it.
                sides[f + D_SCALE] = -2
                if sides[r + D_SCALE] != -1:
                    sides[r + D_SCALE] = -2
            if streams[t + S_KNOWN_BY] > 1:
                streams[t + S_CLIENT] = 1 - sender
                streams[t + S_KNOWN_BY] = 1
            if sides[f + D_EVENTS + E_SYN_ACK] and not rows[p + TWIN]:
                streams[t + S_SYN_ACK_REPEATS] = streams[t + S_SYN_ACK_REPEATS] + 1
            if streams[t + S_SYN_ACK_TIME] < 0 and streams[t + S_CLIENT_SYN_TIME] >= 0:
                streams[t + S_TO_SERVER] = max(now - streams[t + S_CLIENT_SYN_TIME], 0)
            if not streams[t + S_COMPLETED]:
                streams[t + S_SYN_ACK_TIME] = now
            note(E_SYN_ACK, side, rows[p + FRAME], sides, events, counts)
        else:
            if streams[t + S_KNOWN_BY] > 0:
                streams[t + S_CLIENT] = sender
                streams[t + S_KNOWN_BY] = 0
            if sides[f + D_EVENTS + E_SYN] and not rows[p + TWIN]:
                streams[t + S_SYN_REPEATS] = streams[t + S_SYN_REPEATS] + 1
            if streams[t + S_SYN_ACK_TIME] < 0:
                streams[t + S_CLIENT_SYN_TIME] = now
            streams[t + S_SYN_TIME] = now
            note(E_SYN, side, rows[p + FRAME], sides, events, counts)
            if offered < 0:
                sides[r + D_SCALE] = -2
    elif control & ACK:
        if streams[t + S_SYN_TIME] >= 0 and streams[t + S_INITIAL_RTT] < 0:
            streams[t + S_INITIAL_RTT] = max(now - streams[t + S_SYN_TIME], 0)
        if (
            streams[t + S_SYN_ACK_TIME] >= 0
            and not streams[t + S_COMPLETED]
            and sender == streams[t + S_CLIENT]
            and not control & RST
        ):
            streams[t + S_COMPLETED] = 1
            streams[t + S_TO_CLIENT] = max(now - streams[t + S_SYN_ACK_TIME], 0)


KERNELS = (handshake,)
