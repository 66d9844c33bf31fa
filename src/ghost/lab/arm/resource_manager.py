"""`answer`: Azure Resource Manager's response to a request, from the lab's world and state.

`gateway` has authenticated the request; the roles of the login and the world's `forbidden_actions` are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ghost.lab.arm import (
    accounts,
    activity_log,
    address_lists,
    captures,
    connectivity,
    diagnostics,
    flow_logs,
    guests,
    monitor_metrics,
    resource_changes,
    resource_reads,
    role_assignments,
)
from ghost.lab.arm.api_messages import ArmError, Request, Response, json_response, subscription_not_found
from ghost.lab.arm.hostility import check_unlocked, hinder, is_lost, paged
from ghost.lab.arm.request_routing import Call, find
from ghost.lab.directory import LabDirectory
from ghost.lab.tenant import AZURE_TYPES, guid
from ghost.lab.world import World

SERVICES = (
    role_assignments,
    accounts,
    activity_log,
    address_lists,
    captures,
    connectivity,
    diagnostics,
    flow_logs,
    guests,
    monitor_metrics,
    resource_changes,
    resource_reads,
)
"""Importing them fills the table of routes."""

_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-[a-z]+)?")
_KNOWN_VERSION = re.compile(r"20[12]\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:-[a-z]+)?")
_VERBS = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


def answer(lab: LabDirectory, request: Request) -> Response:
    """Return the response; an `ArmError` becomes an error response."""
    try:
        response = _answer(lab, request)
        if response.changed:
            activity_log.record(lab, request, response.status)
            return replace(response, lost=is_lost(lab))
        return response
    except ArmError as error:
        return error.response()


def _answer(lab: LabDirectory, request: Request) -> Response:
    hinder(lab, request)
    segments = request.segments
    if "api-version" not in request.query:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise ArmError(400, "MissingApiVersionParameter", message)
    _check_version(request)
    if segments[0].casefold() == "subscriptions" and len(segments) > 1:
        _check_subscription(lab.world, segments[1])
        _check_authorized(lab, request.method, segments)
        check_unlocked(lab, request)
    found = find(request.method, segments)
    if found is None and request.method not in ("GET", "HEAD"):
        message = f"The request {request.method} {request.path} is not simulated in this lab."
        raise ArmError(405, "MethodNotAllowed", message)
    if found is None:
        raise ArmError(404, "InvalidResourceType", f"The resource type of {request.path} could not be found.")
    handler, values = found
    result = handler(Call(lab, request, values))
    if isinstance(result, Response):
        return result
    return json_response(paged(lab, request, result), note=_note(result, values))


def _check_version(request: Request) -> None:
    """Raise `ArmError` for a version that is no date, or of no year of Azure's: which ones a type has is not simulated.

    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-api-version
    """
    version, known = request.query["api-version"], ", ".join(accounts.API_VERSIONS)
    if _KNOWN_VERSION.fullmatch(version):
        return
    kind = [segment.casefold() for segment in request.segments]
    if not _VERSION.fullmatch(version) or "providers" not in kind[:-2]:
        message = f"The api-version '{version}' is invalid. The supported versions are '{known}'."
        raise ArmError(400, "InvalidApiVersionParameter", message)
    name = request.segments[kind.index("providers") + 2]
    message = (
        f"No registered resource provider found for location '' and API version '{version}' for type '{name}'. "
        f"The supported api-versions are '{known}'."
    )
    raise ArmError(400, "NoRegisteredProviderFound", message)


def _note(result: dict[str, Any], values: Mapping[str, str]) -> str:
    """Return for the log of requests that an empty list is one of what a lab does not have."""
    kind = f"{values.get('namespace')}/{values.get('kind')}"
    simulated = kind.casefold() in map(str.casefold, AZURE_TYPES.values())
    return f"a lab has no {kind}" if result.get("value") == [] and "kind" in values and not simulated else ""


def _check_subscription(world: World, subscription: str) -> None:
    if subscription.casefold() != world.subscription.id.casefold():
        raise subscription_not_found(subscription)


def _check_authorized(lab: LabDirectory, method: str, segments: tuple[str, ...]) -> None:
    action = action_of(method, segments)
    scope = "/" + "/".join(segments if method != "POST" else segments[:-1])
    forbidden = (*lab.world.forbidden_actions, *lab.tenant.forbidden_reads)
    if role_assignments.is_allowed(lab, action, scope) and not any(
        fnmatchcase(action.casefold(), pattern.casefold()) for pattern in forbidden
    ):
        return
    user = lab.world.subscription.user
    raise ArmError(
        403,
        "AuthorizationFailed",
        f"The client '{user}' with object id '{guid(user)}' does not have authorization to perform action "
        f"'{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please "
        "refresh your credentials.",
    )


def action_of(method: str, segments: tuple[str, ...]) -> str:
    """Return the RBAC action of a request: Microsoft.Network/networkWatchers/read.

    https://learn.microsoft.com/azure/role-based-access-control/role-definitions#actions
    """
    folded = [segment.casefold() for segment in segments]
    if "providers" in folded:
        parts = list(segments[len(folded) - folded[::-1].index("providers") :])
        kind = "/".join([parts[0], *parts[1::2]])
    else:
        kind = "Microsoft.Resources/subscriptions" + ("/resourceGroups" if "resourcegroups" in folded else "")
    if method == "POST":
        return f"{kind}/action"
    return f"{kind}/{_VERBS.get(method, 'write')}"
