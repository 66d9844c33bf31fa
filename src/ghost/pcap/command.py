"""The programs `pcap-forensics` and `ghost pcap`: options in, files and exit status out. It judges nothing.

Exit status: 0 done (also with findings), 1 failed, 2 wrong usage, 130 interrupted. Standard output carries results
alone; progress and errors go to standard error.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import ghost
from ghost.errors import GhostError, UsageError, settle_interrupt
from ghost.pcap.garbage_collection import tune_process
from ghost.pcap.report.output_files import Places, prepare, stem_of, write_all
from ghost.text import did_you_mean, sentence, visible

Opener = Callable[[Path], None]
"""Shows a page to the person at the terminal."""

DESCRIPTION = """\
Reads a packet capture (pcap, pcapng, .cap; gzip too) and reports the faults in it, which side owns each, and the
first step. Writes a summary for machines and reports for people; the capture itself is never changed.
"""

EXAMPLES = """\
what it writes:
  one capture   NAME_semantic.json            what was measured and found, compact, for machines
                NAME_executive_summary.md     the main result, in 50 lines at most
                NAME_forensic_report.md       every finding with its frames, cause and commands
                NAME_report.html              the same with plots and a sequence diagram, in one file
  two captures  both semantic files, A_vs_B_comparison.md, A_vs_B_executive_summary.md, A_vs_B_comparison.html
  a folder      the files of each capture, folder_summary.md and folder_index.html

examples:
  {program} web.pcap
      prints the main fault and the paths of web_semantic.json, web_report.html, ... which it writes here
  {program} web.cap --semantic-dir out --report-dir out/reports
      writes them there instead; missing directories are made
  {program} web.pcap --findings
      prints the findings alone, as JSON of less than 2,000 tokens; writes no file
  {program} web.pcap --json
      writes the files; prints the findings and the paths as one JSON object
  {program} before.pcap --compare after.pcap
      reports what became worse, better, or is new; and, where both captures hold the same packets, which were
      lost, delayed or changed between the two places they were taken
  {program} client.pcap --compare server.pcap --ends
      the same, for captures known to be the two ends of one path, also where nothing arrived
  {program} client.pcap --compare server.pcap --ends --findings
      prints what became of the packets in each direction, as JSON; writes no file
  tcpdump -i eth0 -w - | {program} - --findings
      analyses what comes on standard input when it ends; Ctrl-C ends tcpdump
  {program} captures/
      reads every capture below that folder and prints them worst first; files go to captures_reports/
{open_example}
exit status: 0 done, 1 failed (one line on standard error; for a folder, one per capture that could not be read),
2 wrong usage, 130 interrupted
"""

OPEN_EXAMPLE = """\
  {program} web.pcap --open
      shows the report in a browser when it is written
