"""`ghost` as a process whose imports are made. What a start itself promises is tested with the program."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ghost.shell import SafeExecShell
from tests.lab import in_process
from tests.starter import Starter, serve

IN_PROCESS = "GHOST_TESTS_IN_PROCESS"


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


def _main(words: Sequence[str]) -> int:
    from ghost.cli import main

    if os.environ.pop(IN_PROCESS, None):
        SafeExecShell.__init__.__kwdefaults__["runner"] = in_process.run
    sys.argv = ["ghost", *words]
    return main()


if __name__ == "__main__":
    import ghost.cli

    for found in pkgutil.iter_modules(ghost.cli.__path__):
        with contextlib.suppress(ImportError):  # of what is not installed or broken: whoever asks for it is told
            importlib.import_module(f"ghost.cli.{found.name}")
    serve(int(sys.argv[1]), _main)
