"""Everything that kernels do with a batch, in one call.

A call leaves the interpreter to other threads once, however many kernels it runs; and packets go through all of them
a few at a time, while their rows lie in the processor's nearest cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import (
    AddressTable,
    Array,
    BinTable,
    BucketEdges,
    ConversationTable,
    Counters,
    EventLog,
    FileBytes,
    HashSlots,
    Kernel,
    OpenHandshakes,
    PacketRows,
    PacketTotals,
    PairTable,
    RecentPackets,
    RoundTripTable,
    SampleLog,
    SegmentPool,
    SideTable,
    StreamKeys,
    StreamTable,
    Vector,
)
from ghost.pcap.kernels.decoder import decode
from ghost.pcap.kernels.packet_totals import count_packets
from ghost.pcap.kernels.time_bins import fill_bins
from ghost.pcap.protocols.udp_conversations import count_conversations
from ghost.pcap.tcp.state_machine import track

_DECODE, _COUNT, _TRACK, _CONVERSE, _BINS, _ALL = range(6)
_TOUCHED = _ALL
_AT_ONCE = 128
"""Packets; their rows take 36 KB."""


def touch_headers(buf: FileBytes, rows: PacketRows, begin: int, count: int) -> int:
    """Prefetch the headers of rows `begin` to `count`, many at a time. The result is meaningless but must be used."""
    seen = 0
    for n in range(begin, count):
        p = n * L.PACKET
        first = rows[p + L.OFFSET]
        last = first + rows[p + L.CAPTURED] - 1
        seen |= buf[min(first + 40, last)] | buf[min(first + 90, last)]
    return seen


def pass_packets(
    buf: FileBytes, rows: PacketRows, count: int, done: Counters,
    addresses: AddressTable, address_slots: HashSlots, address_counters: Counters, recent: RecentPackets,
    opened: OpenHandshakes, totals: PacketTotals, slots: HashSlots, keys: StreamKeys, streams: StreamTable,
    sides: SideTable, pool: SegmentPool, events: EventLog, samples: SampleLog, counts: Counters, udp_slots: HashSlots,
    conversations: ConversationTable, udp_counts: Counters, bins: BinTable, trips: RoundTripTable, edges: BucketEdges,
    pairs: PairTable, bin_counts: Counters,
) -> int:  # fmt: skip
    """Take packets through the kernels, of which each has `done` so many; returns which one wants room, or how many
    kernels there are."""
    end = 0
    while end < count:
        end = min(end + _AT_ONCE, count)
        if done[_DECODE] < end:
            done[_TOUCHED] = touch_headers(buf, rows, done[_DECODE], end)
            done[_DECODE] = decode(
                buf, rows, done[_DECODE], end, addresses, address_slots, address_counters, recent, opened
            )
            if done[_DECODE] < end:
                return _DECODE
        if done[_COUNT] < end:
            count_packets(rows, done[_COUNT], end, totals)
            done[_COUNT] = end
        if done[_TRACK] < end:
            done[_TRACK] = track(rows, done[_TRACK], end, slots, keys, streams, sides, pool, events, samples, counts)
            if done[_TRACK] < end:
                return _TRACK
        if done[_CONVERSE] < end:
            done[_CONVERSE] = count_conversations(rows, done[_CONVERSE], end, udp_slots, conversations, udp_counts)
            if done[_CONVERSE] < end:
                return _CONVERSE
        if done[_BINS] < end:
            done[_BINS] = fill_bins(rows, done[_BINS], end, bins, trips, edges, pairs, bin_counts)
            if done[_BINS] < end:
                return _BINS
    return _ALL


KERNELS = (touch_headers, pass_packets)


class Stage(Protocol):
    """Owner of the state of one kernel."""

    def arrays(self) -> Sequence[Array]:
        """The state arrays, in the order of the kernel's parameters."""
        ...

    def make_room(self) -> None:
        """Make room after the kernel stopped: empty its logs or grow its tables."""
        ...


class Passes:
    """Takes batches through the stages, in order: `decode`, `count_packets`, `track`, `count_conversations`,
    `fill_bins`."""

    def __init__(self, *stages: Stage) -> None:
        self._stages = stages

    def take(self, vector: Vector, kernels: Kernel, buffer: FileBytes, rows: PacketRows, count: int) -> None:
        done = np.zeros(_TOUCHED + 1, np.int64)
        while True:
            arrays = [array for stage in self._stages for array in stage.arrays()]
            stopped = kernels(pass_packets)(buffer, rows, count, vector(done), *map(vector, arrays))
            if stopped == _ALL:
                return
            self._stages[stopped].make_room()