"""


def main(argv: Sequence[str] | None = None, *, program: str = "pcap-forensics", open_page: Opener | None = None) -> int:
    """Runs the program. `--open` is offered where the caller can open a page."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name must not end the program
    try:
        options = _parser(program, can_open=open_page is not None).parse_args(argv)
    except SystemExit as ended:  # argparse has said why
        return ended.code if isinstance(ended.code, int) else 2
    try:
        with _standard_input(options):
            status = _run(options, open_page)
        sys.stdout.flush()
    except KeyboardInterrupt:
        settle_interrupt()
        return _complain(program, "interrupted", 130)
    except BrokenPipeError:  # the reader of our output has gone; keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except GhostError as error:
        return _complain(program, str(error), error.exit_status)
    except OSError as error:
        return _complain(program, f"{error}: check the path and the permissions", 1)
    except MemoryError:
        return _complain(program, "not enough memory: split the capture (editcap -c) and analyse a part", 1)
    return status


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with the words in one line."""

    def error(self, message: str) -> NoReturn:
        option = message.removeprefix("unrecognized arguments: ").split(" ")[0]
        near = did_you_mean(option, self._option_string_actions)
        self.exit(2, f"{self.prog}: {visible(message)}: {near}see {self.prog} --help.\n")


def _parser(program: str, *, can_open: bool) -> argparse.ArgumentParser:
    open_example = OPEN_EXAMPLE.format(program=program) if can_open else ""
    parser = _Parser(
        prog=program,
        description=DESCRIPTION,
        epilog=EXAMPLES.format(program=program, open_example=open_example),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="Show this message and exit.")
    parser.add_argument(
        "capture",
        type=Path,
        metavar="CAPTURE",
        help="A capture file, - for standard input, or a folder of captures; with --compare, the baseline.",
    )
    parser.add_argument("--compare", type=Path, metavar="CURRENT", help="Compare CAPTURE with this capture.")
    parser.add_argument(
        "--ends",
        action="store_true",
        help="With --compare: the captures are the two ends of one path (detected automatically if they share packets"
        " and hold at most three million).",
    )
    parser.add_argument(
        "--semantic-dir", type=Path, metavar="DIR", help="Write semantic files to this directory (default: this one)."
    )
    parser.add_argument(
        "--report-dir", type=Path, metavar="DIR", help="Write reports to this directory (default: this one)."
    )
    parser.add_argument(
        "--narrator",
        choices=("offline",),
        default="offline",
        help="Author of the prose (default: offline, from the findings alone).",
    )
    parser.add_argument(
        "--jobs", type=_count, default=1, metavar="N", help="Analyse N captures of a folder at once (default: 1)."
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="Analyse each capture on a worker of the Dask cluster at ADDRESS; workers must be able to read it.",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--findings", action="store_true", help="Print the findings as JSON and write no file.")
    output.add_argument("--json", action="store_true", help="Print findings and paths of the written files as JSON.")
    if can_open:
        parser.add_argument("--open", action="store_true", help="Show the HTML report when it is written.")
    parser.add_argument(
        "--version", action="version", version=f"{program} {ghost.__version__}", help="Print the version and exit."
    )
    return parser


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if not 1 <= count <= 64:
        raise argparse.ArgumentTypeError("expected a number from 1 to 64")
    return count


@contextmanager
def _standard_input(options: argparse.Namespace) -> Iterator[None]:
    """Put the path of a temporary file in the place of `-`."""
    given = [name for name in ("capture", "compare") if str(getattr(options, name)) == "-"]
    if len(given) == 2:
        raise UsageError("standard input is one capture: give the other as a file")
    if not given:
        yield
        return
    from ghost.pcap.file.standard_input import saved_standard_input

    with saved_standard_input() as path:
        setattr(options, given[0], path)
        yield


def _run(options: argparse.Namespace, open_page: Opener | None) -> int:
    # Before numpy is imported: threads for linear algebra, of which the engine has none, take a third of its start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tune_process()
    if options.ends and options.compare is None:
        raise UsageError("--ends takes two captures: CAPTURE --compare OTHER --ends")
    if options.dask is not None and (options.findings or options.compare is not None):
        raise UsageError("--dask takes a capture or a folder: leave it out with --findings and with --compare")
    if options.findings:
        _print_findings(options)
        return 0
    folder = options.compare is None and options.capture.is_dir()
    places = _places(options, folder=folder)
    if folder:
        status, page = _folder(options, places)
    elif options.compare is not None:
        status, page = _two_captures(options, places)
    else:
        status, page = _one_capture(options, places)
    if open_page is not None and options.open:
        sys.stdout.flush()
        open_page(page)
    return status


def _places(options: argparse.Namespace, *, folder: bool) -> Places:
    """Return where results go: the current directory, or for a folder of captures a directory of its own."""
    default = Path(f"{options.capture.resolve().name or 'captures'}_reports") if folder else Path()
    reports = options.report_dir or default
    return Places(options.semantic_dir or (reports if folder else default), reports)


# The engine is imported where it is used: --help and a wrong option answer at once.


def _print_findings(options: argparse.Namespace) -> None:
    if options.compare is not None:
        from ghost.pcap.compare.capture_pair import compare_captures

        _print_json(compare_captures(options.capture, options.compare, None, ends=options.ends).document())
        return
    from ghost.pcap.report.semantic import dump, findings_document
    from ghost.pcap.report.single_capture import judge

    sys.stdout.write(dump(findings_document(*judge(options.capture)), ascii_only=True))


def _one_capture(options: argparse.Namespace, places: Places) -> tuple[int, Path]:
    from ghost.pcap.report.capture_facts import headline
    from ghost.pcap.report.capture_workers import reports
    from ghost.pcap.report.single_capture import Report, paths_of

    written = paths_of(stem_of(options.capture), places)
    prepare([options.capture], written.values())
    (report,) = reports([options.capture], dask=options.dask)
    if not isinstance(report, Report):
        raise report
    write_all(dict(zip(written.values(), report.texts, strict=True)))
    if options.json:
        _print_json({**report.document, **{key: str(path) for key, path in written.items()}})
    else:
        _print_lines(headline(report.findings))
        _print_paths(written)
    return 0, written["html_report_path"]


def _two_captures(options: argparse.Namespace, places: Places) -> tuple[int, Path]:
    from ghost.pcap.compare.capture_pair import compare_captures

    pair = compare_captures(options.capture, options.compare, places, ends=options.ends)
    if options.json:
        _print_json(pair.document())
    else:
        _print_lines(pair.headline)
        _print_paths(pair.written)
    return 0, pair.written["html_report_path"]


def _folder(options: argparse.Namespace, places: Places) -> tuple[int, Path]:
    from ghost.pcap.report.capture_folder import judge_folder, table_lines

    folder = judge_folder(options.capture, places, jobs=options.jobs, dask=options.dask)
    if options.json:
        _print_json(folder.document())
    else:
        _print_lines(table_lines(folder))
        _print_paths(folder.written)
    if folder.interrupted:
        sys.stdout.flush()
        raise KeyboardInterrupt
    return (1 if folder.failed else 0), folder.written["html_report_path"]


_COLOURS = {
    "CRITICAL": "1;31", "HIGH": "1;31", "MEDIUM": "1;33", "LOW": "1;36", "INFO": "1;32", "FAILED": "1;31",
    "NOT": "1;33", "NO": "1;33",
}  # fmt: skip


def _print_lines(lines: Sequence[str]) -> None:
    """Print each on one line; on a terminal the leading severity is coloured."""
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line in map(visible, lines):
        word = line.split(" ", 1)[0].rstrip(":")
        if coloured and word in _COLOURS:
            line = f"\x1b[{_COLOURS[word]}m{word}\x1b[0m{line[len(word) :]}"
        sys.stdout.write(line + "\n")


def _print_paths(written: Mapping[str, Path]) -> None:
    for path in written.values():
        sys.stdout.write(visible(str(path)) + "\n")


def _print_json(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _complain(program: str, message: str, status: int) -> int:
    """Print one line on standard error and return `status`; control characters of file names are escaped."""
    sys.stderr.write(f"{program}: {sentence(visible(message))}\n")
    return status
