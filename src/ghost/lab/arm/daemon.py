"""Runs an emulator: `python -m ghost.lab.arm.daemon DIRECTORY`, started by `ghost.lab.background_labs`.

It holds the lock of the lab's directory while it runs and writes `running.json` once it answers. SIGTERM and SIGINT end
it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ghost.errors import GhostError, LabError
from ghost.lab.arm.emulator_state import LOCK, STATE, RunningEmulator
from ghost.lab.arm.local_emulator import Emulator, emulator
from ghost.lab.directory import LabDirectory
from ghost.records import SystemClock, isoformat, write_json


@contextmanager
def running(directory: Path) -> Iterator[RunningEmulator]:
    """Run an emulator of the lab in `directory`, in this process. Raises `LabError` if one is running already."""
    lab = LabDirectory.open(directory)
    with _lock(directory), emulator(lab) as up:
        state = _described(lab, up)
        write_json(directory / STATE, asdict(state))
        try:
            yield state
        finally:
            (directory / STATE).unlink(missing_ok=True)


def _described(lab: LabDirectory, up: Emulator) -> RunningEmulator:
    name, symptom = lab.briefing.name, lab.briefing.symptom
    now = isoformat(SystemClock().now())
    return RunningEmulator(os.getpid(), name, symptom, now, lab.clock.speed, up.environment, str(up.log))


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError(f"the lab in {directory} is up already: end it with ghost lab down") from error
        yield
    finally:
        os.close(descriptor)


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def main(argv: Sequence[str] | None = None) -> int:
    (directory,) = sys.argv[1:] if argv is None else argv
    stop = stop_event()
    try:
        with running(Path(directory)):
            stop.wait()
    except (GhostError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
