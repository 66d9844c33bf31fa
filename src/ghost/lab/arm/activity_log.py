"""The activity log: what a world tells of the past, and what was changed since the lab was started.

https://learn.microsoft.com/rest/api/monitor/activity-logs/list
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ghost.lab.arm.api_messages import ArmError, Request, Response, json_response
from ghost.lab.arm.request_routing import IN_SUBSCRIPTION, Call, route
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.tenant import guid, type_in

KEPT = 500
_CLAUSE = re.compile(r"(?P<field>\w+) (?P<operator>eq|ge|le) '?(?P<value>[^' ]+)'?", re.IGNORECASE)
_OPERATIONS = {"PUT": "write", "PATCH": "write", "DELETE": "delete"}
_A_CALL = timedelta(minutes=1)
_TICKS_AT_EPOCH = 621355968000000000


@route("GET", f"{IN_SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values")
def events(call: Call) -> Response:
    stated = call.request.query.get("$filter", "")
    clauses = {(m["field"].casefold(), m["operator"].casefold()): m["value"] for m in _CLAUSE.finditer(stated)}
    found = [event for event in _events(call) if _is_asked(event, clauses, call.lab.clock)]
    found.sort(key=lambda event: str(event["eventTimestamp"]), reverse=True)
    note = "" if found or call.world.activity else "a lab logs only its own changes and those of its scenario"
    return json_response({"value": found}, note=note)


def record(lab: LabDirectory, request: Request, status: int) -> None:
    """Add a change to the log. Captures are changes as well; posts are not, but those of machines."""
    segments = request.segments
    folded = [segment.casefold() for segment in segments]
    action = _OPERATIONS.get(request.method)
    if "providers" not in folded or status >= 400:
        return
    resource = "/" + "/".join(segments if action else segments[:-1])
    operation = f"{type_in(resource)}/{action or f'{segments[-1]}/action'}"
    entry = {"at": lab.clock.now().isoformat(), "operation": operation, "resource": resource}
    with lab.changing() as state:
        state["activity"] = [*state.get("activity", []), entry][-KEPT:]


def _events(call: Call) -> list[dict[str, Any]]:
    world, started = call.world, datetime.fromtimestamp(call.lab.clock.started, UTC)
    told = [
        (started - timedelta(minutes=each.minutes_ago), each.caller, each.operation,
         world.documents.id_of(each.resource), each.status)
        for each in world.activity
    ]  # fmt: skip
    own = [
        (datetime.fromisoformat(each["at"]), world.subscription.user, each["operation"], each["resource"], "Succeeded")
        for each in call.lab.state().get("activity", [])
    ]
    return [_event(call, number, *each) for number, each in enumerate((*told, *own))]


def _event(
    call: Call, number: int, at: datetime, caller: str, operation: str, resource: str, status: str
) -> dict[str, Any]:
    number_of = guid(f"{resource}/{operation}/{number}")
    ticks = _TICKS_AT_EPOCH + int(at.timestamp() * 1e7)
    moment = f"{at:%Y-%m-%dT%H:%M:%S.%f}0Z"

    def named(text: str) -> dict[str, str]:
        return {"value": text, "localizedValue": text}

    return {
        "authorization": {"action": operation, "scope": resource},
        "caller": caller,
        "channels": "Operation",
        "correlationId": number_of,
        "description": "",
        "eventDataId": number_of,
        "eventName": {"value": "EndRequest", "localizedValue": "End request"},
        "category": {"value": "Administrative", "localizedValue": "Administrative"},
        "eventTimestamp": moment,
        "id": f"{resource}/events/{number_of}/ticks/{ticks}",
        "level": "Informational" if status != "Failed" else "Error",
        "operationId": number_of,
        "operationName": named(operation),
        "resourceGroupName": resource.split("/")[4],
        "resourceId": resource,
        "resourceProviderName": named(operation.split("/")[0]),
        "resourceType": named(operation.rpartition("/")[0]),
        "status": named(status),
        "subStatus": {"value": "", "localizedValue": ""},
        "submissionTimestamp": moment,
        "subscriptionId": call["subscription"],
        "tenantId": call.world.subscription.tenant,
    }


def _is_asked(event: dict[str, Any], clauses: dict[tuple[str, str], str], clock: LabClock) -> bool:
    """Return whether an event fits the filter.

    Times after the lab's own are of a client with another clock. az ends its period at the real time, which the lab's
    own has left behind: up to then means up to now.
    """
    now, real = clock.now(), datetime.fromtimestamp(clock.started + clock.monotonic() / clock.speed, UTC)
    for (field, operator), wanted in clauses.items():
        match field:
            case "eventtimestamp":
                bound = _moment(wanted)
                at = _moment(str(event["eventTimestamp"]))
                is_now = bound > now or (operator == "le" and abs(real - bound) < _A_CALL)
                if not is_now and (at < bound if operator == "ge" else at > bound):
                    return False
            case "resourcegroupname" if event["resourceGroupName"].casefold() != wanted.casefold():
                return False
            case "resourceid" | "resourceuri" if not event["resourceId"].casefold().startswith(wanted.casefold()):
                return False
            case "resourceprovider" if event["resourceProviderName"]["value"].casefold() != wanted.casefold():
                return False
            case "caller" | "correlationid" if (
                str(event[{"correlationid": "correlationId"}.get(field, field)]) != wanted
            ):
                return False
            case "status" if event["status"]["value"].casefold() != wanted.casefold():
                return False
    return True


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArmError(400, "BadRequest", f"The filter holds no time: {text}") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
