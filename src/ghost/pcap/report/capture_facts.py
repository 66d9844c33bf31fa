"""Facts of a capture for reports: size, limits, measurements, method.

Text from packets is not escaped here; the caller escapes it for its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import ghost
from ghost.pcap import safe_text
from ghost.pcap.findings import Finding, Remedy
from ghost.pcap.findings.phrasing import clock, count, duration, few, percent, rate, span
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import Analysis, CaptureSummary, Statistics

OWNERS = {
    "network": "the network path",
    "policy": "a filter on the path (policy)",
    "server_application": "the application on the server",
    "server_host": "the server's host",
    "client": "the client",
    "dns": "the name service",
    "undecided": "undecided by this capture",
    "none": "nobody",
}
METHOD = (
    f"Ghost capture engine {ghost.__version__}, deterministic rules, no model. Every packet was analysed; TCP was"
    " analysed packet by packet by Wireshark's definitions, and a repeated segment counts as lost only where the"
    " receiver lacked it. Frame numbers count from 1, as in every capture tool."
)


def size(summary: CaptureSummary) -> str:
    """`136 packets, 98,765 bytes, 2.5 s (ipv4 136, tcp 120)`."""
    return (
        f"{count(summary.total_packets, 'packet')}, {summary.wire_bytes:,} bytes,"
        f" {duration(summary.duration_seconds * 1000)} ({kinds_of_traffic(summary)})"
    )


def kinds_of_traffic(summary: CaptureSummary) -> str:
    kinds = [f"{kind} {packets:,}" for kind, packets in summary.protocols_present.items()]
    return few(kinds, 8) if kinds else "no traffic"


def limits(summary: CaptureSummary) -> Iterator[str]:
    """Yield what this capture cannot show."""
    if summary.cut_packets:
        yield f"{count(summary.cut_packets, 'packet')} cut by the snap length of {summary.snap_length}"
    if summary.dropped_by_capturer:
        yield f"{count(summary.dropped_by_capturer, 'packet')} dropped by the capturer"
    if summary.truncated_record:
        yield "the file ends inside a record"
    if summary.unread:
        yield f"not decoded: {few([f'{each.what} {each.packets:,}' for each in summary.unread], 6)}"
    elif summary.undecoded_packets:
        yield f"{count(summary.undecoded_packets, 'packet')} could not be decoded"
    if summary.fragments:
        yield f"{count(summary.fragments, 'IP fragment')} counted, not reassembled"
    if summary.backward_timestamps:
        yield f"{count(summary.backward_timestamps, 'timestamp')} going back"


def measurements(analysis: Analysis) -> Iterator[str]:
    """Yield one sentence for each measured protocol."""
    if analysis.tcp is not None:
        tcp, totals, made = analysis.tcp, analysis.tcp.totals, analysis.tcp.connections
        yield (
            f"TCP: {count(len(tcp.streams), 'stream')}, {count(made.connections_attempted, 'connection')} opened here:"
            f" {made.handshakes_completed} completed, {made.refused} refused, {made.unanswered_syn} unanswered;"
            f" {count(totals.rst, 'reset')}"
        )
        lost = totals.lost_upstream + totals.lost_downstream
        again = percent(totals.retransmissions, totals.packets)
        yield (
            f"TCP: {count(totals.retransmissions, 'retransmission')} ({rate(again)} of packets), {lost} segments"
            f" lost, {totals.out_of_order} out of order, {count(totals.duplicate_acks, 'duplicate ACK')},"
            f" {totals.zero_window} zero windows"
        )
        if tcp.handshake_rtt_ms is not None:
            yield f"TCP handshake round trip: {_spread(tcp.handshake_rtt_ms)}"
    if analysis.dns is not None:
        dns = analysis.dns
        late = f"; answers after {_spread(dns.latency_ms)}" if dns.latency_ms is not None else ""
        codes = ", ".join(f"{code} {times}" for code, times in dns.rcodes.items())
        yield (
            f"DNS: {count(dns.queries_total, 'query', 'queries')}, {count(dns.responses_total, 'response')}"
            f" ({codes or 'none'}), {dns.unanswered_total} unanswered{late}"
        )
    if analysis.icmp is not None:
        icmp = analysis.icmp
        yield (
            f"ICMP: {count(icmp.packets, 'packet')}, {icmp.echo_pairs_matched} pings answered,"
            f" {icmp.echo_unmatched} not, {count(sum(e.count for e in icmp.errors), 'error message')}"
        )
    if analysis.arp is not None:
        arp = analysis.arp
        yield (
            f"ARP: {count(arp.total_requests, 'request')}, {count(arp.total_replies, 'reply', 'replies')},"
            f" {len(arp.duplicate_ips)} address conflicts"
        )
    if analysis.udp is not None:
        udp = analysis.udp
        yield f"UDP: {count(udp.datagrams, 'datagram')} in {count(udp.conversations_total, 'conversation')}"
    yield from _applications(analysis)


def _applications(analysis: Analysis) -> Iterator[str]:
    if analysis.tls is not None:
        tls = analysis.tls
        late = f"; handshakes took {_spread(tls.handshake_ms)}" if tls.handshake_ms is not None else ""
        yield (
            f"TLS: {count(tls.client_hellos, 'client hello')}, {tls.handshakes_completed} handshakes completed,"
            f" {tls.failures_total} failed{late}"
        )
    if analysis.http is not None:
        http = analysis.http
        late = f"; answers after {_spread(http.response_ms)}" if http.response_ms is not None else ""
        codes = ", ".join(f"{status} {times}" for status, times in http.status_distribution.items())
        yield (
            f"HTTP: {count(http.requests, 'request')}, {count(http.responses, 'answer')} ({codes or 'none'}),"
            f" {http.unanswered_total} unanswered{late}"
        )
    if analysis.dhcp is not None:
        dhcp = analysis.dhcp
        yield (
            f"DHCP: {count(sum(dhcp.messages.values()), 'message')}, {dhcp.unanswered_total} clients unanswered,"
            f" {dhcp.naks.count} refused"
        )


def _spread(statistics: Statistics) -> str:
    return f"median {duration(statistics.median)}, p95 {duration(statistics.p95)}, at most {duration(statistics.max)}"


def origin(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield facts of the file as (name, value)."""
    summary = analysis.summary
    yield "SHA-256 of the file", summary.sha256
    yield "Format", f"{summary.format}, link type {few(summary.link_types) or 'none'}"
    for note in summary.notes[:5]:
        yield "Note", safe_text.name(note, 300)


