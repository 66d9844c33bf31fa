"""The compact machine-readable summary: counts, not lists; never a payload byte; bounded whatever the capture holds.

A section without traffic is left out, and so is a counter of a single conversation that is zero. Lists are cut until
the whole fits; every cut list stands beside the total it was cut from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ghost.pcap import text
from ghost.pcap.findings import Finding
from ghost.pcap.model import (
    Analysis,
    ArpSection,
    Direction,
    DnsQuery,
    DnsSection,
    IcmpSection,
    Statistics,
    Stream,
    TcpSection,
    UdpSection,
)
from ghost.records import isoformat

AIM_TOKENS = 5_000
MOST_TOKENS = 8_000
FINDINGS_TOKENS = 2_000
MOST_CONVERSATIONS = 24
MOST_ECHO_PATHS = 50
"""As many as the analysis keeps."""
BYTES_PER_TOKEN = 2.5
"""What JSON full of addresses and numbers has at the least; prose has more."""


@dataclass(frozen=True)
class Detail:
    """How much of each list is kept."""

    streams: int
    conversations: int
    items: int
    remedies: int
    evidence: int


_LEVELS = (
    Detail(20, 10, 20, 4, 5),
    Detail(12, 8, 12, 4, 5),
    Detail(8, 5, 8, 3, 5),
    Detail(5, 3, 5, 2, 3),
    Detail(3, 3, 3, 2, 3),
    Detail(1, 1, 1, 1, 2),
)


def estimated_tokens(document: str) -> int:
    """An upper estimate of what a language model counts in JSON like this."""
    return int(len(document.encode()) / BYTES_PER_TOKEN) + 1


def semantic(analysis: Analysis, findings: Sequence[Finding]) -> dict[str, Any]:
    """The summary with as much detail as the aim allows; with the least, what the limit allows."""
    document: dict[str, Any] = {}
    for detail in _LEVELS:
        document = _document(analysis, findings, detail)
        if estimated_tokens(dump(document)) <= AIM_TOKENS:
            return document
    while estimated_tokens(dump(document)) > MOST_TOKENS and document["findings"]:
        document["findings"].pop()
        document["findings_omitted"] = len(findings) - len(document["findings"])
    return document


def findings_document(analysis: Analysis, findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings and who talks to whom, for a caller that wants little.

    Conversations are cut first, then the least important findings, which are counted.
    """
    summary = analysis.summary
    capture = {
        "file": text.name(summary.file),
        "packets": summary.total_packets,
        "seconds": round(summary.duration_seconds, 3),
        "protocols": dict(list(summary.protocols_present.items())[:8]),
    }
    rows, complete = _who_talks(analysis)
    for detail in _LEVELS:
        document = {"capture": capture, "findings": [_finding(finding, detail) for finding in findings]}
        if estimated_tokens(dump(document)) <= FINDINGS_TOKENS:
            return _with_conversations(document, rows, complete)
    while estimated_tokens(dump(document)) > FINDINGS_TOKENS and len(document["findings"]) > 1:
        document["findings"].pop()  # type: ignore[attr-defined]
        document["omitted"] = len(findings) - len(document["findings"])  # type: ignore[assignment]
    return _with_conversations(document, rows, complete)


def _with_conversations(
    document: dict[str, Any], rows: Sequence[dict[str, Any]], complete: Sequence[str]
) -> dict[str, Any]:
    """Adds as many conversations as there is room for, and of which protocols they are all: only of those is one that
    is not listed absent."""
    for kept in range(min(len(rows), MOST_CONVERSATIONS), -1, -1):
        cut = {row["protocol"] for row in rows[kept:]}
        whole_lists = [protocol for protocol in complete if protocol not in cut]
        listed = {"conversations_complete": whole_lists, "conversations": list(rows[:kept])}
        whole = {**document, **listed}
        if estimated_tokens(dump(whole)) <= FINDINGS_TOKENS:
            return whole
    return document


def _who_talks(analysis: Analysis) -> tuple[list[dict[str, Any]], list[str]]:
    """Who talks to whom by which protocol and port, most packets first, and of which protocols nobody is left out.

    `unanswered` counts connection attempts, datagrams or pings that nothing came back for.
    """
    packets: Counter[tuple[str, str, str, int | None]] = Counter()
    unanswered: Counter[tuple[str, str, str, int | None]] = Counter()
    complete = ["TCP", "UDP", "ICMP"]
    for stream in analysis.tcp.streams if analysis.tcp is not None else ():
        key = (stream.client.endpoint.address, stream.server.endpoint.address, "TCP", stream.server.endpoint.port)
        packets[key] += stream.packets
        unanswered[key] += stream.handshake == "unanswered"
    if analysis.udp is not None:
        talks = {
            (talk.client, talk.server): talk for talk in (*analysis.udp.conversations, *analysis.udp.unanswered)
        }.values()
        if len(talks) < analysis.udp.conversations_total:
            complete.remove("UDP")
        for talk in talks:
            key = (talk.client.address, talk.server.address, "UDP", talk.server.port)
            packets[key] += talk.client_packets + talk.server_packets
            unanswered[key] += 0 if talk.server_packets else talk.client_packets
    if analysis.icmp is not None:
        if len(analysis.icmp.echo_paths) >= MOST_ECHO_PATHS:
            complete.remove("ICMP")
        for path in analysis.icmp.echo_paths:
            packets[path.src, path.dst, "ICMP", None] += path.requests + path.replies
            unanswered[path.src, path.dst, "ICMP", None] += path.unmatched
    rows = [
        {
            "src": source,
            "dst": destination,
            "protocol": protocol,
            **({} if port is None else {"port": port}),
            "packets": number,
            **_present({"unanswered": unanswered[source, destination, protocol, port]}),
        }
        for (source, destination, protocol, port), number in packets.most_common()
    ]
    return rows, complete


