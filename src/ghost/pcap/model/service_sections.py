"""DHCP, NTP and QUIC: counts, and unanswered requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ghost.pcap.model.shared_values import Occurrences

NOTHING = Occurrences()


@dataclass(frozen=True, slots=True)
class DhcpClient:
    """A client whose discoveries were not answered."""

    client: str
    """Hardware address."""
    discoveries: int
    frames: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DhcpSection:
    """DHCP (version 4) and DHCPv6."""

    messages: Mapping[str, int] = field(default_factory=dict)
    """By type; DHCPv6's have `v6/` before them."""
    unanswered: tuple[DhcpClient, ...] = ()
    """Up to fifty, most discoveries first."""
    unanswered_total: int = 0
    naks: Occurrences = NOTHING


@dataclass(frozen=True, slots=True)
class NtpServer:
    server: str
    requests: int
    unanswered: int
    stratum: int | None
    """Of its last answer."""
    unsynchronised: bool
    """Its last answer said so (leap 3 or stratum 16)."""
    offset_ms: float | None
    """Median of how far its clock is from the client's, where the client's requests carry a usable time."""
    frames: tuple[int, ...] = ()
    """Unanswered or unsynchronised, up to five."""
    client: str | None = None
    """Who asked first."""


@dataclass(frozen=True, slots=True)
class NtpSection:
    requests: int = 0
    responses: int = 0
    unanswered_total: int = 0
    servers: tuple[NtpServer, ...] = ()
    """Worst first, up to twenty."""
    kiss_codes: Mapping[str, int] = field(default_factory=dict)
    """`RATE`, `DENY`, ...: the server refuses (RFC 5905, 7.4)."""
    kiss_frames: tuple[int, ...] = ()
    unsynchronised: Occurrences = NOTHING
    largest_offset_ms: float | None = None
    """By size, of one exchange."""
    largest_offset_frame: int | None = None
    other: int = 0
    """Symmetric, broadcast, control and private packets."""


@dataclass(frozen=True, slots=True)
class QuicUnanswered:
    """Unanswered connection attempts from one client to one server."""

    client: str
    server: str
    port: int
    attempts: int
    """Connections, not packets."""
    packets: int
    frames: tuple[int, ...] = ()
    answered: int = 0
    """Further connections between the two, which were answered."""


@dataclass(frozen=True, slots=True)
class QuicSection:
    initials: int = 0
    """Datagrams with an Initial packet."""
    connections: int = 0
    """Client connection attempts."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Datagrams by version."""
    unanswered: tuple[QuicUnanswered, ...] = ()
    """Up to fifty, most attempts first."""
    unanswered_total: int = 0
    """Connections."""
    version_negotiation: Occurrences = NOTHING
    retry: Occurrences = NOTHING
    server_names: Mapping[str, int] = field(default_factory=dict)
    """Most frequent first, up to twenty; empty where the library that reads them is not installed."""
