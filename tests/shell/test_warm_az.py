"""The warm az says what plain az says, and where it cannot be had plain az runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ghost.lab.arm.local_emulator import emulator
from ghost.shell import SafeExecShell
from ghost.shell.run import warm_az
from ghost.shell.run.launcher import Launcher
from ghost.shell.run.sandbox import this_kernel
from ghost.shell.run.warm_az import Interpreter, interpreter_of
from tests.lab import real_az
from tests.lab.test_conformance import _still_lab

REAL = real_az.find()
needs_az = pytest.mark.skipif(
    REAL is None or this_kernel().landlock == 0, reason=f"takes a sandbox too; {real_az.why_not()}"
)

SCRIPTS = {
    "pip": (
        "#!{python}\nimport os, sys\nos.environ['AZ_INSTALLER'] = 'PIP'\n"
        "os.execl(sys.executable, sys.executable, '-m', 'azure.cli', *sys.argv[1:])\n",
        (),
        "PIP",
    ),
    "deb": (
        '#!/usr/bin/env bash\nbin_dir=`cd "$(dirname "$BASH_SOURCE[0]")"; pwd`\nexport AZ_INSTALLER="DEB"\n'
        '$bin_dir/opt/python3 -Im azure.cli "$@"\n',
        ("-I",),
        "DEB",
    ),
    "brew": ('#!/usr/bin/env bash\nAZ_INSTALLER=HOMEBREW {python} -Im azure.cli "$@"\n', ("-I",), "HOMEBREW"),
    "exec": ('#!/bin/sh\nexec "{python}" -s -E -m azure.cli "$@"\n', ("-s", "-E"), ""),
    "searched on PATH": (
        "#!/usr/bin/env python3\nos.execl(sys.executable, sys.executable, '-m', 'azure.cli')\n",
        None,
        "",
    ),
    "PATH in a shell": ('#!/bin/sh\nexec python3 -m azure.cli "$@"\n', None, ""),
    "a wrapper": ('#!/bin/sh\nexec /usr/bin/docker run azure-cli az "$@"\n', None, ""),
    "another module": ("#!{python}\nos.execl(sys.executable, sys.executable, '-m', 'ghost.lab')\n", None, ""),
    "a variable": ('#!/bin/sh\nPYTHONPATH=$HOME/x {python} -m azure.cli "$@"\n', None, ""),
    "an answer in between": ('#!/bin/sh\n{python} -m azure.cli "$@" --debug\n', None, ""),
    "a missing Python": ('#!/bin/sh\n/nowhere/bin/python3 -m azure.cli "$@"\n', None, ""),
    "no text": ("\0\x7fELF", None, ""),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_interpreter_is_read_from_the_script_of_az(kind: str, tmp_path: Path) -> None:
    text, flags, installer = SCRIPTS[kind]
    python = tmp_path / "opt" / "python3"
    python.parent.mkdir()
    python.symlink_to("/bin/true")
    az = tmp_path / "az"
    az.write_text(text.format(python=python) if "{python}" in text else text)
    own = (("AZ_INSTALLER", installer),) if installer else ()
    assert interpreter_of(az) == (None if flags is None else Interpreter((str(python), *flags), own))


class Session:
    """A shell with the real az against the emulator."""

    def __init__(self, az: Path, place: Path, environment: dict[str, str]) -> None:
        directories = ["/usr/bin", "/bin"]
        os.environ["GHOST_AZ"] = str(az)
        self.shell = SafeExecShell(
            "s1", audit_dir=place, program_dirs=directories, own_az=True, environment=environment
        )

    def ask(self, command: str) -> tuple[Any, ...]:
        got = self.shell.execute({"command": command, "reasoning": "to see"})
        return tuple(got[field] for field in ("status", "exit_code", "sandbox", "output", "stderr"))

    @property
    def process(self) -> int:
        """The number of the warm az; 0 without one."""
        return self.launcher._process.pid if self.shell._warm_az._warm else 0

    @property
    def launcher(self) -> Launcher:
        assert self.shell._warm_az._warm
        return self.shell._warm_az._warm.launcher


READS = (
    "az account show -o json",
    "az network vnet list -o json",
    "az vm list --query [].name -o tsv",
    "az network nic lst",
    "az network nsg show -g prod-rg -n missing -o json",
    "az network lb list -o table",
    "az network nic list-effective-nsg -g prod-rg -n web-vm-01-nic -o yaml",
    "az monitor activity-log list --offset 1d -o json",
    "az network private-dns zone list --help",
)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with emulator(_still_lab(tmp_path_factory.mktemp("lab") / "lab")) as up:
        yield dict(up.environment)


@pytest.fixture
def session(tmp_path: Path, emulated: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Session:
    assert REAL is not None
    monkeypatch.setenv("GHOST_AZ", str(REAL))
    session = Session(REAL, tmp_path / "audit", emulated)
    for _ in range(2):
        session.ask("az account show -o json")
    return session


@needs_az
def test_it_says_what_plain_az_says(
    session: Session, tmp_path: Path, emulated: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Session(REAL or Path(), tmp_path / "plain", emulated)
    monkeypatch.setattr(plain.shell._warm_az, "_asked", -1000)
    first = session.process
    settings = Path(emulated["AZURE_CONFIG_DIR"])
    for command in READS:
        expected, files = plain.ask(command), _files(settings)
        assert session.ask(command) == expected, command
        assert _files(settings) == files, command
    assert (plain.process, session.process) == (0, first)
    assert first


def _files(directory: Path) -> set[str]:
    """Names of the files there, but those named after a command's time and process."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if "commands" not in path.parts}


@needs_az
def test_a_process_that_ends_or_grows_or_whose_az_is_another_is_not_used_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = session.process
    os.kill(first, signal.SIGKILL)
    while session.launcher.memory_bytes():
        time.sleep(0.001)
    assert session.ask("az account show -o json")[:2] == ("completed", 0)
    second = session.process
    monkeypatch.setattr(warm_az, "_version_of", lambda *_: (1,))
    assert session.ask("az account show -o json")[:2] == ("completed", 0)
    third = session.process
    monkeypatch.setattr(warm_az, "MOST_BYTES", 1000)
    assert session.ask("az account show -o json")[:2] == ("completed", 0)
    assert len({first, second, third, 0}) == 4
    assert session.process == 0, "it was started often enough"
    for process in (first, second, third):
        assert not Path(f"/proc/{process}").exists()


@needs_az
def test_a_command_whose_process_is_killed_under_it_is_made_again_by_plain_az(session: Session) -> None:
    process = session.process
    session.ask("az account show -o json")

    def kill() -> None:
        children = Path(f"/proc/{process}/task/{process}/children")
        idle = set(children.read_text().split())
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and set(children.read_text().split()) == idle:
            time.sleep(0.001)
        os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answers = [session.ask("az network vnet list -o json")[:2] for _ in range(3)]
    killer.join()
    assert answers == [("completed", 0)] * 3
    assert session.process != process


@needs_az
def test_it_ends_with_the_session(session: Session) -> None:
    process = session.process
    assert Path(f"/proc/{process}").exists()
    del session.shell
    assert not Path(f"/proc/{process}").exists()
