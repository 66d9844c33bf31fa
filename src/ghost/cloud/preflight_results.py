"""Result of a preflight read: passed, failed with its remedy, or unknown.

A check fails only if the answer says so. What Azure did not answer, or the shell truncated, is unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ghost.azure import ErrorKind
from ghost.cloud.capture_commands import in_subscription
from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import (
    is_location,
    is_placeholder,
    is_principal,
    is_resource_id,
    is_storage_endpoint,
    serves_account,
)
from ghost.cloud.shell_reply import Reply, parse_json, text
from ghost.cloud.storage_route import STORAGE_PORT, PathVerdict, by_gates, by_routes
from ghost.cloud.task import CaptureTask
from ghost.cloud.task_events import Checked, Learned
from ghost.net import groups_from_effective_nsg, routes_from_effective_table
from ghost.text import one_line, plural

_AGENT = re.compile(r"NetworkWatcherAgent(Linux|Windows)$|^AzureNetworkWatcherExtension$", re.IGNORECASE)
NO_WATCHER = re.compile(
    r"network watcher is not enabled|NetworkWatcherNotEnabled|NetworkWatcherNotFound|NetworkWatcherDoesNotExist",
    re.IGNORECASE,
)
_POWER = "powerstate/"


def judge(check: Check, task: CaptureTask, reply: Reply) -> Checked:
    try:
        return _JUDGES[check](task, reply)
    except (ValueError, TypeError, AttributeError) as error:  # JSON of another shape than Azure's
        return Checked(check, None, f"the answer could not be read: {one_line(str(error), 120)}")


def capture_names(reply: Reply) -> list[str] | None:
    """Return the names in a list of packet captures; None if the list is incomplete."""
    listed = reply.value
    if not isinstance(listed, list) or reply.cut or not all(isinstance(row, dict) for row in listed):
        return None
    return [row["name"] for row in listed if isinstance(row.get("name"), str)]


def why_not_listed(reply: Reply) -> str:
    return "the list was truncated" if reply.succeeded else reply.detail


def lists_no_watcher(reply: Reply) -> bool:
    return not reply.succeeded and NO_WATCHER.search(reply.stderr) is not None


# --- the machine -------------------------------------------------------------------------------------------------


def _machine(task: CaptureTask, reply: Reply) -> Checked:
    view = _object(reply)
    if view is None:
        return Checked(Check.MACHINE, None, reply.detail)
    learned = Learned(network_interface=_primary_interface(view.get("interfaces")))
    power = next((c.lower().removeprefix(_POWER) for c in _texts(view, "power") if c.lower().startswith(_POWER)), None)
    if power is not None and power != "running":
        return Checked(
            Check.MACHINE,
            False,
            f"{task.target} is {one_line(power, 40)}, and only a running machine can be captured. Start it: "
            f"{_start(task)}",
            learned,
        )
    unsure = "its power state is not known" if power is None else None
    agent = _agent(task, view)
    if agent.passed is False:
        return Checked(Check.MACHINE, False, agent.detail, learned)
    if unsure or agent.passed is None:
        return Checked(Check.MACHINE, None, "; ".join(filter(None, (unsure, agent.detail))), learned)
    return Checked(Check.MACHINE, True, "running, with the Network Watcher agent", learned)


def _agent(task: CaptureTask, view: Mapping[str, Any]) -> Checked:
    """Judge the agent extension. The VM's own agent reports extensions; without a report, a missing one proves
    nothing.
    """
    listed = [*_rows(view, "extensions"), *_rows(view, "resources")]
    agents = [row for row in listed if _is_agent(row)]
    if any(
        status.lower().startswith("provisioningstate/failed") for row in agents for status in _texts(row, "statuses")
    ):
        return Checked(
            Check.MACHINE,
            False,
            f"the Network Watcher agent on {task.target} failed to install. Install it again: {_install(task, view)}",
        )
    if agents:
        return Checked(Check.MACHINE, True)
    ready = any(status.lower() == "ready" for status in _texts(view, "agent"))
    if listed or view.get("extensions") is not None or ready:
        return Checked(
            Check.MACHINE,
            False,
            f"the Network Watcher agent extension is not installed on {task.target}. Install it: "
            f"{_install(task, view)}",
        )
    return Checked(Check.MACHINE, None, "the installed extensions are unknown: the VM's agent does not report")


def _is_agent(row: Mapping[str, Any]) -> bool:
    kinds = (str(row.get(field) or "").rpartition(".")[2] for field in ("type", "name"))
    return any(_AGENT.search(kind) for kind in kinds)


def _install(task: CaptureTask, view: Mapping[str, Any]) -> str:
    kind = "NetworkWatcherAgentWindows" if str(view.get("os")).lower() == "windows" else "NetworkWatcherAgentLinux"
    agent = ["--name", kind, "--publisher", "Microsoft.Azure.NetworkWatcher", *in_subscription(task)]
    group = ["extension", "set", "-g", task.resource_group]
    if task.instance is not None:
        command = shlex.join(["az", "vmss", *group, "--vmss-name", task.instance.scale_set, *agent])
        return f"{command}, then upgrade the instance"
    return shlex.join(["az", "vm", *group, "--vm-name", task.target_name, *agent])


def _start(task: CaptureTask) -> str:
    words = ["start", "-g", task.resource_group, "-n"]
    if task.instance is not None:
        words = ["vmss", *words, task.instance.scale_set, "--instance-ids", task.instance.instance]
    else:
        words = ["vm", *words, task.target_name]
    return shlex.join(["az", *words, *in_subscription(task)])


def _primary_interface(rows: object) -> str | None:
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    found.sort(key=lambda row: row.get("primary") is not True)
    return next((name for row in found if (name := usable_id(row.get("id")))), None)


# --- the watcher and the account ---------------------------------------------------------------------------------


def _captures(task: CaptureTask, reply: Reply) -> Checked:
    if lists_no_watcher(reply):
        enable = ["az", "network", "watcher", "configure", "-g", "NetworkWatcherRG", "-l", task.location or ""]
        enable += ["--enabled", "true"]
        return Checked(
            Check.CAPTURES,
            False,
            f"NetworkWatcherNotEnabled: no network watcher is enabled in region {task.location}. Enable it: "
            + shlex.join([*enable, *in_subscription(task)]),
        )
    names = capture_names(reply)
    if names is None:
        return Checked(Check.CAPTURES, None, why_not_listed(reply))
    if task.capture_name.lower() in map(str.lower, names):
        return Checked(
            Check.CAPTURES,
            False,
            f"a packet capture named {task.capture_name} exists in {task.location} already. Ask again: the next one "
            "gets another name",
        )
    return Checked(Check.CAPTURES, True, f"a network watcher is in {task.location}, the name is free")


def _identity(_task: CaptureTask, reply: Reply) -> Checked:
    name = (_object(reply) or {}).get("name")
    if not isinstance(name, str) or not is_principal(name):
        return Checked(Check.IDENTITY, None, reply.detail if not reply.succeeded else "az names no user or application")
    return Checked(Check.IDENTITY, True, f"signed in as {name}", Learned(principal=name))


def _role(task: CaptureTask, reply: Reply) -> Checked:
    """Judge the roles of who is signed in. A custom role may hold the data actions: it proves nothing."""
    names = _list(reply)
    if names is None or not all(isinstance(name, str) for name in names):
        return Checked(Check.ROLE, None, why_not_listed(reply))
    if any(name in _DATA_ROLES for name in names):
        return Checked(Check.ROLE, True, f"your login has {next(name for name in names if name in _DATA_ROLES)}")
    if "Storage Blob Data Reader" in names:
        return Checked(Check.ROLE, None, "Storage Blob Data Reader fetches the capture, but cannot delete its blob")
    if custom := [name for name in names if name not in _ROLES_WITHOUT_DATA]:
        return Checked(Check.ROLE, None, one_line(f"whether {', '.join(custom[:3])} reads blobs is not known", 200))
    return _no_data_role(Check.ROLE, task, f" ({', '.join(sorted(set(names))) or 'no role'} cannot read blobs)")


def _blobs(task: CaptureTask, reply: Reply) -> Checked:
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


_DATA_ROLES = ("Storage Blob Data Contributor", "Storage Blob Data Owner")
_ROLES_WITHOUT_DATA = frozenset(
    (
        *("Reader", "Contributor", "Owner", "User Access Administrator", "Storage Account Contributor"),
        *("Network Contributor", "Virtual Machine Contributor", "Monitoring Reader", "Monitoring Contributor"),
    )
)
"""Built-in roles that hold no action on the content of blobs."""


def _account(task: CaptureTask, reply: Reply) -> Checked:
    account = _object(reply)
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


def _subnet(task: CaptureTask, reply: Reply) -> Checked:
    subnets = [each for each in _list(reply) or [] if usable_id(each)]
    admitted = [subnet.lower() for subnet in task.admitted_subnets]
    if any(subnet.lower() in admitted for subnet in subnets):
        return Checked(Check.SUBNET, True, "the storage account's firewall admits it")
    if admitted and not subnets:
        return Checked(Check.SUBNET, None, why_not_listed(reply) if _list(reply) is None else "az names none")
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


def _storage(task: CaptureTask, reply: Reply) -> Checked:
    place = f"{task.storage_account}/{task.storage_container}"
    if not reply.succeeded:
        return Checked(Check.STORAGE, False, f"Storage {place} is not accessible: {_why_not_accessible(task, reply)}")
    found = _object(reply)
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


_NO_KEYS = ("KeyBasedAuthenticationNotPermitted",)


# --- the way from the VM to the account --------------------------------------------------------------------------


def _routes(task: CaptureTask, reply: Reply) -> Checked:
    rows = _list(reply)
    if rows is None:
        return Checked(Check.ROUTES, None, why_not_listed(reply))
    verdict = by_routes(routes_from_effective_table([_row(row) for row in rows]))
    remedy = (
        "Allow outbound storage traffic: a user route for the service tag Storage to Internet, or a service endpoint"
    )
    return _path_check(Check.ROUTES, task, verdict, remedy)


def _gates(task: CaptureTask, reply: Reply) -> Checked:
    rows = _list(reply)
    if rows is None:
        return Checked(Check.GATES, None, why_not_listed(reply))
    groups = [
        {**row, "effectiveSecurityRules": [_row(rule) for rule in row.get("effectiveSecurityRules") or []]}
        for row in rows
    ]
    verdict = by_gates(groups_from_effective_nsg(groups), task.storage_location)
    remedy = f"Allow TCP {STORAGE_PORT} out to the service tag Storage there, with a smaller priority number"
    return _path_check(Check.GATES, task, verdict, remedy)


def _path_check(check: Check, task: CaptureTask, verdict: PathVerdict, remedy: str) -> Checked:
    because = one_line(verdict.because, 300)
    if task.storage_is_private and verdict.open is not True:
        return Checked(
            check, None, f"the account is reached through a private endpoint; for other addresses, {because}"
        )
    if verdict.open is False:
        return Checked(
            check,
            False,
            f"{task.target} cannot reach storage account {task.storage_account} on TCP {STORAGE_PORT}: {because}. "
            f"{remedy}",
        )
    return Checked(check, verdict.open, because)


# --- reading -----------------------------------------------------------------------------------------------------


def usable_id(value: object) -> str | None:
    """Return a resource id, or its placeholder if the shell hides it; None if it is not safe in a command."""
    return value if isinstance(value, str) and (is_resource_id(value) or is_placeholder(value)) else None


def _object(reply: Reply) -> dict[str, Any] | None:
    return reply.value if isinstance(reply.value, dict) else None


def _list(reply: Reply) -> list[Any] | None:
    return reply.value if isinstance(reply.value, list) and not reply.cut else None


def _row(row: Any) -> Any:
    """Return a row given as an object or one line of JSON text; a field whose query condition did not hold is false."""
    found = parse_json(row) if isinstance(row, str) else row
    return {name: value for name, value in found.items() if value is not False} if isinstance(found, dict) else found


def _rows(owner: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    rows = owner.get(field)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _texts(owner: Mapping[str, Any], field: str) -> list[str]:
    values = owner.get(field)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


_JUDGES: dict[Check, Callable[[CaptureTask, Reply], Checked]] = {
    Check.MACHINE: _machine,
    Check.CAPTURES: _captures,
    Check.IDENTITY: _identity,
    Check.ACCOUNT: _account,
    Check.SUBNET: _subnet,
    Check.ROLE: _role,
    Check.STORAGE: _storage,
    Check.BLOBS: _blobs,
    Check.ROUTES: _routes,
    Check.GATES: _gates,
}
