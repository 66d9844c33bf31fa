"""The warm az says what plain az says, and where it cannot be had plain az runs."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from rich.console import Console

from ghost.cli.narration import NarratedShell, Narration
from ghost.lab.arm.local_emulator import emulator
from ghost.lab.tenant_conditions import TenantConditions
from ghost.records import SystemClock
from ghost.shell import SafeExecShell
from ghost.shell.run import warm_az
from ghost.shell.run.launcher import Launcher
from ghost.shell.run.sandbox import this_kernel
from ghost.shell.run.warm_az import Interpreter, interpreter_of
from tests.exhaustive import sample
from tests.lab import real_az
from tests.lab.test_conformance import READS, _still_lab

REAL = real_az.find()
needs_az = pytest.mark.skipif(
    REAL is None or this_kernel().landlock == 0, reason=f"takes a sandbox too; {real_az.why_not()}"
)

needs_sandbox = pytest.mark.skipif(this_kernel().landlock == 0, reason="the kernel has no Landlock")
ACCEPTS_CONNECTIONS = 1 << 16
"""__SO_ACCEPTCON of linux/net.h"""

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
        with mock.patch.dict(os.environ, GHOST_AZ=str(az)):
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


COMPARED = 4
"""So many reads of the conformance list; all of them when exhaustive."""
OTHERS = (
    "network nic lst",
    "network lb list -o table",
    "network nic list-effective-nsg -g prod-rg -n web-vm-01-nic -o yaml",
    "vm list --query [].name -o tsv",
    "network private-dns zone list --help",
)
"""Mistakes, help, and other forms than JSON."""
VARYING = re.compile(r"commands/|telemetry|versionCheck|az\.sess|\.log$")
"""Files of az's settings that are named after a command's time and process, or hold a time."""


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
def test_it_says_what_plain_az_says(tmp_path: Path, emulated: dict[str, str]) -> None:
    """Status, output and files; each way has settings of its own."""
    ways = {}
    for name in ("plain", "warm"):
        shutil.copytree(emulated["AZURE_CONFIG_DIR"], tmp_path / name / "config")
        environment = {**emulated, "AZURE_CONFIG_DIR": str(tmp_path / name / "config")}
        ways[name] = Session(REAL or Path(), tmp_path / name / "audit", environment)
    plain, warm = ways["plain"], ways["warm"]
    plain.shell._warm_az._asked = -1_000_000
    reads = [f"az {text}" for text in (*sample(READS, COMPARED), *OTHERS)]
    reads = [command for command in reads if warm.shell.runs_unasked(command)]
    assert len(reads) > COMPARED
    for session in (plain, warm):
        session.ask(reads[0])
    wrong = [command for command in reads if warm.ask(command) != plain.ask(command)]
    assert not wrong, "\n".join(wrong)
    assert _files(tmp_path / "warm") == _files(tmp_path / "plain")
    assert plain.process == 0
    assert warm.process != 0
    assert warm.shell.notes() == []


def _files(place: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(place)): path for path in (place / "config").rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not VARYING.search(name)}


def install_small_az(place: Path, seconds: float = 0.0) -> Path:
    """A program that is installed as az is, and that a test may install anew. `seconds`: what a command takes."""
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "azure/cli/core").mkdir(parents=True)
    main = f"import time\nfrom azure.cli.core import VERSION\nprint(VERSION, flush=True)\ntime.sleep({seconds})\n"
    (packages / "azure/cli/__main__.py").write_text(main)
    (packages / "azure/cli/core/__init__.py").write_text("VERSION = 'first'\n")
    az = place / "bin/az"
    az.write_text(SCRIPTS["pip"][0].format(python=place / "bin/python"))
    az.chmod(0o755)
    return az


@pytest.fixture
def small_az(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    return install_small_az(tmp_path / "installed")


@needs_sandbox
def test_a_process_that_ended_or_grew_or_whose_az_is_another_is_not_used_again(
    small_az: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(small_az, tmp_path / "audit", {"AZURE_CONFIG_DIR": str(tmp_path / "config")})

    def said() -> str:
        status, exit_code, _, output, stderr = session.ask("az account show -o json")
        assert (status, exit_code) == ("completed", 0), stderr
        return str(output).strip()

    def notes() -> list[str]:
        return [note.partition(": ")[0].rpartition(" since ")[2] for note in session.shell.notes()]

    assert (said(), session.process) == ("first", 0), "one command alone gains nothing"
    assert said() == "first"
    first = session.process
    os.kill(first, signal.SIGKILL)
    while session.launcher.memory_bytes():
        time.sleep(0.001)
    assert (said(), notes()) == ("first", ["it ended"])
    second = session.process
    (core,) = small_az.parent.parent.glob("lib/python*/site-packages/azure/cli/core/__init__.py")
    core.with_name("new").write_text("VERSION = 'second'\n")
    core.with_name("new").replace(core)
    assert (said(), notes()) == ("second", ["az was installed anew"])
    third = session.process
    assert said() == "second"
    assert session.process == third
    monkeypatch.setattr(warm_az, "MOST_BYTES", 1_000_000)
    assert (said(), notes()) == ("second", ["it holds more than 1 MB"])
    assert session.process == 0, "it was started often enough"
    assert (said(), notes()) == ("second", [])
    assert len({first, second, third, 0}) == 4
    for process in (first, second, third):
        assert not Path(f"/proc/{process}").exists()


@needs_sandbox
def test_an_az_that_does_not_say_which_python_runs_it_is_run_plainly_and_verbose_says_so_once(
    small_az: Path, tmp_path: Path
) -> None:
    small_az.write_text(f'#!/bin/sh\nexec {small_az.parent}/python -m azure.cli "$@" ""\n')
    settings = {"AZURE_CONFIG_DIR": str(tmp_path / "config")}
    told = {}
    for verbose in (False, True):
        session = Session(small_az, tmp_path / f"audit-{verbose}", settings)
        screen = io.StringIO()
        narration = Narration(Console(file=screen, soft_wrap=True), interactive=False, verbose=verbose)
        shown = NarratedShell(session.shell, narration, SystemClock())
        request = {"command": "az account show -o json", "reasoning": "to see"}
        assert [shown.execute(request)["output"].strip() for _ in range(3)] == ["first"] * 3
        assert session.process == 0
        told[verbose] = screen.getvalue().count(f"{small_az} does not say which Python runs it: each command of az")
    assert told == {False: 0, True: 1}


def test_verbose_says_so_where_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (note,) = warm_az.WarmAz().notes()
    assert note.startswith("Only Linux has the sandbox of a warm az: each command of az starts a new process")


@needs_sandbox
def test_nobody_else_can_reach_it(small_az: Path, tmp_path: Path) -> None:
    """Its socket has no address, and another user can neither open it nor take it over."""
    session = Session(small_az, tmp_path / "audit", {"AZURE_CONFIG_DIR": str(tmp_path / "config")})
    for _ in range(2):
        session.ask("az account show -o json")
    process = session.process
    links = [str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir()]
    sockets = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")}
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:]]
    own = [row for row in rows if row[6] in sockets]
    assert sockets, "its end of the pair"
    assert {row[6] for row in own} == sockets, "none of another family"
    for row in own:
        assert len(row) == 7, "no path"
        assert not int(row[3], 16) & ACCEPTS_CONNECTIONS
    code = (
        "import os, sys\nif os.geteuid() == 0:\n os.setgroups([])\n os.setgid(65534)\n os.setuid(65534)\n"
        "os.listdir(f'/proc/{sys.argv[1]}/fd')"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", code, str(process)], capture_output=True, text=True)
    assert "PermissionError" in done.stderr


@needs_az
def test_an_expired_login_is_told_and_a_new_one_is_used(tmp_path: Path) -> None:
    lab = replace(_still_lab(tmp_path / "lab"), tenant=TenantConditions(login_expires_after=1000))
    with emulator(lab) as up:
        session = Session(REAL or Path(), tmp_path / "audit", dict(up.environment))

        def count(requests: int) -> None:
            with lab.changing() as state:
                state["requests"] = requests

        command = "az network vnet list -o json"
        answers = []
        for requests in (0, 0, 5000, 0):
            count(requests)
            answers.append(session.ask(command))
        assert [answer[1] for answer in answers] == [0, 0, 1, 0]


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
