"""Changes of resources: created, replaced, merged and deleted, in Azure's own words.

A change is an edit of the world, so that whatever is asked next follows from it. What Azure refuses is refused: an
unknown owner, a priority that another rule has, a resource in use.
"""

from __future__ import annotations

from typing import Any

from ghost.errors import LabError
from ghost.lab.arm.accounts import existing_group
from ghost.lab.arm.api_messages import ArmError, Response, bad_request, json_response, part_not_found
from ghost.lab.arm.operations import accepted_by_compute, created, ended
from ghost.lab.arm.peering_states import parting_edits, peering_edits
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource, shown
from ghost.lab.edits import Edit, edited
from ghost.lab.tenant import AZURE_TYPES, Body
from ghost.lab.world import World
from ghost.policy import to_dict

_RESOURCE = f"{IN_GROUP}/providers/{{namespace}}/{{kind}}/{{name}}"
_PATHS = tuple(f"{_RESOURCE}{part}" for part in ("", "/{part}/{part_name}", "/{part}/{part_name}/{below}/{below_name}"))
_POWER = {"start": "running", "restart": "running", "powerOff": "stopped", "deallocate": "deallocated"}
_READ_ONLY = {
    *(
        "appliedDnsServers",
        "fullyQualifiedDomainName",
        "hasBgpOverride",
        "hostedWorkloads",
        "macAddress",
        "primary",
        "privateEndpointConnections",
    ),
    *("privateLinkConnectionProperties", "resourceGuid", "tapConfigurations", "vnetEncryptionSupported"),
    *("lastEnabledTime", "tier"),
}
"""Properties that Azure keeps where a client states none."""
_PLACE_FIELDS = ("name", "id", "type", "etag", "properties")


@route("PUT", *_PATHS)
def put(call: Call) -> Response:
    """Create or replace a resource or part, as `az ... create` and `update` do."""
    own_id, known = _place(call)
    body = call.request.json()
    properties = _kept(_properties(body), known["properties"] if known else {})
    edits = peering_edits(call.world.documents, own_id, properties)
    made = shown(_changed(call, Edit(put=own_id, properties=properties, more=_beside(body)), *edits))
    if "provisioningState" not in made["properties"]:
        return json_response(made, 201 if known is None else 200, changed=True)
    location = str(made.get("location") or call.world.location_of(existing_group(call.world, call["group"])))
    return created(call, made, location, call["namespace"], status=201 if known is None else 200)


@route("PATCH", *_PATHS)
def patch(call: Call) -> Response:
    own_id, known = _place(call)
    if known is None:
        raise part_not_found(own_id)
    body = call.request.json()
    properties = _kept(_properties(body), known["properties"])
    edit = Edit(patch=own_id, properties=properties, more=_kept(_beside(body), known))
    return json_response(shown(_changed(call, edit)), changed=True)


@route("DELETE", *_PATHS)
def delete(call: Call) -> Response:
    own_id, known = _place(call)
    if known is None:
        return Response(204)
    _check_unused(known)
    _change(call, Edit(delete=own_id), *parting_edits(call.world.documents, known))
    if "provisioningState" not in known["properties"]:
        return Response(200, changed=True)
    return ended(call, "deletion", str(known.get("location") or "global"), call["namespace"])


@route("POST", *(f"{IN_GROUP}/providers/Microsoft.Compute/virtualMachines/{{name}}/{action}" for action in _POWER))
def power(call: Call) -> Response:
    """Start, restart, stop or deallocate a machine."""
    vm = find_resource(_of_compute(call), "virtualMachines")
    state = _POWER[next(action for action in _POWER if action.casefold() == call.request.segments[-1].casefold())]
    _change(call, Edit(machine=vm["name"], set={"power": state}))
    return accepted_by_compute(call, "nothing", vm["location"], changed=True)


def _of_compute(call: Call) -> Call:
    return Call(call.lab, call.request, {**call.values, "namespace": "Microsoft.Compute"})


