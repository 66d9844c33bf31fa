"""One capture: analysed, judged, and written down as a semantic file and three reports."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, find
from ghost.pcap.garbage_collection import without_garbage_collection
from ghost.pcap.model import Analysis
from ghost.pcap.report.capture_facts import headline
from ghost.pcap.report.capture_page import html_report
from ghost.pcap.report.markdown_report import executive_summary, forensic_report
from ghost.pcap.report.output_files import Places, prepare, stem_of, write_all
from ghost.pcap.report.packet_sequence import sequence
from ghost.pcap.report.progress_bar import Progress
from ghost.pcap.report.semantic import dump, findings_document, semantic
from ghost.text import visible


@dataclass(frozen=True)
class Judged:
    """A capture, its findings, and the paths of its reports."""

    path: Path
    analysis: Analysis
    findings: tuple[Finding, ...]
    written: dict[str, Path]
    """By the name that machines know it by."""

    @property
    def headline(self) -> list[str]:
        return headline(self.findings)

    def document(self) -> dict[str, Any]:
        """For machines: the capture in short, the findings, and the paths."""
        paths = {key: str(path) for key, path in self.written.items()}
        return {**findings_document(self.analysis, self.findings), **paths}


def judge(path: Path, *, jobs: int = 1, dask: str | None = None) -> tuple[Analysis, tuple[Finding, ...]]:
    """Analyse one capture and judge it, with progress on standard error."""
    with Progress(sys.stderr, visible(path.name)) as progress:
        analysis = analyse(path, progress=progress.show, jobs=jobs, dask=dask)
        progress.stage("judging")
        return analysis, find(analysis)


def paths_of(stem: str, places: Places) -> dict[str, Path]:
    return {
        "semantic_json_path": places.semantic / f"{stem}_semantic.json",
        "report_path": places.reports / f"{stem}_forensic_report.md",
        "executive_summary_path": places.reports / f"{stem}_executive_summary.md",
        "html_report_path": places.reports / f"{stem}_report.html",
    }


def report_on(path: Path, places: Places, stem: str | None = None, *, jobs: int = 1, dask: str | None = None) -> Judged:
    """Analyse a capture and write its four files."""
    written = paths_of(stem or stem_of(path), places)
    prepare([path], written.values())
    with without_garbage_collection():
        analysis, findings = judge(path, jobs=jobs, dask=dask)
        contents = (
            dump(semantic(analysis, findings)),
            forensic_report(analysis, findings),
            executive_summary(analysis, findings),
            html_report(analysis, findings, sequence(path, analysis, findings)),
        )
        write_all(dict(zip(written.values(), contents, strict=True)))
    return Judged(path, analysis, findings, written)
