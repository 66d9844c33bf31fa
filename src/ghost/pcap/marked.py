"""Packets that a parser reads in full: cut out of a batch when it is decoded, parsed once their streams are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ghost.pcap.applications import Applications
from ghost.pcap.arp import ArpTracker
from ghost.pcap.icmp import IcmpTracker
from ghost.pcap.layout import (
    DESTINATION,
    END,
    FRAME,
    LENGTH,
    MARK,
    MARK_ARP,
    MARK_ICMP,
    MARK_ICMP6,
    PACKET,
    PAYLOAD,
    SOURCE,
    TIME,
    TRANSPORT,
)
from ghost.pcap.read import Batch
from ghost.pcap.vectors import Array

_MOST_ICMP = 576
"""Of an ICMP message, what holds every header that an error may quote."""


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
    whole = memoryview(batch.buffer)  # type: ignore[arg-type]  # an array is a buffer
    return Marked(where, [bytes(whole[a:b]) for a, b in zip(start.tolist(), stop.tolist(), strict=True)])


@dataclass(slots=True)
class Parsers:
    """ARP, ICMP and the application protocols; they take packets in the order of the file."""

    arp: ArpTracker
    icmp: IcmpTracker
    applications: Applications
    unreadable: int = 0

    def take(self, rows: Array, messages: list[bytes]) -> None:
        """Packets with all their columns, the number of their stream in the whole capture among them."""
        for row, message in zip(rows.tolist(), messages, strict=True):
            mark = row[MARK]
            if mark == MARK_ARP:
                self.unreadable += not self.arp.packet(message, row[FRAME], row[TIME])
            elif mark == MARK_ICMP:
                self.icmp.packet(4, message, row[LENGTH], row[SOURCE], row[DESTINATION], row[FRAME], row[TIME])
            elif mark == MARK_ICMP6:
                self.icmp.packet(6, message, row[LENGTH], row[SOURCE], row[DESTINATION], row[FRAME], row[TIME])
            elif row[LENGTH]:
                self.applications.packet(row, message)
