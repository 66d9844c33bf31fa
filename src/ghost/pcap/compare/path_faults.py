"""Faults between two ends of a path as findings: severity, owner and first step, from the cases of findings.toml."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.pcap.compare.path_ends import OneWay, TwoEnds
from ghost.pcap.findings import Finding
from ghost.pcap.findings.finding import SEVERITIES, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, few, rate

_DOWN_PCT, _DEGRADED_PCT = 20.0, 1.0
"""Loss from which a path is as good as down, and from which connections suffer."""


def faults_between(ends: TwoEnds) -> list[Finding]:
    """Return the faults of both directions, worst first."""
    found = [fault for way in ends.ways for fault in _faults(ends, way)]
    return sorted(found, key=lambda fault: (SEVERITIES.index(fault.severity), -fault.weight))


def direction(way: OneWay) -> str:
    return f"from {way.sender} ({few(way.hosts, 2)}) to {way.receiver}"


def size_limit(way: OneWay) -> str:
    """Return the sentence on an MTU black hole; empty where there is none."""
    if way.size_limit is None:
        return ""
    arrived, lost = way.size_limit
    return (
        f"packets above {arrived:,} bytes are lost between {way.sender} and {way.receiver}, smaller ones arrive"
        f" (largest that arrived {arrived:,} bytes, smallest that was lost {lost:,})"
    )


def _faults(ends: TwoEnds, way: OneWay) -> Iterator[Finding]:
    who = Who(way.hosts[0], way.peers[0])

    def fault(case: str, severity: str, title: str, frames: tuple[int, ...], weight: float, blame: str = "") -> Finding:
        return make_finding(
            case, severity=severity, title=title, detail="", who=who, evidence=[frames], confidence="high",
            weight=weight, blame=blame or None, protocol="IP",
        )  # fmt: skip

    lost, near, far = way.lost, way.sender, way.receiver
    if way.size_limit is not None:
        text = size_limit(way)
        yield fault("mtu_black_hole", "HIGH", f"{text[0].upper()}{text[1:]}", lost.frames, lost.count)
    elif not ends.matched and lost:
        title = f"Nothing arrived {direction(way)} of {count(lost.count, 'packet')}"
        yield fault("loss", "HIGH", title, lost.frames, lost.count, "undecided")
    elif lost:
        severity = _severity(way.loss_pct)
        title = f"{lost.count:,} of {count(way.sent, 'packet')} ({rate(way.loss_pct)}) lost between {near} and {far}"
        yield fault("loss", severity, f"{title}, {direction(way)}", lost.frames, lost.count)
    if way.resets_injected:
        title = f"{count(way.resets_injected.count, 'reset')} injected between {near} and {far}, {direction(way)}"
        yield fault("third_party_reset", "HIGH", title, way.resets_injected.frames, way.resets_injected.count)
    for place, elsewhere in ((f"before {near}", way.lost_before), (f"after {far}", way.lost_after)):
        if elsewhere:
            severity = _severity(100.0 * elsewhere.count / max(way.sent, elsewhere.count))
            title = f"{count(elsewhere.count, 'segment')} lost {place}, {direction(way)}"
            yield fault("loss", severity, title, elsewhere.frames, elsewhere.count)
    if way.reordered:
        title = f"{count(way.reordered.count, 'packet')} overtaken by others between {near} and {far}"
        yield fault("reordering", "LOW", title, way.reordered.frames, way.reordered.count)


def _severity(loss_pct: float) -> str:
    return "HIGH" if loss_pct >= _DOWN_PCT else "MEDIUM" if loss_pct >= _DEGRADED_PCT else "LOW"
