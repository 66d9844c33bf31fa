"""A folder of captures: each is analysed on its own, and the worst comes first.

One capture that cannot be read does not end the run, and an interrupt keeps what is done.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ghost.errors import CaptureError, GhostError
from ghost.pcap import safe_text
from ghost.pcap.findings import Finding
from ghost.pcap.findings.finding import SEVERITIES
from ghost.pcap.findings.phrasing import count, duration
from ghost.pcap.report.capture_facts import OWNERS, faults, verdict_word
from ghost.pcap.report.conversation_table import size as in_bytes
from ghost.pcap.report.markup import Content, element
from ghost.pcap.report.output_files import Places, clean, prepare, stem_of, write_all
from ghost.pcap.report.page_frame import badge, page, section, table
from ghost.pcap.report.single_capture import Judged, report_on
from ghost.pcap.safe_text import code, markdown
from ghost.text import visible

MOST_CAPTURES = 1000
MOST_FILES = 100_000
"""Looked at; a folder with more is not a folder of captures."""
_MOST_NAMED = 5
_MAGIC = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a")
_NAMED = re.compile(r"\.(pcap|pcapng|cap|dmp)[0-9]*(\.gz)?$", re.IGNORECASE)
"""How captures are called; tcpdump numbers the files of a long one."""


@dataclass(frozen=True)
class Row:
    """A table row for one capture. Analyses are not kept, since a folder may hold many captures."""

    name: str
    """Path below the folder."""
    finding: Finding
    faults: int
    packets: int
    wire_bytes: int
    seconds: float
    written: dict[str, Path]


@dataclass
class Folder:
    """The captures of a folder, as far as the run got."""

    path: Path
    rows: list[Row] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left: int = 0
    """Captures not read: interrupted, or beyond the most."""
    interrupted: bool = False
    written: dict[str, Path] = field(default_factory=dict)

    def ranked(self) -> list[Row]:
        """Rows, worst first; among equals by number of faults, then by name."""
        return sorted(
            self.rows,
            key=lambda row: (
                SEVERITIES.index(row.finding.severity),
                row.finding.kind == "none",
                -row.faults,
                -row.finding.weight,
                row.name,
            ),
        )

    @property
    def sentence(self) -> str:
        said = [count(len(self.rows), "capture")]
        said += [f"{len(self.failed)} could not be read"] if self.failed else []
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
                    "severity": row.finding.severity,
                    "kind": row.finding.kind,
                    "blame": row.finding.blame,
                    "title": safe_text.name(row.finding.title, 300),
                    "findings": row.faults,
                    "packets": row.packets,
                    "bytes": row.wire_bytes,
                    "duration_seconds": round(row.seconds, 6),
                    **{key: str(path) for key, path in row.written.items()},
                }
                for row in self.ranked()
            ],
            "failed": [{"capture": name, "error": error} for name, error in self.failed],
            "skipped_files": len(self.skipped),
            "not_read": self.left,
            **{key: str(path) for key, path in self.written.items()},
        }


def judge_folder(path: Path, places: Places) -> Folder:
    """Read every capture below `path` and write its reports, a table and an index of them. Raises CaptureError where
    there is none, or where the folder may not be read."""
    folder = Folder(path)
    captures = list(_captures(folder))
    if not captures:
        if folder.failed:
            raise CaptureError("; ".join(f"{name}: {error}" for name, error in folder.failed[:_MOST_NAMED]))
        raise CaptureError(
            f"{path} holds no packet capture ({count(len(folder.skipped), 'other file')}): give a capture, or a folder"
            " with pcap or pcapng files in it"
        )
    for name, error in folder.failed:
        _say(name, error)
    folder.left = max(len(captures) - MOST_CAPTURES, 0)
    captures = captures[:MOST_CAPTURES]
    stems = _stems(path, captures)
    folder.written = {
        "summary_path": places.reports / "folder_summary.md",
        "html_report_path": places.reports / "folder_index.html",
    }
    prepare(captures, folder.written.values())
    for done, capture in enumerate(captures):
        name = str(capture.relative_to(path))
        try:
            folder.rows.append(_row(name, report_on(capture, places, stems[capture])))
        except KeyboardInterrupt:
            folder.interrupted, folder.left = True, folder.left + len(captures) - done
            break
        except (GhostError, OSError) as error:
            folder.failed.append((name, visible(str(error))))
            _say(name, str(error))
    write_all(dict(zip(folder.written.values(), (_markdown(folder), _html(folder)), strict=True)))
    return folder


def _say(name: str, error: str) -> None:
    sys.stderr.write(f"{visible(name)}: {visible(error)}\n")


def _row(name: str, judged: Judged) -> Row:
    summary = judged.analysis.summary
    return Row(
        name=name,
        finding=judged.findings[0],
        faults=len(faults(judged.findings)),
        packets=summary.total_packets,
        wire_bytes=summary.wire_bytes,
        seconds=summary.duration_seconds,
        written=judged.written,
    )


def _captures(folder: Folder) -> Iterator[Path]:
    """Yield files that begin like a capture, and those named like one that cannot be read or begin otherwise; reading
    reports why. Hidden files and links to other places are skipped."""

    def locked(error: OSError) -> None:
        name = os.path.relpath(error.filename, folder.path)
        folder.failed.append((str(folder.path) if name == "." else name, f"cannot read this folder: {error.strerror}"))

    looked = 0
    for directory, inner, files in os.walk(folder.path, onerror=locked):
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
                folder.skipped.append(str(path.relative_to(folder.path)))


def _is_capture(path: Path) -> bool:
    """Return whether the file is a capture; unreadable files count as such, so that they are reported."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
        if head[:2] == b"\x1f\x8b":
            with gzip.open(path) as inside:
                head = inside.read(4)
    except PermissionError:
        return True
    except (OSError, EOFError, zlib.error):
        return False
    return head in _MAGIC


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
    rows = folder.ranked()
    names = [*(row.name for row in rows), *(name for name, _ in folder.failed)]
    width = min(max((len(visible(name)) for name in names), default=0), 48)
    lines = [folder.sentence]
    for row in rows:
        word = verdict_word(row.finding)
        lines.append(f"{word:<10} {_fit(visible(row.name), width)}  {row.packets:>11,}  {visible(row.finding.title)}")
    lines += [f"{'FAILED':<10} {_fit(visible(name), width)}  {'':>11}  {error}" for name, error in folder.failed]
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
        report = quote(row.written["report_path"].name)
        lines.append(
            f"| {row.finding.severity} | {markdown(safe_text.name(row.name))} | {markdown(row.finding.title)} |"
            f" {OWNERS[row.finding.blame]} | {row.packets:,} | {duration(row.seconds * 1000)} | [report]({report}) |"
        )
    lines += [
        f"| FAILED | {markdown(safe_text.name(name))} | {markdown(error)} | | | | |" for name, error in folder.failed
    ]
    return "\n".join(lines) + "\n"


def _html(folder: Folder) -> str:
    name = safe_text.name(folder.path.name or str(folder.path))
    rows: list[list[Content]] = [
        [
            badge(verdict_word(row.finding), row.finding.severity),
            element("a", safe_text.name(row.name), href=quote(row.written["html_report_path"].name)),
            row.finding.title,
            OWNERS[row.finding.blame],
            f"{row.packets:,}",
            in_bytes(row.wire_bytes),
            duration(row.seconds * 1000),
        ]
        for row in folder.ranked()
    ]
    head = ("Severity", "Capture", "First finding", "Owner", "Packets", "Bytes", "Duration")
    failed = [[safe_text.name(name), error] for name, error in folder.failed]
    return page(
        f"Captures in {name}",
        [element("p", "Folder of captures", class_="kicker"), element("h1", name), element("p", folder.sentence)],
        [
            table("Worst first; each name leads to its report", head, rows, numbers=(4, 5, 6)),
            section("Not read", table("Files that could not be read", ("File", "Why"), failed)) if failed else None,
        ],
    )