def dump(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """JSON with a line for each section and each finding: short for a model, readable for people."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False)

    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {compact(entry)}" for entry in value)
            lines.append(f"{compact(key)}: [\n{entries}\n]")
        else:
            lines.append(f"{compact(key)}: {compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---------------------------------------------------------------------------------------------------- sections


def _document(analysis: Analysis, findings: Sequence[Finding], detail: Detail) -> dict[str, Any]:
    document: dict[str, Any] = {"capture_summary": _capture_summary(analysis)}
    if analysis.arp is not None:
        document["arp"] = _arp(analysis.arp, detail)
    if analysis.icmp is not None:
        document["icmp"] = _icmp(analysis.icmp, detail)
    if analysis.tcp is not None:
        document["tcp"] = _tcp(analysis.tcp, detail)
    if analysis.udp is not None:
        document["udp"] = _udp(analysis.udp, detail)
    if analysis.dns is not None:
        document["dns"] = _dns(analysis.dns, detail)
    document["findings"] = [_finding(finding, detail) for finding in findings]
    return document


def _finding(finding: Finding, detail: Detail) -> dict[str, Any]:
    entry = finding.as_dict()
    entry["remediation"] = entry["remediation"][: detail.remedies]
    entry["evidence"] = entry["evidence"][: detail.evidence]
    return entry


def _capture_summary(analysis: Analysis) -> dict[str, Any]:
    summary = analysis.summary
    entry: dict[str, Any] = {
        "file": text.name(summary.file),
        "sha256": summary.sha256,
        "format": summary.format + (" (gzip)" if summary.compressed else ""),
        "link_type": list(summary.link_types),
        "total_packets": summary.total_packets,
        "duration_seconds": round(summary.duration_seconds, 6),
        "first_timestamp": _moment(summary.first_ns),
        "last_timestamp": _moment(summary.last_ns),
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
        "fragments": summary.fragments,
        "backward_timestamps": summary.backward_timestamps,
        "duplicate_packets": summary.duplicate_packets.count,
        "notes": [text.name(note, 200) for note in summary.notes[:5]],
    }
    return {**entry, **_present(optional)}


def _capture_point(analysis: Analysis) -> str | None:
    """At the client, at the server or between, by the conversations that carried most."""
    if analysis.tcp is None:
        return None
    votes = Counter(stream.capture_point for stream in analysis.tcp.conversations)
    return votes.most_common(1)[0][0] if votes else None


def _arp(arp: ArpSection, detail: Detail) -> dict[str, Any]:
    return {
        "total_requests": arp.total_requests,
        "total_replies": arp.total_replies,
        "gratuitous_arp_count": arp.gratuitous.count,
        "probes": arp.probes,
        "unanswered_requests": [
            {"ip": silent.ip, "count": silent.count} for silent in arp.unanswered_requests[: detail.items]
        ],
        "unanswered_addresses": len(arp.unanswered_requests),
        "duplicate_ip_alerts": [
            {"ip": alert.ip, "macs": list(alert.macs[:5]), "sample_frames": list(alert.sample_frames[:5])}
            for alert in arp.duplicate_ips[: detail.items]
        ],
    }


def _icmp(icmp: IcmpSection, detail: Detail) -> dict[str, Any]:
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
        "rtt_ms": _statistics(icmp.rtt_ms),
        "anomalies": _present(anomalies),
        "unreachable_details": [
            _present(
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
            for e in unreachable[: detail.items]
        ],
        "redirect_details": [
            _present({"src": e.src, "dst": e.dst, "gateway": e.gateway, "for": e.unreachable_dst, "count": e.count})
            for e in redirects[: detail.items]
        ],
        "ttl_exceeded_sources": dict(sources[: detail.items]),
    }
    return {**entry, **_present(optional)}


def _tcp(tcp: TcpSection, detail: Detail) -> dict[str, Any]:
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
        "handshake_rtt_ms": _statistics(tcp.handshake_rtt_ms),
        "ack_rtt_ms": _statistics(tcp.ack_rtt_ms),
        "streams_with_issues_total": len(tcp.streams_with_issues),
        "streams_with_issues": [_issue(stream) for stream in tcp.streams_with_issues[: detail.streams]],
        "conversations": [_conversation(stream) for stream in tcp.conversations[: detail.conversations]],
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
        "src": _endpoint(client),
        "dst": _endpoint(server),
        "packets": stream.packets,
        "bytes": stream.wire_bytes,
    }
    optional: dict[str, Any] = {
        "sni_or_host": text.name(stream.server_name) if stream.server_name else None,
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
        "unanswered_request_ms": _rounded(stream.unanswered_request_ms),
        "ack_rtt_ms": _statistics(client.ack_rtt_ms or server.ack_rtt_ms),
        "response_ms": _statistics(stream.response_ms),
        "delta_ms": _statistics(busier.delta_ms),
        "throughput_bps": round(busier.throughput_bps),
        "mss": min((side.mss for side in (client, server) if side.mss), default=None),
        "window_scale": server.window_scale,
        "sample_frames": frames[:5] or [stream.first_frame],
    }
    return {**entry, **_present(optional)}


def _conversation(stream: Stream) -> dict[str, Any]:
    entry = {
        "stream_id": stream.stream_id,
        "src": _endpoint(stream.client),
        "dst": _endpoint(stream.server),
        "packets": stream.packets,
        "bytes": stream.wire_bytes,
        "seconds": round(stream.duration_seconds, 3),
    }
    rtt = _rounded(stream.handshake_rtt_ms)
    return {**entry, **_present({"handshake_rtt_ms": rtt, "teardown": stream.teardown})}


def _udp(udp: UdpSection, detail: Detail) -> dict[str, Any]:
    return {
        "datagrams": udp.datagrams,
        "payload_bytes": udp.payload_bytes,
        "conversations_total": udp.conversations_total,
        "unanswered_conversations": udp.unanswered_conversations,
        "conversations": [
            {
                "src": _address(talk.client.address, talk.client.port),
                "dst": _address(talk.server.address, talk.server.port),
                "packets": [talk.client_packets, talk.server_packets],
                "bytes": talk.client_bytes + talk.server_bytes,
            }
            for talk in udp.conversations[: min(detail.conversations, 5)]
        ],
    }


def _dns(dns: DnsSection, detail: Detail) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "queries_total": dns.queries_total,
        "responses_total": dns.responses_total,
        "unanswered_queries": dns.unanswered_total,
        "query_type_distribution": dict(list(dns.query_types.items())[: detail.items]),
        "rcode_distribution": dict(dns.rcodes),
        "latency_ms": _statistics(dns.latency_ms),
        "dns_servers_queried": [
            _present(
                {
                    "address": server.address,
                    "queries": server.queries,
                    "unanswered": server.unanswered,
                    "median_ms": _rounded(server.latency_ms.median) if server.latency_ms else None,
                }
            )
            for server in dns.servers[: min(detail.items, 8)]
        ],
        "top_queried_domains": {text.name(name): times for name, times in dns.top_domains[: min(detail.items, 10)]},
        "truncated_responses": dns.truncated_responses,
    }
    optional: dict[str, Any] = {
        "unanswered_names": _names(dns.unanswered, detail),
        "slow_queries": [
            {"name": text.name(query.name), "server": query.server, "ms": _rounded(query.latency_ms)}
            for query in dns.slow[: detail.items]
        ],
        "nxdomain_total": dns.nxdomain_total,
        "nxdomain_domains": _names(dns.nxdomain, detail),
        "servfail_total": dns.servfail_total,
        "servfail_domains": _names(dns.servfail, detail),
        "repeated_queries": dns.repeated_queries,
        "malformed": dns.malformed,
        "mdns_packets": dns.mdns_packets,
        "llmnr_packets": dns.llmnr_packets,
    }
    return {**entry, **_present(optional)}


# ------------------------------------------------------------------------------------------------------- values


def _names(queries: Iterable[DnsQuery], detail: Detail) -> list[str]:
    return list(dict.fromkeys(text.name(query.name) for query in queries))[: min(detail.items, 10)]


def _present(entry: Mapping[str, Any], keep: tuple[str, ...] = ()) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value or key in keep}


def _endpoint(side: Direction) -> str:
    return _address(side.endpoint.address, side.endpoint.port)


def _address(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _statistics(statistics: Statistics | None) -> dict[str, Any] | None:
    if statistics is None:
        return None
    return {
        "count": statistics.count,
        "min": _rounded(statistics.min),
        "median": _rounded(statistics.median),
        "p95": _rounded(statistics.p95),
        "max": _rounded(statistics.max),
    }


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


def _moment(ns: int | None) -> str | None:
    if ns is None:
        return None
    try:
        return isoformat(datetime.fromtimestamp(ns / 1e9, UTC))
    except (OverflowError, ValueError, OSError):  # a clock that was never set, far outside the calendar
        return f"{ns / 1e9:.3f} s since 1970"
