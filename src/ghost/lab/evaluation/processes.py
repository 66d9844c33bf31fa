"""Runs programs side by side, each with a time limit; what they leave running is ended with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GHOST: Final = (sys.executable, "-I", "-c", "import sys; from ghost.cli import main; sys.exit(main())")
"""The words that start Ghost itself."""
POLL_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Job:
    """A program to run in a directory of its own, where its output goes to `output` and `errors`."""

    words: tuple[str, ...]
    directory: Path

    @property
    def output(self) -> Path:
        return self.directory / "output"

    @property
    def errors(self) -> Path:
        return self.directory / "errors"


@dataclass(frozen=True)
class Ended:
    job: Job
    status: int | None
    """The exit status; None if it ran out of time."""
    seconds: float


def run_side_by_side(
    jobs: Sequence[Job], *, at_once: int, timeout_seconds: float, environment: Mapping[str, str]
) -> Generator[Ended]:
    """Yield each job as it ends. Where the caller stops early, those that run are ended."""
    waiting, running = deque(jobs), dict[Job, tuple[subprocess.Popen[bytes], float]]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                job = waiting.popleft()
                running[job] = _started(job, environment), time.monotonic()
            time.sleep(POLL_SECONDS)
            for job, (process, began) in list(running.items()):
                status, seconds = process.poll(), time.monotonic() - began
                if status is None and seconds < timeout_seconds:
                    continue
                del running[job]
                _end(process)
                yield Ended(job, status, seconds)
    finally:
        _end(*(process for process, _ in running.values()))


def _started(job: Job, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    job.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with job.output.open("wb") as output, job.errors.open("wb") as errors:
        return subprocess.Popen(  # noqa: S603 - the caller names the program
            job.words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=job.directory,
            env=dict(environment),
            start_new_session=True,
        )


def _end(*processes: subprocess.Popen[bytes]) -> None:
    """End the processes, politely first, and what else is in their groups; at once if that is interrupted."""
    try:
        running = [process for process in processes if process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
