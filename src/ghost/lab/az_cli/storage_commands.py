"""Storage commands: accounts, containers and blobs. Only captures create blobs."""

from __future__ import annotations

import base64
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ghost.lab.arm import blob_store as stored
from ghost.lab.arm.blob_store import StoredBlob
from ghost.lab.az_cli.cli_errors import AzError, blob_service_not_found, usage
from ghost.lab.az_cli.client import ArmClient, group_of
from ghost.lab.az_cli.command_table import IN_GROUP, NAME, command
from ghost.lab.az_cli.output_shape import filled, hoisted, with_groups
from ghost.lab.directory import LabDirectory
from ghost.lab.world import StorageAccount

ACCOUNT = "Microsoft.Storage/storageAccounts"
CREDENTIALS = (
    "--account-name",
    "--account-key",
    "--connection-string",
    "--sas-token",
    "--auth-mode",
    "--blob-endpoint",
    "--timeout",
)
_RULE_NAMES = {"virtualNetworkRules": {"id": "virtualNetworkResourceId"}, "ipRules": {"value": "ipAddressOrRange"}}
CONTAINER, BLOB = "--container-name -c !", "--name -n !"


# --- accounts ---


@command("storage account list", IN_GROUP)
def account_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return [account_shape(body) for body in client.list(client.path(options.resource_group, ACCOUNT))]


@command("storage account show", IN_GROUP, NAME, "--expand", ids=("name",))
def account_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return account_shape(
        client.get(client.path(group_of_account(client, options.resource_group, options.name), ACCOUNT, options.name))
    )


@command("storage account keys list", IN_GROUP, "--account-name -n !", ids=("account_name",))
def account_keys_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    group = group_of_account(client, options.resource_group, options.account_name)
    path = client.path(group, ACCOUNT, options.account_name)
    return client.post(f"{path}/listKeys")["keys"]


def group_of_account(client: ArmClient, group: str | None, name: str) -> str:
    """Return the group; without one, the CLI searches the subscription for the account."""
    found = group or group_of(client, ACCOUNT, name)
    if found is None:
        raise usage(f"Storage account '{name}' not found.")
    return found


def account_shape(body: dict[str, Any]) -> dict[str, Any]:
    """Rename fields as the SDK does."""
    shown = hoisted(body)
    rules = shown.pop("networkAcls")
    for name, renamed in _RULE_NAMES.items():
        rules[name] = [{renamed.get(key, key): item for key, item in each.items()} for each in rules[name]]
    shown["networkRuleSet"] = rules
    shown["enableHttpsTrafficOnly"] = shown.pop("supportsHttpsTrafficOnly")
    shape: dict[str, Any] = with_groups(filled("storage_account", shown))
    return shape


# --- containers ---


@command("storage container exists", "--name -n !", *CREDENTIALS)
def container_exists(lab: LabDirectory, options: Namespace) -> Any:
    return {"exists": options.name in stored.containers(lab, _account(lab, "container exists", options))}


@command("storage container create", "--name -n !", "--public-access", "--fail-on-exist ?", *CREDENTIALS)
def container_create(lab: LabDirectory, options: Namespace) -> Any:
    account = _account(lab, "container create", options)
    return {"created": stored.create_container(lab, account, options.name)}


@command("storage container list", "--prefix", "--num-results", "--include-metadata ?", *CREDENTIALS)
def container_list(lab: LabDirectory, options: Namespace) -> Any:
    account = _account(lab, "container list", options)
    names = [name for name in stored.containers(lab, account) if name.startswith(options.prefix or "")]
    return [_container_shape(account, name) for name in names]


@command("storage container show", "--name -n !", *CREDENTIALS)
def container_show(lab: LabDirectory, options: Namespace) -> Any:
    account = _account(lab, "container show", options)
    if options.name not in stored.containers(lab, account):
        raise blob_service_not_found("ContainerNotFound", "The specified container does not exist.")
    return {**_container_shape(account, options.name), "metadata": {}}


