"""One pass over the TCP streams of an analysis, sorted into what the rules ask for.

A capture may hold a hundred thousand streams, nearly all healthy: these are counted, and only streams with a
symptom are kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ghost.pcap.findings.words import percent
from ghost.pcap.model import Analysis, Direction, IcmpError, Stream

Service = tuple[str, int]
"""Server address and port."""
Path = tuple[str, str]
"""Sender and receiver address."""


@dataclass
class ServiceCount:
    attempted: int = 0
    completed: int = 0
    clients_answered: set[str] = field(default_factory=set)


@dataclass
class PathCount:
    """What one address sent to another, over all their streams."""

    streams: int = 0
    data_segments: int = 0
    packets: int = 0
    retransmissions: int = 0
    fast: int = 0
    rto: int = 0
    lost_upstream: int = 0
    lost_downstream: int = 0
    reordered: int = 0
    duplicate_acks_back: int = 0
    sent: int = 0
    """Segments with data, SYN or FIN that left the sender, repeats included: what a loss rate is a share of."""
    frames: list[int] = field(default_factory=list)
    reordered_frames: list[int] = field(default_factory=list)
    port: int | None = None
    worst: int = -1

    @property
    def lost(self) -> int:
        return self.lost_upstream + self.lost_downstream

    @property
    def loss_pct(self) -> float:
        return 100.0 * self.lost / self.sent if self.sent else 0.0


@dataclass
class Observed:
    """What the streams show, for the TCP rules."""

    first_ns: int = 0
    last_ns: int = 0
    copies_pct: float = 0.0
    """Packets captured more than once."""
    services: dict[Service, ServiceCount] = field(default_factory=lambda: defaultdict(ServiceCount))
    services_used: Counter[str] = field(default_factory=Counter)
    """How many services answered a client."""
    answering_ports: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Ports of a host that answered anything with their own voice, a refusal included."""
    ttls: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """TTLs of a host's packets that are no resets."""
    paths: dict[Path, PathCount] = field(default_factory=lambda: defaultdict(PathCount))
    unanswered: dict[Service, list[Stream]] = field(default_factory=lambda: defaultdict(list))
    half_open: dict[Service, list[Stream]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[Service, list[Stream]] = field(default_factory=lambda: defaultdict(list))
    reset: list[Stream] = field(default_factory=list)
    one_sided: dict[Path, list[Stream]] = field(default_factory=lambda: defaultdict(list))
    zero_window: dict[Path, list[tuple[Stream, Direction]]] = field(default_factory=lambda: defaultdict(list))
    stuck: list[Stream] = field(default_factory=list)
    """A side had data nobody acknowledged when the stream ended."""
    handshake_ms: dict[Path, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """Client and server to round trip and the frame it began in."""
    too_big: dict[Path, list[IcmpError]] = field(default_factory=lambda: defaultdict(list))
    """What routers told a sender about its packets being too big for the way to a receiver."""
    speakers: set[str] = field(default_factory=set)
    """Addresses that sent a TCP packet."""


def observe(analysis: Analysis) -> Observed:
    summary = analysis.summary
    seen = Observed(
        first_ns=summary.first_ns or 0,
        last_ns=summary.last_ns or 0,
        copies_pct=percent(summary.duplicate_packets.count, summary.total_packets),
    )
    if analysis.tcp is not None:
        for stream in analysis.tcp.streams:
            _sort_in(seen, stream)
    for error in analysis.icmp.errors if analysis.icmp else ():
        if says_too_big(error):
            seen.too_big[error.dst, error.unreachable_dst or error.src].append(error)
    return seen


def says_too_big(error: IcmpError) -> bool:
    """Packet too big (ICMPv6), or fragmentation needed and DF set (RFC 1191)."""
    return error.kind == "packet_too_big" or (error.kind == "unreachable" and (error.version, error.code) == (4, 4))


def directions(stream: Stream) -> Iterator[tuple[Direction, Direction]]:
    """Sender and receiver, both ways."""
    yield stream.client, stream.server
    yield stream.server, stream.client


def _sort_in(seen: Observed, stream: Stream) -> None:
    client, server = stream.client, stream.server
    service = (server.endpoint.address, server.endpoint.port)
    _handshake(seen, stream, service)
    if stream.teardown == "rst" and stream.handshake not in ("refused", "unanswered"):
        seen.reset.append(stream)
    if stream.one_sided and not only_syn(stream):
        sender, receiver = (client, server) if client.packets else (server, client)
        seen.one_sided[sender.endpoint.address, receiver.endpoint.address].append(stream)
    for sender, receiver in directions(stream):
        if sender.packets:
            seen.speakers.add(sender.endpoint.address)
            _add_to_path(seen, sender, receiver, stream)
        if sender.zero_window:
            seen.zero_window[sender.endpoint.address, receiver.endpoint.address].append((stream, sender))
    if client.unacked_bytes or server.unacked_bytes:
        seen.stuck.append(stream)


def _handshake(seen: Observed, stream: Stream, service: Service) -> None:
    client, server = stream.client, stream.server
    count = seen.services[service]
    if client.syn:
        count.attempted += 1
    if server.packets:
        seen.answering_ports[service[0]].add(service[1])
        if server.ttl is not None and server.packets > server.rst.count:
            seen.ttls[service[0]].add(server.ttl)
    if client.packets and client.ttl is not None and client.packets > client.rst.count:
        seen.ttls[client.endpoint.address].add(client.ttl)
    if stream.handshake == "completed" or (server.packets and stream.handshake == "not_seen"):
        count.completed += 1
        if client.endpoint.address not in count.clients_answered:
            count.clients_answered.add(client.endpoint.address)
            seen.services_used[client.endpoint.address] += 1
        rtt = stream.handshake_rtt_ms
        if rtt is not None:
            seen.handshake_ms[client.endpoint.address, service[0]].append((rtt, stream.first_frame))
    elif stream.handshake == "refused":
        seen.refused[service].append(stream)
    elif only_syn(stream):
        seen.unanswered[service].append(stream)
    elif server.syn_ack and client.syn and stream.handshake == "incomplete" and not client.data_segments:
        seen.half_open[service].append(stream)


def only_syn(stream: Stream) -> bool:
    """Nothing but SYNs, and the resets with which a client gives up, from one side, and nothing back."""
    client = stream.client
    return (
        stream.server.packets == 0
        and client.syn.count > 0
        and client.packets <= client.syn.count + client.rst.count
        and not client.data_segments
    )


def _add_to_path(seen: Observed, sender: Direction, receiver: Direction, stream: Stream) -> None:
    path = seen.paths[sender.endpoint.address, receiver.endpoint.address]
    path.streams += 1
    path.packets += sender.packets
    path.data_segments += sender.data_segments
    path.reordered += sender.reordered.count
    path.reordered_frames.extend(sender.reordered.frames[: 5 - len(path.reordered_frames)])
    if stream.one_sided:  # a repeat may have been needless: nobody's acknowledgements tell
        return
    path.sent += (
        sender.data_segments + sender.syn.count + sender.syn_ack.count + sender.fin.count + sender.lost_upstream.count
    )
    path.retransmissions += sender.retransmissions.count
    path.fast += sender.fast_retransmissions.count
    path.rto += sender.rto_retransmissions.count
    path.lost_upstream += sender.lost_upstream.count
    path.lost_downstream += sender.lost_downstream.count
    path.duplicate_acks_back += receiver.duplicate_acks.count
    if sender.lost > max(path.worst, 0):
        path.worst, path.port = sender.lost, stream.server.endpoint.port
    frames = sorted((*sender.lost_downstream.frames, *sender.lost_upstream.frames))
    path.frames.extend(frames[: 5 - len(path.frames)])
