"""Background labs for a user's own `az`: start, find, stop.

Each has a private directory under the user's state directory, named after its scenario.
https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ghost.errors import LabError
from ghost.lab.arm.emulator_state import LOCK, SETTINGS, STATE, RunningEmulator, is_up
from ghost.lab.arm.profile import uses_lab
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.launchers import RunningLab, as_it_runs, write_programs
from ghost.lab.scenario import Scenario
from ghost.policy import from_dict
from ghost.records import private_dir, read_json
from ghost.text import did_you_mean

PROGRAM = "ghost.lab.arm.daemon"
START_SECONDS = 20.0
END_SECONDS = 10.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def labs_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory, created if missing. Raises `LabError` if it belongs to another user."""
    directory = private_dir(_labs_path(environment))
    if directory.stat().st_uid != os.getuid() or directory.stat().st_mode & 0o077:
        raise LabError(
            f"{directory} is open to others: restrict it to yourself (chmod 700), it will hold a lab's secret"
        )
    return directory


def _labs_path(environment: Mapping[str, str]) -> Path:
    """Return the path; the specification requires ignoring a relative one."""
    state_home = environment.get("XDG_STATE_HOME", "")
    home = Path(environment.get("HOME") or Path.home())
    state = Path(state_home) if Path(state_home).is_absolute() else home / ".local" / "state"
    return state.absolute() / "ghost" / "labs"


@contextmanager
def _start_lock() -> Iterator[None]:
    """Lock: labs are started and stopped one at a time, since concurrent starts would remove each other's files."""
    descriptor = os.open(labs_directory(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def running_labs() -> dict[str, RunningEmulator]:
    """Return the running labs by scenario, without creating a directory."""
    if not _labs_path(os.environ).is_dir():
        return {}
    found = {path.parent.name: _read(path.parent) for path in sorted(labs_directory().glob(f"*/{STATE}"))}
    return {name: state for name, state in found.items() if state is not None}


def start_lab(scenario: Scenario, speed: float) -> RunningEmulator:
    """Start a lab in its own process, or return the running one.

    Raises `LabError` if a lab with another world runs under this name.
    """
    with _start_lock():
        directory = _directory(scenario.name)
        already = _read(directory)
        if already is None:
            return _start(directory, scenario, speed)
        if LabDirectory.open(directory).started_with != scenario.world:
            raise LabError(
                f"another lab is running under the name {scenario.name}: end it with ghost lab down {scenario.name}, "
                "or give the scenario's file another name"
            )
        return already


def _start(directory: Path, scenario: Scenario, speed: float) -> RunningEmulator:
    _make(directory, scenario, speed)
    errors = directory / "errors.txt"
    words = [sys.executable, "-I", "-m", PROGRAM, str(directory)]
    errors.touch(mode=0o600)
    with errors.open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, on the lab's own program
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", env=_own()
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if (state := _read(directory)) is not None:
                return state
            time.sleep(0.02)
        process.kill()
        process.wait()
        log.seek(0)
        why = log.read().strip()[-300:] or f"it did not answer within {START_SECONDS:.0f} s"
    raise LabError(f"the lab {scenario.name} did not start: {why}")


@contextmanager
def in_foreground(scenario: Scenario, speed: float) -> Iterator[RunningEmulator]:
    """Run a lab in this process. Raises `LabError` if one of this scenario is running."""
    from ghost.lab.arm.daemon import running

    with ExitStack() as stack:
        with _start_lock():
            directory = _directory(scenario.name)
            if is_up(directory):
                raise LabError(
                    f"the lab {scenario.name} is already running: end it with ghost lab down {scenario.name}"
                )
            _make(directory, scenario, speed)
            stack.callback(_clear, directory)
            state = stack.enter_context(running(directory))
        yield state


def stop_lab(name: str) -> RunningEmulator:
    """Stop the lab and remove its files. Raises `LabError` if none of that name is running.

    The CLI's configuration stays: with an empty directory, a shell of the lab would create settings for the real Azure.
    """
    with _start_lock():
        return _take_down(name)


def _take_down(name: str) -> RunningEmulator:
    directory = _directory(name)
    state = _read(directory)
    if state is None:
        if (directory / STATE).exists() and not is_up(directory):
            _clear(directory)  # its process was killed: what it held is not to stay
        raise LabError(f"no lab {name!r} is up: {did_you_mean(name, running_labs())}see ghost lab list")
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while is_up(directory):
        if time.monotonic() > deadline:
            raise LabError(f"the lab {name} (process {state.pid}) did not end: end it with kill -9 {state.pid}")
        time.sleep(0.02)
    _clear(directory)
    return state


def lab_behind_az(environment: Mapping[str, str] = os.environ) -> RunningLab | None:
    """Return the lab that an Azure CLI with this environment uses; None for a real cloud.

    An investigation through that az must take every other program from the lab too, since simulated addresses may exist
    on the real network. Raises `LabError` if the lab is not running.
    """
    settings = environment.get("AZURE_CONFIG_DIR")
    if not settings or not uses_lab(Path(settings)):
        return None
    directory = Path(settings).absolute().parent.parent
    if not is_up(directory):
        raise LabError(
            f"az talks here to the simulated Azure in {directory}, which is not up: "
            f'eval "$(ghost lab up {directory.name})", or leave this shell'
        )
    return as_it_runs(LabDirectory.open(directory))


def _clear(directory: Path) -> None:
    for path in directory.iterdir():
        if path.name == SETTINGS:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _directory(name: str) -> Path:
    if _NAME.fullmatch(name) is None:
        raise LabError(f"{name!r} is not a valid directory name: rename the scenario's file")
    return labs_directory() / name


def _make(directory: Path, scenario: Scenario, speed: float) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    write_programs(LabDirectory.create(directory, scenario, LabClock(time.time(), speed)))
    (directory / LOCK).touch(mode=0o600)


def _read(directory: Path) -> RunningEmulator | None:
    """Return the state; None if no process runs it."""
    if not is_up(directory):
        return None
    try:
        return from_dict(RunningEmulator, read_json(directory / STATE), STATE, LabError)
    except FileNotFoundError:
        return None


def _own() -> dict[str, str]:
    """Return the environment for a server of the lab, without external settings."""
    return {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR") if name in os.environ}
