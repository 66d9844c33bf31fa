"""Two captures as one HTML page: what changed, and what happened between them where they are the ends of one path."""

from __future__ import annotations

from collections.abc import Sequence

from ghost.pcap import text
from ghost.pcap.compare import Capture, Difference, faults, only
from ghost.pcap.comparison_report import METHOD, change, shown, size, verdict
from ghost.pcap.ends_report import ends_headline, ends_html
from ghost.pcap.facts import WHOSE
from ghost.pcap.findings import Finding
from ghost.pcap.markup import Content, Markup, element
from ghost.pcap.page import badge, facts, page, section, table
from ghost.pcap.two_ends import TwoEnds

_TONES = {"NEW ISSUE": "REGRESSION", "RESOLVED": "IMPROVEMENT"}


def html_comparison(a: Capture, b: Capture, differences: Sequence[Difference], ends: TwoEnds | None) -> str:
    point, tally = verdict(a, b, differences)
    names = [text.name(capture.analysis.summary.file) for capture in (a, b)]
    lead: list[Content] = [element("p", tally)]
    if ends is not None:
        point, lead = "Two ends of one path", [element("p", line) for line in ends_headline(ends)]
    new, gone = only(b.findings, a.findings), only(a.findings, b.findings)
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
            section("Metrics", _metrics(differences)),
            section("Findings only in B", _findings("New findings", new, "NEW ISSUE")),
            section("Findings only in A", _findings("Findings that are gone", gone, "RESOLVED")),
            section(
                "Findings in both", _findings("Findings in both", [f for f in faults(b.findings) if f not in new], "")
            ),
            section("Method", element("p", METHOD)),
        ],
    )


def _metrics(differences: Sequence[Difference]) -> Markup | None:
    if not differences:
        return None
    rows: list[list[Content]] = [
        [d.metric.name, shown(d.a, d.metric), shown(d.b, d.metric), change(d), _assessment(d.assessment)]
        for d in differences
    ]
    return table(
        "Rates and times side by side, worst change first",
        ("Metric", "A", "B", "Change", "Assessment"),
        rows,
        numbers=(1, 2, 3),
    )


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
            WHOSE[f.blame],
            ", ".join(map(str, f.evidence)),
        ]
        for f in findings
    ]
    return table(caption, ("Severity", "Finding", "Detail", "Whose", "Frames"), rows)
