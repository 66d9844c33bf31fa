"""What the login may do: the roles of its tenant, on the subscription, and those that were assigned in the lab.

https://learn.microsoft.com/rest/api/authorization/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ghost.lab.arm.api_messages import ArmError, Request, Response, json_response
from ghost.lab.arm.request_routing import ANY_SCOPE, Call, route
from ghost.lab.directory import LabDirectory
from ghost.lab.role_definitions import Role, built_in
from ghost.lab.tenant import guid

AUTHORIZATION = "Microsoft.Authorization"
CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_VERBS = {"GET": "read", "HEAD": "read", "PUT": "write", "DELETE": "delete"}


def is_allowed(lab: LabDirectory, action: str, scope: str, *, of_data: bool = False) -> bool:
    """Return whether a role that the login has on `scope` or above allows the action."""
    return any(
        role.allows(action, of_data=of_data)
        for role, at, _ in _assigned(lab)
        if f"{scope}/".casefold().startswith(f"{at}/".casefold())
    )


def may_use_blobs(lab: LabDirectory, account_id: str, request: Request) -> bool:
    """Return whether the login may make this request to blob storage: containers need no data role, blobs do.

    https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
    """
    verb = _VERBS.get(request.method, "write")
    lists_blobs = request.query.get("restype") == "container" and request.query.get("comp") == "list"
    if lists_blobs or len(request.segments) > 1:
        return is_allowed(lab, f"{CONTAINERS}/blobs/{verb}", account_id, of_data=True)
    return is_allowed(lab, f"{CONTAINERS}/{verb}", account_id)


def _roles(lab: LabDirectory) -> tuple[Role, ...]:
    return (*built_in(), *lab.tenant.custom_roles)


def _assigned(lab: LabDirectory) -> Iterator[tuple[Role, str, str]]:
    """Yield role, scope and name of each assignment of the login."""
    subscription, known = f"/subscriptions/{lab.world.subscription.id}", {role.name: role for role in _roles(lab)}
    for name in lab.tenant.roles:
        yield known[name], subscription, guid(f"{lab.world.subscription.user}/{name}")
    for made in lab.state().get("role_assignments", []):
        yield known[made["role"]], made["scope"], made["name"]


@route("GET", f"/{ANY_SCOPE}/providers/{AUTHORIZATION}/roleAssignments")
def list_assignments(call: Call) -> dict[str, Any]:
    """List the roles of the login on a scope, above it, and without `atScope()` below it; for any principal."""
    scope, at_scope = f"{call['scope']}/".casefold(), "atScope()" in call.request.query.get("$filter", "")
    return {
        "value": [
            _assignment(call.lab, role, at, name)
            for role, at, name in _assigned(call.lab)
            if scope.startswith(f"{at}/".casefold()) or (not at_scope and f"{at}/".casefold().startswith(scope))
        ]
    }


@route("PUT", f"/{ANY_SCOPE}/providers/{AUTHORIZATION}/roleAssignments/{{name}}")
def assign(call: Call) -> Response:
    """Assign a role to the login. Raises `ArmError` for a role that is unknown here, or another principal."""
    properties = call.request.json().get("properties") or {}
    definition = str(properties.get("roleDefinitionId")).rpartition("/")[2]
    role = next((role for role in _roles(call.lab) if _id_of(role) == definition), None)
    if role is None:
        message = f"The specified role definition with ID '{definition}' does not exist."
        raise ArmError(404, "RoleDefinitionDoesNotExist", message)
    own, principal = call.world.subscription, properties.get("principalId")
    if principal != guid(own.user):
        message = f"Principal {principal} does not exist in the directory {own.tenant}."
        raise ArmError(400, "PrincipalNotFound", message)
    if any(
        (known.name, at.casefold()) == (role.name, call["scope"].casefold()) for known, at, _ in _assigned(call.lab)
    ):
        raise ArmError(409, "RoleAssignmentExists", "The role assignment already exists.")
    with call.lab.changing() as state:
        made = {"role": role.name, "scope": call["scope"], "name": call["name"]}
        state["role_assignments"] = [*state.get("role_assignments", []), made]
    return json_response(_assignment(call.lab, role, call["scope"], call["name"]), 201, changed=True)


@route("GET", f"/{ANY_SCOPE}/providers/{AUTHORIZATION}/roleDefinitions")
def list_definitions(call: Call) -> dict[str, Any]:
    wanted = call.request.query.get("$filter", "").removeprefix("roleName eq '").removesuffix("'")
    return {"value": [_definition(call.lab, role) for role in _roles(call.lab) if wanted in ("", role.name)]}


def _assignment(lab: LabDirectory, role: Role, scope: str, name: str) -> dict[str, Any]:
    return {
        "id": f"{scope}/providers/{AUTHORIZATION}/roleAssignments/{name}",
        "name": name,
        "type": f"{AUTHORIZATION}/roleAssignments",
        "properties": {
            "roleDefinitionId": _definition_id(lab, role),
            "principalId": guid(lab.world.subscription.user),
            "principalType": "User",
            "scope": scope,
        },
    }


def _definition(lab: LabDirectory, role: Role) -> dict[str, Any]:
    custom = role.id is None
    allowed = {"actions": role.actions, "notActions": role.not_actions, "dataActions": role.data_actions}
    return {
        "id": _definition_id(lab, role),
        "name": _id_of(role),
        "type": f"{AUTHORIZATION}/roleDefinitions",
        "properties": {
            "roleName": role.name,
            "type": "CustomRole" if custom else "BuiltInRole",
            "assignableScopes": [f"/subscriptions/{lab.world.subscription.id}" if custom else "/"],
            "permissions": [{**{name: list(each) for name, each in allowed.items()}, "notDataActions": []}],
        },
    }


def _id_of(role: Role) -> str:
    return role.id or guid(role.name)


def _definition_id(lab: LabDirectory, role: Role) -> str:
    own = f"/subscriptions/{lab.world.subscription.id}"
    return f"{own}/providers/{AUTHORIZATION}/roleDefinitions/{_id_of(role)}"
