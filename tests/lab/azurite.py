"""Azurite, Microsoft's emulator of storage, as the place where a lab's blobs lie."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ghost.lab.arm.blob_store import account_keys
from ghost.lab.arm.certificate_authority import LabAuthority
from ghost.lab.arm.service_hosts import CERTIFIED
from ghost.lab.arm.uploads import ExternalStorage
from ghost.lab.directory import LabDirectory
from tests.lab.real_az import CI_CACHE, newest

START_SECONDS = 60
LOG_SECONDS = 20
_ASKED = re.compile(r"RequestMethod=(\S+) RequestURL=(\S+) RequestHeaders:(\{.*?\}) ClientIP=")


def find() -> Path | None:
    """`GHOST_AZURITE`, or the newest that continuous integration installed."""
    named = os.environ.get("GHOST_AZURITE")
    return newest([Path(named)] if named else CI_CACHE.glob("azurite-*/node_modules/.bin/azurite-blob"))


def why_not() -> str:
    return "takes Azurite: name azurite-blob with GHOST_AZURITE (.ci/run installs it from npm)"


@dataclass(frozen=True)
class Asked:
    method: str
    target: str
    """Path and query."""
    client: str
    """The user agent; empty for the lab itself, which carries blobs here."""


@dataclass(frozen=True)
class Azurite:
    storage: ExternalStorage
    log: Path
    """Azurite's own debug log, which it writes behind its answers."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def asked(self) -> list[Asked]:
        """All it was asked until now. A request of its own, which must come to stand in the log, says that it does."""
        fence = f"/fence-{next(self._numbers)}"
        connection = http.client.HTTPSConnection("127.0.0.1", self.storage.port, timeout=20, context=self.storage.tls)
        connection.request("GET", fence)
        connection.getresponse().read()
        connection.close()
        deadline = time.monotonic() + LOG_SECONDS
        while time.monotonic() < deadline:
            requests = self._logged()
            if any(request.target == fence for request in requests):
                return [request for request in requests if not request.target.startswith("/fence-")]
            time.sleep(0.01)
        raise AssertionError(f"Azurite wrote nothing of {fence} into its log within {LOG_SECONDS} s")

    def _logged(self) -> list[Asked]:
        requests = []
        for method, url, headers in _ASKED.findall(self.log.read_text(encoding="utf-8")):
            split = urlsplit(url)
            target = split.path + (f"?{split.query}" if split.query else "")
            requests.append(Asked(method, target, json.loads(headers).get("user-agent", "")))
        return requests


@contextmanager
def azurite(program: Path, lab: LabDirectory, authority: LabAuthority, home: Path) -> Iterator[Azurite]:
    """With the lab's accounts, their keys and their containers."""
    home.mkdir()
    certificate, key, trusted = home / "server.pem", home / "server.key", home / "ca.pem"
    authority.write_server_pair(certificate, key, *CERTIFIED)
    authority.write(trusted)
    accounts = ";".join(f"{a.name}:{account_keys(lab.world, a)[0]}" for a in lab.world.storage_accounts)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = home / "debug.log"
    words = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", home / "data"]
    words += ["--silent", "--debug", log, "--cert", certificate, "--key", key, "--oauth", "basic"]
    words += ["--skipApiVersionCheck", "--disableTelemetry"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AZURITE_ACCOUNTS": accounts}
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        storage = ExternalStorage(lab, port, ssl.create_default_context(cafile=str(trusted)))
        storage.make_containers()
        yield Azurite(storage, log)
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "Azurite ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"Azurite did not answer within {START_SECONDS} s")
