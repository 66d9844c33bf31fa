"""What lies in the storage accounts: containers, and the blobs that captures leave.

A blob's bytes are made when they are asked for, and kept in the lab's `blobs/` once downloaded. To look at a blob
writes nothing: the programs that read run in a sandbox that would not let them.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from datetime import datetime
from hashlib import md5, sha256, sha512
from pathlib import Path

from ghost.lab.arm.bodies import CREATED, guid
from ghost.lab.arm.capture_life import DEFAULT_CONTAINER, Blob, content, place, settle, settled
from ghost.lab.directory import LabDirectory
from ghost.lab.world import StorageAccount, World
from ghost.records import private_dir


def account_named(world: World, name: str) -> StorageAccount | None:
    return next((account for account in world.storage_accounts if account.name == name), None)


def account_keys(world: World, account: StorageAccount) -> tuple[str, str]:
    """Both keys of an account, in base64. They open nothing but this lab."""
    secrets = (f"{world.seed}/{world.subscription.id}/{account.name}/key{number}" for number in (1, 2))
    first, second = (base64.b64encode(sha512(secret.encode()).digest()).decode() for secret in secrets)
    return first, second


def containers(lab: LabDirectory, account: StorageAccount) -> list[str]:
    """Those of the world, and the one that captures without a path have made."""
    blobs = settled(lab).get("blobs", [])
    made = any((blob["account"], blob["container"]) == (account.name, DEFAULT_CONTAINER) for blob in blobs)
    return sorted({*account.containers, *([DEFAULT_CONTAINER] if made else [])})


@dataclass(frozen=True)
class StoredBlob:
    lab: LabDirectory
    blob: Blob

    @property
    def name(self) -> str:
        return str(self.blob["name"])

    @property
    def created(self) -> datetime:
        """To the second, as HTTP tells it."""
        return datetime.fromisoformat(self.blob["created"]).replace(microsecond=0)

    @property
    def etag(self) -> str:
        return f'"0x8{guid(str((*self._place, self.blob["created"]))).replace("-", "").upper()[:14]}"'

    def content(self) -> bytes:
        path = self._path
        return path.read_bytes() if path.exists() else content(self.lab.world, self.blob)

    def keep(self) -> None:
        """So that the bytes are not made anew each time: for one who may write."""
        if self._path.exists():
            return
        with self.lab.changing() as state:
            settle(state, self.lab.clock.now())
        private_dir(self._path.parent)
        partial = self._path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(content(self.lab.world, self.blob))
        partial.replace(self._path)

    def delete(self) -> None:
        with self.lab.changing() as state:
            settle(state, self.lab.clock.now())
            state["blobs"] = [other for other in state.get("blobs", []) if place(other) != self._place]
        self._path.unlink(missing_ok=True)

    @property
    def _place(self) -> tuple[str, str, str]:
        return place(self.blob)

    @property
    def _path(self) -> Path:
        name = "\n".join((*self._place, self.blob["created"]))
        return self.lab.path / "blobs" / sha256(name.encode()).hexdigest()[:24]


def blobs(lab: LabDirectory, account: StorageAccount, container: str) -> list[StoredBlob]:
    found = [b for b in settled(lab).get("blobs", []) if (b["account"], b["container"]) == (account.name, container)]
    return [StoredBlob(lab, blob) for blob in sorted(found, key=lambda blob: str(blob["name"]))]


def content_md5(content: bytes) -> bytes:
    return md5(content, usedforsecurity=False).digest()


def container_etag(account: StorageAccount, container: str) -> str:
    return f'"0x8{guid(f"{account.name}/{container}").replace("-", "").upper()[:14]}"'


def container_created() -> datetime:
    return datetime.fromisoformat(CREATED)
