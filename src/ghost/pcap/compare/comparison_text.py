"""A comparison as text: Markdown, a line for a terminal, and a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ghost
from ghost.pcap import safe_text
from ghost.pcap.compare.comparability import incomparable_reason
from ghost.pcap.compare.rate_comparison import STABLE_BELOW_PCT, Capture, Difference, Metric, gone, only
from ghost.pcap.findings import Finding
from ghost.pcap.findings.phrasing import at, count, duration
from ghost.pcap.report.capture_facts import faults, headline
from ghost.pcap.safe_text import code, markdown

METHOD = (
    f"Ghost capture engine {ghost.__version__}. Rates and ratios, not counts. STABLE: changed by less than"
    f" {STABLE_BELOW_PCT:.0f}%, by less than the metric's noise floor, or by no more than chance explains at these"
    " numbers of packets. NEW ISSUE and RESOLVED: from none to some and from some to none."
)
TWO_PLACES = (
    f"Ghost capture engine {ghost.__version__}. Packets were matched by addresses, IP id and sequence numbers, through"
    " address translation; the clocks were compared by the fastest packets of both ways. A packet counts as lost"
    " between the ends only where the other capture was running and did not see it, nor its bytes in other segments."
    " Loss before the first and after the second capture is concluded from sequence numbers and acknowledgements."
)


def comparison_report(a: Capture, b: Capture, table: list[Difference], ends: Sequence[str] = ()) -> str:
    """Return the comparison as Markdown.

    `ends`: Markdown lines about the path between the captures, if they are its two ends.
    """
    new, (resolved, unseen) = only(b.findings, a.findings), gone(a, b)
    lines = [f"# Comparison: {_name(a)} (A) and {_name(b)} (B)", ""]
    lines += ends or [*_verdict(a, b, table, "##"), ""]
    lines += ["## Metrics at each end", ""] if ends else []
    lines += [
        *_table(table, assessed=not ends),
        "",
        f"## Findings only in B{'' if ends else ' (new)'}",
        "",
        *_finding_lines(new, "" if ends or incomparable_reason(a.analysis) else "NEW ISSUE, "),
        "",
        f"## Findings only in A{'' if ends else ' (gone)'}",
        "",
        *_lines_gone(resolved, unseen, assessed=not ends),
        "",
        "## Findings in both",
        "",
        *_finding_lines([f for f in faults(b.findings) if f not in new]),
        "",
        "## Method",
        "",
        TWO_PLACES if ends else METHOD,
        "",
        f"- A: {size(a)}",
        f"- B: {size(b)}",
    ]
    return "\n".join(lines) + "\n"


def comparison_summary(a: Capture, b: Capture, table: list[Difference], ends: Sequence[str] = ()) -> str:
    """Return the summary, 50 lines at most, with the result first.

    `ends`: plain lines about the path between the captures.
    """
    new, (resolved, unseen) = only(b.findings, a.findings), gone(a, b)
    lines = [f"# {markdown(ends[0])}", *(f"- {markdown(line.strip())}" for line in ends[1:])] if ends else []
    lines += [] if ends else _verdict(a, b, table, "#")
    lines += [
        "",
        f"- A: {_name(a)}, {size(a)}",
        f"- B: {_name(b)}, {size(b)}",
        "",
        "## Findings only in B" if ends else "## New findings in B",
        "",
        *_finding_lines(new[:10]),
        "",
        "## Findings only in A" if ends else "## Gone since A",
        "",
        *_lines_gone(resolved[:8], unseen[: 8 - len(resolved[:8])], assessed=False),
        "",
    ]
    changed = [difference for difference in table if difference.assessment != "STABLE"]
    lines += _table(changed, assessed=not ends) if changed else []
    return "\n".join(lines[:50]) + "\n"


def _table(table: Sequence[Difference], *, assessed: bool) -> list[str]:
    """Return the table of metrics; two ends of one path differ but do not change, so they get no assessment."""
    if not assessed:
        rows = [f"| {d.metric.name} | {shown(d.a, d.metric)} | {shown(d.b, d.metric)} |" for d in table]
        return ["| Metric | A | B |", "| --- | --- | --- |", *rows]
    return ["| Metric | A | B | Delta | Assessment |", "| --- | --- | --- | --- | --- |", *map(_row, table)]


def verdict(a: Capture, b: Capture, table: Sequence[Difference]) -> tuple[str, str]:
    """`Worse: now ...`, and how much of what; plain text."""
    worse = [d for d in table if d.assessment in ("NEW ISSUE", "REGRESSION")]
    better = [d for d in table if d.assessment in ("RESOLVED", "IMPROVEMENT")]
    new, (resolved, unseen) = only(b.findings, a.findings), gone(a, b)
    tally = (
        f"{count(len(new), 'new finding')}, {len(resolved)} gone; {count(len(worse), 'metric')} worse,"
        f" {len(better)} better, {len(table) - len(worse) - len(better)} stable."
    )
    for side, capture in (("A", a), ("B", b)):
        reason = incomparable_reason(capture.analysis)
        if reason is not None:
            return f"Not comparable: {side} {reason}", tally
    if unseen:
        tally += f" {count(len(unseen), 'finding')} of A cannot be compared: B holds no traffic of the service."
    if unseen and not (new or worse or better or resolved):
        return (
            f"Not comparable: B holds no traffic of {at(unseen[0].who.dst, unseen[0].who.port)}, where A shows:"
            f" {unseen[0].title}",
            f"{tally} If they are the two ends of one path, add --ends.",
        )
    if new or worse:
        word = "Worse" if not (better or resolved) else "Changed"
    else:
        word = "Better" if better or resolved else "Stable"
    return word + _point(new, resolved, worse, better), tally


def comparison_headline(a: Capture, b: Capture, table: Sequence[Difference]) -> list[str]:
    """For a terminal."""
    point, tally = verdict(a, b, table)
    new = only(b.findings, a.findings)
    if new and incomparable_reason(a.analysis) is None and incomparable_reason(b.analysis) is None:
        word, *steps = headline(new[:1])
        return [f"{word.split(':')[0]}: {point}", *steps, f"  {tally}"]
    return [point, f"  {tally}"]


def comparison_document(a: Capture, b: Capture, table: Sequence[Difference]) -> dict[str, Any]:
    """The result as a JSON document."""
    point, _ = verdict(a, b, table)
    return {
        "verdict": safe_text.name(point, 300),
        "metrics": [
            {
                "metric": d.metric.key,
                "unit": d.metric.unit,
                "a": round(d.a, 6),
                "b": round(d.b, 6),
                "delta": round(d.delta, 6),
                "assessment": d.assessment,
            }
            for d in table
        ],
        "new_findings": [_finding(finding) for finding in only(b.findings, a.findings)],
        "resolved_findings": [_finding(finding) for finding in gone(a, b)[0]],
        "findings_without_traffic_in_b": [_finding(finding) for finding in gone(a, b)[1]],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    keys = ("id", "kind", "severity", "blame", "title", "who", "evidence")
    return {key: value for key, value in finding.as_dict().items() if key in keys}


def _verdict(a: Capture, b: Capture, table: Sequence[Difference], level: str) -> Iterator[str]:
    point, tally = verdict(a, b, table)
    yield f"{level} {markdown(point)}"
    yield tally


def _point(new: list[Finding], resolved: list[Finding], worse: list[Difference], better: list[Difference]) -> str:
    if new:
        return f": now {new[0].title}"
    if worse:
        return f": {_sentence(worse[0])}"
    if resolved:
        return f": no longer {resolved[0].title}"
    return f": {_sentence(better[0])}" if better else ""


def _sentence(difference: Difference) -> str:
    metric = difference.metric
    return f"{metric.name} from {shown(difference.a, metric)} to {shown(difference.b, metric)}"


def change(difference: Difference) -> str:
    return f"{'+' if difference.delta >= 0 else '−'}{shown(abs(difference.delta), difference.metric)}"


def _row(difference: Difference) -> str:
    metric = difference.metric
    return (
        f"| {metric.name} | {shown(difference.a, metric)} | {shown(difference.b, metric)} |"
        f" {change(difference)} | {difference.assessment} |"
    )


def shown(number: float, metric: Metric) -> str:
    return f"{number:.2f}{metric.unit}" if metric.unit == "%" else f"{number:.3g} {metric.unit}"


def _finding_lines(findings: Sequence[Finding], assessment: str = "") -> list[str]:
    return [f"- {assessment}{f.severity}: {markdown(f.title)}. {markdown(f.detail)}" for f in findings] or ["None."]


def _lines_gone(resolved: Sequence[Finding], unseen: Sequence[Finding], *, assessed: bool) -> list[str]:
    if not unseen:
        return _finding_lines(resolved, "RESOLVED, " if assessed else "")
    lines = _finding_lines(unseen, "NO SUCH TRAFFIC IN B, ")
    return [*(_finding_lines(resolved, "RESOLVED, " if assessed else "") if resolved else ()), *lines]


def _name(capture: Capture) -> str:
    return code(safe_text.name(capture.analysis.summary.file))


def size(capture: Capture) -> str:
    summary = capture.analysis.summary
    return f"{count(summary.total_packets, 'packet')} in {duration(summary.duration_seconds * 1000)}"
