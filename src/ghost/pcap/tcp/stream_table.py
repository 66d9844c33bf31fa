"""The table of TCP streams by their endpoints."""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.kernels.flow_hash import mixed_ends
from ghost.pcap.layout import (
    D_ACK,
    D_BASE,
    D_DOUBTED,
    D_HEAD,
    D_HOLES,
    D_MIN_RTT,
    D_NEXT,
    D_OFFERED_SCALE,
    D_RST_TTL,
    D_SCALE,
    D_SEEN_END,
    D_SMALLEST_WINDOW,
    D_TAIL,
    D_TTL,
    D_TTL_MAX,
    D_TTL_MIN,
    D_WINDOW,
    FRAME,
    N_SEED,
    N_STREAMS,
    S_CLIENT,
    S_CLIENT_SYN_TIME,
    S_FIRST_FRAME,
    S_FIRST_TIME,
    S_GREETING,
    S_HIGH,
    S_INITIAL_RTT,
    S_KNOWN_BY,
    S_LAST_TIME,
    S_LOW,
    S_SYN_ACK_TIME,
    S_SYN_TIME,
    S_TO_CLIENT,
    S_TO_SERVER,
    SIDE,
    STREAM,
    TIME,
)


def open_stream(low: int, high: int, sender: int, p: int, rows: Ints, streams: Ints, sides: Ints, counts: Ints) -> int:
    """A new stream and its two sides. Without a SYN the lower port tells the server, where one is well known."""
    stream = counts[N_STREAMS]
    counts[N_STREAMS] = stream + 1
    t = stream * STREAM
    streams[t + S_LOW] = low
    streams[t + S_HIGH] = high
    streams[t + S_CLIENT] = sender
    streams[t + S_KNOWN_BY] = 3
    low_port = low & 0xFFFF
    high_port = high & 0xFFFF
    if (low_port < 1024) != (high_port < 1024) or (low_port < 32768) != (high_port < 32768):
        streams[t + S_CLIENT] = 0 if high_port < low_port else 1
        streams[t + S_KNOWN_BY] = 2
    streams[t + S_FIRST_TIME] = rows[p + TIME]
    streams[t + S_LAST_TIME] = rows[p + TIME]
    streams[t + S_FIRST_FRAME] = rows[p + FRAME]
    streams[t + S_SYN_TIME] = -1
    streams[t + S_INITIAL_RTT] = -1
    streams[t + S_CLIENT_SYN_TIME] = -1
    streams[t + S_SYN_ACK_TIME] = -1
    streams[t + S_TO_SERVER] = -1
    streams[t + S_TO_CLIENT] = -1
    streams[t + S_GREETING] = -1
    for side in range(stream * 2, stream * 2 + 2):
        s = side * SIDE
        sides[s + D_BASE] = -1
        sides[s + D_NEXT] = -1
        sides[s + D_SEEN_END] = -1
        sides[s + D_ACK] = -1
        sides[s + D_WINDOW] = -1
        sides[s + D_SCALE] = -1
        sides[s + D_TTL] = -1
        sides[s + D_TTL_MIN] = -1
        sides[s + D_TTL_MAX] = -1
        sides[s + D_RST_TTL] = -1
        sides[s + D_SMALLEST_WINDOW] = -1
        sides[s + D_MIN_RTT] = -1
        sides[s + D_HEAD] = -1
        sides[s + D_TAIL] = -1
        sides[s + D_HOLES] = -1
        sides[s + D_DOUBTED] = -1
        sides[s + D_OFFERED_SCALE] = -1
    return stream


def slot_of(low: int, high: int, slots: Ints, streams: Ints, counts: Ints) -> int:
    """Where the stream of these endpoints is, or would be."""
    mask = len(slots) - 1
    slot = mixed_ends(low, high, counts[N_SEED]) & mask
    while slots[slot] != 0:
        t = (slots[slot] - 1) * STREAM
        if streams[t + S_LOW] == low and streams[t + S_HIGH] == high:
            break
        slot = (slot + 1) & mask
    return slot


def place_streams(slots: Ints, streams: Ints, counts: Ints) -> None:
    """Fill an empty slot table; the latest stream of the same endpoints wins."""
    for stream in range(counts[N_STREAMS]):
        t = stream * STREAM
        slots[slot_of(streams[t + S_LOW], streams[t + S_HIGH], slots, streams, counts)] = stream + 1


KERNELS = (
    open_stream,
    slot_of,
    place_streams,
)