def _place(call: Call) -> tuple[str, Body | None]:
    """Return the id of the path, and what is there now. Raises `ArmError` for an unknown group or owner."""
    group, kind = existing_group(call.world, call["group"]), AZURE_TYPES.get(call["kind"].casefold())
    if kind is None or kind.split("/")[0].casefold() != call["namespace"].casefold():
        raise ArmError(404, "InvalidResourceType", f"The resource type {call['kind']!r} could not be found.")
    if kind.startswith("Microsoft.Compute/"):
        raise ArmError(
            405, "MethodNotAllowed", "A lab's machines are started and stopped, neither created nor deleted."
        )
    names = [call[name] for name in ("part", "part_name", "below", "below_name") if name in call.values]
    if names:
        find_resource(call)
    root = f"/subscriptions/{call.world.subscription.id}/resourceGroups/{group}/providers/{kind}/{call['name']}"
    own_id = "/".join([root, *names])
    known = call.world.documents.get(own_id)
    return str(known["id"]) if known else own_id, known


def _properties(body: Body) -> dict[str, Any]:
    properties = body.get("properties", {})
    if not isinstance(properties, dict):
        raise bad_request("The property 'properties' is no object.", "InvalidRequestContent")
    return properties


def _kept(stated: Any, known: Any) -> Any:
    """Return what is stated with the fields of what was known that no client sets, at every depth."""
    if isinstance(stated, list) and isinstance(known, list):
        named = {str(item["name"]): item for item in known if isinstance(item, dict) and "name" in item}
        return [
            _kept(item, named.get(str(item.get("name")), {})) if isinstance(item, dict) else item for item in stated
        ]
    if not isinstance(stated, dict) or not isinstance(known, dict):
        return stated
    own = {name: known[name] for name in _READ_ONLY & known.keys()}
    return {**own, **{name: _kept(value, known.get(name)) for name, value in stated.items()}}


def _beside(body: Body) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _PLACE_FIELDS and value is not None}


def _changed(call: Call, edit: Edit, *following: Edit) -> Body:
    world = _change(call, edit, *following)
    body = world.documents.get(str(edit.resource))
    assert body is not None
    return body


def _change(call: Call, *edits: Edit) -> World:
    """Keep edits in the lab's state if the world can be so. Raises `ArmError` as Azure would refuse it."""
    with call.lab.changing() as state:
        before = call.lab.world
        try:
            world: World = edited(before, edits)
            _check_priorities(world)
            assert world.network.complete
        except LabError as error:
            raise bad_request(str(error), "InvalidRequestFormat") from error
        state["edits"] = [*state.get("edits", []), *map(to_dict, edits)]
    return world


def _check_priorities(world: World) -> None:
    """Raise `ArmError` for two rules of one priority and direction, or a priority below Azure's lowest.

    https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview
    """
    for group in world.documents.of_type("Microsoft.Network/networkSecurityGroups"):
        seen: dict[tuple[str, int], str] = {}
        for rule in group["properties"]["securityRules"]:
            place = str(rule["properties"].get("direction")), rule["properties"].get("priority")
            if isinstance(place[1], int) and place[1] < 100:
                raise bad_request(
                    f"Security rule {rule['name']} has invalid Priority. Value provided: {place[1]} "
                    "Allowed range 100-4096.",
                    "SecurityRuleInvalidPriority",
                )
            if place in seen:
                raise bad_request(
                    f"Security rule {rule['name']} conflicts with rule {seen[place]}. Rules cannot have the same "
                    "Priority and Direction.",
                    "SecurityRuleConflict",
                )
            seen[place] = rule["name"]


def _check_unused(body: Body) -> None:
    """Raise `ArmError` for a group or table that is associated, in Azure's recorded words."""
    kind, name = _IN_USE.get(body["type"].rpartition("/")[2], ("", ""))
    used = [each["id"] for field in ("networkInterfaces", "subnets") for each in body["properties"].get(field) or []]
    if used and kind:
        raise bad_request(
            f"{name} {body['id']} cannot be deleted because it is in use by the following resources: "
            f"{', '.join(used)}. In order to delete the {name}, remove the association with the resource(s).",
            f"InUse{kind}CannotBeDeleted",
        )


_IN_USE = {
    "networkSecurityGroups": ("NetworkSecurityGroup", "Network security group"),
    "routeTables": ("RouteTable", "Route table"),
}
