"""When a flow last passed, and what denied it since: VNet flow logs, where they go to a workspace.

A flow log tells what security groups and admin rules did, not whether anybody answered.
https://learn.microsoft.com/azure/network-watcher/traffic-analytics-schema
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from ghost import net
from ghost.brain.offline.azure_reads import Read, az
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.complaint import Candidate
from ghost.brain.offline.steps import Steps
from ghost.net import Network, VirtualNetwork, key, name_of

DAYS: Final = 7
_ANALYTICS: Final = "flowAnalyticsConfiguration.networkWatcherFlowAnalyticsConfiguration"
LOGS: Final = f"[?enabled && {_ANALYTICS}.enabled].{{target:targetResourceId,workspace:{_ANALYTICS}.workspaceId}}"


def last_passed(case: Case, candidate: Candidate) -> Steps[None]:
    """State it from one query, where a flow log of one of the ends goes to a workspace."""
    flow, network = candidate.flow, case.network
    ends = [end for end in (flow.source_address, flow.destination_address) if net.is_address(end)]
    if len(ends) < 2 or not all(ip_address(end).is_private and ip_address(end).version == 4 for end in ends):
        return
    places = {place: location for end in ends for place, location in _places(network, end).items()}
    regions = tuple(dict.fromkeys(filter(None, places.values())))[:1]
    reads = [
        Read(az("network", "watcher", "flow-log", "list", "-l", region, query=LOGS), "Flow logs that are enabled.")
        for region in regions
    ]
    logs = yield from read(case, "I look for flow logs of the networks on the path.", *reads)
    rows = [row for reading in logs for row in reading.rows()]
    workspace = next((str(row["workspace"]) for row in rows if row.get("workspace") and _is_of(row, places)), None)
    if workspace is None:
        return
    words = ("monitor", "log-analytics", "query", "-w", workspace, "--analytics-query", _query(candidate))
    (reading,) = yield from read(case, "", Read(az(*words), f"When {flow} last passed, according to the flow logs."))
    if reading.ok and isinstance(reading.value, list):
        case.state(_told(str(flow), reading.rows()), *reading.audit_ids)


def _is_of(row: dict[str, Any], places: dict[str, str]) -> bool:
    return key(str(row.get("target") or "")) in places


def _places(network: Network, address: str) -> dict[str, str]:
    """Return the folded ids of what a flow log of this address may be of, each with its region."""
    places: dict[str, str] = {}
    for interface in network.interfaces_with(address):
        home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
        if home is not None:
            places |= {key(place): home.location for place in (home.id, interface.subnet, interface.id)}
    return places


def _query(candidate: Candidate) -> str:
    flow = candidate.flow
    port = f" and DestPort == {flow.destination_port}" if flow.destination_port is not None else ""
    return (
        f"NTANetAnalytics | where TimeGenerated > ago({DAYS}d) and SubType == 'FlowLog'"
        f" and SrcIp == '{flow.source_address}' and DestIp == '{flow.destination_address}'{port}"
        " | summarize Last=max(TimeGenerated) by FlowDirection, FlowStatus, AclRule, AclGroup"
    )


def _told(flow: str, rows: list[dict[str, Any]]) -> str:
    ends = {"o": "at the source", "i": "at the destination"}
    told = [text for letter, end in ends.items() if (text := _at_one_end(end, _of_direction(rows, letter)))]
    return f"Flow logs of the last {DAYS} days on {flow}: {'; '.join(told) or 'nothing'}."


def _of_direction(rows: list[dict[str, Any]], letter: str) -> list[dict[str, Any]]:
    return [row for row in rows if str(row.get("FlowDirection")).casefold().startswith(letter)]


def _at_one_end(end: str, rows: list[dict[str, Any]]) -> str:
    last: dict[str, tuple[str, str]] = {}
    for row in rows:
        rule = " of ".join(filter(None, (str(row.get("AclRule") or ""), name_of(str(row.get("AclGroup") or "")))))
        status, seen = str(row.get("FlowStatus")).casefold(), (str(row.get("Last") or ""), rule)
        last[status] = max(last.get(status, ("", "")), seen)
    passed, denied = last.get("allowed"), last.get("denied")
    if passed is None and denied is None:
        return ""
    text = f"{end} last let through at {_time(passed[0])}" if passed else f"{end} never let through"
    if denied is not None and (passed is None or denied[0] > passed[0]):
        text += f", last denied at {_time(denied[0])}" + (f" by {denied[1]}" if denied[1] else "")
    return text


def _time(text: str) -> str:
    return f"{text[:16].replace('T', ' ')} UTC"
