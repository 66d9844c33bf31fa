"""Result of the reads about the storage account: who is signed in, with which roles, and whom its firewall admits."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ghost.azure import ErrorKind
from ghost.cloud.capture_commands import in_subscription
from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import is_location, is_principal, is_storage_endpoint, serves_account, usable_id
from ghost.cloud.shell_reply import Reply, list_of, object_of, text, why_not_listed
from ghost.cloud.task import CaptureTask
from ghost.cloud.task_events import Checked, Learned
from ghost.text import one_line, plural

_DATA_ROLES = ("Storage Blob Data Contributor", "Storage Blob Data Owner")
_ROLES_WITHOUT_DATA = frozenset(
    (
        *("Reader", "Contributor", "Owner", "User Access Administrator", "Storage Account Contributor"),
        *("Network Contributor", "Virtual Machine Contributor", "Monitoring Reader", "Monitoring Contributor"),
    )
)
"""Built-in roles that hold no action on the content of blobs."""
_NO_KEYS = ("KeyBasedAuthenticationNotPermitted",)


def identity(_task: CaptureTask, reply: Reply) -> Checked:
    name = (object_of(reply) or {}).get("name")
    if not isinstance(name, str) or not is_principal(name):
        return Checked(Check.IDENTITY, None, reply.detail if not reply.succeeded else "az names no user or application")
    return Checked(Check.IDENTITY, True, f"signed in as {name}", Learned(principal=name))


def role(task: CaptureTask, reply: Reply) -> Checked:
    """Judge the roles of who is signed in. A custom role may hold the data actions: it proves nothing."""
    names = list_of(reply)
    if names is None or not all(isinstance(name, str) for name in names):
        return Checked(Check.ROLE, None, why_not_listed(reply))
    if any(name in _DATA_ROLES for name in names):
        return Checked(Check.ROLE, True, f"your login has {next(name for name in names if name in _DATA_ROLES)}")
    if "Storage Blob Data Reader" in names:
        return Checked(Check.ROLE, None, "Storage Blob Data Reader fetches the capture, but cannot delete its blob")
    if custom := [name for name in names if name not in _ROLES_WITHOUT_DATA]:
        return Checked(Check.ROLE, None, one_line(f"whether {', '.join(custom[:3])} reads blobs is not known", 200))
    return _no_data_role(Check.ROLE, task, f" ({', '.join(sorted(set(names))) or 'no role'} cannot read blobs)")


def blobs(task: CaptureTask, reply: Reply) -> Checked:
    """Judge a list of blobs: Azure asks whether the login may read them before it looks for the container."""
    kind = reply.azure_error.kind if reply.azure_error is not None else None
    if kind is ErrorKind.FORBIDDEN:
        return _no_data_role(Check.BLOBS, task)
    if reply.succeeded or kind is ErrorKind.NOT_FOUND:
        return Checked(Check.BLOBS, True, "your login reads blobs there")
    return Checked(Check.BLOBS, None, reply.detail)


def _no_data_role(check: Check, task: CaptureTask, has: str = "") -> Checked:
    grant = ["az", "role", "assignment", "create", "--assignee", task.principal or "YOUR-LOGIN", "--role"]
    grant += [_DATA_ROLES[0], "--scope", task.storage_account_id or "ACCOUNT-ID", *in_subscription(task)]
    return Checked(
        check,
        False,
        f"your login has no data role on storage account {task.storage_account}{has}, so the capture could not be "
        f"fetched. An owner grants one: {shlex.join(grant)}; or use its key: --storage-auth key",
    )


def account(task: CaptureTask, reply: Reply) -> Checked:
    account = object_of(reply)
    if account is None and reply.absent:
        return Checked(
            Check.ACCOUNT,
            False,
            f"the subscription has no storage account {task.storage_account}. Correct the name, or leave it out: the "
            f"accounts of {task.location} are tried then",
        )
    if account is None:
        return Checked(Check.ACCOUNT, None, reply.detail)
    private = bool(account.get("privateEndpoints"))
    learned = Learned(
        storage_account_id=usable_id(account.get("id")),
        storage_location=_region(account),
        storage_endpoint=_endpoint(task, account),
        storage_is_private=private,
    )
    public = str(account.get("publicNetworkAccess") or "Enabled").lower()
    closed = str(account.get("defaultAction") or "Allow").lower() == "deny"
    if public in ("disabled", "securedbyperimeter") or closed:
        if private:
            return Checked(Check.ACCOUNT, None, "it is reached through a private endpoint", learned)
        subnets = tuple(filter(None, map(usable_id, account.get("subnets") or [])))
        if public == "enabled" and (subnets or task.network_interface):
            learned = replace(learned, storage_is_closed=True, admitted_subnets=subnets)
            return Checked(Check.ACCOUNT, True, f"its firewall admits {plural(len(subnets), 'subnet')}", learned)
        return Checked(Check.ACCOUNT, False, _not_admitted(task, public, None), learned)
    return Checked(Check.ACCOUNT, True, "its firewall admits all networks", learned)


def subnet(task: CaptureTask, reply: Reply) -> Checked:
    subnets = [each for each in list_of(reply) or [] if usable_id(each)]
    admitted = [subnet.lower() for subnet in task.admitted_subnets]
    if any(subnet.lower() in admitted for subnet in subnets):
        return Checked(Check.SUBNET, True, "the storage account's firewall admits it")
    if admitted and not subnets:
        return Checked(Check.SUBNET, None, why_not_listed(reply) if list_of(reply) is None else "az names none")
    return Checked(Check.SUBNET, False, _not_admitted(task, "enabled", next(iter(subnets), None)))


def _not_admitted(task: CaptureTask, public: str, subnet: str | None) -> str:
    """Return reason and remedy; a rule for a subnet works only where public network access is enabled."""
    why = (
        f"the firewall of storage account {task.storage_account} does not admit {task.target_name}'s subnet and it has "
        "no private endpoint, so the VM cannot store the capture there."
    )
    if public != "enabled":
        return f"{why} Enable its public network access for that subnet, or name another account"
    add = ["az", "storage", "account", "network-rule", "add", "--account-name", task.storage_account]
    add += ["--subnet", subnet or "SUBNET-ID", *in_subscription(task)]
    return f"{why} Admit it, with the service endpoint Microsoft.Storage in the subnet: {shlex.join(add)}"


def _region(account: Mapping[str, Any]) -> str | None:
    location = text(account.get("location"))
    return location if location and is_location(location) else None


def _endpoint(task: CaptureTask, account: Mapping[str, Any]) -> str | None:
    """Return the blob endpoint of the account; None if it names another account, where no capture may go."""
    endpoint = text(account.get("endpoint"))
    usable = endpoint and is_storage_endpoint(endpoint) and serves_account(endpoint, task.storage_account)
    return endpoint if usable else None


def storage(task: CaptureTask, reply: Reply) -> Checked:
    place = f"{task.storage_account}/{task.storage_container}"
    if not reply.succeeded:
        return Checked(Check.STORAGE, False, f"Storage {place} is not accessible: {_why_not_accessible(task, reply)}")
    found = object_of(reply)
    if found is not None and found.get("exists") is True:
        return Checked(Check.STORAGE, True, f"{place} exists")
    if found is None or found.get("exists") is not False:
        return Checked(Check.STORAGE, False, f"Storage {place} may not be accessible: az did not report it")
    return Checked(
        Check.STORAGE,
        False,
        f"The container {task.storage_container} does not exist in storage account {task.storage_account}: create it, "
        "or name another account",
        container_missing=True,
    )


def _why_not_accessible(task: CaptureTask, reply: Reply) -> str:
    """Return the reason and the remedy: what az advises is long, and does not know how Ghost was asked."""
    kind = reply.azure_error.kind if reply.azure_error is not None else None
    if kind is ErrorKind.NETWORK_DOWN:
        return f"{reply.detail}. There is no account of that name, or this machine cannot resolve it: correct the name"
    if kind is ErrorKind.FIREWALL:
        admit = ["az", "storage", "account", "network-rule", "add", "--account-name", task.storage_account]
        admit += ["--ip-address", "YOUR-PUBLIC-ADDRESS", *in_subscription(task)]
        why = f"its firewall does not admit this machine. Admit it: {shlex.join(admit)}"
        return f"{why}; or run Ghost in an admitted network"
    if kind is ErrorKind.FORBIDDEN and task.storage_auth_mode == "login":
        return _no_data_role(Check.STORAGE, task).detail
    if kind is ErrorKind.FORBIDDEN and reply.azure_error is not None and reply.azure_error.code in _NO_KEYS:
        return "it takes no keys. Use your login: --storage-auth login"
    if kind is ErrorKind.FORBIDDEN:
        return (
            "your login may not read its keys (Microsoft.Storage/storageAccounts/listKeys/action). Use your login "
            "itself: --storage-auth login"
        )
    return reply.detail
