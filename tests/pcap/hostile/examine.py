"""The whole engine over one capture, in this process: every output is made and must be sound.

`CaptureError` is the one answer besides results. Nothing here knows what a capture holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ghost.errors import CaptureError
from ghost.pcap.analysis import analyse
from ghost.pcap.compare.comparison_page import html_comparison
from ghost.pcap.compare.comparison_text import (
    comparison_document,
    comparison_headline,
    comparison_report,
    comparison_summary,
)
from ghost.pcap.compare.path_ends import two_ends
from ghost.pcap.compare.path_ends_report import ends_document, ends_headline, ends_markdown
from ghost.pcap.compare.rate_comparison import Capture, differences
from ghost.pcap.findings import find
from ghost.pcap.model import Analysis, CaptureSummary
from ghost.pcap.report.capture_facts import headline
from ghost.pcap.report.capture_page import html_report
from ghost.pcap.report.markdown_report import LONGEST_SUMMARY, executive_summary, forensic_report
from ghost.pcap.report.packet_sequence import sequence
from ghost.pcap.report.semantic import FINDINGS_TOKENS, MOST_TOKENS, dump, estimated_tokens, findings_document, semantic

_VOID = {"meta", "br", "hr", "img", "col"}
_ACTIVE = {"script", "iframe", "object", "embed", "base", "link", "form"}
_CONTROL = dict.fromkeys([*range(9), *range(11, 32), 127, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


@dataclass(frozen=True)
class Examined:
    capture: Capture
    outputs: dict[str, str]
    """Everything that would be written or printed."""


def examine(path: Path, *, compile_kernels: bool = False, **sizes: int) -> Examined | None:
    """Results of one capture, each of them sound, or this fails; None where it is refused."""
    try:
        analysis = analyse(path, compile_kernels=compile_kernels, **sizes)  # type: ignore[arg-type]
    except CaptureError as refused:
        assert_shown_safely("refusal", str(refused).replace(str(path), ""))
        return None
    findings = find(analysis)
    assert findings
    outputs = {
        "semantic.json": dump(semantic(analysis, findings)),
        "findings": dump(findings_document(analysis, findings), ascii_only=True),
        "report.md": forensic_report(analysis, findings),
        "summary.md": executive_summary(analysis, findings),
        "report.html": html_report(analysis, findings, sequence(path, analysis, findings)),
        "headline": "\n".join(headline(findings)),
    }
    examined = Examined(Capture(analysis, findings), outputs)
    assert_sound(outputs)
    assert estimated_tokens(outputs["semantic.json"]) <= MOST_TOKENS
    assert estimated_tokens(outputs["findings"]) <= FINDINGS_TOKENS
    assert len(outputs["summary.md"].splitlines()) <= LONGEST_SUMMARY
    return examined


def compare(a: Path, left: Capture, b: Path, right: Capture, *, ends: bool) -> dict[str, str]:
    """Everything that a comparison of two captures would write or print."""
    table = differences(left.analysis, right.analysis)
    between = two_ends(a, b, left.analysis, right.analysis, certain=ends)
    outputs = {
        "comparison.md": comparison_report(left, right, table, ends_markdown(between) if between else ()),
        "comparison_summary.md": comparison_summary(left, right, table, ends_headline(between) if between else ()),
        "comparison.html": html_comparison(left, right, table, between),
        "comparison.json": json.dumps(comparison_document(left, right, table), allow_nan=False),
        "ends.json": json.dumps(ends_document(between) if between else None, allow_nan=False),
        "headline": "\n".join(ends_headline(between) if between else comparison_headline(left, right, table)),
    }
    assert_sound(outputs)
    return outputs


def assert_sound(outputs: dict[str, str]) -> None:
    for name, content in outputs.items():
        content.encode()
        if name.endswith("json") or name == "findings":
            json.loads(content, parse_constant=_no_constant)
        else:
            assert_shown_safely(name, content)
        if name.endswith(".html"):
            _Page().check(content)


def assert_shown_safely(name: str, content: str) -> None:
    """No control character, and none that turns the direction of reading."""
    assert content.translate(_CONTROL) == content, f"{name} holds a control character"


def _no_constant(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


class _Page(HTMLParser):
    """Every element is closed, none is active, and no attribute acts or leads away."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []

    def check(self, content: str) -> None:
        self.feed(content)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag not in _ACTIVE, tag
        for name, value in attributes:
            assert not name.startswith("on"), name
            if name in ("href", "src"):
                assert value is not None
                assert value.startswith(("#", "data:image/")), value
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{tag} closed and not opened"
        opened = self._open.pop()
        assert opened == tag, f"{tag} closed inside of {opened}"


def same(one: Analysis, other: Analysis) -> bool:
    """Whether two ways of reading one file came to the same."""
    return all(
        _plain(getattr(one, part)) == _plain(getattr(other, part))
        for part in ("summary", "udp", "arp", "icmp", "dns", "tls", "http", "dhcp", "services", "series")
    ) and _streams(one) == _streams(other)


def _plain(value: Any) -> str:
    """Which of two damages of a file is noted depends on which is met first."""
    return repr(replace(value, notes=()) if isinstance(value, CaptureSummary) else value)


def _streams(analysis: Analysis) -> str:
    return (
        "" if analysis.tcp is None else repr((analysis.tcp.totals, analysis.tcp.connections, [*analysis.tcp.streams]))
    )
