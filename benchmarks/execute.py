"""What the shell adds to a command: `execute` beside a bare `subprocess.run` of the same words.

All run in turns, so that a busy machine slows all of them; the figures are medians, those of what is added are medians
of the differences within a turn. Of a pipeline the words are `sh`'s, and the bound is for each of its commands.
Classification, sandbox, redaction and the fsynced audit are in it. The bound is for commands that nobody is asked
about; `cat` is approved here, which costs a second fsync and no sandbox. az runs where it
is found, with a closed port for its proxy. The rest speaks to loopback only.
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

from ghost.shell import HitlDecision, SafeExecShell

COMMANDS = [
    *("ip -br addr", "ip route get 127.0.0.1", "ss -tan", "ss -tulpn", "lsof -nP -iTCP", "ping -c 1 127.0.0.1"),
    *("ip -br addr | grep lo", "ip -j addr | jq length", "ss -tan | sort | uniq -c | head -5"),
    *("dig -v", "dig +time=1 +tries=1 @127.0.0.1 localhost", "cat /etc/hostname", "az version"),
]
TURNS = 101
SECONDS = 20.0
BOUND_MS = 12.0
WIDTH = 32


def timed_ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def turns(command: str, confined: SafeExecShell, unconfined: SafeExecShell) -> list[tuple[float, float, float]]:
    """The milliseconds of each way to run the command, turn by turn: bare, in a sandbox, without one."""
    words = ["sh", "-c", command] if "|" in command else command.split()
    request = {"command": command, "reasoning": "to measure"}
    ways: tuple[Callable[[], object], ...] = (
        lambda: subprocess.run(words, capture_output=True),
        lambda: confined.execute(request),
        lambda: unconfined.execute(request),
    )
    measured = []
    until = time.monotonic() + SECONDS  # of a slow program a few turns are enough
    while len(measured) < TURNS and (time.monotonic() < until or len(measured) < 5):
        measured.append((timed_ms(ways[0]), timed_ms(ways[1]), timed_ms(ways[2])))
    return measured


def fsync_ms(directory: Path) -> float:
    with (directory / "disk").open("wb", buffering=0) as file:
        return statistics.median(timed_ms(lambda: (file.write(b"x"), os.fsync(file.fileno()))) for _ in range(51))


def approve(*_: object) -> HitlDecision:
    return HitlDecision("approve")


def main() -> int:
    worst = 0.0
    os.environ.update(dict.fromkeys(("https_proxy", "http_proxy"), "http://127.0.0.1:9"))
    if az := shutil.which("az"):
        os.environ["GHOST_AZ"] = az
    with tempfile.TemporaryDirectory() as name:
        confined = SafeExecShell("confined", approve, Path(name) / "a", roots=[name])
        unconfined = SafeExecShell("unconfined", approve, Path(name) / "b", roots=[name], sandbox="off")
        print(f"{'ms, medians':<{WIDTH}}{'bare':>8}{'execute':>9}{'added':>8}{'added, no sandbox':>19}  layers")
        for command in COMMANDS:
            if shutil.which(command.split()[0]) is None:
                continue
            warm = confined.execute({"command": command, "reasoning": "to warm up"})
            measured = turns(command, confined, unconfined)
            bare, inside = (statistics.median(turn[way] for turn in measured) for way in (0, 1))
            added, plain = (statistics.median(turn[way] - turn[0] for turn in measured) for way in (1, 2))
            if warm["action"] == "auto_approved":
                worst = max(worst, added / len(command.split("|")))
            print(
                f"{command[: WIDTH - 2]:<{WIDTH}}{bare:8.2f}{inside:9.2f}{added:8.2f}{plain:19.2f}",
                end="  ",
            )
            print(", ".join(warm["sandbox"]) or warm["action"])
        print(f"fsync of one byte: {fsync_ms(Path(name)):.2f} ms; a SAFE command waits for one")
    print(f"added at most: {worst:.2f} ms, bound {BOUND_MS:.0f} ms")
    return 0 if worst <= BOUND_MS else 1


if __name__ == "__main__":
    sys.exit(main())
