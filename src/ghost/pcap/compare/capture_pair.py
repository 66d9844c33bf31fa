"""Compares two captures: before and after, or the two ends of one path if they share packets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.pcap.compare.comparison_page import html_comparison
from ghost.pcap.compare.comparison_text import (
    comparison_document,
    comparison_headline,
    comparison_report,
    comparison_summary,
)
from ghost.pcap.compare.path_ends import TwoEnds, two_ends
from ghost.pcap.compare.path_ends_report import ends_document, ends_headline, ends_markdown
from ghost.pcap.compare.rate_comparison import Capture, Difference, differences
from ghost.pcap.file.capture_format import check_capture
from ghost.pcap.report.output_files import Places, prepare, stem_of, write_all
from ghost.pcap.report.semantic import dump, semantic
from ghost.pcap.report.single_capture import judge


@dataclass(frozen=True)
class Pair:
    a: Capture
    b: Capture
    table: list[Difference]
    ends: TwoEnds | None
    written: dict[str, Path]

    @property
    def headline(self) -> list[str]:
        """Lines for a terminal: what happened between two ends, else what changed."""
        if self.ends is not None:
            return ends_headline(self.ends)
        return comparison_headline(self.a, self.b, self.table)

    def document(self) -> dict[str, Any]:
        """The result as a JSON document."""
        return {
            **comparison_document(self.a, self.b, self.table),
            **({"two_ends": ends_document(self.ends)} if self.ends is not None else {}),
            **{key: str(path) for key, path in self.written.items()},
        }


def compare_captures(baseline: Path, current: Path, places: Places | None, *, ends: bool) -> Pair:
    """Compare two captures and write the files, to `places`. `ends`: they are two ends of one path."""
    written = _paths_of(baseline, current, places) if places else {}
    for capture in (baseline, current):
        check_capture(capture)  # before the first of them is read, which may take long
    prepare([baseline, current], written.values())
    left, right = Capture(*judge(baseline)), Capture(*judge(current))
    table = differences(left.analysis, right.analysis)
    path = two_ends(baseline, current, left.analysis, right.analysis, certain=ends)
    pair = Pair(left, right, table, path, written)
    if not written:
        return pair
    contents = (
        dump(semantic(left.analysis, left.findings)),
        dump(semantic(right.analysis, right.findings)),
        comparison_report(left, right, table, ends_markdown(path) if path else ()),
        comparison_summary(left, right, table, ends_headline(path) if path else ()),
        html_comparison(left, right, table, path),
    )
    write_all(dict(zip(written.values(), contents, strict=True)))
    return pair


def _paths_of(baseline: Path, current: Path, places: Places) -> dict[str, Path]:
    a, b = stem_of(baseline), stem_of(current)
    if a == b:  # the same name in two directories
        a, b = f"{a}_baseline", f"{b}_current"
    return {
        "baseline_semantic_json_path": places.semantic / f"{a}_semantic.json",
        "current_semantic_json_path": places.semantic / f"{b}_semantic.json",
        "report_path": places.reports / f"{a}_vs_{b}_comparison.md",
        "executive_summary_path": places.reports / f"{a}_vs_{b}_executive_summary.md",
        "html_report_path": places.reports / f"{a}_vs_{b}_comparison.html",
    }
