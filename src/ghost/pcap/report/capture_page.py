"""One capture as a self-contained HTML page: verdict, findings, plots, the worst conversation, who talks to whom.

Written from the analysis and the findings alone. Whatever a stranger could have put into a packet is escaped, because
every text goes through `element`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from ghost.page import Content, Markup, badge, element, facts, section, table
from ghost.pcap import safe_text
from ghost.pcap.findings import Finding, Remedy
from ghost.pcap.findings.phrasing import bit_rate, count, duration, percent, rate
from ghost.pcap.kernels.time_series import Series
from ghost.pcap.model import Analysis
from ghost.pcap.report.capture_facts import (
    METHOD,
    OWNERS,
    context,
    kinds_of_traffic,
    limits,
    measurements,
    new_remedies,
    origin,
)
from ghost.pcap.report.conversation_table import conversation_matrix
from ghost.pcap.report.ladder import ladder_diagram
from ghost.pcap.report.packet_arrows import Ladder
from ghost.pcap.report.page_frame import page, verdict
from ghost.pcap.report.time_charts import Line, TimeAxis, moment, time_chart

_OPEN = 3
"""Findings that are shown in full; the others unfold."""


def html_report(analysis: Analysis, findings: Sequence[Finding], ladder: Ladder | None) -> str:
    name = safe_text.name(analysis.summary.file)
    return page(
        f"{name}: {findings[0].title}",
        [element("p", "Forensic report of ", element("code", name), class_="kicker"), verdict(findings)],
        [
            facts(_key_figures(analysis)),
            section("Findings", list(_findings(findings))) if findings[0].kind != "none" or len(findings) > 1 else None,
            section(f"Unusual in it ({findings[0].confidence} confidence)", _list(iter(findings[0].unusual)))
            if findings[0].unusual
            else None,
            section("Over time", element("div", list(_plots(analysis.series)), class_="grid2"))
            if analysis.series is not None
            else None,
            section("Sequence", ladder_diagram(ladder)) if ladder is not None else None,
            section("Who talks to whom", conversation_matrix(analysis.series)) if analysis.series is not None else None,
            section("Measurements", _list(measurements(analysis))),
            section("The capture", facts(_capture(analysis), plain=True), element("p", METHOD)),
        ],
    )


def _key_figures(analysis: Analysis) -> Iterator[tuple[str, str]]:
    summary = analysis.summary
    yield "Packets", f"{summary.total_packets:,}"
    yield "Duration", duration(summary.duration_seconds * 1000)
    if summary.duration_seconds > 0:
        yield "Mean throughput", bit_rate(summary.wire_bytes * 8 / summary.duration_seconds)
    if analysis.tcp is not None:
        totals = analysis.tcp.totals
        yield "TCP streams", f"{len(analysis.tcp.streams):,}"
        yield "Retransmissions", rate(percent(totals.retransmissions, totals.packets)) if totals.packets else "none"
        if analysis.tcp.handshake_rtt_ms is not None:
            yield "Handshake round trip", duration(analysis.tcp.handshake_rtt_ms.median)
    if analysis.dns is not None and analysis.dns.latency_ms is not None:
        yield "DNS latency", duration(analysis.dns.latency_ms.median)


# -------------------------------------------------------------------------------------------------------- findings


def _findings(findings: Sequence[Finding]) -> Iterator[Markup]:
    """Yield the findings as cards, the first ones open, with an overview if there are many."""
    if len(findings) > _OPEN:
        rows: list[list[Content]] = [
            [badge(f.severity, f.severity), element("a", f"{f.id}: {f.title}", href=f"#{f.id}"), OWNERS[f.blame]]
            for f in findings
        ]
        yield table(f"All {len(findings)} findings, worst first", ("Severity", "Finding", "Owner"), rows)
    for place, (finding, fresh) in enumerate(new_remedies(findings)):
        rest: list[tuple[str, Content]] = [
            *context(finding),
            ("Cause", finding.cause),
            ("Owner", f"{OWNERS[finding.blame]} ({finding.confidence} confidence)"),
            ("Frames", _frames(finding)),
            ("What to do", _remedies(fresh) if fresh else "As above." if finding.remediation else None),
        ]
        yield element(
            "details",
            element(
                "summary",
                element("h3", badge(finding.severity, finding.severity), f"{finding.id}: {finding.title}"),
            ),
            element("p", finding.detail),
            element("dl", [[element("dt", name), element("dd", value)] for name, value in rest if value]),
            class_=f"card finding {finding.severity}",
            id=finding.id,
            open=place < _OPEN,
        )


def _frames(finding: Finding) -> Markup | None:
    """Return the frame numbers as a Wireshark display filter."""
    if not finding.evidence:
        return None
    return element("code", f"frame.number in {{{', '.join(map(str, finding.evidence))}}}")


def _remedies(remedies: Sequence[Remedy]) -> Markup:
    return Markup(
        "".join(
            element("div", element("span", f"On {r.run_on}", class_="on"), element("pre", r.command)) for r in remedies
        )
    )


# ----------------------------------------------------------------------------------------------------------- plots


def _plots(series: Series) -> Iterator[Markup]:
    axis = TimeAxis(series.start_ns, series.width_ns, len(series.packets))
    counted = f"packets in {duration(axis.point_seconds * 1000)}"
    trips = series.round_trips
    figures = [
        *_throughput(series, axis),
        time_chart(
            "Acknowledgement round trip", "ms", axis,
            [
                Line("p95", [None if trip is None else trip.p95 for trip in trips], 2),
                Line("median", [None if trip is None else trip.median for trip in trips], 1),
            ],
        ),
        time_chart(
            "Retransmissions and gaps", "", axis,
            [
                Line("retransmissions", axis.summed(series.retransmissions), 2, bars=True),
                Line("segments after a gap", axis.summed(series.gaps), 4),
            ],
            counted,
        ),
        time_chart(
            "Duplicate ACKs and zero windows", "", axis,
            [
                Line("duplicate ACKs", axis.summed(series.duplicate_acks), 4, bars=True),
                Line("zero windows", axis.summed(series.zero_windows), 2, bars=True),
            ],
            counted,
        ),
    ]  # fmt: skip
    yield from (figure for figure in figures if figure is not None)


def _throughput(series: Series, axis: TimeAxis) -> Iterator[Markup | None]:
    """Yield throughput charts: total, and of the busiest host pairs by direction."""
    busiest = [pair for pair in series.busiest if not (_is_noise(pair.a) or _is_noise(pair.b))]
    if len(busiest) != 1:
        total = [moved * 8 / axis.point_seconds for moved in axis.summed(series.wire_bytes)]
        yield time_chart("Throughput of all traffic", "bit/s", axis, [Line("all traffic", total, 1)])
    for pair in busiest:
        pairs = TimeAxis(series.pair_start_ns, series.pair_width_ns, len(pair.a_to_b))
        lines = [
            Line(f"{name} → {peer}", [b * 8 / pairs.point_seconds for b in pairs.summed(moved)], colour)
            for name, peer, moved, colour in ((pair.a, pair.b, pair.a_to_b, 1), (pair.b, pair.a, pair.b_to_a, 3))
        ]
        yield time_chart(f"Throughput between {pair.a} and {pair.b}", "bit/s", pairs, lines)


def _is_noise(address: str) -> bool:
    """Return whether an address is multicast, broadcast (.255 counts), unspecified or link-local."""
    try:
        host = ip_address(address)
    except ValueError:
        return False
    special = host.is_multicast or host.is_unspecified or host.is_link_local
    return special or (host.version == 4 and address.endswith(".255"))


# ------------------------------------------------------------------------------------------------------ the capture


def _list(lines: Iterator[str]) -> Markup | None:
    items = [element("li", line) for line in lines]
    return element("ul", items, class_="card") if items else None


def _capture(analysis: Analysis) -> Iterator[tuple[str, str]]:
    summary = analysis.summary
    yield "File", f"{safe_text.name(summary.file)}, {summary.file_bytes:,} bytes"
    if summary.first_ns is not None:
        yield "First packet", moment(summary.first_ns)
    yield "Traffic", f"{count(summary.total_packets, 'packet')}, {summary.wire_bytes:,} bytes on the wire"
    yield "Protocols", kinds_of_traffic(summary)
    yield "Limits", "; ".join(limits(summary)) or "none"
    yield from origin(analysis)
