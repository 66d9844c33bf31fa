"""TCP connections, side by side, and their totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ghost.pcap.model.shared_values import Endpoint, Occurrences, Statistics


@dataclass(frozen=True, slots=True)
class Direction:
    """What one side of a TCP stream sent."""

    endpoint: Endpoint
    packets: int
    payload_bytes: int
    """TCP payload, repeats included."""
    data_segments: int
    first_ns: int | None
    last_ns: int | None
    first_frame: int
    """0 where this side sent nothing."""
    # flags by Wireshark's rules
    retransmissions: Occurrences
    """All of them; `fast + spurious + rto` is its count."""
    fast_retransmissions: Occurrences
    spurious_retransmissions: Occurrences
    rto_retransmissions: Occurrences
    """Neither fast nor spurious: repeats after a timeout, and repeats inside a recovery."""
    out_of_order: Occurrences
    lost_segments: Occurrences
    """Gaps: a segment began beyond the next expected sequence number."""
    acked_unseen: Occurrences
    """This side acknowledged data that was never captured: the capture is incomplete, not the network."""
    duplicate_acks: Occurrences
    zero_window: Occurrences
    zero_window_probes: Occurrences
    window_full: Occurrences
    window_updates: Occurrences
    keep_alives: Occurrences
    keep_alive_acks: Occurrences
    # loss of what this side sent, judged
    lost_upstream: Occurrences
    """Lost between this sender and the capture point: a gap was seen and filled later."""
    lost_downstream: Occurrences
    """Lost between the capture point and the receiver: captured, and repeated because the receiver lacked it."""
    needless: Occurrences
    """Repeated although the receiver had it: its ACK was lost or late."""
    capture_gaps: Occurrences
    """Gaps in what this side sent that the peer acknowledged although never captured: the capture missed them."""
    reordered: Occurrences
    """Arrived behind a later segment within the initial RTT: reordering, not loss."""
    # the same packet twice, captured twice or delivered twice: no repeat of the sender
    copies: Occurrences
    """Of data segments."""
    copied_retransmissions: Occurrences
    """Copies that have the flag of a retransmission."""
    copied_rto: Occurrences
    copied_acks: Occurrences
    """Copies that have the flag of a duplicate ACK."""
    doubtful_repeats: Occurrences
    """Judged as repeats, but may be copies: nothing tells which."""
    # control segments
    syn: Occurrences
    """SYN without ACK."""
    syn_ack: Occurrences
    fin: Occurrences
    rst: Occurrences
    rst_after_fin: bool
    """This side's first RST came after both sides' data was complete (a FIN was seen): a close, not a fault."""
    data_after_rst: Occurrences
    """Data this side sent after the peer's RST was seen."""
    # header values
    ttl: int | None
    """TTL or hop limit of this side's first packet that is no RST (of its RST where it sent nothing else)."""
    ttl_min: int | None
    ttl_max: int | None
    """Over packets without RST."""
    rst_ttl: int | None
    """TTL of the first RST that claims to come from this side."""
    mss: int | None
    window_scale: int | None
    """The shift this side announced; None where no SYN with the option was seen."""
    sack_permitted: bool
    smallest_window: int | None
    """Smallest scaled window announced after the handshake (0 included)."""
    largest_in_flight: int
    """Most unacknowledged bytes this side had outstanding."""
    # times and sizes
    ack_rtt_ms: Statistics | None
    """From a segment of this side to the ACK of it: capture point to the peer and back, its ACK delay included."""
    delta_ms: Statistics | None
    """Between consecutive packets of this side."""
    largest_segment: int
    """Payload bytes. Above the path MTU where the capture saw segmentation offload."""
    largest_acked_segment: int
    largest_lost_segment: int
    """Largest segment judged lost or never acknowledged; 0 where none."""
    smallest_lost_segment: int
    unacked_bytes: int
    """Sent and not acknowledged when the stream ended or the capture stopped."""
    longest_silence_ms: float
    """Longest pause between two packets of this side."""
    silent_from_ns: int = 0
    """When that pause began; 0 without one."""
    first_lost_frame: int = 0
    last_lost_frame: int = 0
    """Of the segments judged lost; 0 without one."""

    @property
    def lost(self) -> int:
        return self.lost_upstream.count + self.lost_downstream.count

    @property
    def loss_pct(self) -> float:
        """Lost segments in percent of the distinct segments sent with data or SYN."""
        sent = self.data_segments + self.syn.count + self.syn_ack.count + self.lost_upstream.count
        return 100.0 * self.lost / sent if sent else 0.0

    @property
    def throughput_bps(self) -> float:
        """Payload bits per second between this side's first and last packet."""
        if self.first_ns is None or self.last_ns is None or self.last_ns <= self.first_ns:
            return 0.0
        return self.payload_bytes * 8e9 / (self.last_ns - self.first_ns)


