"""Two captures as one HTML page: what changed, and what happened between them where they are the ends of one path."""

from __future__ import annotations

from collections.abc import Sequence

from ghost.page import Content, Markup, badge, element, facts, section, table
from ghost.pcap import safe_text
from ghost.pcap.compare.comparability import incomparable_reason
from ghost.pcap.compare.comparison_text import METHOD, TWO_PLACES, change, shown, size, verdict
from ghost.pcap.compare.path_ends import TwoEnds
from ghost.pcap.compare.path_ends_report import ends_headline, ends_html
from ghost.pcap.compare.rate_comparison import Capture, Difference, gone, only
from ghost.pcap.findings import Finding
from ghost.pcap.report.capture_facts import OWNERS, faults
from ghost.pcap.report.page_frame import page

_TONES = {"NEW ISSUE": "REGRESSION", "RESOLVED": "IMPROVEMENT"}


def html_comparison(a: Capture, b: Capture, differences: Sequence[Difference], ends: TwoEnds | None) -> str:
    point, tally = verdict(a, b, differences)
    names = [safe_text.name(capture.analysis.summary.file) for capture in (a, b)]
    lead: list[Content] = [element("p", tally)]
    if ends is not None:
        point, *rest = ends_headline(ends)
        lead = [element("p", line) for line in rest]
    new, (resolved, unseen) = only(b.findings, a.findings), gone(a, b)
    fresh = "NEW ISSUE" if ends is None and incomparable_reason(a.analysis) is None else ""
    return page(
        f"{names[0]} and {names[1]}: {point}",
        [
            element(
                "p",
                "Comparison of ",
                element("code", names[0]),
                " (A) and ",
                element("code", names[1]),
                " (B)",
                class_="kicker",
            ),
            element("section", element("h1", point), lead, class_="card verdict", aria_label="Verdict"),
        ],
        [
            facts(
                [(f"{side}: {name}", size(capture)) for side, name, capture in zip("AB", names, (a, b), strict=True)],
                plain=True,
            ),
            ends_html(ends) if ends is not None else None,
            section("Metrics" if ends is None else "Metrics at each end", _metrics(differences, assessed=ends is None)),
            section("Findings only in B", _findings("Findings only in B", new, fresh)),
            section(
                "Findings only in A",
                _findings("Findings only in A", resolved, "RESOLVED" if ends is None else ""),
                _findings("Findings of A about services without traffic in B", unseen, ""),
            ),
            section(
                "Findings in both", _findings("Findings in both", [f for f in faults(b.findings) if f not in new], "")
            ),
            section("Method", element("p", METHOD if ends is None else TWO_PLACES)),
        ],
    )


def _metrics(differences: Sequence[Difference], *, assessed: bool) -> Markup | None:
    if not differences:
        return None
    rows: list[list[Content]] = [[d.metric.name, shown(d.a, d.metric), shown(d.b, d.metric)] for d in differences]
    if not assessed:
        return table("Rates and times at each end", ("Metric", "A", "B"), rows, numbers=(1, 2))
    for row, difference in zip(rows, differences, strict=True):
        row += [change(difference), _assessment(difference.assessment)]
    head = ("Metric", "A", "B", "Change", "Assessment")
    return table("Rates and times side by side, worst change first", head, rows, numbers=(1, 2, 3))


def _assessment(word: str) -> Markup:
    return badge(word, _TONES.get(word, word))


def _findings(caption: str, findings: Sequence[Finding], assessment: str) -> Markup | None:
    if not findings:
        return None
    rows: list[list[Content]] = [
        [
            [_assessment(assessment) if assessment else None, badge(f.severity, f.severity)],
            f.title,
            f.detail,
            OWNERS[f.blame],
            ", ".join(map(str, f.evidence)),
        ]
        for f in findings
    ]
    return table(caption, ("Severity", "Finding", "Detail", "Owner", "Frames"), rows)
