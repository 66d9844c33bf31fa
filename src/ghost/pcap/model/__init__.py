"""What an analysis says about a capture. Plain frozen values: no reading, no judging, no prose.

`analyse(path)` returns an `Analysis`. A section is None where the capture has no such traffic. Times are
milliseconds unless a name says otherwise; timestamps are nanoseconds since 1970. Frame numbers count from 1,
as every capture tool does. Nothing in here holds a payload byte.

Directions. A TCP stream has two: `client` is what the client sent, `server` what the server sent. Whatever a
direction carries was *sent by* that side: `stream.server.zero_window` are zero windows the server announced,
`stream.client.duplicate_acks` are duplicate ACKs the client sent (so the server's data was missing there).

Loss. `direction.lost_upstream` and `direction.lost_downstream` are segments that this side sent and that were
lost on their way to the peer: upstream, between the sender and the capture point (a hole was seen and filled
later); downstream, between the capture point and the receiver (the segment was captured, and sent again
because the receiver lacked it). Repeats that the receiver did not need are `needless`, not loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghost.pcap.model.capture_section import (
    CaptureSummary,
    LoopedPackets,
    Unread,
)
from ghost.pcap.model.dns_section import (
    DnsAnswer,
    DnsLongNames,
    DnsQuery,
    DnsSection,
    DnsServer,
)
from ghost.pcap.model.http_section import (
    HttpErrors,
    HttpExchange,
    HttpPath,
    HttpSection,
)
from ghost.pcap.model.network_sections import (
    AddressClaims,
    ArpSection,
    DuplicateAddress,
    EchoPath,
    IcmpError,
    IcmpSection,
    UdpConversation,
    UdpSection,
    UnansweredArp,
)
from ghost.pcap.model.service_sections import (
    DhcpClient,
    DhcpSection,
    SilentServer,
    UdpService,
)
from ghost.pcap.model.shared_values import (
    Endpoint,
    Occurrences,
    Side,
    Statistics,
)
from ghost.pcap.model.tcp_section import (
    ConnectionStats,
    Direction,
    Stream,
    TcpSection,
    TcpTotals,
)
from ghost.pcap.model.tls_section import (
    Certificate,
    TlsFailure,
    TlsSection,
    TlsStage,
)

if TYPE_CHECKING:
    from ghost.pcap.file.capture_reader import FileFacts
    from ghost.pcap.kernels.frame_clock import FrameClock
    from ghost.pcap.kernels.time_series import Series

__all__ = [
    "AddressClaims",
    "Analysis",
    "ArpSection",
    "CaptureSummary",
    "Certificate",
    "ConnectionStats",
    "DhcpClient",
    "DhcpSection",
    "Direction",
    "DnsAnswer",
    "DnsLongNames",
    "DnsQuery",
    "DnsSection",
    "DnsServer",
    "DuplicateAddress",
    "EchoPath",
    "Endpoint",
    "HttpErrors",
    "HttpExchange",
    "HttpPath",
    "HttpSection",
    "IcmpError",
    "IcmpSection",
    "LoopedPackets",
    "Occurrences",
    "Side",
    "SilentServer",
    "Statistics",
    "Stream",
    "TcpSection",
    "TcpTotals",
    "TlsFailure",
    "TlsSection",
    "TlsStage",
    "UdpConversation",
    "UdpSection",
    "UdpService",
    "UnansweredArp",
    "Unread",
]


@dataclass(frozen=True, slots=True)
class Analysis:
    summary: CaptureSummary
    tcp: TcpSection | None = None
    udp: UdpSection | None = None
    arp: ArpSection | None = None
    icmp: IcmpSection | None = None
    dns: DnsSection | None = None
    tls: TlsSection | None = None
    http: HttpSection | None = None
    dhcp: DhcpSection | None = None
    services: tuple[UdpService, ...] = ()
    series: Series | None = None
    """What happened when, and between whom."""
    clock: FrameClock | None = None
    """When each frame was captured."""
    file: FileFacts | None = None
    """What reading the file found."""

    @property
    def is_empty(self) -> bool:
        return self.summary.total_packets == 0
