"""The sections of the capture itself, ARP, ICMP, TCP and UDP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ghost.pcap import safe_text
from ghost.pcap.findings.phrasing import at
from ghost.pcap.model import Analysis, ArpSection, Direction, IcmpSection, Stream, TcpSection, UdpSection
from ghost.pcap.report.semantic.value_format import endpoint, moment, present, rounded, statistics

ITEMS = 20
STREAMS = 20
CONVERSATIONS = 10
ITEMS_UNREAD = 8


def capture_summary(analysis: Analysis) -> dict[str, Any]:
    summary = analysis.summary
    entry: dict[str, Any] = {
        "file": safe_text.name(summary.file),
        "sha256": summary.sha256,
        "format": summary.format + (" (gzip)" if summary.compressed else ""),
        "link_type": list(summary.link_types),
        "total_packets": summary.total_packets,
        "duration_seconds": round(summary.duration_seconds, 6),
        "first_timestamp": moment(summary.first_ns),
        "last_timestamp": moment(summary.last_ns),
        "bytes": summary.wire_bytes,
        "avg_packets_per_second": round(summary.packets_per_second, 2),
        "protocols_present": dict(summary.protocols_present),
        "snap_length": summary.snap_length,
        "snap_length_truncated_packets": summary.cut_packets,
        "drops_reported_by_capturer": summary.dropped_by_capturer,
    }
    optional: dict[str, Any] = {
        "interfaces": summary.interfaces if summary.interfaces > 1 else None,
        "capture_point": _capture_point(analysis),
        "truncated_record": summary.truncated_record,
        "undecoded_packets": summary.undecoded_packets,
        "not_decoded": [
            {"what": each.what, "why": each.why, "packets": each.packets} for each in summary.unread[:ITEMS_UNREAD]
        ],
        "fragments": summary.fragments,
        "backward_timestamps": summary.backward_timestamps,
        "duplicate_packets": summary.duplicate_packets.count,
        "notes": [safe_text.name(note, 200) for note in summary.notes[:5]],
    }
    return {**entry, **present(optional)}


def _capture_point(analysis: Analysis) -> str | None:
    """At the client, at the server or between, by the conversations that carried most."""
    if analysis.tcp is None:
        return None
    votes = Counter(stream.capture_point for stream in analysis.tcp.conversations)
    return votes.most_common(1)[0][0] if votes else None


def arp_section(arp: ArpSection) -> dict[str, Any]:
    return {
        "total_requests": arp.total_requests,
        "total_replies": arp.total_replies,
        "gratuitous_arp_count": arp.gratuitous.count,
        "probes": arp.probes,
        "unanswered_requests": [{"ip": silent.ip, "count": silent.count} for silent in arp.unanswered_requests[:ITEMS]],
        "unanswered_addresses": len(arp.unanswered_requests),
        "duplicate_ip_alerts": [
            {"ip": alert.ip, "macs": list(alert.macs[:5]), "sample_frames": list(alert.sample_frames[:5])}
            for alert in arp.duplicate_ips[:ITEMS]
        ],
    }


def icmp_section(icmp: IcmpSection) -> dict[str, Any]:
    unreachable = [e for e in icmp.errors if e.kind in ("unreachable", "packet_too_big")]
    redirects = icmp.of_kind("redirect")
    sources = sorted(icmp.ttl_exceeded_sources.items(), key=lambda item: -item[1])
    anomalies = {
        "replies_without_request": icmp.replies_unmatched,
        "duplicate_replies": icmp.duplicate_replies,
        "parameter_problems": sum(e.count for e in icmp.of_kind("parameter_problem")),
        "source_quench": sum(e.count for e in icmp.of_kind("source_quench")),
    }
    entry: dict[str, Any] = {
        "packets": icmp.packets,
        "echo_pairs_matched": icmp.echo_pairs_matched,
        "echo_unmatched": icmp.echo_unmatched,
        "type_distribution": dict(icmp.type_distribution),
    }
    optional: dict[str, Any] = {
        "rtt_ms": statistics(icmp.rtt_ms),
        "anomalies": present(anomalies),
        "unreachable_details": [
            present(
                {
                    "src": e.src,
                    "dst": e.dst,
                    "code": e.code,
                    "code_meaning": e.code_meaning,
                    "unreachable_dst": e.unreachable_dst,
                    "protocol": e.protocol,
                    "port": e.destination_port,
                    "next_hop_mtu": e.next_hop_mtu,
                    "count": e.count,
                    "sample_frame": e.sample_frame,
                },
                keep=("code",),
            )
            for e in unreachable[:ITEMS]
        ],
        "redirect_details": [
            present({"src": e.src, "dst": e.dst, "gateway": e.gateway, "for": e.unreachable_dst, "count": e.count})
            for e in redirects[:ITEMS]
        ],
        "ttl_exceeded_sources": dict(sources[:ITEMS]),
        "unanswered_solicitations": [
            {"ip": silent.ip, "count": silent.count} for silent in icmp.unanswered_solicitations[:ITEMS]
        ],
    }
    return {**entry, **present(optional)}


def tcp_section(tcp: TcpSection) -> dict[str, Any]:
    totals, made = tcp.totals, tcp.connections
    rate = made.handshake_success_rate_pct
    return {
        "streams_total": len(tcp.streams),
        "packets": totals.packets,
        "payload_bytes": totals.payload_bytes,
        "retransmissions_total": totals.retransmissions,
        "fast_retransmissions": totals.fast_retransmissions,
        "spurious_retransmissions": totals.spurious_retransmissions,
        "rto_retransmissions": totals.rto_retransmissions,
        "duplicate_ack_total": totals.duplicate_acks,
        "out_of_order_total": totals.out_of_order,
        "zero_window_total": totals.zero_window,
        "zero_window_probes": totals.zero_window_probes,
        "window_full_total": totals.window_full,
        "lost_segments_total": totals.lost_segments,
        "acked_unseen_total": totals.acked_unseen,
        "keepalives": totals.keep_alives,
        "rst_count": totals.rst,
        "lost_before_capture_point": totals.lost_upstream,
        "lost_after_capture_point": totals.lost_downstream,
        "needless_retransmissions": totals.needless,
        "connection_stats": {
            "attempted": made.connections_attempted,
            "syn_sent": made.syn_sent,
            "syn_ack_received": made.syn_ack_received,
            "handshakes_completed": made.handshakes_completed,
            "handshake_success_rate_pct": None if rate is None else round(rate, 2),
            "syn_retransmitted": made.syn_retransmitted,
            "refused": made.refused,
            "unanswered_syn": made.unanswered_syn,
            "rst_teardowns": made.rst_teardowns,
            "fin_teardowns": made.fin_teardowns,
            "half_closed": made.half_closed,
        },
        "handshake_rtt_ms": statistics(tcp.handshake_rtt_ms),
        "ack_rtt_ms": statistics(tcp.ack_rtt_ms),
        "streams_with_issues_total": len(tcp.streams_with_issues),
        "streams_with_issues": [_issue(stream) for stream in tcp.streams_with_issues[:STREAMS]],
        "conversations": [_conversation(stream) for stream in tcp.conversations[:CONVERSATIONS]],
    }


def _issue(stream: Stream) -> dict[str, Any]:
    client, server = stream.client, stream.server

    def total(counter: Callable[[Direction], int]) -> int:
        return counter(client) + counter(server)

    frames = sorted(
        {
            frame
            for side in (client, server)
            for seen in (side.retransmissions, side.lost_segments, side.zero_window, side.rst)
            for frame in seen.frames
        }
    )
    busier = max(client, server, key=lambda side: side.payload_bytes)
    entry: dict[str, Any] = {
        "stream_id": stream.stream_id,
        "src": endpoint(client),
        "dst": endpoint(server),
        "packets": stream.packets,
        "bytes": stream.wire_bytes,
    }
    optional: dict[str, Any] = {
        "sni_or_host": safe_text.name(stream.server_name) if stream.server_name else None,
        "handshake": stream.handshake if stream.handshake != "completed" else None,
        "syn_retransmitted": stream.syn_retransmissions,
        "retransmissions": total(lambda side: side.retransmissions.count),
        "lost_client_to_server": client.lost,
        "lost_server_to_client": server.lost,
        "duplicate_acks": total(lambda side: side.duplicate_acks.count),
        "out_of_order": total(lambda side: side.out_of_order.count),
        "zero_window_events": total(lambda side: side.zero_window.count),
        "rst": total(lambda side: side.rst.count),
        "rst_from": stream.rst_from,
        "unanswered_request_ms": rounded(stream.unanswered_request_ms),
        "ack_rtt_ms": statistics(client.ack_rtt_ms or server.ack_rtt_ms),
        "response_ms": statistics(stream.response_ms),
        "delta_ms": statistics(busier.delta_ms),
        "throughput_bps": round(busier.throughput_bps),
        "mss": min((side.mss for side in (client, server) if side.mss), default=None),
        "window_scale": server.window_scale,
        "sample_frames": frames[:5] or [stream.first_frame],
    }
    return {**entry, **present(optional)}


def _conversation(stream: Stream) -> dict[str, Any]:
    entry = {
        "stream_id": stream.stream_id,
        "src": endpoint(stream.client),
        "dst": endpoint(stream.server),
        "packets": stream.packets,
        "bytes": stream.wire_bytes,
        "seconds": round(stream.duration_seconds, 3),
    }
    rtt = rounded(stream.handshake_rtt_ms)
    return {**entry, **present({"handshake_rtt_ms": rtt, "teardown": stream.teardown})}


def udp_section(udp: UdpSection) -> dict[str, Any]:
    return {
        "datagrams": udp.datagrams,
        "payload_bytes": udp.payload_bytes,
        "conversations_total": udp.conversations_total,
        "unanswered_conversations": udp.unanswered_conversations,
        "conversations": [
            {
                "src": at(talk.client.address, talk.client.port),
                "dst": at(talk.server.address, talk.server.port),
                "packets": [talk.client_packets, talk.server_packets],
                "bytes": talk.client_bytes + talk.server_bytes,
            }
            for talk in udp.conversations[:5]
        ],
    }
