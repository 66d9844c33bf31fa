"""Flow logs in a workspace: what traffic analytics would write of a world's traffic, by the verdicts of the walk.

Flow logs are resources of a scenario's edits (`networkWatchers/NAME/flowLogs/NAME`). A query may filter, choose columns
and limit; others are refused.
https://learn.microsoft.com/azure/network-watcher/traffic-analytics-schema
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ghost import net
from ghost.lab.arm.api_messages import Response, bad_request, json_response
from ghost.lab.arm.request_routing import IN_SUBSCRIPTION, Call, route
from ghost.lab.tenant import folded
from ghost.lab.world import World

if TYPE_CHECKING:
    from ghost.lab.wire.conditions import Traffic
    from ghost.net import Interface

TABLE = "NTANetAnalytics"
INTERVALS = 6
"""Of ten minutes each: what is logged of every flow."""
_CONDITION = re.compile(
    r"""(?P<column>\w+)\s*(?P<operator>==|!=|=~|has|contains|startswith)\s*["'](?P<text>[^"']*)["']
    |(?P<number>\w+)\s*(?P<compares>==|!=)\s*(?P<value>\d+)|TimeGenerated\s*>=?\s*ago\((?P<ago>\d+)(?P<unit>[mhd])\)""",
    re.VERBOSE,
)
_SUMMARY = re.compile(r"(?:(?P<name>\w+)\s*=\s*)?(?:count\(\)|max\((?P<of>\w+)\))\s*by\s+(?P<keys>.+)")
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "==": lambda cell, text: cell == text,
    "!=": lambda cell, text: cell != text,
    "=~": lambda cell, text: cell.casefold() == text.casefold(),
    "has": lambda cell, text: text.casefold() in cell.casefold(),
    "contains": lambda cell, text: text.casefold() in cell.casefold(),
    "startswith": lambda cell, text: cell.casefold().startswith(text.casefold()),
}
Row = dict[str, Any]


@route("POST", f"{IN_SUBSCRIPTION}/providers/Microsoft.OperationalInsights/workspaces/{{workspace}}/query",
       "/v1/workspaces/{workspace}/query")  # fmt: skip
def query(call: Call) -> Response:
    stated = str(call.request.json().get("query", ""))
    rows = list(_rows(call))
    empty = not rows
    columns = list(rows[0]) if rows else ["TimeGenerated", "FlowStatus"]
    first, *steps = [step.strip() for step in stated.split("|")]
    if first != TABLE:
        raise bad_request(
            f"Failed to resolve table or column expression named '{first}': a lab has {TABLE}", "BadArgumentError"
        )
    for step in steps:
        rows, columns = _step(call, step, rows, columns)
    types = {"TimeGenerated": "datetime", "DestPort": "int"}
    table = {
        "name": "PrimaryResult",
        "columns": [
            {"name": name, "type": types.get(name, "long" if name.endswith("_") else "string")} for name in columns
        ],
        "rows": [[row.get(name) for name in columns] for row in rows],
    }
    return json_response({"tables": [table]}, note="no flow log of the scenario is on" if empty else "")


def _step(call: Call, step: str, rows: list[Row], columns: list[str]) -> tuple[list[Row], list[str]]:
    word, _, rest = step.partition(" ")
    names = [name.strip() for name in rest.split(",")]
    match word:
        case "where":
            for clause in re.split(r"\s+and\s+", rest):
                rows = [row for row in rows if _holds(call, row, clause.strip())]
            return rows, columns
        case "project" if all(name in columns for name in names):
            return rows, names
        case "take" | "limit" if rest.strip().isdecimal():
            return rows[: int(rest)], columns
        case "summarize" if by := _SUMMARY.fullmatch(rest):
            keys = [name.strip() for name in by["keys"].split(",")]
            groups: dict[tuple[Any, ...], list[Row]] = {}
            for row in rows:
                groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
            column = by["name"] or (f"max_{by['of']}" if by["of"] else "count_")
            named = [
                {
                    **dict(zip(keys, place, strict=True)),
                    column: max(str(row.get(by["of"], "")) for row in group) if by["of"] else len(group),
                }
                for place, group in groups.items()
            ]
            return named, [*keys, column]
        case "order" | "sort" if by := re.fullmatch(r"by\s+(\w+)(?:\s+(asc|desc))?", rest):
            return sorted(rows, key=lambda row: str(row.get(by[1])), reverse=by[2] != "asc"), columns
    there = "where COLUMN == 'x', project, take, order by, summarize count() by, summarize max(COLUMN) by"
    raise bad_request(f"Not simulated in this lab: {step}; there is {there}", "BadArgumentError")


def _holds(call: Call, row: Row, clause: str) -> bool:
    found = _CONDITION.fullmatch(clause)
    if found is None:
        raise bad_request(f"Not simulated in this lab: where {clause}", "BadArgumentError")
    if found["ago"]:
        unit = {"m": "minutes", "h": "hours", "d": "days"}[found["unit"]]
        since = call.lab.clock.now() - timedelta(**{unit: int(found["ago"])})
        return str(row["TimeGenerated"]) >= f"{since:%Y-%m-%dT%H:%M:%S}"
    if found["number"]:
        return _TESTS[found["compares"]](str(row.get(found["number"], "")), found["value"])
    return _TESTS[found["operator"]](str(row.get(found["column"], "")), found["text"])


def _rows(call: Call) -> Iterator[Row]:
    """Yield a row for each flow, interval and end that a flow log is on for."""
    world, now = call.world, call.lab.clock.now()
    logs = [
        folded(str(body["properties"].get("targetResourceId", "")))
        for body in world.documents.of_type("Microsoft.Network/networkWatchers/flowLogs")
        if body["properties"].get("enabled")
    ]
    for traffic in world.traffic if logs else ():
        for row in _ends_of(world, traffic, logs):
            for number in range(INTERVALS, 0, -1):
                yield {"TimeGenerated": f"{now - timedelta(minutes=10 * number):%Y-%m-%dT%H:%M:%S}Z", **row}


def _ends_of(world: World, traffic: Traffic, logs: list[str]) -> Iterator[Row]:
    machines = {vm.name: world.address_of(vm.name) for vm in world.machines}
    source, destination = machines.get(traffic.client, traffic.client), machines.get(traffic.server, traffic.server)
    if not net.is_address(destination):
        return
    flow = net.Flow(traffic.protocol, source, None, destination, traffic.port)
    arrives = True
    for name, direction in ((traffic.client, "Outbound"), (traffic.server, "Inbound")):
        nic = next(iter(world.network.interfaces_with(machines.get(name, name))), None)
        if nic is None or not arrives:
            continue
        stop = next((hop for hop in net.gates(world.network, nic, flow, direction) if hop.stops), None)  # type: ignore[arg-type]
        arrives = stop is None and (direction == "Inbound" or _gets_there(world, flow, nic))
        if _is_logged(world, nic, logs):
            count = round(traffic.connections_per_minute * 10)
            yield {
                "SubType": "FlowLog",
                "FlowType": "IntraVNet",
                "FlowStatus": "Denied" if stop else "Allowed",
                "FlowDirection": direction,
                "SrcIp": source,
                "DestIp": destination,
                "DestPort": traffic.port,
                "L4Protocol": traffic.protocol[0],
                "AclRule": (stop.rule if stop else None) or "",
                "AclGroup": (stop.resource if stop else None) or "",
                "SrcVm": traffic.client if traffic.client in machines else "",
                "DestVm": traffic.server if traffic.server in machines else "",
                "CompletedFlows": 0 if stop else count,
                "DeniedFlows": count if stop else 0,
            }  # fmt: skip


def _gets_there(world: World, flow: net.Flow, nic: Interface) -> bool:
    """Return whether packets of a flow that its sender's groups let out come to the groups of the destination."""
    from ghost.lab.wire.refusals import refusal_of

    stop = net.walk(world.network, flow, source=nic.id).blocker
    if stop is None or refusal_of(stop, flow.destination_port) is not None:
        return True
    return stop.kind in ("security_group", "admin_rule", "guest") or stop.leg == "return"


def _is_logged(world: World, nic: Interface, logs: list[str]) -> bool:
    home, subnet = world.network.subnet_of(nic)
    places = (nic.id, subnet.id, home.id, nic.security_group, subnet.security_group)
    return any(folded(place) in logs for place in places if place)
