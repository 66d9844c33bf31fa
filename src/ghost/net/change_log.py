"""Azure's activity log: the read of it, and which entries change what a packet meets on its way.

https://learn.microsoft.com/azure/azure-monitor/platform/activity-log
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final

from ghost.net.balancing import LoadBalancer
from ghost.net.hops import Walk
from ghost.net.network import Network
from ghost.net.resources import Interface, VirtualNetwork, key, name_of

MAX_EVENTS: Final = 1000
_PROJECTION: Final = "{time:eventTimestamp,caller:caller,operation:operationName.value,resource:resourceId}"
ACTIVITY_LOG: Final = (
    *("az", "monitor", "activity-log", "list", "--offset", "24h", "--max-events", str(MAX_EVENTS)),
    *("--query", f"{{entries:length(@),changes:[?status.value=='Succeeded'].{_PROJECTION}}}", "-o", "json"),
)
"""Answers `{entries, changes: [{time, caller, operation, resource}]}` of the last 24 hours."""
CHANGING_ACTIONS: Final = frozenset(
    ["start", "deallocate", "poweroff", "restart", "redeploy", "reapply", "reimage", "runcommand"]
)
"""Other actions join, list or diagnose: they change nothing."""
NOT_OF_TRAFFIC: Final = frozenset(["packetcaptures", "tags", "locks", "roleassignments", "diagnosticsettings"])


def met(network: Network, walked: Walk) -> Iterator[str]:
    """Yield the ids of what a walk meets, with what it lies in; some are names or empty."""
    for hop in (hop for each in (walked, *walked.others) for hop in each.hops):
        yield hop.resource
        interface = network.get(Interface, hop.resource)
        if interface is not None:
            yield from filter(None, (interface.machine, interface.security_group, interface.subnet))
            home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
            subnet = home.subnet_ids.get(key(interface.subnet)) if home is not None else None
            yield interface.subnet.partition("/subnets/")[0]
            if subnet is not None:
                yield from filter(None, (subnet.security_group, subnet.route_table, subnet.nat_gateway))
        balancer = network.get(LoadBalancer, hop.resource)
        if balancer is not None:
            yield from (front_end.public_address or "" for front_end in balancer.front_ends)


def is_change(row: Mapping[str, Any], path: Set[str] | None) -> bool:
    """Return whether an entry, with its `operation` and `resource`, changes something of `path`, of folded ids; None
    for anything that traffic may meet."""
    resource, operation = key(str(row.get("resource") or "")), str(row.get("operation") or "").casefold()
    *kinds, verb = operation.split("/")
    if verb == "action":
        changes = bool(kinds) and kinds[-1] in CHANGING_ACTIONS
    else:
        changes = verb in ("write", "delete") and NOT_OF_TRAFFIC.isdisjoint(kinds)
    if not changes or "/providers/" not in resource:
        return False
    if path is None:
        return True
    if "/subnets/" in resource:  # a network on the way has subnets that are not
        return resource in path
    return any(resource == each or resource.startswith(f"{each}/") or each.startswith(f"{resource}/") for each in path)


def newest_changes(rows: Iterable[Mapping[str, Any]], path: Set[str] | None) -> list[Mapping[str, Any]]:
    """Return the last change of each kind to each resource of `path`, as in `is_change`, the newest first."""
    newest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in sorted(
        (row for row in rows if is_change(row, path)), key=lambda row: str(row.get("time")), reverse=True
    ):
        newest.setdefault((key(str(row["resource"])), str(row["operation"]).casefold()), row)
    return list(newest.values())


def described_change(row: Mapping[str, Any]) -> str:
    """Return a change in words, without the name of the person's account."""
    resource, time = str(row["resource"]), str(row.get("time") or "")
    owner = resource.rpartition("/providers/")[2].split("/")
    of = f" of {owner[2]}" if len(owner) > 3 else ""
    caller = _USER.sub("...", str(row.get("caller") or "an unknown caller"))
    operation = str(row["operation"]).partition("/")[2]
    return f"{operation} of {name_of(resource)}{of} at {time[:16].replace('T', ' ')} UTC by {caller}"


_USER: Final = re.compile(r"(?<=^.).*(?=@)")
