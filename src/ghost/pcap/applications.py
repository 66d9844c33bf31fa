"""The readers of application protocols: one face for the engine, which hands over only the packets that were marked.

Each reader keeps its own bounded state. Parts of a capture may be read apart if all packets between two hosts go to
the same part; merged, they say what the whole would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ghost.pcap.dns import DnsTracker
from ghost.pcap.endings import Endings
from ghost.pcap.layout import (
    DESTINATION,
    DESTINATION_PORT,
    FRAME,
    MARK,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_HTTP,
    MARK_LLMNR,
    MARK_MDNS,
    MARK_TLS,
    SOURCE,
    SOURCE_PORT,
    STREAM_NUMBER,
    TIME,
)
from ghost.pcap.names import http_host, tls_server_name


class Applications:
    def __init__(self) -> None:
        self._dns = DnsTracker()
        self._names: dict[int, str] = {}

    def packet(self, row: list[int], payload: bytes) -> None:
        """Take in one marked packet with payload: its columns and its captured payload."""
        mark = row[MARK]
        if mark in (MARK_DNS, MARK_DNS_TCP, MARK_MDNS, MARK_LLMNR):
            self._dns.packet(
                mark, payload, row[SOURCE], row[SOURCE_PORT], row[DESTINATION], row[DESTINATION_PORT],
                row[FRAME], row[TIME],
            )  # fmt: skip
        elif mark in (MARK_TLS, MARK_HTTP):
            name = tls_server_name(payload) if mark == MARK_TLS else http_host(payload)
            if name is not None:
                self._names.setdefault(row[STREAM_NUMBER], name)

    def server_names(self) -> dict[int, str]:
        """What clients called the servers of their streams, by stream number."""
        return self._names

    def sections(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> dict[str, Any]:
        """The sections of `Analysis` that these protocols fill, by name."""
        return {"dns": self._dns.section(address)}
