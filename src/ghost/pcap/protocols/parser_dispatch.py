"""Packets that a parser reads in full: copied when their batch is decoded, parsed once their streams are known.

Each parser keeps its own bounded state, and knows nothing of the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Kernel, Vector
from ghost.pcap.file.capture_reader import Batch
from ghost.pcap.kernels.parser_selection import C_ROW, C_START, C_STOP, COLUMNS, sort_marked
from ghost.pcap.protocols.arp_tracker import ArpTracker
from ghost.pcap.protocols.dhcp_tracker import DhcpTracker
from ghost.pcap.protocols.dns_tracker import DnsTracker
from ghost.pcap.protocols.http_tracker import HttpTracker
from ghost.pcap.protocols.icmp_tracker import IcmpTracker
from ghost.pcap.protocols.tls_tracker import TlsTracker
from ghost.pcap.tcp.stream_endings import Endings

_FIRST_ROOM = 1024


class Marked(NamedTuple):
    """Marked packets, grouped by reader."""

    columns: Array
    """As `parser_selection` names them."""
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


class _Packets(NamedTuple):
    """Marked packets by column, in the order of `marks`; plain integers are fastest for the interpreter."""

    marks: list[int]
    sources: list[int]
    source_ports: list[int]
    destinations: list[int]
    destination_ports: list[int]
    sequences: list[int]
    acknowledged: list[int]
    lengths: list[int]
    frames: list[int]
    times: list[int]
    streams: list[int]
    senders: list[int]
    """Endpoints: address id << 16 | port."""
    receivers: list[int]
    messages: list[bytes]


class Parsers:
    """ARP, ICMP and the application protocols; each reads its packets in file order."""

    def __init__(self) -> None:
        self._arp, self._icmp = ArpTracker(), IcmpTracker()
        self._dns, self._tls, self._http, self._dhcp = DnsTracker(), TlsTracker(), HttpTracker(), DhcpTracker()
        self.unreadable = 0

    def take(self, marked: Marked) -> None:
        """Packets with the number of their stream in the whole capture."""
        if not marked.messages:
            return
        columns = [*marked.columns[:C_ROW].tolist(), marked.messages]
        # One protocol after the other: each parser stays warm.
        begin = 0
        for mark, count in enumerate(marked.counts):
            if count:
                self._read(mark, _Packets._make(column[begin : begin + count] for column in columns))
                begin += count

    def _read(self, mark: int, packets: _Packets) -> None:
        if mark == L.MARK_ARP:
            self.unreadable += [*map(self._arp.packet, packets.messages, packets.frames, packets.times)].count(False)
            return
        if mark == L.MARK_ICMP:
            versions = [6 if each == L.MARK_ICMP6 else 4 for each in packets.marks]
            _each(self._icmp.packet, versions, packets.messages, packets.sources,
                  packets.destinations, packets.frames, packets.times, packets.sequences)  # fmt: skip
            return
        if b"" in packets.messages:
            packets = _Packets._make(list(compress(column, packets.messages)) for column in packets)
        marks, messages, frames, times = packets.marks, packets.messages, packets.frames, packets.times
        if mark == L.MARK_DNS:
            _each(self._dns.packet, marks, messages, packets.sources, packets.source_ports, packets.destinations,
                  packets.destination_ports, frames, times, packets.sequences)  # fmt: skip
        elif mark == L.MARK_DHCP:
            _each(self._dhcp.packet, marks, messages, frames, times)
        else:
            tracker = self._tls if mark == L.MARK_TLS else self._http
            ends = zip(packets.senders, packets.receivers, strict=True)
            _each(tracker.packet, packets.streams, ends, packets.sequences, packets.acknowledged, messages,
                  packets.lengths, frames, times)  # fmt: skip

    def server_names(self) -> dict[int, str]:
        """Return server names used by clients, by stream number."""
        return self._http.server_names() | self._tls.server_names()

    def sections(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> dict[str, Any]:
        """Return the sections of `Analysis` that these protocols fill, by name."""
        return {
            "arp": self._arp.section(),
            "icmp": self._icmp.section(address),
            "dns": self._dns.section(address, capture_end_ns),
            "tls": self._tls.section(address, ending, capture_end_ns),
            "http": self._http.section(address, ending, capture_end_ns),
            "dhcp": self._dhcp.section(capture_end_ns),
        }


def _each(take: Callable[..., object], *columns: Iterable[object]) -> None:
    """Call `take` with each packet's values."""
    deque(map(take, *columns), maxlen=0)