def faults(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.kind != "none"]


def new_remedies(findings: Iterable[Finding]) -> Iterator[tuple[Finding, list[Remedy]]]:
    """Yield each finding with its commands; those of an earlier finding on the same host are not repeated."""
    asked: set[Remedy] = set()
    for finding in findings:
        fresh = [remedy for remedy in finding.remediation if remedy not in asked]
        asked.update(fresh)
        yield finding, fresh


def context(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield when a finding was seen, the names of its hosts, and what looks unusual, as (heading, text)."""
    if finding.first_ns is not None:
        yield "Time", span(finding.first_ns, finding.last_ns) if finding.last_ns else f"since {clock(finding.first_ns)}"
    if finding.names:
        yield "Names", "; ".join(f"{host} is {name}" for host, name in finding.names.items())
    if finding.unusual:
        yield "Unusual", "; ".join(finding.unusual)


def verdict_word(worst: Finding) -> str:
    """Return the severity, `NOT READ` or `NO PACKETS`; INFO, where no fault was recognised."""
    undecoded = worst.kind == "not_decoded" and worst.measured["not_decoded_pct"] >= threshold("not_decoded.blind_pct")
    if undecoded or (worst.kind == "capture_incomplete" and worst.measured["missing_pct"] == 100):
        return "NOT READ"
    return "NO PACKETS" if worst.kind == "none" and worst.protocol == "capture" else worst.severity


def headline(findings: Sequence[Finding]) -> list[str]:
    """Return the headline: severity and fault, owner, first step, in a few lines of plain text."""
    worst = findings[0]
    lines = [f"{verdict_word(worst)}: {worst.title}"]
    if worst.kind == "none":
        times = [f"  time: {text}" for heading, text in context(worst) if heading == "Time"]
        return lines + times + [f"  unusual: {sentence}" for sentence in worst.unusual]
    lines.append(f"  owner: {OWNERS[worst.blame]}, {worst.confidence} confidence")
    lines += [f"  {heading.lower()}: {text}" for heading, text in context(worst)]
    if worst.remediation:
        lines.append(f"  first step, on {worst.remediation[0].run_on}: {worst.remediation[0].command}")
    more = len(faults(findings[1:]))
    if more:
        lines.append(f"  and {count(more, 'more finding')}")
    return lines
