"""What was changed on the way of the traffic in the last 24 hours, by one read of the activity log.

A change is a pointer for the engineer, never a cause by itself.
https://learn.microsoft.com/azure/azure-monitor/platform/activity-log
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ghost import net
from ghost.brain.offline.azure_reads import Read
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.complaint import Complaint
from ghost.brain.offline.steps import Steps
from ghost.net import key, name_of

MAX_STATED: Final = 8


def what_changed(case: Case, complaint: Complaint) -> Steps[None]:
    """State what was changed on the resources that the walks met, newest first."""
    (reading,) = yield from read(
        case, "I read the recent changes.", Read(net.ACTIVITY_LOG, "Changes of the last 24 hours, as a hint.")
    )
    told = reading.row()
    if not isinstance(told.get("changes"), list):
        return
    path = _path(case, complaint)
    rows = (row for row in told["changes"] if isinstance(row, dict) and not _own_command(case, row))
    changes = net.newest_changes(rows, path)
    for row in changes[:MAX_STATED]:
        blamed = next((cause for cause in case.causes if _concerns(row, cause.resource, cause.rule)), None)
        pointer = f" It is the cause found here ({blamed.rule or name_of(blamed.resource)})." if blamed else ""
        case.state(
            f"Changed in the last 24 h on the path of this traffic: {net.described_change(row)}.{pointer}",
            *reading.audit_ids,
        )
    if len(changes) > MAX_STATED:
        case.state(
            f"{len(changes) - MAX_STATED} older changes of the path are in the activity log.", *reading.audit_ids
        )
    if not changes and path:
        newest = f" (of its newest {net.MAX_EVENTS} entries)" if told.get("entries") == net.MAX_EVENTS else ""
        case.state(f"The activity log{newest} shows no change on the path in the last 24 h.", *reading.audit_ids)


def _path(case: Case, complaint: Complaint) -> frozenset[str]:
    """Return the folded ids of what the walks met, with what it lies in."""
    met: set[str] = set()
    for flow in dict.fromkeys(candidate.flow for candidate in complaint.candidates):
        met.update(net.met(case.network, net.walk(case.network, flow)))
    met.update(cause.resource for cause in case.causes)
    return frozenset(key(each) for each in met if "/providers/" in each.casefold())


def _own_command(case: Case, row: Mapping[str, Any]) -> bool:
    """Return whether a command in a guest may be this investigation's own."""
    name, is_command = name_of(key(str(row.get("resource")))), "/runcommand/" in str(row.get("operation")).casefold()
    return is_command and any("run-command invoke" in each and name in each.casefold() for each in case.reads)


def _concerns(row: Mapping[str, Any], resource: str, rule: str) -> bool:
    """Return whether a change is of a blamed resource, or of the blamed rule in it."""
    changed = key(str(row["resource"]))
    within = changed.removeprefix(f"{key(resource)}/").split("/")
    return bool(resource) and (changed == key(resource) or (len(within) == 2 and within[1] == rule.casefold()))
