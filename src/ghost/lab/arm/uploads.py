"""Blobs in another storage emulator, such as Azurite, to which captures are uploaded."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from threading import Lock

from ghost.errors import LabError
from ghost.lab.arm.blob_store import account_keys, account_named, blobs
from ghost.lab.arm.capture_life import settle
from ghost.lab.arm.service_hosts import BLOB_SUFFIX
from ghost.lab.arm.shared_key import signature
from ghost.lab.directory import LabDirectory

VERSION = "2024-11-04"
TIMEOUT_SECONDS = 30


@dataclass
class ExternalStorage:
    """A blob storage emulator on a local port that accepts the lab's accounts and keys."""

    lab: LabDirectory
    port: int
    tls: ssl.SSLContext
    _lock: Lock = field(default_factory=Lock)

    def make_containers(self) -> None:
        for account in self.lab.world.storage_accounts:
            for container in account.containers:
                self._put(account.name, f"/{container}?restype=container", b"", {}, (201, 409))

    def take_over(self) -> None:
        """Upload the blobs of ended captures and remove them here."""
        with self._lock:
            with self.lab.changing() as state:
                settle(state, self.lab.clock.now())
            for account in self.lab.world.storage_accounts:
                for container in {blob["container"] for blob in self.lab.state().get("blobs", [])}:
                    for stored in blobs(self.lab, account, container):
                        kind = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream"}
                        self._put(account.name, f"/{container}?restype=container", b"", {}, (201, 409))
                        self._put(account.name, f"/{container}/{stored.name}", stored.content(), kind, (201,))
                        stored.delete()

    def _put(self, name: str, target: str, body: bytes, headers: Mapping[str, str], expected: tuple[int, ...]) -> None:
        account = account_named(self.lab.world, name)
        assert account is not None
        sent = {
            **headers,
            "host": f"{name}{BLOB_SUFFIX}",
            "content-length": str(len(body)),
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": VERSION,
        }
        signed = signature(name, account_keys(self.lab.world, account)[0], "PUT", target, sent)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS, context=self.tls)
        try:
            connection.request("PUT", target, body, {**sent, "authorization": f"SharedKey {name}:{signed}"})
            answered = connection.getresponse()
            response_body = answered.read()
        except OSError as error:
            raise LabError(f"the storage emulator on port {self.port} does not answer: {error}") from error
        finally:
            connection.close()
        if answered.status not in expected:
            raise LabError(f"the storage emulator refused {target}: {answered.status} {response_body[:300]!r}")
