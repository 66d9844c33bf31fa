"""Reads of resources and their parts: lists by subscription and group, and single ones by name.

Types that no world holds, such as firewalls, are listed as empty and not found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ghost.lab.arm import bodies, network_bodies, service_bodies
from ghost.lab.arm.accounts import existing_group
from ghost.lab.arm.api_messages import ArmError, part_not_found, resource_not_found
from ghost.lab.arm.blob_store import account_keys
from ghost.lab.arm.bodies import Body
from ghost.lab.arm.request_routing import IN_GROUP, IN_SUBSCRIPTION, Call, route
from ghost.lab.world import Machine, ScaleSet, World
from ghost.net import default_rules


@dataclass(frozen=True)
class Part:
    """A part of a resource: `of` returns the parts of an owner, `body` the body of one."""

    of: Callable[[World, Any], Sequence[Any]]
    body: Callable[[World, Any, Any], Body]
    name: Callable[[Any, Any], str] = lambda _, item: item.name


@dataclass(frozen=True)
class Kind:
    of: Callable[[World], Sequence[Any]]
    body: Callable[[World, Any], Body]
    parts: dict[str, Part] = field(default_factory=dict)
    """By the name of their type, in lower case."""


KINDS: dict[str, Kind] = {
    "microsoft.compute/virtualmachines": Kind(
        lambda world: world.single_machines(),
        bodies.machine,
        {
            "extensions": Part(
                lambda _, vm: vm.extensions, bodies.extension, lambda _, kind: bodies.extension_name(kind)
            )
        },
    ),
    "microsoft.compute/virtualmachinescalesets": Kind(
        lambda world: world.scale_sets,
        bodies.scale_set,
        {
            "virtualmachines": Part(
                lambda world, item: [world.machine(name) for name in item.machines],
                bodies.instance,
                bodies.instance_number,
            )
        },
    ),
    "microsoft.network/networkinterfaces": Kind(
        lambda world: world.single_interfaces(),
        network_bodies.interface,
        {
            "ipconfigurations": Part(
                lambda _, nic: [nic],
                lambda world, nic, _: network_bodies.ip_configuration(world, nic),
                lambda *_: "ipconfig1",
            )
        },
    ),
    "microsoft.network/virtualnetworks": Kind(
        lambda world: world.networks,
        network_bodies.virtual_network,
        {
            "subnets": Part(lambda _, network: network.subnets, network_bodies.subnet),
            "virtualnetworkpeerings": Part(lambda _, network: network.peerings, network_bodies.peering),
        },
    ),
    "microsoft.network/networksecuritygroups": Kind(
        lambda world: world.security_groups,
        network_bodies.security_group,
        {
            "securityrules": Part(lambda _, group: group.rules, network_bodies.security_rule),
            "defaultsecurityrules": Part(lambda *_: default_rules(), network_bodies.security_rule),
        },
    ),
    "microsoft.network/routetables": Kind(
        lambda world: world.route_tables,
        network_bodies.route_table,
        {"routes": Part(lambda _, table: table.routes, network_bodies.route)},
    ),
    "microsoft.network/networkwatchers": Kind(lambda world: world.watchers, network_bodies.watcher),
    "microsoft.network/loadbalancers": Kind(lambda world: world.load_balancers, service_bodies.load_balancer),
    "microsoft.network/publicipaddresses": Kind(lambda world: world.public_addresses, service_bodies.public_address),
    "microsoft.network/privateendpoints": Kind(lambda world: world.private_endpoints, service_bodies.private_endpoint),
    "microsoft.network/privatednszones": Kind(
        lambda world: world.private_zones,
        service_bodies.private_zone,
        {
            "a": Part(lambda _, zone: zone.records, service_bodies.address_record),
            "virtualnetworklinks": Part(
                lambda _, zone: zone.networks, service_bodies.zone_link, lambda _, name: service_bodies.link_name(name)
            ),
        },
    ),
    "microsoft.storage/storageaccounts": Kind(lambda world: world.storage_accounts, bodies.storage_account),
}

NOTHING = Kind(lambda _: (), lambda *_: {})
_KIND = "/providers/{namespace}/{kind}"
_INSTANCE = f"{IN_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{{name}}/virtualMachines/{{instance}}"


@route("GET", IN_SUBSCRIPTION + _KIND, IN_GROUP + _KIND)
def resources(call: Call) -> Body:
    kind = KINDS.get(_type_of(call), NOTHING)
    found = list(kind.of(call.world))
    if "group" in call.values:
        group = existing_group(call.world, call["group"])
        found = [item for item in found if item.resource_group == group]
    return {"value": [kind.body(call.world, item) for item in found]}


@route("GET", IN_GROUP + _KIND + "/{name}")
def resource(call: Call) -> Body:
    kind, item = find_resource(call)
    if isinstance(item, Machine) and _expands_view(call):
        return bodies.machine(call.world, item, with_instance_view=True)
    return kind.body(call.world, item)


@route("GET", IN_GROUP + _KIND + "/{name}/instanceView")
def instance_view(call: Call) -> Body:
    """Return the view of a machine or scale set:
    https://learn.microsoft.com/rest/api/compute/virtual-machines/instance-view
    """
    _, item = find_resource(call)
    if isinstance(item, Machine):
        return bodies.instance_view(item)
    if isinstance(item, ScaleSet):
        return bodies.scale_set_view(item)
    raise resource_not_found(f"{_type_of(call)}/instanceView", call["group"], call["name"])


@route("GET", f"{_INSTANCE}/instanceView")
def view_of_instance(call: Call) -> Body:
    return bodies.instance_view(_instance(call)[1])


@route("GET", _INSTANCE)
def instance(call: Call) -> Body:
    return bodies.instance(call.world, *_instance(call), with_instance_view=_expands_view(call))


def _instance(call: Call) -> tuple[ScaleSet, Machine]:
    kind = {"namespace": "Microsoft.Compute", "kind": "virtualMachineScaleSets"}
    _, item = find_resource(replace(call, values={**kind, **call.values}))
    number = call["instance"]
    if not number.isdecimal() or int(number) >= len(item.machines):
        message = f"The entity {number} was not found in the scale set {item.name}."
        raise ArmError(404, "InvalidParameter", message)
    return item, call.world.machine(item.machines[int(number)])


def _expands_view(call: Call) -> bool:
    return "instanceview" in call.request.query.get("$expand", "").casefold()


@route("POST", f"{IN_GROUP}/providers/{{namespace}}/storageAccounts/{{name}}/listKeys")
def list_keys(call: Call) -> Body:
    _, account = find_resource(Call(call.lab, call.request, {**call.values, "kind": "storageAccounts"}))
    keys = enumerate(account_keys(call.world, account), 1)
    return {
        "keys": [
            {"creationTime": bodies.CREATED, "keyName": f"key{number}", "permissions": "FULL", "value": key}
            for number, key in keys
        ]
    }


@route("GET", IN_GROUP + _KIND + "/{name}/{part}")
def parts(call: Call) -> Body:
    kind, owner = find_resource(call)
    part = kind.parts.get(call["part"].casefold())
    if part is None:
        raise resource_not_found(f"{call['namespace']}/{call['kind']}/{call['part']}", call["group"], call["name"])
    return {"value": [part.body(call.world, owner, item) for item in part.of(call.world, owner)]}


@route("GET", IN_GROUP + _KIND + "/{name}/{part}/{part_name}")
def one_part(call: Call) -> Body:
    kind, owner = find_resource(call)
    part = kind.parts.get(call["part"].casefold())
    if part is not None:
        for item in part.of(call.world, owner):
            if part.name(owner, item).casefold() == call["part_name"].casefold():
                return part.body(call.world, owner, item)
    raise part_not_found(f"{bodies.id_of(call.world, owner)}/{call['part']}/{call['part_name']}")


def find_resource(call: Call) -> tuple[Kind, Any]:
    """Return the resource of the path's `group`, `namespace`, `kind` and `name`. Raises `ArmError` if missing."""
    group = existing_group(call.world, call["group"])
    kind = KINDS.get(_type_of(call), NOTHING)
    for item in kind.of(call.world):
        if item.resource_group == group and item.name.casefold() == call["name"].casefold():
            return kind, item
    raise resource_not_found(f"{call['namespace']}/{call['kind']}", call["group"], call["name"])


def _type_of(call: Call) -> str:
    return f"{call['namespace']}/{call['kind']}".casefold()
