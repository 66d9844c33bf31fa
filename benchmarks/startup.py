"""How long `ghost` takes to start, as multiples of `python -c "import typer"` in the same run.

All commands run in turns, so that a busy machine slows all of them; the ratios are of medians of the processor's time
(of the command and its children, user and system), which a busy machine disturbs least. Seconds by the clock stand
beside. `ghost shell run` starts a program that ends at once.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 15
GHOST = str(Path(sys.executable).with_name("ghost"))
BASE = "import typer"
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    BASE: ([sys.executable, "-c", BASE], None),
    "ghost --help": ([GHOST, "--help"], 2),
    "ghost shell explain": ([GHOST, "shell", "explain", "dig example.com"], 5),
    "ghost shell explain (az)": ([GHOST, "shell", "explain", "az network nsg list -g a"], 5),
    "ghost shell run": ([GHOST, "shell", "run", "uname -a"], 5),
}


def timed(words: list[str], directory: str) -> tuple[float, float]:
    """Milliseconds by the clock, and of the processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, cwd=directory, capture_output=True, check=True)
    elapsed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> int:
    for name in [name for name in os.environ if name.startswith(("GHOST_", "AZURE_"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as directory:
        for words, _ in COMMANDS.values():
            timed(words, directory)
        turns = [{name: timed(words, directory) for name, (words, _) in COMMANDS.items()} for _ in range(TURNS)]
    medians = {name: [statistics.median(turn[name][kind] for turn in turns) for kind in (0, 1)] for name in COMMANDS}
    within = True
    print(f"{'medians':<28}{'clock':>10}{'processor':>12}{'ratio':>8}{'bound':>7}")
    for name, (_, bound) in COMMANDS.items():
        ratio = medians[name][1] / medians[BASE][1]
        within &= bound is None or ratio <= bound
        print(f"{name:<28}{medians[name][0]:7.0f} ms{medians[name][1]:9.0f} ms{ratio:8.1f}{bound or 1:7.0f}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
