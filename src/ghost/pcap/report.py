"""Findings as Markdown for the engineer on call: what is broken, whose it is, what to type first.

Written from the analysis and the findings alone. Whatever a stranger could have put into a packet is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ghost
from ghost.pcap import text
from ghost.pcap.findings import Finding, Remedy
from ghost.pcap.findings.words import count, duration, few, rate
from ghost.pcap.model import Analysis, CaptureSummary, Statistics
from ghost.pcap.text import code, markdown

LONGEST_SUMMARY = 50
_SERIOUS = ("CRITICAL", "HIGH")
_WHOSE = {
    "network": "the network path",
    "policy": "a filter on the path (policy)",
    "server_application": "the application on the server",
    "server_host": "the server's host",
    "client": "the client",
    "dns": "the name service",
    "undecided": "not decided by this capture",
    "none": "nobody",
}


def executive_summary(analysis: Analysis, findings: Sequence[Finding]) -> str:
    """The point in the first three lines; 50 lines at most."""
    lines = [
        *_headline(findings, level="#"),
        "",
        *_all_findings(findings),
        "## The capture",
        "",
        *(f"- {line}" for line in _capture_lines(analysis)),
        *(f"- {line}" for line in _measurements(analysis)),
    ]
    return "\n".join(lines[:LONGEST_SUMMARY]) + "\n"


def forensic_report(analysis: Analysis, findings: Sequence[Finding]) -> str:
    lines = [
        f"# Forensic report: {code(text.name(analysis.summary.file))}",
        "",
        "## Executive Summary",
        "",
        *_headline(findings, level="###"),
        "",
        *(f"- {line}" for line in _capture_lines(analysis)),
        "",
        "## Anomaly Table",
        "",
        *_anomaly_table(findings),
        "",
        "## Root Cause Analysis",
        "",
        *_root_causes(findings),
        "## Remediation",
        "",
        *_remediation(findings),
        "## Measurements",
        "",
        *(f"- {line}" for line in _measurements(analysis)),
        "",
        "## Method",
        "",
        *_method(analysis),
    ]
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------------------- parts


def _headline(findings: Sequence[Finding], level: str) -> Iterator[str]:
    worst = findings[0]
    if worst.kind == "none":
        yield f"{level} {'No packets' if worst.protocol == 'capture' else 'Healthy'}: {markdown(worst.title)}"
        yield f"**Seen:** {markdown(worst.detail)}  "
        yield markdown(worst.cause)
        return
    yield f"{level} {worst.severity}: {markdown(worst.title)}"
    yield f"**Seen:** {markdown(worst.detail)}  "
    yield f"**Whose:** {_WHOSE[worst.blame]}, {worst.confidence} confidence. {markdown(worst.cause)}  "
    if worst.remediation:
        yield f"**First step**, on {markdown(worst.remediation[0].run_on)}: {code(worst.remediation[0].command)}"


def _all_findings(findings: Sequence[Finding]) -> Iterator[str]:
    if len(findings) < 2:
        return
    yield f"## All {len(findings)} findings"
    yield ""
    yield "| | Severity | Issue | Whose | Frames |"
    yield "| --- | --- | --- | --- | --- |"
    for finding in findings:
        yield (
            f"| {finding.id} | {finding.severity} | {markdown(finding.title)} | {_WHOSE[finding.blame]} |"
            f" {_frames(finding)} |"
        )
    yield ""


def _anomaly_table(findings: Sequence[Finding]) -> Iterator[str]:
    anomalies = [finding for finding in findings if finding.kind != "none"]
    if not anomalies:
        yield "No anomalies."
        return
    yield "| Severity | Protocol | Issue | Detail | Frames |"
    yield "| --- | --- | --- | --- | --- |"
    for finding in anomalies:
        yield (
            f"| {finding.severity} | {finding.protocol} | {finding.id}: {markdown(finding.title)} |"
            f" {markdown(finding.detail)} | {_frames(finding)} |"
        )


def _root_causes(findings: Sequence[Finding]) -> Iterator[str]:
    serious = [finding for finding in findings if finding.severity in _SERIOUS]
    if not serious:
        yield "Nothing of severity HIGH or CRITICAL was found."
        yield ""
    for finding in serious:
        yield f"### {finding.id}: {markdown(finding.title)}"
        yield ""
        yield f"- **Observation:** {markdown(finding.detail)} Frames: {_frames(finding)}."
        yield f"- **Cause:** {markdown(finding.cause)}"
        yield f"- **Whose:** {_WHOSE[finding.blame]} ({finding.confidence} confidence)"
        yield ""


def _remediation(findings: Sequence[Finding]) -> Iterator[str]:
    """The commands of each finding; what an earlier finding asks for on the same host is not asked for again."""
    asked: set[Remedy] = set()
    for finding in findings:
        fresh = [remedy for remedy in finding.remediation if remedy not in asked]
        asked.update(fresh)
        if not fresh:
            continue
        yield f"**{finding.id}** {markdown(finding.title)}"
        yield ""
        for remedy in fresh:
            yield f"1. On {markdown(remedy.run_on)}: {code(remedy.command)}"
        yield ""
    if not asked:
        yield "Nothing to do."
        yield ""


def _frames(finding: Finding) -> str:
    return ", ".join(str(frame) for frame in finding.evidence) or "–"


def _capture_lines(analysis: Analysis) -> Iterator[str]:
    summary = analysis.summary
    yield (
        f"{code(text.name(summary.file))}: {count(summary.total_packets, 'packet')}, {summary.wire_bytes:,} bytes,"
        f" {duration(summary.duration_seconds * 1000)} ({_kinds_of_traffic(summary)})"
    )
    lacks = list(_lacks(summary))
    if lacks:
        yield "Limits of this capture: " + "; ".join(lacks)


def _kinds_of_traffic(summary: CaptureSummary) -> str:
    kinds = [f"{kind} {packets:,}" for kind, packets in summary.protocols_present.items()]
    return markdown(few(kinds, 8)) if kinds else "no traffic"


def _lacks(summary: CaptureSummary) -> Iterator[str]:
    if summary.cut_packets:
        yield f"{count(summary.cut_packets, 'packet')} cut by the snap length of {summary.snap_length}"
    if summary.dropped_by_capturer:
        yield f"{count(summary.dropped_by_capturer, 'packet')} dropped by the capturer"
    if summary.truncated_record:
        yield "the file ends inside a record"
    if summary.undecoded_packets:
        yield f"{count(summary.undecoded_packets, 'packet')} could not be decoded"
    if summary.fragments:
        yield f"{count(summary.fragments, 'IP fragment')} counted, not reassembled"
    if summary.backward_timestamps:
        yield f"{count(summary.backward_timestamps, 'timestamp')} going back"


def _measurements(analysis: Analysis) -> Iterator[str]:
    if analysis.tcp is not None:
        tcp, totals, made = analysis.tcp, analysis.tcp.totals, analysis.tcp.connections
        yield (
            f"TCP: {count(len(tcp.streams), 'stream')}, {count(made.connections_attempted, 'connection')} opened here:"
            f" {made.handshakes_completed} completed, {made.refused} refused, {made.unanswered_syn} unanswered;"
            f" {count(totals.rst, 'reset')}"
        )
        lost = totals.lost_upstream + totals.lost_downstream
        again = 100 * totals.retransmissions / totals.packets if totals.packets else 0.0
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
        codes = ", ".join(f"{markdown(code_)} {times}" for code_, times in dns.rcodes.items())
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


def _spread(statistics: Statistics) -> str:
    return f"median {duration(statistics.median)}, p95 {duration(statistics.p95)}, at most {duration(statistics.max)}"


def _method(analysis: Analysis) -> Iterator[str]:
    yield (
        f"Ghost capture engine {ghost.__version__}, deterministic rules, no model. Every packet was read; TCP was"
        " analysed packet by packet by Wireshark's definitions, and a repeated segment counts as lost only where the"
        " receiver lacked it."
    )
    yield ""
    yield f"- SHA-256 of the file: {code(analysis.summary.sha256)}"
    yield f"- Format: {analysis.summary.format}, link type {markdown(few(analysis.summary.link_types) or 'none')}"
    for note in analysis.summary.notes[:5]:
        yield f"- {markdown(text.name(note, 300))}"
    yield "- Frame numbers count from 1, as in every capture tool."