@dataclass(frozen=True, slots=True)
class Stream:
    """One TCP connection, numbered as Wireshark numbers streams."""

    stream_id: int
    client: Direction
    server: Direction
    client_known_by: Literal["syn", "syn_ack", "port", "first_packet"]
    """What says who the client is; the last two are guesses (the capture began in mid-stream)."""
    first_ns: int
    last_ns: int
    first_frame: int
    last_frame: int
    wire_bytes: int
    handshake: Literal["completed", "unanswered", "refused", "reset", "incomplete", "not_seen"]
    """completed: SYN, SYN-ACK and the client's ACK (or data) were seen. unanswered: SYN and nothing back. refused: the
    SYN was answered by a RST. reset: SYN-ACK seen, then a RST before the handshake completed. incomplete: a part is
    missing. not_seen: the capture has no SYN of it."""
    syn_retransmissions: int
    """Repeated SYNs of the client with the same sequence number."""
    syn_ack_retransmissions: int
    syn_to_syn_ack_ms: float | None
    """From the last SYN before the SYN-ACK: capture point to the server and back."""
    syn_ack_to_ack_ms: float | None
    """Capture point to the client and back."""
    response_ms: Statistics | None
    """From the last byte of a request of the client to the first byte of the server's answer."""
    request_acked_ms: Statistics | None
    """From the last byte of a request to the server's first ACK of it: the path's share of `response_ms`."""
    unanswered_request_ms: float | None
    """How long the client's last request had waited without any answer data; None where it was answered."""
    teardown: Literal["fin", "half_closed", "rst", "open"]
    """fin: both sides closed. half_closed: one FIN only. rst: ended by a reset. open: neither was seen."""
    rst_from: Literal["client", "server", "neither"] | None
    """Who reset it first; `neither` where the RST's TTL is not that of the side it claims to come from."""
    encapsulation: tuple[str, ...] = ()
    """What carried it besides Ethernet, e.g. `vlan`, `pppoe`, `gre`, `ipip`, `vxlan`."""
    server_name: str | None = None
    """TLS server name or HTTP host, where one was readable."""
    unanswered_request_bytes: int = 0
    """Size of the request that `unanswered_request_ms` is about."""
    unprompted: int = 0
    """Messages of the client that came after a pause, while earlier ones were acknowledged and not answered."""
    greeting_ms: float | None = None
    """From the handshake to the first data of a server that speaks first; None where it does not."""

    @property
    def handshake_rtt_ms(self) -> float | None:
        """From the SYN to the client's ACK: the path's round trip wherever the capture was taken."""
        if self.syn_to_syn_ack_ms is None or self.syn_ack_to_ack_ms is None:
            return None
        return self.syn_to_syn_ack_ms + self.syn_ack_to_ack_ms

    @property
    def packets(self) -> int:
        return self.client.packets + self.server.packets

    @property
    def payload_bytes(self) -> int:
        return self.client.payload_bytes + self.server.payload_bytes

    @property
    def duration_seconds(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def one_sided(self) -> bool:
        """Only one side's packets were captured."""
        return self.client.packets == 0 or self.server.packets == 0

    @property
    def capture_point(self) -> Literal["client", "server", "between", "unknown"]:
        """Return where the capture was taken, by what the packets show: a host's own packets carry an initial TTL and
        its own answers take no time."""
        fresh = {32, 64, 128, 255}
        client_fresh, server_fresh = self.client.ttl in fresh, self.server.ttl in fresh
        to_server, to_client = self.syn_to_syn_ack_ms, self.syn_ack_to_ack_ms
        if to_server is not None and to_client is not None:
            if client_fresh and to_client < 0.5 and to_server > 4 * to_client:
                return "client"
            if server_fresh and to_server < 0.5 and to_client > 4 * to_server:
                return "server"
        if client_fresh and not server_fresh and self.server.packets:
            return "client"
        if server_fresh and not client_fresh and self.client.packets:
            return "server"
        if not client_fresh and not server_fresh and not self.one_sided:
            return "between"
        return "unknown"


@dataclass(frozen=True, slots=True)
class ConnectionStats:
    syn_sent: int
    """Packets with SYN and without ACK, repeats included."""
    syn_ack_received: int
    connections_attempted: int
    """Streams with a client's SYN."""
    handshakes_completed: int
    syn_retransmitted: int
    refused: int
    unanswered_syn: int
    """Streams whose SYN nobody answered."""
    rst_teardowns: int
    fin_teardowns: int
    half_closed: int

    @property
    def handshake_success_rate_pct(self) -> float | None:
        return 100.0 * self.handshakes_completed / self.connections_attempted if self.connections_attempted else None


@dataclass(frozen=True, slots=True)
class TcpTotals:
    """Packets with each flag, over all streams, as Wireshark counts them."""

    packets: int
    payload_bytes: int
    retransmissions: int
    fast_retransmissions: int
    spurious_retransmissions: int
    rto_retransmissions: int
    out_of_order: int
    lost_segments: int
    acked_unseen: int
    duplicate_acks: int
    zero_window: int
    zero_window_probes: int
    window_full: int
    window_updates: int
    keep_alives: int
    keep_alive_acks: int
    reused_ports: int
    syn: int
    syn_ack: int
    fin: int
    rst: int
    ack_rtt_samples: int
    lost_upstream: int
    lost_downstream: int
    needless: int
    reordered: int


@dataclass(frozen=True, slots=True)
class TcpSection:
    totals: TcpTotals
    connections: ConnectionStats
    handshake_rtt_ms: Statistics | None
    ack_rtt_ms: Statistics | None
    streams: Sequence[Stream]
    """All, by stream id. Made on access from columns: iterate once, do not sort copies of it for every question."""
    streams_with_issues: Sequence[Stream]
    """Worst first. A stream is here for loss, failed or reset handshakes, zero windows, resets or unanswered
    requests, not because its timing varies."""
    conversations: Sequence[Stream]
    """The ten with the most bytes."""
