"""`ghost` as a process whose imports are made. What a start itself promises is tested with the program."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.starter import Starter, serve


def run_ghost(
    *words: str, cwd: Path, environment: Mapping[str, str], stdin: str = "", seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of the program with its streams captured: raises `TimeoutExpired`."""
    return _starter().run(words, cwd, environment, stdin, seconds)


@functools.cache
def _starter() -> Starter:
    """One for all the tests of a worker."""
    starter = Starter(__name__)
    atexit.register(starter.close)
    return starter


def _main(words: Sequence[str]) -> int:
    from ghost.cli import main

    sys.argv = ["ghost", *words]
    return main()


if __name__ == "__main__":
    import ghost.cli

    for found in pkgutil.iter_modules(ghost.cli.__path__):
        with contextlib.suppress(ImportError):  # of what is not installed or broken: whoever asks for it is told
            importlib.import_module(f"ghost.cli.{found.name}")
    serve(int(sys.argv[1]), _main)
