"""Subscriptions, tenants, resource groups, providers, and lists of any resources.

https://learn.microsoft.com/rest/api/resources/
"""

from __future__ import annotations

import re
from typing import Any

from ghost.lab.arm.api_messages import Response, bad_request, group_not_found
from ghost.lab.arm.request_routing import IN_GROUP, IN_SUBSCRIPTION, Call, route
from ghost.lab.tenant import AZURE_TYPES, CREATED, Body
from ghost.lab.world import ResourceGroup, World

API_VERSIONS = ("2025-05-01", "2024-11-01", "2024-05-01", "2024-03-01", "2023-11-01", "2023-01-01", "2022-01-01")
_CLAUSE = re.compile(r"(?P<field>[A-Za-z]+) eq '(?P<value>(?:[^']|'')*)'")
_FIELDS = {"name": "name", "resourcetype": "type", "location": "location"}


@route("GET", "/subscriptions")
def subscriptions(call: Call) -> dict[str, Any]:
    return {"value": [subscription(call.world)]}


@route("GET", IN_SUBSCRIPTION)
def one_subscription(call: Call) -> dict[str, Any]:
    return subscription(call.world)


@route("GET", "/tenants")
def tenants(call: Call) -> dict[str, Any]:
    return {"value": [tenant(call.world)]}


@route("GET", f"{IN_SUBSCRIPTION}/resourcegroups")
def groups(call: Call) -> dict[str, Any]:
    """List the groups. A filter can only name tags, which the groups of a world do not have."""
    known = () if call.request.query.get("$filter") else call.world.groups
    return {"value": [resource_group(call.world, group) for group in known]}


@route("GET", IN_GROUP)
def one_group(call: Call) -> dict[str, Any]:
    return resource_group(call.world, call.world.group(existing_group(call.world, call["group"])))


@route("HEAD", IN_GROUP)
def group_exists(call: Call) -> Response:
    known = any(group.name.casefold() == call["group"].casefold() for group in call.world.groups)
    return Response(204 if known else 404)


def existing_group(world: World, name: str) -> str:
    """Return a group's name as spelled in the world. Raises `ArmError` if it does not exist."""
    for known in world.groups:
        if known.name.casefold() == name.casefold():
            return known.name
    raise group_not_found(name)


@route("GET", f"{IN_SUBSCRIPTION}/resources", f"{IN_GROUP}/resources")
def any_resources(call: Call) -> dict[str, Any]:
    found = [generic(body) for body in call.world.documents if body["type"].count("/") == 1]
    if "group" in call.values:
        found = _in_group(found, existing_group(call.world, call["group"]))
    for field, value in _clauses(call.request.query.get("$filter", "")):
        found = _filtered(found, field.casefold(), value)
    for name in ("createdTime", "changedTime", "provisioningState"):
        if name not in call.request.query.get("$expand", "").split(","):
            found = [{key: value for key, value in body.items() if key != name} for body in found]
    return {"value": found}


def _clauses(text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    clauses = [_CLAUSE.fullmatch(clause.strip()) for clause in re.split(r" and (?=[A-Za-z]+ eq ')", text)]
    if not all(clauses):
        raise bad_request(f"The filter '{text}' is not supported.", "InvalidFilterInQueryString")
    return [(clause["field"], clause["value"].replace("''", "'")) for clause in clauses if clause]


def _filtered(found: list[dict[str, Any]], field: str, value: str) -> list[dict[str, Any]]:
    if field == "resourcegroup":
        return _in_group(found, value)
    if field == "tagname":
        return [body for body in found if value.casefold() in map(str.casefold, body["tags"])]
    if field == "tagvalue":
        return [body for body in found if value in body["tags"].values()]
    if field not in _FIELDS:
        raise bad_request(f"The filter property '{field}' is not supported.", "InvalidFilterInQueryString")
    return [body for body in found if body[_FIELDS[field]].casefold() == value.casefold()]


def _in_group(found: list[dict[str, Any]], group: str) -> list[dict[str, Any]]:
    return [body for body in found if body["id"].split("/")[4].casefold() == group.casefold()]


@route("GET", f"{IN_SUBSCRIPTION}/providers/{{namespace}}")
def provider(call: Call) -> dict[str, Any]:
    """Return the API versions of a resource type, which az requests for types it does not know."""
    kinds = {kind for kind in AZURE_TYPES.values() if kind.split("/")[0].casefold() == call["namespace"].casefold()}
    return {
        "id": f"/subscriptions/{call.world.subscription.id}/providers/{call['namespace']}",
        "namespace": call["namespace"],
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired",
        "resourceTypes": [
            {
                "resourceType": kind.partition("/")[2],
                "locations": [],
                "apiVersions": list(API_VERSIONS),
                "capabilities": "None",
            }
            for kind in sorted(kinds)
        ],
    }


# --- bodies ---


def subscription(world: World) -> Body:
    own = world.subscription
    return {
        "id": f"/subscriptions/{own.id}",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "subscriptionId": own.id,
        "tenantId": own.tenant,
        "displayName": own.name,
        "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "EnterpriseAgreement_2014-09-01",
            "spendingLimit": "Off",
        },
    }


def tenant(world: World) -> Body:
    own = world.subscription
    return {"id": f"/tenants/{own.tenant}", "tenantId": own.tenant, "tenantCategory": "Home", "displayName": own.name}


def resource_group(world: World, group: ResourceGroup) -> Body:
    return {
        "id": world.group_id(group.name),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": group.location,
        "tags": {},
        "properties": {"provisioningState": "Succeeded"},
    }


def generic(body: Body) -> Body:
    """Return the entry in a list of all resources: without its properties."""
    return {
        **{name: body[name] for name in ("id", "name", "type", "kind", "location", "tags") if name in body},
        "createdTime": CREATED,
        "changedTime": CREATED,
        "provisioningState": "Succeeded",
    }
