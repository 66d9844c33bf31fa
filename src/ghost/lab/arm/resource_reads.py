"""Reads of resources and their parts: lists by subscription and group, and single ones by name.

Types that no world holds, such as clusters, are listed as empty and not found.
"""

from __future__ import annotations

from ghost.lab.arm.accounts import existing_group
from ghost.lab.arm.api_messages import ArmError, part_not_found, resource_not_found
from ghost.lab.arm.blob_store import account_keys, account_named
from ghost.lab.arm.request_routing import IN_GROUP, IN_SUBSCRIPTION, Call, route
from ghost.lab.tenant import CREATED, Body, admin_rules_of, folded, scale_set_view

_KIND = "/providers/{namespace}/{kind}"
_OWNER = f"{IN_GROUP}{_KIND}/{{name}}"
_SET = f"{IN_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{{name}}"
_PARTS = ("/{part}/{part_name}", "/{part}/{part_name}/{below}/{below_name}")
_UNTYPED = ("privateDnsZoneGroups",)
"""Parts whose bodies have no `type`."""
_ORDER = ("name", "id", "etag", "type", "location", "tags", "zones", "kind", "sku", "properties")


@route("GET", IN_SUBSCRIPTION + _KIND, IN_GROUP + _KIND)
def resources(call: Call) -> Body:
    group = existing_group(call.world, call["group"]) if "group" in call.values else None
    return {"value": [shown(body) for body in call.world.documents.of_type(_type_of(call), group)]}


@route("GET", _OWNER)
def resource(call: Call) -> Body:
    """Return a resource; a machine with its extensions, which an older az lists from there."""
    body = find_resource(call)
    own = shown(body, with_view=_expands_view(call))
    extensions = [shown(each) for each in call.world.documents.parts(body["id"], "extensions") or []]
    return {**own, "resources": extensions} if extensions else own


@route("GET", f"{_OWNER}/instanceView", f"{_SET}/virtualMachines/{{instance}}/instanceView")
def instance_view(call: Call) -> Body:
    """Return the view of a machine or scale set:
    https://learn.microsoft.com/rest/api/compute/virtual-machines/instance-view
    """
    body = _instance(call) if "instance" in call.values else find_resource(call)
    if body["type"].endswith("virtualMachineScaleSets"):
        return scale_set_view(len(call.world.documents.parts(body["id"], "virtualMachines") or []))
    if "instanceView" not in body["properties"]:
        raise resource_not_found(f"{_type_of(call)}/instanceView", call["group"], call["name"])
    view: Body = body["properties"]["instanceView"]
    return view


@route("GET", f"{_SET}/virtualMachines/{{instance}}")
def instance(call: Call) -> Body:
    return shown(_instance(call), with_view=_expands_view(call))


@route("GET", f"{_SET}/networkInterfaces")
def interfaces_of_set(call: Call) -> Body:
    machines = call.world.documents.parts(_set_of(call)["id"], "virtualMachines") or []
    found = [nic for vm in machines for nic in call.world.documents.parts(vm["id"], "networkInterfaces") or []]
    return {"value": [shown(nic) for nic in found]}


@route("POST", f"{IN_GROUP}/providers/{{namespace}}/storageAccounts/{{name}}/listKeys")
def list_keys(call: Call) -> Body:
    name = find_resource(call, "storageAccounts")["name"]
    account = account_named(call.world, name)
    keys = enumerate(account_keys(call.world, account) if account is not None else (), 1)
    return {
        "keys": [
            {"creationTime": CREATED, "keyName": f"key{number}", "permissions": "FULL", "value": key}
            for number, key in keys
        ]
    }


@route("GET", f"{IN_GROUP}/providers/Microsoft.Network/virtualNetworkGateways/{{name}}/connections")
def connections(call: Call) -> Body:
    """Return the connections of a gateway."""
    own_id = folded(_of_network(call, "virtualNetworkGateways")["id"])
    found = call.world.documents.of_type("Microsoft.Network/connections")
    ends = ("virtualNetworkGateway1", "virtualNetworkGateway2")
    return {
        "value": [
            shown(body)
            for body in found
            if own_id in [folded(body["properties"].get(end, {}).get("id", "")) for end in ends]
        ]
    }


