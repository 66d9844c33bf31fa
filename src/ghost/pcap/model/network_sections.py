"""UDP, ARP and ICMP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ghost.pcap.model.shared_values import Endpoint, Occurrences, Statistics


@dataclass(frozen=True, slots=True)
class UdpConversation:
    """`client` sent the first datagram seen."""

    client: Endpoint
    server: Endpoint
    client_packets: int
    server_packets: int
    client_bytes: int
    """UDP payload."""
    server_bytes: int
    first_ns: int
    last_ns: int
    first_frame: int


@dataclass(frozen=True, slots=True)
class UdpSection:
    datagrams: int
    payload_bytes: int
    conversations_total: int
    unanswered_conversations: int
    """Unicast ones in which only one side was ever seen to send."""
    conversations: tuple[UdpConversation, ...]
    """The ten with the most bytes."""
    unanswered: tuple[UdpConversation, ...]
    """Up to twenty, most packets first."""


@dataclass(frozen=True, slots=True)
class UnansweredArp:
    """An address of the segment with unanswered ARP requests or neighbour solicitations (IPv6)."""

    ip: str
    count: int
    """Requests that no reply followed."""
    asked_by: tuple[str, ...]
    """Up to five addresses that asked."""
    sample_frames: tuple[int, ...]
    """Of the requests at the end."""
    ever_answered: bool
    """Some other request for this address was answered in the capture."""
    at_the_end: int = 0
    """Those of the requests that came after the last ARP message of this address, or advertisement."""
    last_ns: int = 0
    """Of the last request."""
    answered: tuple[str, ...] = ()
    """Up to five who asked and whom it replied to in the capture."""
    asking: tuple[str, ...] = ()
    """Up to five who sent the requests at the end."""
    replied_to: tuple[str, ...] = ()
    """Of `asked_by`, those to whom two other addresses replied in the capture: one may be the capturing host."""


@dataclass(frozen=True, slots=True)
class AddressClaims:
    """How often one device claimed an address."""

    total: int
    unasked: int
    """Replies to somebody who had not asked."""
    unasked_of_one: int
    """Of these, what the one was told to whom most were sent."""


@dataclass(frozen=True, slots=True)
class DuplicateAddress:
    ip: str
    macs: tuple[str, ...]
    sample_frames: tuple[int, ...]
    """One frame for each hardware address, in the same order."""
    alternations: int
    """How often the claim changed hands: one change may be a move, many are a conflict or an attack."""
    claims: tuple[AddressClaims, ...] = ()
    """For each hardware address, in the same order."""


@dataclass(frozen=True, slots=True)
class ArpSection:
    total_requests: int
    total_replies: int
    gratuitous: Occurrences
    probes: int
    """Requests from 0.0.0.0 (address conflict detection); their silence is health."""
    unanswered_requests: tuple[UnansweredArp, ...]
    duplicate_ips: tuple[DuplicateAddress, ...]


@dataclass(frozen=True, slots=True)
class IcmpError:
    """Equal ICMP errors, counted."""

    version: Literal[4, 6]
    kind: Literal["unreachable", "ttl_exceeded", "packet_too_big", "redirect", "parameter_problem", "source_quench"]
    src: str
    dst: str
    type: int
    code: int
    code_meaning: str
    unreachable_dst: str | None
    """Destination of the embedded packet."""
    protocol: str | None
    """`tcp`, `udp`, ... of the embedded packet."""
    source_port: int | None
    destination_port: int | None
    next_hop_mtu: int | None
    gateway: str | None
    """The better next hop that a redirect names."""
    count: int
    sample_frames: tuple[int, ...]
    hop_limits: tuple[int, ...] = ()
    """The different ones, ascending, that pings it is about had at the capture point; empty where none was captured."""
    last_ns: int = 0
    """Of the last of them."""

    @property
    def sample_frame(self) -> int:
        return self.sample_frames[0]


@dataclass(frozen=True, slots=True)
class EchoPath:
    """Pings from one address to another."""

    src: str
    dst: str
    requests: int
    replies: int
    unmatched: int
    """Requests without a reply."""
    rtt_ms: Statistics | None
    sample_frames: tuple[int, ...]
    """Unanswered requests."""
    first_frame: int = 0
    """Of the first request."""
    first_request_ns: int = 0
    last_reply_ns: int = 0
    last_request_ns: int = 0


@dataclass(frozen=True, slots=True)
class IcmpSection:
    packets: int
    echo_pairs_matched: int
    echo_unmatched: int
    """Requests without a reply."""
    replies_unmatched: int
    """Replies to no request that was captured."""
    duplicate_replies: int
    rtt_ms: Statistics | None
    type_distribution: Mapping[str, int]
    """For example `{"echo_request": 3, "unreachable/port": 1, "v6/neighbor_solicitation": 2}`."""
    echo_paths: tuple[EchoPath, ...]
    """Up to fifty, unmatched first."""
    errors: tuple[IcmpError, ...]
    """Of every kind, most frequent first; up to 1000, of which everybody who was told something has a share."""
    unanswered_solicitations: tuple[UnansweredArp, ...] = ()
    """Neighbours of IPv6 that did not answer for their address."""

    def of_kind(self, kind: str) -> tuple[IcmpError, ...]:
        return tuple(error for error in self.errors if error.kind == kind)

    @property
    def ttl_exceeded_sources(self) -> dict[str, int]:
        sources: dict[str, int] = {}
        for error in self.of_kind("ttl_exceeded"):
            sources[error.src] = sources.get(error.src, 0) + error.count
        return sources
