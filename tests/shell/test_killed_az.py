"""Ghost, or the warm az, killed while commands run: no process is left, no record is half, and the next one works.

Two kills of each in `make test`, at random moments; `GHOST_KILLS=20` tries as many. One in four is with the real az,
where there is one.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ghost.lab.arm.local_emulator import emulator
from ghost.records import read_records, verify
from ghost.shell import SafeExecShell
from tests.exhaustive import EXHAUSTIVE
from tests.lab.test_conformance import _still_lab
from tests.shell.test_warm_az import REAL, Session, install_small_az, needs_sandbox

KILLS = int(os.environ.get("GHOST_KILLS") or (20 if EXHAUSTIVE else 2))
READS = [f"az network {kind} list -o json" for kind in ("nic", "vnet", "nsg", "lb")]
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
SECONDS = 60

pytestmark = needs_sandbox


@dataclass(frozen=True)
class Az:
    program: Path
    environment: dict[str, str]
    seconds: float
    """About what a command takes."""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with emulator(_still_lab(tmp_path_factory.mktemp("lab") / "lab")) as up:
        yield dict(up.environment)


@pytest.fixture
def az(number: int, tmp_path: Path, emulated: dict[str, str]) -> Az:
    if REAL is not None and number % 4 == 0:
        return Az(REAL, emulated, 1.0)
    (tmp_path / "config").mkdir()
    small = install_small_az(tmp_path / "installed", seconds=0.3)
    return Az(small, {"AZURE_CONFIG_DIR": str(tmp_path / "config")}, 0.3)


@pytest.fixture
def orphans() -> Iterator[set[int]]:
    """Processes whose parent ended become children of this one; those that are there before."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield living(os.getpid())
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def living(process: int) -> set[int]:
    """The processes below a process that have not ended."""
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with suppress(OSError):  # it ended meanwhile
            children = {int(child) for child in (thread / "children").read_text().split()}
            found |= {each for child in children if is_alive(child) for each in (child, *living(child))}
    return found


def is_alive(process: int) -> bool:
    """Whether it has not ended; one that nobody waited for yet has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("number", range(KILLS))
def test_ghost_is_killed(number: int, tmp_path: Path, az: Az, orphans: set[int]) -> None:
    audit = tmp_path / "audit"
    code = (
        "import json, sys; from pathlib import Path; from tests.shell.test_killed_az import READS, Session\n"
        "session = Session(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))\n"
        "session.ask(READS[0])\n"
        "while True: session.shell.execute_all([{'command': each, 'reasoning': 'to see'} for each in READS])"
    )
    words = [str(az.program), str(audit), json.dumps(az.environment)]
    process = subprocess.Popen([sys.executable, "-c", code, *words])
    wait_until(lambda: len(list(audit.glob("*.intent.json"))) == len(READS))
    time.sleep(Random(number).uniform(0.1, 4 * az.seconds))
    below = living(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: living(os.getpid()) <= orphans)
    assert len(below) > 2, "the launcher, the warm az and a command"
    again = Session(az.program, audit, az.environment)
    before = records(again.shell)
    assert before[0] is None
    assert set(before) <= {None, "interrupted"}
    assert before.count("interrupted") <= len(READS)
    assert again.ask(READS[0])[:2] == ("completed", 0)
    assert records(again.shell) == [*before, None]


@pytest.mark.parametrize("number", range(KILLS))
def test_the_warm_az_is_killed(number: int, tmp_path: Path, az: Az) -> None:
    session = Session(az.program, tmp_path / "audit", az.environment)
    for _ in range(2):
        session.ask(READS[0])
    worker = session.process
    below: set[int] = set()

    def kill() -> None:
        wait_until(lambda: len(list(session.shell.audit_path.parent.glob("*.intent.json"))) == len(READS))
        time.sleep(Random(number).uniform(0, az.seconds / 2))
        below.update(living(worker))
        os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answers = session.shell.execute_all([{"command": each, "reasoning": "to see"} for each in READS])
    killer.join()
    assert [answer["exit_code"] for answer in answers] == [0] * len(READS)
    assert session.ask(READS[0])[:2] == ("completed", 0)
    assert session.process not in (0, worker)
    assert len(session.shell.notes()) == 1
    assert records(session.shell) == [None] * (len(READS) + 3)
    assert below
    assert not [each for each in (worker, *below) if is_alive(each)]


def records(shell: SafeExecShell) -> list[str | None]:
    """The error of each record, all of which are whole, in the order of their ids and there once."""
    found = list(read_records(shell.audit_path))
    assert verify(shell.audit_path, shell.audit_head).ok
    assert not list(shell.audit_path.parent.glob("*.intent.json"))
    assert sorted(record["audit_id"] for record in found) == [f"s1_{n:03d}" for n in range(1, len(found) + 1)]
    return [record["error"] for record in sorted(found, key=lambda record: record["audit_id"])]
