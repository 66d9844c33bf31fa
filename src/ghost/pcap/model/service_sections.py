"""DHCP, NTP and QUIC: counts, and unanswered requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ghost.pcap.model.shared_values import Occurrences, Statistics

NOTHING = Occurrences()


@dataclass(frozen=True, slots=True)
class DhcpUnanswered:
    """A client's transaction that no server answered."""

    client: str
    """Hardware address; of a client that has none (or a DUID without one) a digest of its identifier."""
    message: str
    """`discover`, `request`, `solicit`, ..."""
    count: int
    """Sent with the same transaction id."""
    frames: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DhcpRefused:
    """A client whose latest requests were all refused (DHCPNAK): it was granted nothing since."""

    client: str
    """As in `DhcpUnanswered`."""
    requests: int
    offered: int
    """Of these, such as ask for what an offer had promised: they name the server."""
    servers: tuple[str, ...] = ()
    """Who refused, up to ten."""
    frames: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DhcpSection:
    """DHCP (version 4) and DHCPv6."""

    messages: Mapping[str, int] = field(default_factory=dict)
    """By type; DHCPv6's have `v6/` before them."""
    servers: Mapping[str, int] = field(default_factory=dict)
    """Messages by the address they came from, relays included."""
    unanswered: tuple[DhcpUnanswered, ...] = ()
    """Some thousands at most, and of each client as many as of any other."""
    unanswered_total: int = 0
    refused: tuple[DhcpRefused, ...] = ()
    """Worst first, some thousands at most."""
    naks: Occurrences = NOTHING
    declines: Occurrences = NOTHING
    """Clients that found the offered address in use."""
    no_addresses: Occurrences = NOTHING
    """DHCPv6 answers whose status is `NoAddrsAvail`, `NoBinding` or `NotOnLink`."""
    offering_servers: tuple[str, ...] = ()
    """Servers that made offers (by server identifier), up to ten: several for one network may include a rogue."""
    several_offers: Occurrences = NOTHING
    """Transactions to which more than one server made an offer."""
    answer_ms: Statistics | None = None


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
