"""The unmodified Azure CLI, for tests: where it is, and running it so that it can reach nothing but an emulator."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.starter import Starter

CI_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ghost-ci"
"""Where `.ci/run` installs what the lab is held to."""
SECONDS = 120


def find() -> Path | None:
    """`GHOST_REAL_AZ`, or the newest that continuous integration installed."""
    named = os.environ.get("GHOST_REAL_AZ")
    return newest([Path(named)] if named else CI_CACHE.glob("az-*/bin/az"))


def newest(programs: Iterable[Path]) -> Path | None:
    """The last by name of those that may be run."""
    return max((path.absolute() for path in programs if os.access(path, os.X_OK)), default=None)


def why_not() -> str:
    return "takes the Azure CLI: name it with GHOST_REAL_AZ (700 MB of packages, which .ci/run installs)"


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out or "null")

    @property
    def error_code(self) -> str | None:
        """What Azure calls the error: `ResourceNotFound` of `ERROR: (ResourceNotFound) ...`."""
        found = re.search(r"^ERROR: \((\w+)\) ", self.err, re.MULTILINE)
        return found[1] if found else None


def run(
    program: Path, words: Sequence[str], environment: Mapping[str, str], cwd: Path, seconds: float = SECONDS
) -> Ran:
    """`environment` is all that the program has, beside a PATH of the system's directories."""
    done = subprocess.run(
        [program, *words],
        env=_whole(environment, cwd),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_ready(program: Path, words: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Ran:
    """The same for many commands with the settings of one directory: only the first of a kind takes time to import."""
    starter = _starter(program.with_name("python"), environment["AZURE_CONFIG_DIR"])
    done = starter.run(words, cwd, _whole(environment, cwd), "", SECONDS)
    return Ran(done.returncode, done.stdout, done.stderr)


@functools.cache
def _starter(python: Path, config: str) -> Starter:
    """Az asks for the directory of its settings while it is imported."""
    starter = Starter("tests.lab.ready_az", python, {"AZURE_CONFIG_DIR": config, "LANG": "C.UTF-8"})
    atexit.register(starter.close)
    return starter


def _whole(environment: Mapping[str, str], cwd: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8", **environment}


def settings(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of an emulator with settings that several emulators share, one after another: az builds its index
    once.
    """
    shared = home / "config"
    shutil.copytree(environment["AZURE_CONFIG_DIR"], shared, dirs_exist_ok=True)
    return {**environment, "AZURE_CONFIG_DIR": str(shared)}
