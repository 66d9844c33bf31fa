"""Starting a lab: its directory, and a launcher in `bin/` for each program.

Launchers run this interpreter on `ghost.lab.programs.NAME`. Besides them only the system's `cat` and `rm` are linked,
so no real network program can run if this is the only program directory.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ghost.errors import LabError
from ghost.lab.briefing import Briefing
from ghost.lab.directory import VARIABLE, LabClock, LabDirectory
from ghost.lab.scenario import Scenario, TapeScenario, load_case, scenario_names, tape_names
from ghost.lab.tapes import TAPE, TapeDirectory, read_tape
from ghost.records import private_dir

SIMULATED = ("az", "ping", "traceroute", "dig", "ss", "curl", "ip")
REAL = ("cat", "rm")
PROGRAMS = "bin"
DEFAULT_SPEED = 20.0


@dataclass(frozen=True)
class RunningLab:
    """A lab. Nothing runs between calls; its state follows from the clock, so there is nothing to stop."""

    briefing: Briefing
    program_dir: Path
    """The one directory in which the shell is to look for programs."""
    environment: dict[str, str]
    """What the programs need, beyond what any program needs."""
    resolver: Callable[[str], list[str]]
    """Host name to addresses, as the engineer's machine in the lab knows them: no real resolver is asked."""
    clock: LabClock


def start(case: Scenario | TapeScenario, directory: Path, *, speed: float = DEFAULT_SPEED) -> RunningLab:
    """Create a lab in `directory`, replacing an earlier one. `speed`: lab seconds per real second."""
    path, clock = directory.absolute(), LabClock(time.time(), speed)
    if isinstance(case, Scenario):
        _clear(path, speed)
        return _running(LabDirectory.create(path, case, clock))
    tape = read_tape(case.tape)
    _clear(path, speed)
    return _running(TapeDirectory.create(path, tape, case.briefing, clock))


def _clear(directory: Path, speed: float) -> None:
    if speed <= 0:
        raise LabError(f"the speed of a lab is {speed}: give a number above 0")
    for left_over in (directory / "blobs", directory / "captures", directory / PROGRAMS):
        shutil.rmtree(left_over, ignore_errors=True)
    (directory / TAPE).unlink(missing_ok=True)


def reopen(directory: Path) -> RunningLab:
    """Reopen the lab in `directory` for a resumed investigation.

    The directory may have been modified: programs are rewritten, and approvals and answers come from Ghost's own
    scenarios, never from the directory. Raises `LabError` if there is no lab.
    """
    path = directory.absolute()
    lab = TapeDirectory.open(path) if (path / TAPE).exists() else LabDirectory.open(path)
    named = lab.briefing.name
    known = named in (*scenario_names(), *tape_names())
    own = load_case(named).briefing if known else Briefing(named, lab.briefing.symptom)
    return _running(replace(lab, briefing=replace(own, symptom=lab.briefing.symptom)))


def _running(lab: LabDirectory | TapeDirectory) -> RunningLab:
    write_programs(lab)
    return as_it_runs(lab)


def as_it_runs(lab: LabDirectory | TapeDirectory) -> RunningLab:
    """Return a lab whose programs are already written."""
    environment = {VARIABLE: str(lab.path)}
    resolver = lab.resolve if isinstance(lab, TapeDirectory) else lab.world.local.resolve
    return RunningLab(lab.briefing, lab.path / PROGRAMS, environment, resolver, lab.clock)


def write_programs(lab: LabDirectory | TapeDirectory) -> Path:
    """Write exactly these programs; nothing is written through a link."""
    modules = {name: f"ghost.lab.programs.{name}" for name in SIMULATED}
    if isinstance(lab, TapeDirectory):
        modules = {name: f"ghost.lab.programs.tape {name}" for name in {*SIMULATED, *lab.programs} - set(REAL)}
    directory = lab.path / PROGRAMS
    private_dir(directory.parent)
    try:
        if directory.is_symlink():
            raise LabError(f"{directory} is a link: a lab's programs are not written through one; remove it")
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(mode=0o700)
        for name, module in modules.items():
            words = shlex.join([sys.executable, "-I", "-m", *module.split()])
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(directory / name, flags, 0o700), "w", encoding="utf-8") as launcher:
                launcher.write(f'#!/bin/sh\nexec {words} "$@"\n')
        for name in REAL:
            real = shutil.which(name, path="/usr/bin:/bin")
            if real is None:
                raise LabError(f"this machine has no {name} in /usr/bin or /bin, which the lab links to: install it")
            (directory / name).symlink_to(real)
    except OSError as error:
        raise LabError(
            f"cannot write the lab's programs in {directory} ({error.strerror}): make room, or check its mode"
        ) from error
    return directory
