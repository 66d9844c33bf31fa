"""The frame of the engine's HTML reports, and the verdict that each begins with."""

from __future__ import annotations

from collections.abc import Sequence

import ghost
from ghost.page import Content, Markup, document, element
from ghost.pcap.findings import Finding
from ghost.pcap.report.capture_facts import OWNERS, verdict_word


def page(title: str, header: Content, main: Content) -> str:
    """A whole document; `header` holds its only first-level heading."""
    footer = f"Written by the Ghost capture engine {ghost.__version__}. No payload is shown."
    return document(title, main, footer, header=header)


def verdict(findings: Sequence[Finding]) -> Markup:
    """Return the verdict card: severity, title, owner and first step."""
    worst = findings[0]
    healthy = worst.kind == "none"
    lines: list[Content] = [element("p", element("b", "Seen: "), worst.detail)]
    if healthy:
        lines.append(element("p", worst.cause))
    else:
        owner = f"{OWNERS[worst.blame]}, {worst.confidence} confidence. {worst.cause}"
        lines.append(element("p", element("b", "Owner: "), owner))
    if not healthy and worst.remediation:
        first = worst.remediation[0]
        lines.append(element("p", element("b", "First step"), f", on {first.run_on}:"))
        lines.append(element("pre", first.command))
    return element(
        "section",
        element("h1", element("span", verdict_word(worst), class_="badge"), worst.title),
        lines,
        class_=f"card verdict {worst.severity}",
        aria_label="Verdict",
    )
