"""A folder of captures: each is analysed on its own, and the worst comes first.

One capture that cannot be read does not end the run, and an interrupt keeps what is done.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ghost.errors import CaptureError, GhostError
from ghost.page import Content, badge, element, table
from ghost.pcap import safe_text
from ghost.pcap.file.capture_format import GZIP_MAGIC, HEAD_BYTES, is_capture, needs_conversion
from ghost.pcap.findings import Finding
from ghost.pcap.findings.phrasing import count, duration
from ghost.pcap.model import CaptureSummary
from ghost.pcap.report.capture_facts import OWNERS, faults, verdict_word
from ghost.pcap.report.capture_workers import Outcome, reports
from ghost.pcap.report.conversation_table import size as in_bytes
from ghost.pcap.report.output_files import Places, clean, prepare, stem_of, write_all
from ghost.pcap.report.page_frame import page
from ghost.pcap.report.single_capture import Report, paths_of
from ghost.pcap.safe_text import code, markdown
from ghost.text import visible

MOST_CAPTURES = 1000
MOST_FILES = 100_000
"""Looked at; a folder with more is not a folder of captures."""
_MOST_NAMED = 5
_NAMED = re.compile(r"\.(pcap|pcapng|cap|dmp)[0-9]*(\.gz)?$", re.IGNORECASE)
"""How captures are called; tcpdump numbers the files of a long one."""


_ORDER = ("CRITICAL", "HIGH", "MEDIUM", "LOW", "FAILED", "NOT READ", "NO PACKETS", "INFO")
"""Of the table: faults, then captures of which nothing is known, then those without a fault."""
_TONES = {"FAILED": "HIGH", "NOT READ": "MEDIUM", "NO PACKETS": "MEDIUM"}


@dataclass(frozen=True)
class Row:
    """A table row for one capture. Reports are not kept, since a folder may hold many captures."""

    name: str
    """Path below the folder."""
    finding: Finding | None = None
    """The first; None where the capture could not be read."""
    error: str = ""
    faults: int = 0
    summary: CaptureSummary | None = None
    written: dict[str, Path] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """`HIGH`, `NO PACKETS`, `FAILED`."""
        return "FAILED" if self.finding is None else verdict_word(self.finding)

    @property
    def cells(self) -> tuple[str, ...]:
        """What was found, owner, packets, bytes and duration."""
        if self.finding is None or self.summary is None:
            return (self.error, "", "", "", "")
        owner = OWNERS[self.finding.blame] if self.finding.kind != "none" else ""
        size, seconds = self.summary.wire_bytes, self.summary.duration_seconds
        return (
            self.finding.title, owner, f"{self.summary.total_packets:,}", in_bytes(size), duration(seconds * 1000)
        )  # fmt: skip

    def link(self, key: str) -> str | None:
        return quote(self.written[key].name) if self.written else None


@dataclass
class Folder:
    """The captures of a folder, as far as the run got."""

    path: Path
    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left: int = 0
    """Captures not read: interrupted, or beyond the most."""
    interrupted: bool = False
    written: dict[str, Path] = field(default_factory=dict)

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row.finding is None]

    def ranked(self) -> list[Row]:
        """Rows, worst first; among equals by number of faults, then by name."""

        def rank(row: Row) -> tuple[object, ...]:
            weight = 0.0 if row.finding is None else row.finding.weight
            return _ORDER.index(row.word), row.faults == 0, -row.faults, -weight, row.name

        return sorted(self.rows, key=rank)

    @property
    def sentence(self) -> str:
        words = Counter(row.word for row in self.rows)
        said = [count(len(self.rows) - words["FAILED"], "capture")]
        said += [f"{words['NO PACKETS']} without packets"] if words["NO PACKETS"] else []
        said += [f"{words['NOT READ']} not decoded"] if words["NOT READ"] else []
        said += [f"{words['FAILED']} could not be read"] if words["FAILED"] else []
        said += [f"{count(len(self.skipped), 'other file')} skipped"] if self.skipped else []
        said += [f"{self.left} not read ({'interrupted' if self.interrupted else 'too many'})"] if self.left else []
        return ", ".join(said)

    def document(self) -> dict[str, Any]:
        """The result as a JSON document."""
        return {
            "folder": str(self.path),
            "captures": [
                {
                    "capture": row.name,
                    "verdict": row.word,
                    "severity": row.finding.severity,
                    "kind": row.finding.kind,
                    "blame": row.finding.blame,
                    "title": safe_text.name(row.finding.title, 300),
                    "findings": row.faults,
                    "packets": row.summary.total_packets,
                    "bytes": row.summary.wire_bytes,
                    "duration_seconds": round(row.summary.duration_seconds, 6),
                    **{key: str(path) for key, path in row.written.items()},
                }
                for row in self.ranked()
                if row.finding is not None and row.summary is not None
            ],
            "failed": [{"capture": row.name, "error": row.error} for row in self.failed],
            "skipped_files": len(self.skipped),
            "not_read": self.left,
            **{key: str(path) for key, path in self.written.items()},
        }


def judge_folder(path: Path, places: Places, *, jobs: int = 1, dask: str | None = None) -> Folder:
    """Read every capture below `path` and write its reports, a table and an index of them. Raises CaptureError where
    there is none, or where the folder may not be read."""
    folder, root = Folder(path), path.absolute()
    captures = list(_captures(folder, root))
    if not captures:
        if folder.failed:
            raise CaptureError("; ".join(f"{row.name}: {row.error}" for row in folder.failed[:_MOST_NAMED]))
        raise CaptureError(
            f"{path} holds no packet capture ({count(len(folder.skipped), 'other file')}): give a capture, or a folder"
            " with pcap or pcapng files in it"
        )
    folder.left = max(len(captures) - MOST_CAPTURES, 0)
    captures = captures[:MOST_CAPTURES]
    stems = _stems(root, captures)
    folder.written = {
        "summary_path": places.reports / "folder_summary.md",
        "html_report_path": places.reports / "folder_index.html",
    }
    prepare(captures, folder.written.values())
    done = 0
    try:
        for capture, outcome in zip(captures, reports(captures, jobs=jobs, dask=dask), strict=True):
            name = str(capture.relative_to(root))
            folder.rows.append(_row(name, capture, outcome, paths_of(stems[capture], places)))
            done += 1
    except KeyboardInterrupt:
        folder.interrupted, folder.left = True, folder.left + len(captures) - done
    write_all(dict(zip(folder.written.values(), (_markdown(folder), _html(folder)), strict=True)))
    return folder


def _row(name: str, capture: Path, outcome: Outcome, written: dict[str, Path]) -> Row:
    """Write the files of a capture and return its row."""
    try:
        if not isinstance(outcome, Report):
            raise outcome
        prepare([capture], written.values())
        write_all(dict(zip(written.values(), outcome.texts, strict=True)))
    except (GhostError, OSError) as error:
        return _failed(name, str(error))
    return Row(name, outcome.findings[0], "", len(faults(outcome.findings)), outcome.summary, written)


def _failed(name: str, error: str) -> Row:
    sys.stderr.write(f"{visible(name)}: {visible(error)}\n")
    return Row(name, error=visible(error))


def _captures(folder: Folder, root: Path) -> Iterator[Path]:
    """Yield files that begin like a capture, those of another capture format, and those named like one that cannot be
    read or begin otherwise; reading reports why. Hidden files and links to other places are skipped."""

    def locked(error: OSError) -> None:
        name = os.path.relpath(error.filename, root)
        shown = str(folder.path) if name == "." else name
        folder.rows.append(_failed(shown, f"cannot read this folder: {error.strerror}"))

    looked = 0
    for directory, inner, files in os.walk(root, onerror=locked):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(files):
            path = Path(directory) / name
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            looked += 1
            if looked > MOST_FILES:
                return
            if _NAMED.search(name) is not None or _is_capture(path):
                yield path
            else:
                folder.skipped.append(str(path.relative_to(root)))


def _is_capture(path: Path) -> bool:
    """Return whether the file is a capture; unreadable files count as such, so that they are reported."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(GZIP_MAGIC):
            with gzip.open(path) as inside:
                head = inside.read(HEAD_BYTES)
    except PermissionError:
        return True
    except (OSError, EOFError, zlib.error):
        return False
    return is_capture(head) or needs_conversion(path, head) is not None


