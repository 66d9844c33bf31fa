"""Two captures of one service, before and after: rates and ratios side by side, each with an assessment.

Raw counts are not compared: captures are of different lengths. A metric that one capture cannot give is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import ghost
from ghost.pcap import text
from ghost.pcap.findings import Finding
from ghost.pcap.findings.words import count, duration, percent
from ghost.pcap.model import Analysis, Statistics
from ghost.pcap.text import code, markdown

Assessment = Literal["STABLE", "REGRESSION", "IMPROVEMENT", "NEW ISSUE", "RESOLVED"]
STABLE_BELOW_PCT = 10.0
_ORDER: tuple[Assessment, ...] = ("NEW ISSUE", "REGRESSION", "RESOLVED", "IMPROVEMENT", "STABLE")


@dataclass(frozen=True)
class Metric:
    key: str
    name: str
    unit: str
    better: Literal["lower", "higher"]
    floor: float


@dataclass(frozen=True)
class Difference:
    metric: Metric
    a: float
    b: float

    @property
    def delta(self) -> float:
        return self.b - self.a

    @property
    def assessment(self) -> Assessment:
        """Of a fault that is new or gone, then of a change by its size and direction."""
        floor = self.metric.floor
        if abs(self.delta) < floor:
            return "STABLE"
        if self.metric.unit == "%" and self.metric.better == "lower":
            if self.a == 0:
                return "NEW ISSUE"
            if self.b == 0:
                return "RESOLVED"
        if self.a and abs(self.delta) / self.a * 100 < STABLE_BELOW_PCT:
            return "STABLE"
        worse = self.delta > 0 if self.metric.better == "lower" else self.delta < 0
        return "REGRESSION" if worse else "IMPROVEMENT"


@dataclass(frozen=True)
class Capture:
    """One side of a comparison."""

    analysis: Analysis
    findings: Sequence[Finding]


def metrics() -> tuple[Metric, ...]:
    table = tomllib.loads((Path(__file__).parent / "comparison.toml").read_text(encoding="utf-8"))
    return tuple(Metric(key, row["name"], row["unit"], row["better"], row["floor"]) for key, row in table.items())


def differences(a: Analysis, b: Analysis) -> list[Difference]:
    """What both captures can say, worst change first."""
    left, right = values(a), values(b)
    found = [Difference(m, left[m.key], right[m.key]) for m in metrics() if m.key in left and m.key in right]
    return sorted(found, key=lambda difference: _ORDER.index(difference.assessment))


def values(analysis: Analysis) -> dict[str, float]:
    """Every metric this capture can give, by its key in comparison.toml."""
    return dict(
        [*_tcp_values(analysis), *_dns_values(analysis), *_icmp_values(analysis), *_arp_values(analysis)],
    )


def _tcp_values(analysis: Analysis) -> Iterator[tuple[str, float]]:
    if analysis.tcp is None:
        return
    totals, made = analysis.tcp.totals, analysis.tcp.connections
    for key, number in (
        ("loss_pct", totals.lost_upstream + totals.lost_downstream),
        ("retransmission_pct", totals.retransmissions),
        ("rto_pct", totals.rto_retransmissions),
        ("out_of_order_pct", totals.out_of_order),
        ("duplicate_ack_pct", totals.duplicate_acks),
        ("zero_window_pct", totals.zero_window),
    ):
        yield key, percent(number, totals.packets)
    yield "reset_pct", percent(made.rst_teardowns, len(analysis.tcp.streams))
    if made.connections_attempted:
        yield "handshake_success_pct", percent(made.handshakes_completed, made.connections_attempted)
        yield "unanswered_syn_pct", percent(made.unanswered_syn, made.connections_attempted)
        yield "refused_pct", percent(made.refused, made.connections_attempted)
    yield from _times("handshake_rtt", analysis.tcp.handshake_rtt_ms)
    yield from _times("ack_rtt", analysis.tcp.ack_rtt_ms)


def _dns_values(analysis: Analysis) -> Iterator[tuple[str, float]]:
    dns = analysis.dns
    if dns is None:
        return
    if dns.queries_total:
        yield "dns_unanswered_pct", percent(dns.unanswered_total, dns.queries_total)
    if dns.responses_total:
        yield "dns_failed_pct", percent(dns.responses_total - dns.rcodes.get("NOERROR", 0), dns.responses_total)
    yield from _times("dns_latency", dns.latency_ms)


def _icmp_values(analysis: Analysis) -> Iterator[tuple[str, float]]:
    errors = sum(error.count for error in analysis.icmp.errors) if analysis.icmp else 0
    if analysis.summary.total_packets:
        yield "icmp_errors_pct", percent(errors, analysis.summary.total_packets)
    if analysis.icmp is not None:
        pings = analysis.icmp.echo_pairs_matched + analysis.icmp.echo_unmatched
        if pings:
            yield "ping_loss_pct", percent(analysis.icmp.echo_unmatched, pings)
        yield from _times("ping_rtt", analysis.icmp.rtt_ms)


def _arp_values(analysis: Analysis) -> Iterator[tuple[str, float]]:
    if analysis.arp is not None and analysis.arp.total_requests:
        silent = sum(address.count for address in analysis.arp.unanswered_requests)
        yield "arp_unanswered_pct", percent(silent, analysis.arp.total_requests)


def _times(name: str, statistics: Statistics | None) -> Iterator[tuple[str, float]]:
    if statistics is not None:
        yield f"{name}_median_ms", statistics.median
        yield f"{name}_p95_ms", statistics.p95


# ------------------------------------------------------------------------------------------------------- reports


def comparison_report(a: Capture, b: Capture) -> str:
    table = differences(a.analysis, b.analysis)
    lines = [
        f"# Comparison: {_name(a)} (A) and {_name(b)} (B)",
        "",
        *_verdict(a, b, table, "##"),
        "",
        "| Metric | A | B | Delta | Assessment |",
        "| --- | --- | --- | --- | --- |",
        *(_row(difference) for difference in table),
        "",
        "## Findings only in B (new)",
        "",
        *_finding_lines(_only(b.findings, a.findings)),
        "",
        "## Findings only in A (gone)",
        "",
        *_finding_lines(_only(a.findings, b.findings)),
        "",
        "## Findings in both",
        "",
        *_finding_lines([f for f in _faults(b.findings) if f not in _only(b.findings, a.findings)]),
        "",
        "## Method",
        "",
        f"Ghost capture engine {ghost.__version__}. Rates and ratios, not counts. STABLE: changed by less than"
        f" {STABLE_BELOW_PCT:.0f}% or less than the metric's noise floor. NEW ISSUE and RESOLVED: from none to some and"
        " from some to none.",
        f"- A: {_size(a)}",
        f"- B: {_size(b)}",
    ]
    return "\n".join(lines) + "\n"


def comparison_summary(a: Capture, b: Capture) -> str:
    """The point in the first lines; 50 lines at most."""
    table = differences(a.analysis, b.analysis)
    changed = [difference for difference in table if difference.assessment != "STABLE"]
    lines = [
        *_verdict(a, b, table, "#"),
        "",
        f"- A: {_name(a)}, {_size(a)}",
        f"- B: {_name(b)}, {_size(b)}",
        "",
        "## New findings in B",
        "",
        *_finding_lines(_only(b.findings, a.findings)[:10]),
        "",
        "## Gone since A",
        "",
        *_finding_lines(_only(a.findings, b.findings)[:8]),
        "",
    ]
    if changed:
        lines += ["| Metric | A | B | Delta | Assessment |", "| --- | --- | --- | --- | --- |"]
        lines += [_row(difference) for difference in changed]
    return "\n".join(lines[:50]) + "\n"


def _verdict(a: Capture, b: Capture, table: list[Difference], level: str) -> Iterator[str]:
    worse = [d for d in table if d.assessment in ("NEW ISSUE", "REGRESSION")]
    better = [d for d in table if d.assessment in ("RESOLVED", "IMPROVEMENT")]
    new, gone = _only(b.findings, a.findings), _only(a.findings, b.findings)
    if new or worse:
        word = "Worse" if not (better or gone) else "Changed"
    else:
        word = "Better" if better or gone else "Stable"
    yield f"{level} {word}{_point(new, gone, worse, better)}"
    yield (
        f"{count(len(new), 'new finding')}, {len(gone)} gone; {count(len(worse), 'metric')} worse,"
        f" {len(better)} better, {len(table) - len(worse) - len(better)} stable."
    )


def _point(new: list[Finding], gone: list[Finding], worse: list[Difference], better: list[Difference]) -> str:
    if new:
        return f": now {markdown(new[0].title)}"
    if worse:
        return f": {_sentence(worse[0])}"
    if gone:
        return f": no longer {markdown(gone[0].title)}"
    return f": {_sentence(better[0])}" if better else ""


def _sentence(difference: Difference) -> str:
    metric = difference.metric
    return f"{metric.name} from {_value(difference.a, metric)} to {_value(difference.b, metric)}"


def _row(difference: Difference) -> str:
    metric = difference.metric
    sign = "+" if difference.delta >= 0 else "−"
    return (
        f"| {metric.name} | {_value(difference.a, metric)} | {_value(difference.b, metric)} |"
        f" {sign}{_value(abs(difference.delta), metric)} | {difference.assessment} |"
    )


def _value(number: float, metric: Metric) -> str:
    return f"{number:.2f}{metric.unit}" if metric.unit == "%" else f"{number:.3g} {metric.unit}"


def _faults(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.kind != "none"]


def _only(these: Sequence[Finding], those: Sequence[Finding]) -> list[Finding]:
    """Faults of `these` that have no counterpart: the same kind about the same service or direction."""
    known = {_identity(finding) for finding in those}
    return [finding for finding in _faults(these) if _identity(finding) not in known]


def _identity(finding: Finding) -> tuple[str, str, int | None]:
    return finding.kind, finding.who.dst, finding.who.port


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    return [f"- {f.severity}: {markdown(f.title)}. {markdown(f.detail)}" for f in findings] or ["None."]


def _name(capture: Capture) -> str:
    return code(text.name(capture.analysis.summary.file))


def _size(capture: Capture) -> str:
    summary = capture.analysis.summary
    return f"{count(summary.total_packets, 'packet')} in {duration(summary.duration_seconds * 1000)}"
