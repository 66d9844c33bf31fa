"""Result of a preflight read: passed, failed with its remedy, or unknown.

A check fails only if the answer says so. What Azure did not answer, or the shell truncated, is unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ghost.cloud import storage_results
from ghost.cloud.capture_commands import in_subscription
from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import usable_id
from ghost.cloud.shell_reply import Reply, list_of, object_of, parse_json, why_not_listed
from ghost.cloud.storage_route import STORAGE_PORT, PathVerdict, by_gates, by_routes
from ghost.cloud.task import CaptureTask
from ghost.cloud.task_events import Checked, Learned
from ghost.net import groups_from_effective_nsg, routes_from_effective_table
from ghost.text import one_line

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


def lists_no_watcher(reply: Reply) -> bool:
    return not reply.succeeded and NO_WATCHER.search(reply.stderr) is not None


# --- the machine -------------------------------------------------------------------------------------------------


def _machine(task: CaptureTask, reply: Reply) -> Checked:
    view = object_of(reply)
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


# --- the watcher ---------------------------------------------------------------------------------


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


# --- the way from the VM to the account --------------------------------------------------------------------------


def _routes(task: CaptureTask, reply: Reply) -> Checked:
    rows = list_of(reply)
    if rows is None:
        return Checked(Check.ROUTES, None, why_not_listed(reply))
    verdict = by_routes(routes_from_effective_table([_row(row) for row in rows]))
    remedy = (
        "Allow outbound storage traffic: a user route for the service tag Storage to Internet, or a service endpoint"
    )
    return _path_check(Check.ROUTES, task, verdict, remedy)


def _gates(task: CaptureTask, reply: Reply) -> Checked:
    rows = list_of(reply)
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
    Check.IDENTITY: storage_results.identity,
    Check.ACCOUNT: storage_results.account,
    Check.SUBNET: storage_results.subnet,
    Check.ROLE: storage_results.role,
    Check.STORAGE: storage_results.storage,
    Check.BLOBS: storage_results.blobs,
    Check.ROUTES: _routes,
    Check.GATES: _gates,
}
