"""With the lab's settings and without the lab, the real az fails, and reaches nothing."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ghost import lab
from ghost.lab.arm.local_emulator import emulator
from ghost.lab.arm.request_log import read
from ghost.lab.directory import LabDirectory
from tests.lab import real_az

REAL = real_az.find()
pytestmark = [pytest.mark.skipif(REAL is None, reason=real_az.why_not())]

COMMANDS = [
    "vm list",
    "account get-access-token",
    "login --identity",
    "storage container exists --account-name prodforensics01 -n captures --auth-mode login",
]


@dataclass
class Trap:
    """Listens where a proxy was, and writes down whom a client wants to reach; it lets nobody through."""

    wanted: list[str] = field(default_factory=list)
    port: int = 0


@contextlib.contextmanager
def trap() -> Iterator[Trap]:
    caught = Trap()
    with socket.create_server(("127.0.0.1", 0)) as server:
        caught.port = server.getsockname()[1]

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    caught.wanted.append(connection.recv(4096).decode("latin-1").partition("\r\n")[0])

        threading.Thread(target=listen, daemon=True).start()
        yield caught
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def settings_of_a_lab_that_is_gone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("gone")
    lab.start(lab.load_scenario("blocked-port"), home / "lab", speed=20.0)
    with emulator(LabDirectory.open(home / "lab")) as up:
        return up.environment


def _led_to(proxy_port: int, settings: dict[str, str]) -> dict[str, str]:
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
    return {**settings, **dict.fromkeys(names, f"http://127.0.0.1:{proxy_port}")}


def test_az_with_a_key_tries_the_same_name_again_and_no_other(
    settings_of_a_lab_that_is_gone: dict[str, str], tmp_path: Path
) -> None:
    """It would go on for a minute and a half, so it is ended before."""
    assert REAL is not None
    words = ["storage", "blob", "list", "--account-name", "prodforensics01", "-c", "captures", "--account-key", "a2V5"]
    with trap() as caught, pytest.raises(subprocess.TimeoutExpired):
        real_az.run(REAL, words, _led_to(caught.port, settings_of_a_lab_that_is_gone), tmp_path, seconds=12)

    hosts = {line.split()[1] for line in caught.wanted}
    assert hosts - {"azcliprod.blob.core.windows.net:443"} == {"prodforensics01.blob.core.lab.invalid:443"}


@pytest.mark.parametrize("command", COMMANDS)
def test_az_fails_where_lab_and_proxy_are_gone(
    command: str, settings_of_a_lab_that_is_gone: dict[str, str], tmp_path: Path
) -> None:
    assert REAL is not None
    ran = real_az.run(REAL, command.split(), settings_of_a_lab_that_is_gone, tmp_path)
    assert ran.status == 1
    assert ran.out == ""


def test_az_asks_for_names_that_exist_nowhere_and_for_no_other(
    settings_of_a_lab_that_is_gone: dict[str, str], tmp_path: Path
) -> None:
    """Somebody else may listen on the proxy's port by then: what they are asked for is no name of the world outside."""
    assert REAL is not None
    with trap() as caught:
        ran = real_az.run(REAL, ["vm", "list"], _led_to(caught.port, settings_of_a_lab_that_is_gone), tmp_path)

    assert ran.status == 1
    assert caught.wanted
    hosts = {line.split()[1].rpartition(":")[0] for line in caught.wanted}
    assert {host for host in hosts if not host.endswith(".lab.invalid")} <= {"azcliprod.blob.core.windows.net"}


def test_what_az_asks_of_the_world_outside_the_labs_proxy_refuses(tmp_path: Path) -> None:
    assert REAL is not None
    lab.start(lab.load_scenario("blocked-port"), tmp_path / "lab", speed=20.0)
    with emulator(LabDirectory.open(tmp_path / "lab")) as up:
        real_az.run(REAL, ["extension", "list-available"], up.environment, tmp_path)
        asked = read(up.log)

    refused = [entry["path"] for entry in asked if entry.get("refused")]
    assert any(".microsoft.com" in path or ".windows.net" in path or ".azureedge.net" in path for path in refused), (
        asked
    )
    assert all(entry["host"].endswith(".lab.invalid") for entry in asked if "host" in entry)
