"""Two captures of one service, before and after: rates and ratios with an assessment each.

Counts are not compared, since captures differ in length. A metric that one capture lacks is left out; a difference
within chance is not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ghost.pcap.compare.comparability import CaptureScope
from ghost.pcap.findings import Finding
from ghost.pcap.model import Analysis, Statistics
from ghost.pcap.report.capture_facts import faults
from ghost.policy import load_policy

Assessment = Literal["STABLE", "REGRESSION", "IMPROVEMENT", "NEW ISSUE", "RESOLVED"]
STABLE_BELOW_PCT = 10.0
BEYOND_CHANCE = 2.6
"""Standard errors from which a difference counts: by chance it comes once in a hundred times."""
_ORDER: tuple[Assessment, ...] = ("NEW ISSUE", "REGRESSION", "RESOLVED", "IMPROVEMENT", "STABLE")


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    better: Literal["lower", "higher"]
    floor: float
    key: str = ""
    """Its name in comparison.toml."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of a metric in one capture."""

    value: float
    error: float = 0.0
    """Standard error: how far chance alone moves the value at this number of packets."""


@dataclass(frozen=True)
class Difference:
    metric: Metric
    a: float
    b: float
    noise: float = 0.0
    """A difference that chance explains."""

    @property
    def delta(self) -> float:
        return self.b - self.a

    @property
    def assessment(self) -> Assessment:
        """The assessment: new or resolved faults first, then size and direction of the change."""
        if abs(self.delta) < max(self.metric.floor, self.noise):
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
    """Return the metrics of comparison.toml, in its order."""
    table = load_policy(__file__, "comparison.toml", dict[str, Metric])
    return tuple(replace(metric, key=key) for key, metric in table.items())


def differences(a: Analysis, b: Analysis) -> list[Difference]:
    """Return the metrics that both captures have, worst change first."""
    left, right = measured(a), measured(b)
    found = []
    for metric in metrics():
        if metric.key in left and metric.key in right:
            one, other = left[metric.key], right[metric.key]
            noise = BEYOND_CHANCE * math.hypot(one.error, other.error)
            found.append(Difference(metric, one.value, other.value, noise))
    return sorted(found, key=lambda difference: _ORDER.index(difference.assessment))


def only(these: Sequence[Finding], those: Sequence[Finding]) -> list[Finding]:
    """Return findings of `these` without a counterpart of the same kind, service or direction."""
    known = {_identity(finding) for finding in those}
    return [finding for finding in faults(these) if _identity(finding) not in known]


def gone(a: Capture, b: Capture) -> tuple[list[Finding], list[Finding]]:
    """Return findings of A that B lacks: those B could have shown, and those without traffic in B."""
    missing = only(a.findings, b.findings)
    held = CaptureScope(b.analysis) if missing else None
    shown = [held is not None and held.could_observe(finding) for finding in missing]
    return (
        [finding for finding, could in zip(missing, shown, strict=True) if could],
        [finding for finding, could in zip(missing, shown, strict=True) if not could],
    )


def _identity(finding: Finding) -> tuple[str, str, int | None]:
    return finding.kind, finding.who.dst, finding.who.port


# --------------------------------------------------------------------------------------------------- measurements


def measured(analysis: Analysis) -> dict[str, Measured]:
    """Return the metrics of this capture by their key in comparison.toml."""
    sections = (_tcp, _dns, _icmp, _arp, _http, _tls)
    return dict(pair for section in sections for pair in section(analysis))


def _share(part: int, whole: int) -> Measured:
    """Return a share in percent with its standard error, which counts one more case each way: none of ten is
    not never."""
    likely = (part + 1) / (whole + 2)
    return Measured(100.0 * part / whole, 100.0 * math.sqrt(likely * (1 - likely) / whole))


def _times(name: str, statistics: Statistics | None) -> Iterator[tuple[str, Measured]]:
    """Yield median and p95 with their standard errors."""
    if statistics is None:
        return
    spread = max((statistics.p95 - statistics.median) / 1.645, (statistics.median - statistics.min) / 1.645)
    error = spread / math.sqrt(statistics.count)
    yield f"{name}_median_ms", Measured(statistics.median, 1.25 * error)
    yield f"{name}_p95_ms", Measured(statistics.p95, 2.1 * error)


def _tcp(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    if analysis.tcp is None:
        return
    totals, made = analysis.tcp.totals, analysis.tcp.connections
    if totals.packets:
        for key, number in (
            ("loss_pct", totals.lost_upstream + totals.lost_downstream),
            ("retransmission_pct", totals.retransmissions),
            ("rto_pct", totals.rto_retransmissions),
            ("out_of_order_pct", totals.out_of_order),
            ("duplicate_ack_pct", totals.duplicate_acks),
            ("zero_window_pct", totals.zero_window),
        ):
            yield key, _share(min(number, totals.packets), totals.packets)
    if analysis.tcp.streams:
        yield "reset_pct", _share(made.rst_teardowns, len(analysis.tcp.streams))
    if made.connections_attempted:
        for key, number in (
            ("handshake_success_pct", made.handshakes_completed),
            ("unanswered_syn_pct", made.unanswered_syn),
            ("refused_pct", made.refused),
        ):
            yield key, _share(min(number, made.connections_attempted), made.connections_attempted)
    yield from _times("handshake_rtt", analysis.tcp.handshake_rtt_ms)
    yield from _times("ack_rtt", analysis.tcp.ack_rtt_ms)


def _dns(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    dns = analysis.dns
    if dns is None:
        return
    if dns.queries_total:
        yield "dns_unanswered_pct", _share(dns.unanswered_total, dns.queries_total)
    if dns.responses_total:
        yield "dns_failed_pct", _share(dns.responses_total - dns.rcodes.get("NOERROR", 0), dns.responses_total)
    yield from _times("dns_latency", dns.latency_ms)


def _icmp(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    errors = sum(error.count for error in analysis.icmp.errors) if analysis.icmp else 0
    if analysis.summary.total_packets:
        yield "icmp_errors_pct", _share(errors, analysis.summary.total_packets)
    if analysis.icmp is not None:
        pings = analysis.icmp.echo_pairs_matched + analysis.icmp.echo_unmatched
        if pings:
            yield "ping_loss_pct", _share(analysis.icmp.echo_unmatched, pings)
        yield from _times("ping_rtt", analysis.icmp.rtt_ms)


def _arp(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    if analysis.arp is not None and analysis.arp.total_requests:
        silent = sum(address.count for address in analysis.arp.unanswered_requests)
        yield "arp_unanswered_pct", _share(min(silent, analysis.arp.total_requests), analysis.arp.total_requests)


def _http(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    http = analysis.http
    if http is None:
        return
    if http.responses:
        failed = sum(number for status, number in http.status_distribution.items() if status.startswith("5"))
        yield "http_5xx_pct", _share(min(failed, http.responses), http.responses)
    if http.requests:
        yield "http_unanswered_pct", _share(min(http.unanswered_total, http.requests), http.requests)
    yield from _times("http_response", http.response_ms)


def _tls(analysis: Analysis) -> Iterator[tuple[str, Measured]]:
    tls = analysis.tls
    if tls is not None and tls.client_hellos:
        yield "tls_failure_pct", _share(min(tls.failures_total, tls.client_hellos), tls.client_hellos)
