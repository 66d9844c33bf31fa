"""The readers of application protocols: one face for the engine, which hands over only the packets that were marked.

Each reader keeps its own bounded state. Parts of a capture may be read apart: all packets between two hosts in one
part, and all of DHCP in one part, for it is broadcast. Merged, they say what the whole would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ghost.pcap.dhcp import DhcpTracker
from ghost.pcap.dns import DnsTracker
from ghost.pcap.endings import Endings
from ghost.pcap.http import HttpTracker
from ghost.pcap.layout import (
    ACKNOWLEDGED,
    DESTINATION,
    DESTINATION_PORT,
    FRAME,
    LENGTH,
    MARK,
    MARK_DHCP,
    MARK_DHCP6,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_HTTP,
    MARK_LLMNR,
    MARK_MDNS,
    MARK_NTP,
    MARK_QUIC,
    MARK_TLS,
    SEQUENCE,
    SOURCE,
    SOURCE_PORT,
    STREAM_NUMBER,
    TIME,
)
from ghost.pcap.ntp import NtpTracker
from ghost.pcap.quic import QuicTracker
from ghost.pcap.tls import TlsTracker

_DNS = (MARK_DNS, MARK_DNS_TCP, MARK_MDNS, MARK_LLMNR)


class Applications:
    def __init__(self) -> None:
        self._dns, self._tls, self._http = DnsTracker(), TlsTracker(), HttpTracker()
        self._dhcp, self._ntp, self._quic = DhcpTracker(), NtpTracker(), QuicTracker()

    def packet(self, row: list[int], payload: bytes) -> None:
        """Take in one marked packet: its columns and what was captured of its payload."""
        mark, frame, now = row[MARK], row[FRAME], row[TIME]
        if not payload:
            return
        ends = (row[SOURCE] << 16 | row[SOURCE_PORT], row[DESTINATION] << 16 | row[DESTINATION_PORT])
        if mark in (MARK_TLS, MARK_HTTP):
            reader = self._tls if mark == MARK_TLS else self._http
            reader.packet(row[STREAM_NUMBER], ends, row[SEQUENCE], row[ACKNOWLEDGED], payload, row[LENGTH], frame, now)
            return
        source, destination = row[SOURCE], row[DESTINATION]
        if mark in _DNS:
            self._dns.packet(
                mark, payload, source, row[SOURCE_PORT], destination, row[DESTINATION_PORT], frame, now, row[SEQUENCE]
            )
        elif mark in (MARK_DHCP, MARK_DHCP6):
            self._dhcp.packet(mark, payload, source, frame, now)
        elif mark == MARK_NTP:
            self._ntp.packet(payload, (source, row[SOURCE_PORT], destination, row[DESTINATION_PORT]), frame, now)
        elif mark == MARK_QUIC:
            self._quic.packet(payload, ends, frame, now)

    def server_names(self) -> dict[int, str]:
        """What clients called the servers of their streams, by stream number."""
        return self._http.server_names() | self._tls.server_names()

    def renumber(self, streams: Callable[[int], int]) -> None:
        """Give the streams of a part the numbers that they have in the whole capture; before parts are merged."""
        self._tls.renumber(streams)
        self._http.renumber(streams)

    def merge(self, other: Applications) -> None:
        """Take in another part of the capture, whose addresses have the same ids."""
        self._tls.merge(other._tls)
        self._http.merge(other._http)
        self._dns.merge(other._dns)
        self._dhcp.merge(other._dhcp)
        self._ntp.merge(other._ntp)
        self._quic.merge(other._quic)

    def sections(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> dict[str, Any]:
        """The sections of `Analysis` that these protocols fill, by name."""
        return {
            "dns": self._dns.section(address),
            "tls": self._tls.section(address, ending, capture_end_ns),
            "http": self._http.section(address, ending, capture_end_ns),
            "dhcp": self._dhcp.section(address, capture_end_ns),
            "ntp": self._ntp.section(address, capture_end_ns),
            "quic": self._quic.section(address, capture_end_ns),
        }
