"""Damaged captures through the whole engine until as many ran as were asked for; every failure is kept.

python -m benchmarks.pcap_fuzz hypothesis --runs 25000 --seed 1     steps drawn by hypothesis
python -m benchmarks.pcap_fuzz atheris --runs 25000 --seed 1        guided by coverage of the engine's Python code
python -m benchmarks.pcap_fuzz replay FILE                          one kept failure

Each run analyses, judges and writes every report, and compares the damaged capture with the sound one, also as two ends
of a path; every eighth run reads it again with other buffers, every so many with compiled kernels, and
must come to the same. A run may take 5 s of processor time and 1 GB more memory than the process had.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

if "atheris" in sys.argv[1:2]:
    import atheris

    # Coverage is counted in what is imported inside.
    with atheris.instrument_imports(include=["ghost.pcap"], enable_loader_override=False):
        from tests.pcap.hostile.examine import Examined, compare, examine, same
else:
    from tests.pcap.hostile.examine import Examined, compare, examine, same

from tests.conftest import SHARED_CAPTURES
from tests.pcap.hostile.mutations import damaged, mutated
from tests.pcap.hostile.seeds import SEEDS, seed
from tests.pcap.wire import Record, pcap

ASKED_ONLY = True  # as long as it is asked to run

MOST_SECONDS = 5
MOST_BYTES = 1 << 30
_WINDOW = 40
"""Packets of a recorded capture that are taken at once."""


class TookTooLong(BaseException):
    """No handler of the engine may take this for one of its own."""


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong(f"more than {MOST_SECONDS} s of processor time")


@contextmanager
def limited() -> Iterator[None]:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@dataclass
class Count:
    runs: int = 0
    refused: int = 0
    again: int = 0
    compiled: int = 0
    slowest: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)


class Fuzz:
    """Runs the engine over bytes and counts."""

    def __init__(self, directory: Path, keep: Path, compiled_every: int) -> None:
        self._sound, self._damaged = directory / "sound.pcap", directory / "damaged.pcap"
        self._keep, self._compiled_every = keep, compiled_every
        self._originals: dict[bytes, Examined] = {}
        self.count = Count()

    def run(self, octets: bytes, original: bytes) -> None:
        began = time.process_time()
        try:
            with limited():
                self._run(octets, original)
        except (Exception, TookTooLong) as failure:  # noqa: BLE001  # whatever it is, it is what is looked for
            self._note(failure, octets, original)
        self.count.runs += 1
        self.count.slowest = max(self.count.slowest, time.process_time() - began)

    def _note(self, failure: BaseException, octets: bytes, original: bytes) -> None:
        """Keep the first capture of each failure, by where it happened, and go on."""
        place = traceback.extract_tb(failure.__traceback__)[-1]
        name = f"{type(failure).__name__}-{Path(place.filename).stem}-{place.lineno}"
        if name not in self.count.failures:
            kept = self._keep / name
            kept.mkdir(parents=True, exist_ok=True)
            (kept / "damaged.pcap").write_bytes(octets)
            (kept / "sound.pcap").write_bytes(original)
            print(f"FAILURE {name}, kept in {kept}", file=sys.stderr)
            traceback.print_exception(failure)
        self.count.failures[name] = self.count.failures.get(name, 0) + 1

    def _run(self, octets: bytes, original: bytes) -> None:
        self._damaged.write_bytes(octets)
        examined = examine(self._damaged)
        if examined is None:
            self.count.refused += 1
            return
        self._sound.write_bytes(original)
        if original not in self._originals:
            if len(self._originals) > 500:
                self._originals.clear()
            sound = examine(self._sound)
            assert sound is not None
            self._originals[original] = sound
        sound = self._originals[original]
        ends = self.count.runs % 2 == 1
        compare(self._sound, sound.capture, self._damaged, examined.capture, ends=ends)
        if self.count.runs % 8 == 0:
            other = examine(self._damaged, buffer_bytes=4096, batch_packets=7)
            assert other is not None
            assert same(examined.capture.analysis, other.capture.analysis), "other buffers, other results"
            self.count.again += 1
        if self._compiled_every and self.count.runs % self._compiled_every == 0:
            other = examine(self._damaged, compile_kernels=True)
            assert other is not None
            assert same(examined.capture.analysis, other.capture.analysis), "compiled kernels see something else"
            self.count.compiled += 1


def corpus(directories: Sequence[Path]) -> list[list[Record]]:
    """Made captures, and windows of recorded ones."""
    made = [list(seed(name)) for name in SEEDS]
    for directory in directories:
        for path in sorted(directory.glob("*.pcap")):
            records = _records(path.read_bytes())
            for begin in sorted({0, len(records) // 3, max(len(records) - _WINDOW, 0)}):
                if records[begin:]:
                    made.append(records[begin : begin + _WINDOW])
    return made


def _records(octets: bytes) -> list[Record]:
    """Of a little-endian Ethernet capture; others give nothing."""
    unit = {b"\xd4\xc3\xb2\xa1": 1000, b"\x4d\x3c\xb2\xa1": 1}.get(octets[:4])
    records: list[Record] = []
    at = 24
    while unit and octets[20:24] == b"\1\0\0\0" and at + 16 <= len(octets) and len(records) < 5000:
        seconds, part, size = (int.from_bytes(octets[at + n : at + n + 4], "little") for n in (0, 4, 8))
        records.append((seconds * 10**9 + part * unit, octets[at + 16 : at + 16 + size]))
        at += 16 + size
    return records


def with_hypothesis(fuzz: Fuzz, seeds: list[list[Record]], runs: int, number: int) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as fixed
    from hypothesis import strategies as st

    steps = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8)
    report = progress(fuzz, runs)

    def one(chosen: int, drawn: list[int]) -> None:
        records = seeds[chosen]
        fuzz.run(mutated(records, drawn), pcap(records))
        report()

    # In rounds: hypothesis remembers every example, and slows.
    for round_number in range(-(-runs // 500)):
        settled = settings(
            max_examples=min(500, runs - round_number * 500), deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=(Phase.generate,),
        )  # fmt: skip
        test: Callable[[], None] = given(st.integers(0, len(seeds) - 1), steps)(one)
        fixed(number * 1000 + round_number)(settled(test))()


def with_atheris(fuzz: Fuzz, seeds: list[list[Record]], runs: int, number: int, directory: Path) -> None:
    """Atheris damages files; one in two of its own is a step that knows the formats, over a seed."""
    begun = directory / "corpus"
    begun.mkdir()
    originals = [pcap(records) for records in seeds]
    for n, original in enumerate(originals):
        (begun / f"{n:04}").write_bytes(original)
    report = progress(fuzz, runs)

    def change(data: bytes, most: int, dice: int) -> bytes:
        chance = random.Random(dice)
        if chance.random() < 0.4:
            return mutated(chance.choice(seeds), [chance.randrange(1 << 32) for _ in range(chance.randrange(1, 6))])[
                :most
            ]
        if chance.random() < 0.5:
            return damaged(data, chance)[:most]
        return bytes(atheris.Mutate(data, most))

    def one(data: bytes) -> None:
        fuzz.run(data, originals[len(data) % len(originals)])
        report()
        # Atheris ends the process by itself, with success where nothing was raised.
        assert fuzz.count.runs < runs or not fuzz.count.failures, fuzz.count

    atheris.Setup(
        [sys.argv[0], f"-runs={runs}", f"-seed={number}", "-max_len=70000", "-timeout=120", "-rss_limit_mb=3000",
         f"-artifact_prefix={directory}/", "-print_final_stats=1", str(begun)],
        one, custom_mutator=change,
    )  # fmt: skip
    atheris.Fuzz()


def progress(fuzz: Fuzz, runs: int) -> Callable[[], None]:
    began = time.monotonic()

    def report() -> None:
        if fuzz.count.runs % 1000 == 0 or fuzz.count.runs == runs:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{time.monotonic() - began:.0f} s, peak {peak} MB, {fuzz.count}", flush=True)

    return report


def main(arguments: Sequence[str] = ("hypothesis",)) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pcap_fuzz")
    parser.add_argument("driver", choices=("hypothesis", "atheris", "replay"))
    parser.add_argument("file", nargs="?", type=Path, help="replay: the damaged capture")
    parser.add_argument("--runs", type=int, default=25_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--captures", type=Path, action="append", default=[], help="directories of recorded captures")
    parser.add_argument("--compiled-every", type=int, default=50, help="0: never; needs numba")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failure"), help="where a failure's capture is kept")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    signal.signal(signal.SIGPROF, _too_long)
    with tempfile.TemporaryDirectory(prefix="ghost-fuzz-") as temporary:
        directory = Path(temporary)
        fuzz = Fuzz(directory, options.keep, options.compiled_every)
        if options.compiled_every:  # compile before any limit holds
            (directory / "first.pcap").write_bytes(pcap(seed("lossy")))
            examine(directory / "first.pcap", compile_kernels=True)
        if options.driver == "replay":
            sound = options.file.with_name("sound.pcap")
            for _ in range(8):  # each of the ways
                fuzz.run(options.file.read_bytes(), sound.read_bytes() if sound.is_file() else pcap(seed("web")))
            return int(bool(fuzz.count.failures))
        seeds = corpus([SHARED_CAPTURES, *options.captures])
        print(f"{options.driver}: {len(seeds)} seeds, seed number {options.seed}", flush=True)
        drive = partial(with_atheris, directory=directory) if options.driver == "atheris" else with_hypothesis
        drive(fuzz, seeds, options.runs, options.seed)
    return int(bool(fuzz.count.failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
