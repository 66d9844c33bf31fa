"""The whole capture engine as a process against one tshark pass, on mixed captures of one and of four million packets.

python -m benchmarks pcap            or: make bench-pcap; needs tshark, 4 GB below the temporary directory, ten minutes
python -m benchmarks.pcap --part     a million packets only

The engine reads, analyses, judges and writes every report; its kernels lie compiled in the cache. tshark extracts the
fields of its TCP analysis, which need one pass. Time is wall time and memory the peak of the process, both as ratios of
the same run: engine and tshark take turns, so that what else runs on the machine slows both.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import pcap_render

ASKED_ONLY = True  # minutes, and gigabytes of disk

FIELDS = (
    "frame.number", "tcp.stream", "tcp.analysis.retransmission", "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission", "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack",
    "tcp.analysis.zero_window", "tcp.analysis.window_full", "tcp.analysis.keep_alive", "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment", "tcp.analysis.ack_rtt",
)  # fmt: skip
ENGINE = "from ghost.pcap.command import main; import sys; sys.exit(main(sys.argv[1:]))"
WITHOUT_NUMBA = f"import sys; sys.modules['numba'] = None; {ENGINE}"


@dataclass(frozen=True)
class Run:
    seconds: float
    peak_mb: float


def run(command: Sequence[str], **environment: str) -> Run:
    started = time.monotonic()
    program = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **environment}
    )
    assert program.stderr is not None
    complaint = program.stderr.read()
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {complaint.decode(errors='replace').strip()}")
    return Run(time.monotonic() - started, usage.ru_maxrss / 1024)


def engine(capture: Path, *options: str, program: str = ENGINE, **environment: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as out:
        places = ("--semantic-dir", out, "--report-dir", out)
        return run((sys.executable, "-c", program, str(capture), *places, *options), **environment)


def tshark(capture: Path) -> Run:
    fields = [word for field in FIELDS for word in ("-e", field)]
    return run(("tshark", "-r", str(capture), "-T", "fields", *fields))


def median(runs: Sequence[Run]) -> Run:
    return Run(statistics.median(run.seconds for run in runs), statistics.median(run.peak_mb for run in runs))


class Bounds:
    def __init__(self) -> None:
        self.held = True

    def line(self, what: str, found: float, bound: str, holds: bool) -> None:
        self.held &= holds
        print(f"  {what}: {found:.2f} ({bound}){'' if holds else '  NOT HELD'}", flush=True)


def against_tshark(packets: int, repeats: int, wanted: float, bounds: Bounds) -> Run:
    capture = pcap_render.cached(packets)
    print(f"{packets:,} packets, {capture.stat().st_size / 1e6:,.0f} MB", flush=True)
    engine(capture)  # compiles the kernels where they are not in the cache, and reads the file into memory
    ours = [engine(capture)]
    theirs = [tshark(capture)]
    ours += [engine(capture) for _ in range(repeats)]
    mine, peer = median(ours), median(theirs)
    for name, found in (("engine", mine), ("tshark", peer)):
        print(f"  {name}: {found.seconds:.2f} s, {found.peak_mb:,.0f} MB", flush=True)
    bounds.line("times as fast as tshark", peer.seconds / mine.seconds, f"at least {wanted:g}",
                peer.seconds >= wanted * mine.seconds)  # fmt: skip
    bounds.line("of tshark's memory", mine.peak_mb / peer.peak_mb, "less than 1", mine.peak_mb < peer.peak_mb)
    return peer


def compare_jobs(captures: int, repeats: int, bounds: Bounds) -> None:
    """A folder of captures of 5,000 packets, one and two at once."""
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as folder:
        for number in range(captures):
            shutil.copy(pcap_render.cached(5000), Path(folder, f"{number}.pcap"))
        one, two = [], []
        for _ in range(repeats):
            one.append(engine(Path(folder), "--jobs", "1"))
            two.append(engine(Path(folder), "--jobs", "2"))
    single, double = median(one), median(two)
    print(f"  {captures} captures, --jobs 1: {single.seconds:.2f} s; --jobs 2: {double.seconds:.2f} s")
    bounds.line("times as fast with two", single.seconds / double.seconds, "at least 1.3",
                single.seconds >= 1.3 * double.seconds)  # fmt: skip


def start_up(bounds: Bounds) -> None:
    small, large = pcap_render.cached(5000), pcap_render.cached(1_000_000)
    with tempfile.TemporaryDirectory(prefix="ghost-bench-") as empty:
        cold = median([engine(small, XDG_CACHE_HOME=empty) for _ in range(5)])
        bounds.line("seconds for 5,000 packets, nothing cached", cold.seconds, "under 1", cold.seconds < 1)
        first = engine(large, XDG_CACHE_HOME=empty)
        warm = engine(large, XDG_CACHE_HOME=empty)
        print(f"  compiling the kernels once: {first.seconds - warm.seconds:.1f} s")


def without_numba(peer: Run, bounds: Bounds) -> None:
    slow = engine(pcap_render.cached(1_000_000), program=WITHOUT_NUMBA)
    bounds.line("times as fast as tshark without numba", peer.seconds / slow.seconds, "at least 0.5",
                2 * peer.seconds >= slow.seconds)  # fmt: skip


def main(arguments: Mapping[str, bool] | None = None) -> int:
    if shutil.which("tshark") is None:
        print("tshark is not installed: apt-get install tshark", file=sys.stderr)
        return 1
    bounds = Bounds()
    peer = against_tshark(1_000_000, 4, 15, bounds)
    without_numba(peer, bounds)
    start_up(bounds)
    if not (arguments or {}).get("part"):
        against_tshark(4_000_000, 2, 25, bounds)
        peak = engine(pcap_render.cached(4_000_000)).peak_mb
        bounds.line("MB at four million packets", peak, "at most 400", peak <= 400)
        compare_jobs(100, 3, bounds)
    return 0 if bounds.held else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="store_true", help="a million packets only")
    sys.exit(main(vars(parser.parse_args())))
