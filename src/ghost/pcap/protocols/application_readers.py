"""Readers of the application protocols behind one interface; the engine passes only the marked packets.

Each reader keeps its own bounded state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any, NamedTuple

from ghost.pcap import layout as L
from ghost.pcap.protocols.dhcp_tracker import DhcpTracker
from ghost.pcap.protocols.dns_tracker import DnsTracker
from ghost.pcap.protocols.http_tracker import HttpTracker
from ghost.pcap.protocols.tls_tracker import TlsTracker
from ghost.pcap.tcp.stream_endings import Endings


class Packets(NamedTuple):
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

    def part(self, begin: int, end: int) -> Packets:
        return Packets._make(column[begin:end] for column in self)

    def filled(self) -> Packets:
        """Return which packets have captured payload."""
        return Packets._make(list(compress(column, self.messages)) for column in self)

    def ends(self) -> Iterator[tuple[int, int]]:
        return zip(self.senders, self.receivers, strict=True)


def each_one(take: Callable[..., object], *columns: Iterable[object]) -> None:
    """Call `take` with each packet's values."""
    deque(map(take, *columns), maxlen=0)


class Applications:
    def __init__(self) -> None:
        self._dns, self._tls, self._http = DnsTracker(), TlsTracker(), HttpTracker()
        self._dhcp = DhcpTracker()

    def take(self, mark: int, packets: Packets) -> None:
        """Read packets of one reader in file order: their columns and captured payloads."""
        if b"" in packets.messages:
            packets = packets.filled()
        marks, messages, frames, times = packets.marks, packets.messages, packets.frames, packets.times
        if mark in (L.MARK_TLS, L.MARK_HTTP):
            reader = self._tls.packet if mark == L.MARK_TLS else self._http.packet
            each_one(
                reader,
                packets.streams,
                packets.ends(),
                packets.sequences,
                packets.acknowledged,
                messages,
                packets.lengths,
                frames,
                times,
            )
        elif mark == L.MARK_DNS:
            each_one(
                self._dns.packet,
                marks,
                messages,
                packets.sources,
                packets.source_ports,
                packets.destinations,
                packets.destination_ports,
                frames,
                times,
                packets.sequences,
            )
        elif mark == L.MARK_DHCP:
            each_one(self._dhcp.packet, marks, messages, frames, times)

    def server_names(self) -> dict[int, str]:
        """Return server names used by clients, by stream number."""
        return self._http.server_names() | self._tls.server_names()

    def sections(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> dict[str, Any]:
        """Return the sections of `Analysis` that these protocols fill, by name."""
        return {
            "dns": self._dns.section(address, capture_end_ns),
            "tls": self._tls.section(address, ending, capture_end_ns),
            "http": self._http.section(address, ending, capture_end_ns),
            "dhcp": self._dhcp.section(capture_end_ns),
        }
