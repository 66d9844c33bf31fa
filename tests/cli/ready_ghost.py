"""`ghost` as a process whose imports are made. What a start itself promises is tested with the program."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import ghost
from ghost.shell import SafeExecShell
from tests.lab import in_process
from tests.starter import Starter, serve

IN_PROCESS = "GHOST_TESTS_IN_PROCESS"
SIGNAL_AT = "GHOST_TESTS_SIGNAL_AT"
"""`SIGKILL 7`: the process gets this signal before it changes a file of its directory for the seventh time; with
`SIGKILL 7 0.02` two hundredths of a second later, wherever it is then."""


def run_ghost(
    *words: str,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: str = "",
    seconds: float = 120,
    in_process: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of the program with its streams captured: raises `TimeoutExpired`.

    `in_process`: the programs of its shell are those of a lab, and run in its own process.
    """
    if in_process:
        environment = {**environment, IN_PROCESS: "1"}
    return _starter().run(words, cwd, environment, stdin, seconds)


@functools.cache
def _starter() -> Starter:
    """One for all the tests of a worker."""
    starter = Starter(__name__)
    atexit.register(starter.close)
    return starter


def main(words: Sequence[str]) -> int:
    from ghost.cli import main as ghost_main

    if os.environ.pop(IN_PROCESS, None):
        SafeExecShell.__init__.__kwdefaults__["runner"] = in_process.run
    if moment := os.environ.pop(SIGNAL_AT, None):
        _signal_at(*moment.split())
    sys.argv = ["ghost", *words]
    return ghost_main()


def _signal_at(name: str, count: str, later: str = "0") -> None:
    left, directory, seconds = int(count), str(Path.cwd()), float(later)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        is_change = event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink"} or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if is_change and str(arguments[0]).startswith(directory):
            left -= 1
            if left == 0:
                end = (os.getpid(), signal.Signals[name])
                threading.Timer(seconds, os.kill, end).start() if seconds else os.kill(*end)

    sys.addaudithook(hook)


def make_ready() -> None:
    """Imports every module, those too that a command imports when it needs them, and compiles what is read of texts."""
    from ghost.brain.offline.understanding.role_rules import rules

    for found in pkgutil.walk_packages(ghost.__path__, "ghost."):
        with contextlib.suppress(ImportError):  # of what is not installed or broken: whoever asks for it is told
            importlib.import_module(found.name)
    for kind in ("source", "destination", "source_fields", "destination_fields", "pairs", "served"):
        rules(kind)


if __name__ == "__main__":
    make_ready()
    serve(int(sys.argv[1]), main)
