"""The data commands of storage: containers and blobs. The only blobs are those that captures leave.

A blob's bytes are made by `ghost.lab.wire` when they are asked for, and kept in the lab's `blobs/` once downloaded.
Commands that read write nothing: they run in a sandbox that would not let them.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from datetime import datetime
from email.utils import format_datetime
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

from ghost.lab.azure import shapes
from ghost.lab.azure.captures import DEFAULT_CONTAINER, settle, settled
from ghost.lab.azure.commands import command
from ghost.lab.azure.errors import AzError, blob_service_not_found, usage
from ghost.lab.directory import LabDirectory
from ghost.lab.world import StorageAccount
from ghost.records import private_dir

CREDENTIALS = (
    "--account-name",
    "--account-key",
    "--connection-string",
    "--sas-token",
    "--auth-mode",
    "--blob-endpoint",
    "--timeout",
)
CONTAINER, BLOB = "--container-name -c !", "--name -n !"

Blob = dict[str, Any]


@command("storage container exists", "--name -n !", *CREDENTIALS)
def container_exists(lab: LabDirectory, options: Namespace) -> Any:
    return {"exists": options.name in _containers(lab, _account(lab, options))}


@command("storage container list", "--prefix", "--num-results", "--include-metadata ?", *CREDENTIALS)
def container_list(lab: LabDirectory, options: Namespace) -> Any:
    names = _containers(lab, _account(lab, options))
    return [_container_shape(name) for name in names if name.startswith(options.prefix or "")]


@command("storage container show", "--name -n !", *CREDENTIALS)
def container_show(lab: LabDirectory, options: Namespace) -> Any:
    if options.name not in _containers(lab, _account(lab, options)):
        raise blob_service_not_found("ContainerNotFound", "The specified container does not exist.")
    return _container_shape(options.name)


@command("storage blob exists", CONTAINER, BLOB, *CREDENTIALS)
def blob_exists(lab: LabDirectory, options: Namespace) -> Any:
    return {"exists": any(blob["name"] == options.name for blob in _blobs(lab, options))}


@command("storage blob list", CONTAINER, "--prefix", "--num-results", "--include", *CREDENTIALS)
def blob_list(lab: LabDirectory, options: Namespace) -> Any:
    return [_shape(lab, blob) for blob in _blobs(lab, options) if blob["name"].startswith(options.prefix or "")]


@command("storage blob show", CONTAINER, BLOB, *CREDENTIALS)
def blob_show(lab: LabDirectory, options: Namespace) -> Any:
    return _shape(lab, _blob(lab, options))


@command(
    "storage blob download",
    CONTAINER,
    BLOB,
    "--file -f",
    "--no-progress ?",
    "--overwrite",
    "--max-connections",
    "--validate-content ?",
    *CREDENTIALS,
)
def blob_download(lab: LabDirectory, options: Namespace) -> Any:
    """Without `--file` the bytes go to standard output."""
    blob = _blob(lab, options)
    content = _content(lab, blob)
    _keep(lab, blob, content)
    if options.file is None:
        sys.stdout.buffer.write(content)
        return None
    try:
        Path(options.file).write_bytes(content)
    except OSError as error:
        raise AzError(f"[Errno {error.errno}] {error.strerror}: '{options.file}'") from error
    return _shape(lab, blob)


@command("storage blob delete", CONTAINER, BLOB, "--delete-snapshots", *CREDENTIALS)
def blob_delete(lab: LabDirectory, options: Namespace) -> None:
    blob = _blob(lab, options)
    with lab.changing() as state:
        settle(state, lab.clock.now())
        state["blobs"] = [other for other in state.get("blobs", []) if _place(other) != _place(blob)]
    _file(lab, blob).unlink(missing_ok=True)


def _account(lab: LabDirectory, options: Namespace) -> StorageAccount:
    if options.auth_mode not in (None, "login", "key"):
        allowed = "Allowed values: key, login."
        raise usage(f"az storage: '{options.auth_mode}' is not a valid value for '--auth-mode'. {allowed}")
    if options.account_name is None:
        raise AzError(
            "Missing credentials to access storage service. The following variations are accepted: "
            "(1) account name and key, (2) account name and SAS token, (3) account name with --auth-mode login"
        )
    for account in lab.world.storage_accounts:
        if account.name == options.account_name:
            return account
    raise AzError(
        f"Failed to resolve '{options.account_name}.blob.core.windows.net' ([Errno -2] Name or service not known)"
    )


def _containers(lab: LabDirectory, account: StorageAccount) -> list[str]:
    """Those of the world, and the one that captures without a path have made."""
    made = any(blob["account"] == account.name and blob["container"] == DEFAULT_CONTAINER for blob in _settled(lab))
    return sorted({*account.containers, *([DEFAULT_CONTAINER] if made else [])})


def _blobs(lab: LabDirectory, options: Namespace) -> list[Blob]:
    account = _account(lab, options)
    if options.container_name not in _containers(lab, account):
        raise blob_service_not_found("ContainerNotFound", "The specified container does not exist.")
    wanted = (account.name, options.container_name)
    return [blob for blob in _settled(lab) if (blob["account"], blob["container"]) == wanted]


def _blob(lab: LabDirectory, options: Namespace) -> Blob:
    for blob in _blobs(lab, options):
        if blob["name"] == options.name:
            return blob
    raise blob_service_not_found("BlobNotFound", "The specified blob does not exist.")


def _settled(lab: LabDirectory) -> list[Blob]:
    return list(settled(lab).get("blobs", []))


def _content(lab: LabDirectory, blob: Blob) -> bytes:
    """The bytes that were kept, or the same made anew: to look at a blob needs no right to write."""
    path = _file(lab, blob)
    if path.exists():
        return path.read_bytes()
    from ghost.lab.wire import synthesize

    start = datetime.fromisoformat(blob["starts"])
    return synthesize(lab.world, blob["machine"], start, blob["seconds"], lab.world.seed)


def _keep(lab: LabDirectory, blob: Blob, content: bytes) -> None:
    with lab.changing() as state:
        settle(state, lab.clock.now())
    path = _file(lab, blob)
    private_dir(path.parent)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)


def _file(lab: LabDirectory, blob: Blob) -> Path:
    return lab.path / "blobs" / sha256("\n".join((*_place(blob), blob["created"])).encode()).hexdigest()[:24]


def _place(blob: Blob) -> tuple[str, str, str]:
    return blob["account"], blob["container"], blob["name"]


def _shape(lab: LabDirectory, blob: Blob) -> dict[str, Any]:
    content = _content(lab, blob)
    created = datetime.fromisoformat(blob["created"])
    return {
        "container": blob["container"],
        "deleted": None,
        "metadata": {},
        "name": blob["name"],
        "properties": {
            "blobTier": "Hot",
            "blobType": "BlockBlob",
            "contentLength": len(content),
            "contentSettings": {
                "contentMd5": md5(content, usedforsecurity=False).hexdigest(),
                "contentType": "application/octet-stream",
            },
            "creationTime": created.isoformat(timespec="seconds"),
            "etag": f'"{shapes.guid("/".join(_place(blob)))}"',
            "lastModified": created.isoformat(timespec="seconds"),
        },
        "snapshot": None,
        "tags": None,
    }


def _container_shape(name: str) -> dict[str, Any]:
    return {
        "metadata": None,
        "name": name,
        "properties": {
            "etag": f'"{shapes.guid(name)}"',
            "lastModified": format_datetime(datetime.fromisoformat(shapes.CREATED)),
            "lease": {"state": "available", "status": "unlocked"},
            "publicAccess": None,
        },
    }
