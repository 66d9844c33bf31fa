"""Packets that a parser reads in full: cut out of a batch when it is decoded, parsed once their streams are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ghost.pcap.applications import READ_TOGETHER, Applications, Packets, each_one
from ghost.pcap.arp import ArpTracker
from ghost.pcap.icmp import IcmpTracker
from ghost.pcap.layout import (
    END,
    LENGTH,
    MARK,
    MARK_ARP,
    MARK_ICMP,
    MARK_ICMP6,
    MARKS,
    PACKET,
    PAYLOAD,
    TRANSPORT,
)
from ghost.pcap.read import Batch
from ghost.pcap.vectors import Array

_MOST_ICMP = 576
"""Of an ICMP message, what holds every header that an error may quote."""

_READER = np.arange(MARKS)
"""By mark the one that stands for all that the same reader takes."""
for _marks in (*READ_TOGETHER, (MARK_ICMP, MARK_ICMP6)):
    _READER[list(_marks)] = _marks[0]


class Marked(NamedTuple):
    where: Array
    """Which rows of the batch these are."""
    messages: list[bytes]


def marked_packets(batch: Batch) -> Marked:
    """The messages of the marked packets of a decoded batch."""
    columns = batch.rows[: batch.count * PACKET].reshape(-1, PACKET)
    where = np.flatnonzero(columns[:, MARK])
    rows = columns[where]
    mark, end, payload = rows[:, MARK], rows[:, END], rows[:, PAYLOAD]
    icmp = (mark == MARK_ICMP) | (mark == MARK_ICMP6)
    start = np.where(icmp | (mark == MARK_ARP), rows[:, TRANSPORT], payload)
    stop = np.minimum(end, payload + rows[:, LENGTH])
    stop = np.where(mark == MARK_ARP, end, np.where(icmp, np.minimum(end, start + _MOST_ICMP), stop))
    whole = batch.buffer.data
    return Marked(where, [bytes(whole[a:b]) for a, b in zip(start.tolist(), stop.tolist(), strict=True)])


@dataclass(slots=True)
class Parsers:
    """ARP, ICMP and the application protocols; each takes its packets in the order of the file."""

    arp: ArpTracker
    icmp: IcmpTracker
    applications: Applications
    unreadable: int = 0

    def take(self, rows: Array, messages: list[bytes]) -> None:
        """Packets with all their columns, the number of their stream in the whole capture among them."""
        if not messages:
            return
        # One protocol after the other: their readers know nothing of each other, and each stays warm.
        reader = _READER[rows[:, MARK]]
        order = np.argsort(reader, kind="stable")
        packets = Packets.of(rows[order], [messages[n] for n in order.tolist()])
        begin = 0
        for mark, count in enumerate(np.bincount(reader).tolist()):
            if count:
                self._read(mark, packets.part(begin, begin + count))
                begin += count

    def _read(self, mark: int, packets: Packets) -> None:
        if mark == MARK_ARP:
            for read in map(self.arp.packet, packets.messages, packets.frames, packets.times):
                self.unreadable += not read
        elif mark == MARK_ICMP:
            versions = [6 if each == MARK_ICMP6 else 4 for each in packets.marks]
            each_one(self.icmp.packet, versions, packets.messages, packets.lengths, packets.sources,
                     packets.destinations, packets.frames, packets.times)  # fmt: skip
        else:
            self.applications.take(mark, packets)
