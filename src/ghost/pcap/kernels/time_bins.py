"""Kernel of the time series: counts each packet in its time bin and in a wider bin of its host pair."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import BinTable, BucketEdges, Counters, PacketRows, PairTable, RoundTripTable
from ghost.pcap.kernels.flow_hash import hash_endpoints

TICK_NS = 15_625
"""The finest width of a bin; 64 of them are a millisecond, so that wider bins have round widths."""
ID_BITS = 27
"""Of an address id; a pair is the sender's above the receiver's."""

# A bin of time.
B_PACKETS, B_BYTES, B_REPEATS, B_GAPS, B_DUPLICATE_ACKS, B_ZERO_WINDOWS = range(6)
BIN = 6

# A pair of hosts in a bin of its own width.
P_PAIR = 0  # + 1; 0 where the slot is free
P_PLACE, P_PACKETS, P_BYTES, P_REPEATS = 1, 2, 3, 4
PAIR = 5

# How the bins lie, and how many slots of pairs are taken.
C_SHIFT, C_FIRST, C_PAIR_SHIFT, C_PAIRS, C_SEED = range(5)
COUNTERS = 5


def bucket_of(trip: int, edges: BucketEdges) -> int:
    """Return the last bucket that begins at or below a round trip (ns)."""
    low, high = 0, len(edges)
    while high - low > 1:
        middle = (low + high) >> 1
        if edges[middle] <= trip:
            low = middle
        else:
            high = middle
    return low


def fill_bins(
    rows: PacketRows,
    begin: int,
    count: int,
    bins: BinTable,
    trips: RoundTripTable,
    edges: BucketEdges,
    pairs: PairTable,
    counts: Counters,
) -> int:
    """Count rows `begin` to `count`; returns where it stopped because half of the slots of pairs are taken."""
    slots = len(pairs) // PAIR
    shift, first, pair_shift = counts[C_SHIFT], counts[C_FIRST], counts[C_PAIR_SHIFT]
    for n in range(begin, count):
        if 2 * counts[C_PAIRS] >= slots:
            return n
        p = n * L.PACKET
        tick, wire, flags = rows[p + L.TIME] // TICK_NS, rows[p + L.WIRE], rows[p + L.FLAGS]
        repeated = (flags >> L.E_RETRANSMISSION) & 1
        at = (tick >> shift) - first
        b = at * BIN
        bins[b + B_PACKETS] = bins[b + B_PACKETS] + 1
        bins[b + B_BYTES] = bins[b + B_BYTES] + wire
        if flags:
            bins[b + B_REPEATS] = bins[b + B_REPEATS] + repeated
            bins[b + B_GAPS] = bins[b + B_GAPS] + ((flags >> L.E_LOST_SEGMENT) & 1)
            bins[b + B_DUPLICATE_ACKS] = bins[b + B_DUPLICATE_ACKS] + ((flags >> L.E_DUPLICATE_ACK) & 1)
            bins[b + B_ZERO_WINDOWS] = bins[b + B_ZERO_WINDOWS] + ((flags >> L.E_ZERO_WINDOW) & 1)
        trip = rows[p + L.ROUND_TRIP]
        if trip:
            t = at * len(edges) + bucket_of(trip, edges)
            trips[t] = trips[t] + 1
        if rows[p + L.NETWORK] >= 4:
            pair, place = ((rows[p + L.SOURCE] << ID_BITS) | rows[p + L.DESTINATION]) + 1, tick >> pair_shift
            slot = hash_endpoints(pair, place, counts[C_SEED]) & (slots - 1)
            while pairs[slot * PAIR] != 0 and (pairs[slot * PAIR] != pair or pairs[slot * PAIR + P_PLACE] != place):
                slot = (slot + 1) & (slots - 1)
            q = slot * PAIR
            if pairs[q] == 0:
                pairs[q] = pair
                pairs[q + P_PLACE] = place
                counts[C_PAIRS] = counts[C_PAIRS] + 1
            pairs[q + P_PACKETS] = pairs[q + P_PACKETS] + 1
            pairs[q + P_BYTES] = pairs[q + P_BYTES] + wire
            pairs[q + P_REPEATS] = pairs[q + P_REPEATS] + repeated
    return count


KERNELS = (bucket_of, fill_bins)
