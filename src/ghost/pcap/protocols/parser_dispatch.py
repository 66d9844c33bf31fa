"""Packets that a parser reads in full: copied when their batch is decoded, parsed once their streams are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Kernel, Vector
from ghost.pcap.file.capture_reader import Batch
from ghost.pcap.kernels.parser_selection import C_ROW, C_START, C_STOP, COLUMNS, sort_marked
from ghost.pcap.protocols.application_readers import Applications, Packets, each_one
from ghost.pcap.protocols.arp_tracker import ArpTracker
from ghost.pcap.protocols.icmp_tracker import IcmpTracker

_FIRST_ROOM = 1024


class Marked(NamedTuple):
    """Marked packets, grouped by reader."""

    columns: Array
    """As `marks` names them."""
    counts: list[int]
    """How many there are for each reader."""
    messages: list[bytes]


class Marker:
    """Selects the marked packets of batches."""

    def __init__(self) -> None:
        self._room = _FIRST_ROOM
        self._table = np.empty(COLUMNS * _FIRST_ROOM, np.int64)
        self._counts = np.zeros(L.READ_MARKS, np.int64)

    def marked(self, vector: Vector, kernels: Kernel, batch: Batch) -> Marked:
        """Return the marked packets of a decoded batch."""
        while True:
            self._counts[:] = 0
            total = kernels(sort_marked)(vector(batch.rows), batch.count, vector(self._counts), vector(self._table))
            if total <= self._room:
                break
            self._room = 2 * total
            self._table = np.empty(COLUMNS * self._room, np.int64)
        columns = self._table.reshape(COLUMNS, self._room)[:, :total]
        whole = batch.buffer.data
        spans = zip(columns[C_START].tolist(), columns[C_STOP].tolist(), strict=True)
        return Marked(columns[: C_ROW + 1].copy(), self._counts.tolist(), [whole[a:b].tobytes() for a, b in spans])


@dataclass(slots=True)
class Parsers:
    """ARP, ICMP and the application protocols; each reads its packets in file order."""

    arp: ArpTracker
    icmp: IcmpTracker
    applications: Applications
    unreadable: int = 0

    def take(self, marked: Marked) -> None:
        """Packets with the number of their stream in the whole capture."""
        if not marked.messages:
            return
        packets = Packets._make([*marked.columns[:C_ROW].tolist(), marked.messages])
        # One protocol after the other: their readers know nothing of each other, and each stays warm.
        begin = 0
        for mark, count in enumerate(marked.counts):
            if count:
                self._read(mark, packets.part(begin, begin + count))
                begin += count

    def _read(self, mark: int, packets: Packets) -> None:
        if mark == L.MARK_ARP:
            for read in map(self.arp.packet, packets.messages, packets.frames, packets.times):
                self.unreadable += not read
        elif mark == L.MARK_ICMP:
            versions = [6 if each == L.MARK_ICMP6 else 4 for each in packets.marks]
            each_one(self.icmp.packet, versions, packets.messages, packets.lengths, packets.sources,
                     packets.destinations, packets.frames, packets.times, packets.sequences)  # fmt: skip
        else:
            self.applications.take(mark, packets)
