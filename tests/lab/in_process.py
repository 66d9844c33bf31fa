"""A lab's programs run in the process of a test: for tests to which their processes are only the way.

`run` is a shell's `runner`. The capture engine is run here as well; the system's `cat` and `rm` are started.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from ghost.lab.launchers import REAL, SIMULATED

ENGINE = "ghost.pcap"


def run(words: Sequence[str], *, env: Mapping[str, str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run` with captured streams, but for the limit of time."""
    program = Path(words[0]).name
    if program in SIMULATED:
        return run_main(f"ghost.lab.programs.{program}", words[1:], env)
    if ENGINE in words:
        return run_main(f"{ENGINE}.__main__", words[words.index(ENGINE) + 1 :], env)
    if program in REAL:
        return subprocess.run(words, env=env, **options)
    return subprocess.CompletedProcess(words, 127, b"", f"{program}: not found\n".encode())


def run_main(module: str, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = importlib.import_module(module).main(list(words))
    return subprocess.CompletedProcess(words, status, out.getvalue().encode(), err.getvalue().encode())