@route("GET", f"{IN_GROUP}/providers/Microsoft.Network/privateDnsZones/{{name}}/ALL")
def record_sets(call: Call) -> Body:
    zone = f"{folded(_of_network(call, 'privateDnsZones')['id'])}/"
    below = [body for body in call.world.documents if folded(body["id"]).startswith(zone)]
    return {"value": [shown(body) for body in below if not body["type"].endswith("virtualNetworkLinks")]}


@route(
    "POST",
    f"{IN_GROUP}/providers/Microsoft.Network/virtualNetworks/{{name}}/listNetworkManagerEffectiveSecurityAdminRules",
)
def effective_admin_rules(call: Call) -> Body:
    """Return the security admin rules in effect: https://learn.microsoft.com/rest/api/networkmanager/"""
    return {"value": admin_rules_of(call.world, _of_network(call, "virtualNetworks")["name"])}


@route("GET", f"{_OWNER}/{{part}}", f"{_OWNER}{_PARTS[0]}/{{below}}")
def parts(call: Call) -> Body:
    owner = find_resource(call)
    place = f"{owner['id']}/{call['part']}/{call['part_name']}" if "part_name" in call.values else owner["id"]
    part = call["below"] if "below" in call.values else call["part"]
    found = call.world.documents.parts(place, part)
    if found is None:
        raise part_not_found(place)
    return {"value": [shown(body, with_view=_expands_view(call)) for body in found]}


@route("GET", *(f"{_OWNER}{part}" for part in _PARTS))
def one_part(call: Call) -> Body:
    owner = find_resource(call)
    names = [call[name] for name in ("part", "part_name", "below", "below_name") if name in call.values]
    found = call.world.documents.get("/".join([owner["id"], *names]))
    if found is None and owner["type"].endswith("/networkWatchers"):
        raise resource_not_found(owner["type"], call["group"], "/".join([owner["name"], *names]))
    if found is None:
        raise part_not_found("/".join([owner["id"], *names]))
    return shown(found)


def shown(body: Body, *, with_view: bool = False) -> Body:
    """Return a body as it is answered: fields in Azure's order, the view of a machine only where it was asked for."""
    properties = {name: value for name, value in body["properties"].items() if with_view or name != "instanceView"}
    whole = {name: value for name, value in body.items() if name != "type" or not body["type"].endswith(_UNTYPED)}
    whole["properties"] = properties
    return {name: whole[name] for name in (*_ORDER, *sorted(whole.keys() - set(_ORDER))) if name in whole}


def find_resource(call: Call, kind: str | None = None) -> Body:
    """Return the resource of the path's `group`, `namespace`, `kind` and `name`. Raises `ArmError` if missing."""
    group = existing_group(call.world, call["group"])
    wanted = f"{call['namespace']}/{kind or call['kind']}"
    place = f"/subscriptions/{call.world.subscription.id}/resourceGroups/{group}/providers/{wanted}/{call['name']}"
    found = call.world.documents.get(place)
    if found is not None:
        return found
    raise resource_not_found(wanted, call["group"], call["name"])


def _of_network(call: Call, kind: str) -> Body:
    return find_resource(Call(call.lab, call.request, {"namespace": "Microsoft.Network", **call.values}), kind)


def _set_of(call: Call) -> Body:
    values = {"namespace": "Microsoft.Compute", "kind": "virtualMachineScaleSets", **call.values}
    return find_resource(Call(call.lab, call.request, values))


def _instance(call: Call) -> Body:
    owner = _set_of(call)
    found = call.world.documents.get(f"{owner['id']}/virtualMachines/{call['instance']}")
    if found is None:
        message = f"The entity {call['instance']} was not found in the scale set {owner['name']}."
        raise ArmError(404, "InvalidParameter", message)
    return found


def _expands_view(call: Call) -> bool:
    return "instanceview" in call.request.query.get("$expand", "").casefold()


def _type_of(call: Call) -> str:
    return f"{call['namespace']}/{call['kind']}"
