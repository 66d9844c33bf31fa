"""The az commands of an investigation: as Ghost runs them, beside plain az run one by one.

What an investigation of a lab runs is recorded, then replayed with the real az (`GHOST_REAL_AZ`) against the emulator:
each in a process of its own and one after the other, and by the shell, with the reads of a turn together and the warm
az. Both ways take turns, each in a new lab, so that a busy machine slows both; a figure is the median of the ratios.
Waiting does not count: a poll that is repeated is left out, and a capture ends before the next command.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab import real_az

from ghost.shell import HitlDecision, SafeExecShell

ASKED_ONLY = True
BOUNDS = {"blocked-port": 0.3, "wire-loss": 0.35}
"""The most that the commands may take, as a part of what plain az takes one by one."""
RUNS = 3
GHOST = Path(sys.executable).with_name("ghost")
SPEED = {"GHOST_LAB_SPEED": "500"}
CAPTURE_SECONDS = 1.0

Turns = list[list[str]]


def ghost(place: Path, *words: str) -> str:
    environment = {**os.environ, **SPEED, "XDG_STATE_HOME": str(place / "state")}
    done = subprocess.run(
        [GHOST, *words], cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return done.stdout


def recorded(scenario: str, place: Path) -> Turns:
    """The az commands of an investigation, those in one list that it runs together."""
    groups: Turns = []
    called = 0
    polls: set[str] = set()
    told = ghost(place, "investigate", "--lab", scenario, "--brain", "offline", "--json-events")
    for event in map(json.loads, told.splitlines()):
        if event["event"] == "result":
            called = 0
        elif event["event"] == "call" and event["tool"] == "run_shell_cmd":
            called += 1
            groups += [[]] if called == 1 else []
        elif event["event"] == "command":
            command = event["command"]
            groups += [[]] if not called else []
            if command.startswith("az ") and command not in polls:
                groups[-1].append(command)
            polls |= {command} if " show-status " in command else set()
    return [group for group in groups if group]


def plainly(turns: Turns, environment: dict[str, str], az: Path) -> tuple[float, list[Any]]:
    taken, statuses = 0.0, []
    variables = {**{n: os.environ[n] for n in ("HOME", "PATH", "LANG") if n in os.environ}, **environment}
    for command in [command for group in turns for command in group]:
        started = time.perf_counter()
        words = [az, *shlex.split(command)[1:]]
        done = subprocess.run(words, env=variables, stdin=subprocess.DEVNULL, capture_output=True)
        taken += time.perf_counter() - started
        statuses.append(done.returncode)
        wait_for_capture(command)
    return taken, statuses


def by_the_shell(turns: Turns, environment: dict[str, str], place: Path) -> tuple[float, list[Any]]:
    taken, statuses = 0.0, []
    shell = SafeExecShell("s1", lambda *_: HitlDecision("approve"), place / "audit", environment=environment)
    for group in turns:
        started = time.perf_counter()
        answers = shell.execute_all([{"command": command, "reasoning": "to measure"} for command in group])
        taken += time.perf_counter() - started
        statuses += [answer["exit_code"] for answer in answers]
        wait_for_capture(group[-1])
    return taken, statuses


def wait_for_capture(command: str) -> None:
    if " packet-capture create " in command:
        time.sleep(CAPTURE_SECONDS)


def measured(scenario: str, az: Path) -> list[tuple[float, float]]:
    """The seconds of both ways, of each run."""
    seconds = []
    with tempfile.TemporaryDirectory() as directory:
        turns = recorded(scenario, Path(directory))
        print(f"{scenario}: {sum(map(len, turns))} commands of az in {len(turns)} groups")
        for number in range(RUNS):
            taken = {}
            statuses = {}
            for way in ("plain", "shell") if number % 2 else ("shell", "plain"):
                place = Path(directory) / f"{number}-{way}"
                place.mkdir()
                environment = json.loads(ghost(place, "lab", "up", scenario, "--json"))["environment"]
                try:
                    plainly([["az vm list"]], environment, az)  # az makes the index of its commands
                    taken[way], statuses[way] = (
                        plainly(turns, environment, az) if way == "plain" else by_the_shell(turns, environment, place)
                    )
                finally:
                    ghost(place, "lab", "down", scenario)
            if statuses["plain"] != statuses["shell"]:
                raise SystemExit(f"exit statuses differ: plain {statuses['plain']}, by the shell {statuses['shell']}")
            seconds.append((taken["plain"], taken["shell"]))
            print(f"  plain {taken['plain']:6.1f} s, by the shell {taken['shell']:6.1f} s", flush=True)
    return seconds


def main(scenarios: Sequence[str] = tuple(BOUNDS)) -> int:
    az = real_az.find()
    if az is None:
        print(real_az.why_not(), file=sys.stderr)
        return 2
    os.environ["GHOST_AZ"] = str(az)
    held = True
    for scenario in scenarios:
        ratio = statistics.median(shell / plain for plain, shell in measured(scenario, az))
        print(f"{scenario}: {ratio:.2f} of plain az one by one, median of {RUNS} (bound {BOUNDS[scenario]})")
        held = held and ratio <= BOUNDS[scenario]
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or tuple(BOUNDS)))
