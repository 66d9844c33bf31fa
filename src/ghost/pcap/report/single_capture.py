"""One capture: analysed, judged, and written down as a semantic file and three reports."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, find
from ghost.pcap.garbage_collection import without_garbage_collection
from ghost.pcap.model import Analysis, CaptureSummary
from ghost.pcap.report.capture_page import html_report
from ghost.pcap.report.markdown_report import executive_summary, forensic_report
from ghost.pcap.report.output_files import Places
from ghost.pcap.report.packet_sequence import sequence
from ghost.pcap.report.progress_bar import Progress
from ghost.pcap.report.semantic import dump, findings_document, semantic
from ghost.text import visible


@dataclass(frozen=True)
class Report:
    """A capture, judged: what tables show of it and the text of its files. It can be sent from another process."""

    summary: CaptureSummary
    findings: tuple[Finding, ...]
    document: dict[str, Any]
    """For machines: the capture in short and the findings."""
    texts: tuple[str, ...]
    """In the order of `paths_of`."""


def judge(path: Path, progress_on: TextIO | None = None) -> tuple[Analysis, tuple[Finding, ...]]:
    """Analyse one capture and judge it, with progress on standard error."""
    with Progress(progress_on or sys.stderr, visible(path.name)) as progress:
        analysis = analyse(path, progress=progress.show)
        progress.stage("judging")
        return analysis, find(analysis)


def paths_of(stem: str, places: Places) -> dict[str, Path]:
    """Return the files of one capture by the name that machines know them by."""
    return {
        "semantic_json_path": places.semantic / f"{stem}_semantic.json",
        "report_path": places.reports / f"{stem}_forensic_report.md",
        "executive_summary_path": places.reports / f"{stem}_executive_summary.md",
        "html_report_path": places.reports / f"{stem}_report.html",
    }


def report_on(path: Path, progress_on: TextIO | None = None) -> Report:
    """Analyse a capture and write its reports, not yet to files."""
    with without_garbage_collection():
        analysis, findings = judge(path, progress_on)
        texts = (
            dump(semantic(analysis, findings)),
            forensic_report(analysis, findings),
            executive_summary(analysis, findings),
            html_report(analysis, findings, sequence(path, analysis, findings)),
        )
        # What restricts a finding holds the analysis, which stays here.
        told = tuple(replace(finding, restrict=None) for finding in findings)
        return Report(analysis.summary, told, findings_document(analysis, findings), texts)