def _container_shape(account: StorageAccount, name: str) -> dict[str, Any]:
    own = {"etag": stored.container_etag(account, name), "lastModified": stored.container_created().isoformat()}
    return filled("container", {"name": name, "properties": own})


# --- blobs ---


@command("storage blob exists", CONTAINER, BLOB, *CREDENTIALS)
def blob_exists(lab: LabDirectory, options: Namespace) -> Any:
    account = _account(lab, "blob exists", options)
    found = stored.blobs(lab, account, options.container_name)
    return {"exists": any(blob.name == options.name for blob in found)}


@command("storage blob list", CONTAINER, "--prefix", "--num-results", "--include", *CREDENTIALS)
def blob_list(lab: LabDirectory, options: Namespace) -> Any:
    found = _blobs(lab, "blob list", options)
    return [_listed_shape(blob) for blob in found if blob.name.startswith(options.prefix or "")]


@command("storage blob show", CONTAINER, BLOB, *CREDENTIALS)
def blob_show(lab: LabDirectory, options: Namespace) -> Any:
    blob = _blob(lab, "blob show", options, "Operation returned an invalid status 'Not Found'")
    shape = {**_listed_shape(blob), "deleted": False, "requestServerEncrypted": True}
    return {**shape, "properties": {**shape["properties"], "etag": blob.etag}}


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
    """Download a blob, to standard output without `--file`."""
    blob = _blob(lab, "blob download", options)
    blob.keep()
    content = blob.content()
    if options.file is None:
        sys.stdout.buffer.write(content)
        return None
    try:
        Path(options.file).write_bytes(content)
    except OSError as error:
        raise AzError(f"[Errno {error.errno}] {error.strerror}: '{options.file}'") from error
    shape = {**_listed_shape(blob), "contentMd5": None, "deleted": False, "requestServerEncrypted": True}
    last = f"bytes 0-{len(content) - 1}/{len(content)}"
    of_download = {"etag": blob.etag, "contentRange": last, "blobTier": None, "blobTierInferred": None}
    return {**shape, "properties": {**shape["properties"], **of_download}}


@command("storage blob delete", CONTAINER, BLOB, "--delete-snapshots", *CREDENTIALS)
def blob_delete(lab: LabDirectory, options: Namespace) -> None:
    _blob(lab, "blob delete", options).delete()


def _listed_shape(blob: StoredBlob) -> dict[str, Any]:
    content, moment = blob.content(), blob.created.isoformat()
    properties = {
        "contentLength": len(content),
        "contentSettings": {"contentMd5": base64.b64encode(stored.content_md5(content)).decode()},
        "creationTime": moment,
        "etag": blob.etag.strip('"'),
        "lastModified": moment,
    }
    return filled("blob", {"name": blob.name, "container": blob.blob["container"], "properties": properties})


def _account(lab: LabDirectory, words: str, options: Namespace) -> StorageAccount:
    if options.auth_mode not in (None, "login", "key"):
        allowed = "Allowed values: login, key."
        raise usage(f"az storage {words}: '{options.auth_mode}' is not a valid value for '--auth-mode'. {allowed}")
    if options.account_name is None:
        raise AzError("Please provide storage account name or connection string.")
    account = stored.account_named(lab.world, options.account_name)
    if account is None:
        raise AzError(
            f"Failed to resolve '{options.account_name}.blob.core.windows.net' ([Errno -2] Name or service not known)"
        )
    return account


def _blobs(lab: LabDirectory, words: str, options: Namespace) -> list[StoredBlob]:
    account = _account(lab, words, options)
    if options.container_name not in stored.containers(lab, account):
        raise blob_service_not_found("ContainerNotFound", "The specified container does not exist.")
    return stored.blobs(lab, account, options.container_name)


def _blob(
    lab: LabDirectory, words: str, options: Namespace, message: str = "The specified blob does not exist."
) -> StoredBlob:
    for blob in _blobs(lab, words, options):
        if blob.name == options.name:
            return blob
    raise blob_service_not_found("BlobNotFound", message)
