"""The emulator of one lab in this process: the services over HTTPS, and the proxy to them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseServer

from ghost.lab.arm.blob_store import account_named
from ghost.lab.arm.certificate_authority import LabAuthority
from ghost.lab.arm.emulator_state import SETTINGS
from ghost.lab.arm.gateway import Gateway
from ghost.lab.arm.http_server import ArmServer
from ghost.lab.arm.identity import Identity
from ghost.lab.arm.profile import client_environment, write_profile
from ghost.lab.arm.proxy import LabProxy
from ghost.lab.arm.request_log import RequestLog
from ghost.lab.arm.service_hosts import account_of, within_lab
from ghost.lab.arm.uploads import ExternalStorage
from ghost.lab.directory import LabDirectory
from ghost.records import private_dir

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Emulator:
    environment: dict[str, str]
    """What an Azure CLI needs to talk to this lab and to nothing else."""
    log: Path
    proxy_port: int
    arm_port: int


def log_path(lab: LabDirectory) -> Path:
    return lab.path / "requests.jsonl"


@contextmanager
def emulator(
    lab: LabDirectory, *, authority: LabAuthority | None = None, storage: ExternalStorage | None = None
) -> Iterator[Emulator]:
    """Run the emulator inside the block. `storage` is another storage emulator for the blobs."""
    authority = authority or LabAuthority()
    home = private_dir(lab.path / SETTINGS)
    secret = secrets.token_hex(32)
    log = RequestLog(log_path(lab))
    after = storage.take_over if storage is not None else lambda: None
    arm = ArmServer(Gateway(lab, Identity(lab.world, secret)), authority.server_context(), log, after)

    def port_of(host: str) -> int | None:
        """Return the port of a host; None for a missing account, whose name does not resolve in Azure either."""
        account = account_of(host)
        if account is not None and account_named(lab.world, account) is None:
            return None
        if account is not None and storage is not None:
            return storage.port
        return arm.port if within_lab(host) else None

    proxy = LabProxy(port_of, log)
    certificate = home / "simulated-ca.pem"
    authority.write(certificate)
    write_profile(home / "config", lab.world)
    environment = client_environment(home, certificate, proxy.port, secret)
    with _serving(arm), _serving(proxy):
        yield Emulator(environment, log.path, proxy.port, arm.port)


@contextmanager
def _serving(server: BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
