"""What the shell adds to a command: `execute` beside a bare `subprocess.run` of the same words.

All run in turns, so that a busy machine slows all of them; the figures are medians, those of what is added are medians
of the differences within a turn. Classification, sandbox, redaction and the fsynced audit are in it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ghost.shell import SafeExecShell

COMMANDS = ["ip -br addr", "ss -tan", "ss -tulpn", "ping -c 1 127.0.0.1", "dig -v"]
TURNS = 101
BOUND_MS = 10.0


def timed_ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def turns(command: str, confined: SafeExecShell, unconfined: SafeExecShell) -> list[tuple[float, float, float]]:
    """The milliseconds of each way to run the command, turn by turn: bare, in a sandbox, without one."""
    words, request = command.split(), {"command": command, "reasoning": "to measure"}
    ways: tuple[Callable[[], object], ...] = (
        lambda: subprocess.run(words, capture_output=True),
        lambda: confined.execute(request),
        lambda: unconfined.execute(request),
    )
    return [(timed_ms(ways[0]), timed_ms(ways[1]), timed_ms(ways[2])) for _ in range(TURNS)]


def fsync_ms(directory: Path) -> float:
    with (directory / "disk").open("wb", buffering=0) as file:
        return statistics.median(timed_ms(lambda: (file.write(b"x"), os.fsync(file.fileno()))) for _ in range(51))


def main() -> int:
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        confined = SafeExecShell("confined", audit_dir=Path(name) / "a", roots=[name])
        unconfined = SafeExecShell("unconfined", audit_dir=Path(name) / "b", roots=[name], sandbox="off")
        print(f"{'ms, medians':<22}{'bare':>8}{'execute':>9}{'added':>8}{'ratio':>7}{'added, no sandbox':>19}  layers")
        for command in COMMANDS:
            if shutil.which(command.split()[0]) is None:
                continue
            layers = confined.execute({"command": command, "reasoning": "to warm up"})["sandbox"]
            measured = turns(command, confined, unconfined)
            bare, inside = (statistics.median(turn[way] for turn in measured) for way in (0, 1))
            added, plain = (statistics.median(turn[way] - turn[0] for turn in measured) for way in (1, 2))
            worst = max(worst, added)
            print(f"{command:<22}{bare:8.2f}{inside:9.2f}{added:8.2f}{inside / bare:7.1f}{plain:19.2f}", end="  ")
            print(", ".join(layers))
        print(f"fsync of one byte: {fsync_ms(Path(name)):.2f} ms; a SAFE command waits for one")
    print(f"added at most: {worst:.2f} ms, bound {BOUND_MS:.0f} ms")
    return 0 if worst <= BOUND_MS else 1


if __name__ == "__main__":
    sys.exit(main())