def _stems(path: Path, captures: Sequence[Path]) -> dict[Path, str]:
    """Return a file name stem for each capture; equal names are distinguished by their directories."""
    plain = [stem_of(capture) for capture in captures]
    stems: dict[Path, str] = {}
    taken: set[str] = set()
    for capture, stem in zip(captures, plain, strict=True):
        if plain.count(stem) > 1:
            stem = clean("_".join([*capture.relative_to(path).parts[:-1], capture.name]))
        unique, number = stem, 2
        while unique in taken:
            unique, number = f"{stem}_{number}", number + 1
        taken.add(unique)
        stems[capture] = unique
    return stems


# --------------------------------------------------------------------------------------------------------- results


def table_lines(folder: Folder) -> list[str]:
    """Return lines for a terminal: one per capture, worst first."""
    width = min(max((len(visible(row.name)) for row in folder.rows), default=0), 48)
    lines = [folder.sentence]
    for row in folder.ranked():
        title, _, packets, *_ = row.cells
        lines.append(f"{row.word:<10} {_fit(visible(row.name), width)}  {packets:>11}  {visible(title)}")
    return lines


def _fit(name: str, width: int) -> str:
    return f"{name:<{width}}" if len(name) <= width else "…" + name[1 - width :]


def _markdown(folder: Folder) -> str:
    lines = [f"# Captures in {code(folder.path.name or str(folder.path))}", "", folder.sentence + ", worst first.", ""]
    lines += [
        "| | Capture | Finding | Owner | Packets | Duration | Report |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in folder.ranked():
        title, owner, packets, _, seconds = row.cells
        report = f"[report]({row.link('report_path')})" if row.written else ""
        lines.append(
            f"| {row.word} | {markdown(safe_text.name(row.name))} | {markdown(title)} | {owner} | {packets} |"
            f" {seconds} | {report} |"
        )
    return "\n".join(lines) + "\n"


def _html(folder: Folder) -> str:
    name = safe_text.name(folder.path.name or str(folder.path))
    rows: list[list[Content]] = []
    for row in folder.ranked():
        shown = safe_text.name(row.name)
        capture = element("a", shown, href=row.link("html_report_path")) if row.written else shown
        rows.append([badge(row.word, _TONES.get(row.word, row.word)), capture, *row.cells])
    head = ("Severity", "Capture", "First finding", "Owner", "Packets", "Bytes", "Duration")
    return page(
        f"Captures in {name}",
        [element("p", "Folder of captures", class_="kicker"), element("h1", name), element("p", folder.sentence)],
        [table("Worst first; each name leads to its report", head, rows, numbers=(4, 5, 6))],
    )
