"""The warm az: a launcher whose process has imported the Azure CLI, for `az` commands that only read.

Most of the time of a short `az` command is the import of its modules. From the second command on, a process of az's own
Python makes these imports once, while that command waits, and forks for each command; words, environment, confinement
and limits are the same as those of plain az, since the same launcher applies them. It listens on no address: the only
way to it is the socket pair that this process made. Whatever is not as expected (a wrapper around az, another Python, a
new version beneath it, a process that grew or ended) leads back to plain az.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ghost.patterns import lazy
from ghost.shell.run.launcher import Launcher

PROGRAM: Final = Path(__file__).parent / "warm_az_program.py"
STARTING_COMMAND: Final = 2
"""One command alone would gain nothing."""
MOST_BYTES: Final = 500_000_000
MOST_STARTS: Final = 3
_PLAIN: Final = "each command of az starts a new process, which takes longer."
_SCRIPT_BYTES: Final = 16_384
_PER_COMMAND: Final = ("TMPDIR",)
"""Variables that each command has for itself; the others are read while modules are imported."""

_SHEBANG = lazy(r"#!(?P<python>/[^\s]*/python[0-9.]*)(?P<flags>(?: -[a-zA-Z]+)*)\n")
_OWN_MODULE = lazy(r"os\.exec[lv]p?e?\(sys\.executable,.{0,60}[\"']-m[\"'], ?[\"']azure\.cli[\"']")
_COMMAND = lazy(
    r"^(?P<set>(?:[A-Z_]+=[^\s;]* )*)(?:exec )?\"?(?P<python>(?:\$\{?bin_dir\}?)?/[^\s\"$]*/python[0-9.]*)\"?"
    r"(?P<flags>(?: -[a-zA-Z]+)*) -(?P<last>[a-zA-Z]*)m azure\.cli \"\$@\"\s*$",
    re.MULTILINE,
)
_INSTALLER = lazy(r"AZ_INSTALLER['\"]?\]?\s?=\s?['\"]?(?P<name>[A-Z]+)")


@dataclass(frozen=True)
class Interpreter:
    """How az's own script starts Python."""

    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


def interpreter_of(az: Path) -> Interpreter | None:
    """Return what the script of `az` runs `-m azure.cli` with; None for any other program. Nothing is searched for."""
    try:
        with az.open("rb") as file:
            text = file.read(_SCRIPT_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    installer = _INSTALLER.search(text)
    variables = {"AZ_INSTALLER": installer["name"]} if installer else {}
    shebang = _SHEBANG.match(text)
    if shebang is not None:
        python, flags = shebang["python"], shebang["flags"].split()
        if _OWN_MODULE.search(text) is None:
            return None
    elif (command := _COMMAND.search(text)) is not None:
        python = re.sub(r"^\$\{?bin_dir\}?", lambda _: str(az.parent), command["python"])
        flags = [*command["flags"].split(), *([f"-{command['last']}"] if command["last"] else [])]
        variables |= dict(each.split("=", 1) for each in command["set"].split())
    else:
        return None
    if any("$" in value for value in variables.values()) or not os.access(python, os.X_OK):
        return None
    return Interpreter((python, *flags), tuple(sorted(variables.items())))


@dataclass(frozen=True)
class _Warm:
    launcher: Launcher
    az: Path
    environment: dict[str, str]
    version: tuple[int, ...]


class WarmAz:
    """The warm az of one session, which ends with it. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._starts = 0
        self._warm: _Warm | None = None
        self._notes = [] if sys.platform == "linux" else [f"Only Linux has the sandbox of a warm az: {_PLAIN}"]

    def launcher_for(self, words: Sequence[str], environment: Mapping[str, str]) -> Launcher | None:
        """Return the launcher to start this `az` command from; None where plain az is to be run."""
        az, variables = Path(words[0]), _lasting(environment)
        with self._lock:
            self._asked += 1
            its_own = "TMPDIR" in environment and environment.get("AZURE_CONFIG_DIR") == environment["TMPDIR"]
            if self._asked < STARTING_COMMAND or its_own:  # settings that live as long as one command
                return None
            if self._warm is not None:
                why = _why_not(self._warm, az, variables)
                if why is None:
                    return self._warm.launcher
                self._end(why)
            return self._start(az, variables)

    def failed(self, launcher: Launcher) -> None:
        """Tell that a command found the process gone."""
        with self._lock:
            if self._warm is not None and self._warm.launcher is launcher:
                self._end("it ended")

    def notes(self) -> list[str]:
        """Return what was not as expected since the last call, a sentence each."""
        with self._lock:
            notes, self._notes = self._notes, []
            return notes

    def close(self) -> None:
        with self._lock:
            self._close()

    def _start(self, az: Path, variables: dict[str, str]) -> Launcher | None:
        if self._starts == MOST_STARTS:
            return None
        interpreter = interpreter_of(az)
        if interpreter is None:
            self._starts = MOST_STARTS
            self._notes.append(f"{az} does not say which Python runs it: {_PLAIN}")
            return None
        try:
            launcher = Launcher((*interpreter.words, str(PROGRAM)), {**dict(interpreter.variables), **variables})
        except OSError as error:
            self._starts = MOST_STARTS
            self._notes.append(f"The warm az cannot be started ({error.strerror}): {_PLAIN}")
            return None
        self._starts += 1
        self._warm = _Warm(launcher, az, variables, _version_of(az, interpreter))
        return launcher

    def _end(self, why: str) -> None:
        self._close()
        then = "another one is started." if self._starts < MOST_STARTS else _PLAIN
        self._notes.append(f"The warm az is not used further, since {why}: {then}")

    def _close(self) -> None:
        if self._warm is not None:
            self._warm.launcher.close()
            self._warm = None


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _PER_COMMAND}


def _why_not(warm: _Warm, az: Path, variables: Mapping[str, str]) -> str | None:
    """Return why the process cannot serve a command: it ended or grew, or az or what it was started with changed."""
    if (warm.az, warm.environment) != (az, variables):
        return "a command has another az or environment"
    interpreter = interpreter_of(az)
    if interpreter is None or _version_of(az, interpreter) != warm.version:
        return "az was installed anew"
    memory = warm.launcher.memory_bytes()
    if memory == 0:
        return "it ended"
    return f"it holds more than {MOST_BYTES // 1_000_000} MB" if memory > MOST_BYTES else None


def _version_of(az: Path, interpreter: Interpreter) -> tuple[int, ...]:
    """Return what changes when az is installed anew: its script, its Python's packages and their azure.cli."""
    python = Path(interpreter.words[0])
    packages = sorted(python.parent.parent.glob("lib*/python*/site-packages"))
    found = [az, python, *packages, *(each / "azure/cli/core/__init__.py" for each in packages)]
    numbers: list[int] = []
    for path in found:
        try:
            status = path.stat()
        except OSError:
            continue
        numbers += [status.st_ino, status.st_mtime_ns]
    return tuple(numbers)
