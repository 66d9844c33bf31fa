"""The table of TCP streams by their endpoints."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, HashSlots, PacketRows, SideTable, StreamKeys, StreamTable
from ghost.pcap.kernels.flow_hash import hash_endpoints


def open_stream(
    low: int, high: int, sender: int, p: int, rows: PacketRows, keys: StreamKeys, streams: StreamTable,
    sides: SideTable, counts: Counters,
) -> int:  # fmt: skip
    """Add a stream and its two sides; return its row. Without a SYN the lower port is the server's, if it is well
    known."""
    number, stream = counts[L.N_STREAMS], counts[L.N_ROWS]
    counts[L.N_STREAMS], counts[L.N_ROWS] = number + 1, stream + 1
    k = number * L.KEY
    keys[k + L.K_LOW] = low
    keys[k + L.K_HIGH] = high
    keys[k + L.K_FIRST_FRAME] = rows[p + L.FRAME]
    keys[k + L.K_ROW] = stream
    t = stream * L.STREAM
    streams[t + L.S_NUMBER] = number
    streams[t + L.S_LOW] = low
    streams[t + L.S_HIGH] = high
    streams[t + L.S_CLIENT] = sender
    streams[t + L.S_KNOWN_BY] = 3
    low_port = low & 0xFFFF
    high_port = high & 0xFFFF
    if (low_port < 1024) != (high_port < 1024) or (low_port < 32768) != (high_port < 32768):
        streams[t + L.S_CLIENT] = 0 if high_port < low_port else 1
        streams[t + L.S_KNOWN_BY] = 2
    streams[t + L.S_FIRST_TIME] = rows[p + L.TIME]
    streams[t + L.S_LAST_TIME] = rows[p + L.TIME]
    streams[t + L.S_FIRST_FRAME] = rows[p + L.FRAME]
    streams[t + L.S_SYN_TIME] = -1
    streams[t + L.S_INITIAL_RTT] = -1
    streams[t + L.S_CLIENT_SYN_TIME] = -1
    streams[t + L.S_SYN_ACK_TIME] = -1
    streams[t + L.S_TO_SERVER] = -1
    streams[t + L.S_TO_CLIENT] = -1
    streams[t + L.S_GREETING] = -1
    for side in range(stream * 2, stream * 2 + 2):
        s = side * L.SIDE
        sides[s + L.D_BASE] = -1
        sides[s + L.D_NEXT] = -1
        sides[s + L.D_SEEN_END] = -1
        sides[s + L.D_ACK] = -1
        sides[s + L.D_WINDOW] = -1
        sides[s + L.D_SCALE] = -1
        sides[s + L.D_TTL] = -1
        sides[s + L.D_TTL_MIN] = -1
        sides[s + L.D_TTL_MAX] = -1
        sides[s + L.D_RST_TTL] = -1
        sides[s + L.D_SMALLEST_WINDOW] = -1
        sides[s + L.D_MIN_RTT] = -1
        sides[s + L.D_HEAD] = -1
        sides[s + L.D_TAIL] = -1
        sides[s + L.D_HOLES] = -1
        sides[s + L.D_DOUBTED] = -1
        sides[s + L.D_OFFERED_SCALE] = -1
    return stream


def slot_of(low: int, high: int, slots: HashSlots, keys: StreamKeys, counts: Counters) -> int:
    """Return the slot of the stream of these endpoints, or its free slot."""
    mask = len(slots) - 1
    slot = hash_endpoints(low, high, counts[L.N_SEED]) & mask
    while slots[slot] != 0:
        k = (slots[slot] - 1) * L.KEY
        if keys[k + L.K_LOW] == low and keys[k + L.K_HIGH] == high:
            break
        slot = (slot + 1) & mask
    return slot


def place_streams(slots: HashSlots, keys: StreamKeys, counts: Counters) -> None:
    """Fill an empty slot table; the latest stream of the same endpoints wins."""
    for number in range(counts[L.N_STREAMS]):
        k = number * L.KEY
        slots[slot_of(keys[k + L.K_LOW], keys[k + L.K_HIGH], slots, keys, counts)] = number + 1


KERNELS = (
    open_stream,
    slot_of,
    place_streams,
)
