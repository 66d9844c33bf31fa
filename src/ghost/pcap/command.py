"""The program `pcap-forensics`: options in, files and exit status out. It judges nothing.

Exit status: 0 done (also with findings), 1 failed, 2 wrong usage, 130 interrupted. Standard output carries results
alone; progress and errors go to standard error.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import ghost
from ghost.errors import ConfigurationError, GhostError, UsageError
from ghost.pcap.progress import Progress
from ghost.pcap.text import printable
from ghost.records import private_dir, write_text

if TYPE_CHECKING:
    from ghost.pcap.model import Analysis

_SUFFIXES = (".gz", ".pcap", ".pcapng", ".cap", ".ntar", ".dmp")

EXAMPLES = """\
examples:
  pcap-forensics web.pcap
      reads web.pcap and writes web_semantic.json, web_forensic_report.md and web_executive_summary.md here
  pcap-forensics web.cap --semantic-dir out --report-dir out/reports
      writes them there instead; missing directories are made
  pcap-forensics before.pcap --compare after.pcap
      writes both semantic files, before_vs_after_comparison.md and before_vs_after_executive_summary.md
  pcap-forensics web.pcap --findings
      prints the findings alone, as JSON of less than 2,000 tokens; writes no file
  pcap-forensics web.pcap --json
      writes the files and prints their paths as one JSON object

exit status: 0 done, 1 failed (one line on standard error), 2 wrong usage, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name must not end the program
    try:
        options = _parser().parse_args(argv)
    except SystemExit as ended:  # argparse has said why
        return ended.code if isinstance(ended.code, int) else 2
    try:
        _run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output has gone; keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except GhostError as error:
        _complain(str(error))
        return error.exit_status
    except OSError as error:
        _complain(f"{error}: check the path and the permissions")
        return 1
    except MemoryError:
        _complain("not enough memory: split the capture (editcap -c) and analyse a part")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pcap-forensics",
        description="Reads a packet capture (pcap, pcapng, .cap; gzip too) and says what is broken in it and whose"
        " it is: a compact summary for machines and two reports for people.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("capture", type=Path, metavar="CAPTURE", help="the capture file; with --compare, the baseline")
    parser.add_argument("--compare", type=Path, metavar="CURRENT", help="compare CAPTURE with this capture")
    parser.add_argument("--semantic-dir", type=Path, metavar="DIR", help="where semantic files go (default: here)")
    parser.add_argument("--report-dir", type=Path, metavar="DIR", help="where reports go (default: here)")
    parser.add_argument(
        "--narrator",
        choices=("offline", "gemini"),
        default="offline",
        help="who writes the prose (default: offline, from the findings alone)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--findings", action="store_true", help="print the findings as JSON and write no file")
    output.add_argument("--json", action="store_true", help="print the paths of the written files as JSON")
    parser.add_argument("--version", action="version", version=f"pcap-forensics {ghost.__version__}")
    return parser


def _run(options: argparse.Namespace) -> None:
    if options.narrator == "gemini":
        raise ConfigurationError(
            "the narrator gemini is not available in this version: leave --narrator out, or use --narrator offline"
        )
    if options.compare is not None and options.findings:
        raise UsageError("--findings takes one capture: leave out --compare, or ask for each capture's findings")
    places = _Places(options.semantic_dir or Path(), options.report_dir or Path())
    if options.findings:
        _print_findings(options.capture)
        return
    for directory in places:
        private_dir(directory)  # before the work, not after it
    if options.compare is None:
        _print_paths(_one_capture(options.capture, places), as_json=options.json)
    else:
        _print_paths(_two_captures(options.capture, options.compare, places), as_json=options.json)


class _Places(NamedTuple):
    semantic: Path
    reports: Path


# The engine is imported where it is used: --help and a wrong option answer at once.


def _analyse(path: Path, progress: Progress) -> Analysis:
    from ghost.pcap.analysis import analyse

    return analyse(path, progress=progress.show)


def _print_findings(path: Path) -> None:
    from ghost.pcap.findings import find
    from ghost.pcap.semantic import dump, findings_document

    with Progress(sys.stderr, _shown(path)) as progress:
        analysis = _analyse(path, progress)
        found = find(analysis)
    sys.stdout.write(dump(findings_document(analysis, found), ascii_only=True))


def _one_capture(path: Path, places: _Places) -> dict[str, Path]:
    from ghost.pcap.findings import find
    from ghost.pcap.report import executive_summary, forensic_report
    from ghost.pcap.semantic import dump, semantic

    with Progress(sys.stderr, _shown(path)) as progress:
        analysis = _analyse(path, progress)
        progress.stage("judging")
        found = find(analysis)
        progress.stage("writing")
        stem = stem_of(path)
        written = {
            "semantic_json_path": places.semantic / f"{stem}_semantic.json",
            "report_path": places.reports / f"{stem}_forensic_report.md",
            "executive_summary_path": places.reports / f"{stem}_executive_summary.md",
        }
        write_text(written["semantic_json_path"], dump(semantic(analysis, found)))
        write_text(written["report_path"], forensic_report(analysis, found))
        write_text(written["executive_summary_path"], executive_summary(analysis, found))
    return written


def _two_captures(baseline: Path, current: Path, places: _Places) -> dict[str, Path]:
    from ghost.pcap.compare import Capture, comparison_report, comparison_summary
    from ghost.pcap.findings import find
    from ghost.pcap.semantic import dump, semantic

    a, b = stem_of(baseline), stem_of(current)
    if a == b:  # the same name in two directories
        a, b = f"{a}_baseline", f"{b}_current"
    captures: list[Capture] = []
    for path in (baseline, current):
        with Progress(sys.stderr, _shown(path)) as progress:
            analysis = _analyse(path, progress)
            progress.stage("judging")
            captures.append(Capture(analysis, find(analysis)))
    written = {
        "baseline_semantic_json_path": places.semantic / f"{a}_semantic.json",
        "current_semantic_json_path": places.semantic / f"{b}_semantic.json",
        "report_path": places.reports / f"{a}_vs_{b}_comparison.md",
        "executive_summary_path": places.reports / f"{a}_vs_{b}_executive_summary.md",
    }
    for key, capture in zip(("baseline_semantic_json_path", "current_semantic_json_path"), captures, strict=True):
        write_text(written[key], dump(semantic(capture.analysis, capture.findings)))
    write_text(written["report_path"], comparison_report(*captures))
    write_text(written["executive_summary_path"], comparison_summary(*captures))
    return written


def stem_of(path: Path) -> str:
    """The file's name without the endings of captures: `web.pcap.gz` gives `web`. Characters that would disturb a
    terminal or a listing become `_`."""
    stem = path.name
    for suffix in _SUFFIXES:
        if stem.lower().endswith(suffix) and len(stem) > len(suffix):
            stem = stem[: -len(suffix)]
    clean = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in stem)
    return clean.encode("utf-8", "replace")[:180].decode("utf-8", "ignore") or "capture"


def _shown(path: Path) -> str:
    return printable(path.name)


def _print_paths(written: dict[str, Path], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({key: str(path) for key, path in written.items()}, indent=2) + "\n")
        return
    for path in written.values():
        sys.stdout.write(printable(str(path)) + "\n")


def _complain(message: str) -> None:
    """One line, whatever a file name holds."""
    sys.stderr.write(f"pcap-forensics: {printable(message)}\n")
