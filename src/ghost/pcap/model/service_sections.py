"""DHCP, and UDP services that owe an answer: counts, and unanswered requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ghost.pcap.model.shared_values import Occurrences


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
    naks: Occurrences = field(default_factory=Occurrences)


@dataclass(frozen=True, slots=True)
class SilentServer:
    """A server that answers none of its clients."""

    address: str
    port: int
    client: str
    """Who asked first."""
    requests: int
    """Datagrams, repeats included."""
    first_ns: int
    frames: tuple[int, ...]
    """The first of some conversations."""


@dataclass(frozen=True, slots=True)
class UdpService:
    """What is sent by UDP to one port whose protocol answers each request."""

    name: str
    """`ntp`, `quic`, `ike`, ..."""
    conversations: int
    requests: int
    """Datagrams of clients."""
    responses: int
    unanswered: int
    """Conversations without a response."""
    silent_servers: tuple[SilentServer, ...]
    """Up to twenty, most requests first."""
