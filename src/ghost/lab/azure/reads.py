"""The commands that read accounts, groups, resources, machines and storage accounts.

What the lab does not model at all, such as load balancers, is in `unmodelled.toml`: lists of it are empty.
"""

from __future__ import annotations

import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

from ghost.lab.azure import shapes
from ghost.lab.azure.commands import GROUP, IN_GROUP, NAME, Answer, command, split_id
from ghost.lab.azure.errors import resource_not_found, usage
from ghost.lab.azure.lookup import existing_group, in_group, named
from ghost.lab.directory import LabDirectory
from ghost.lab.world import Machine, World

# --- accounts, groups, any resource ---


@command("version")
def version(_lab: LabDirectory, _options: Namespace) -> Any:
    return {"azure-cli": "2.91.0", "azure-cli-core": "2.91.0", "azure-cli-telemetry": "1.1.0", "extensions": {}}


@command("account show")
def account_show(lab: LabDirectory, _options: Namespace) -> Any:
    return shapes.account(lab.world)


@command("account list", "--all ?", "--refresh ?")
def account_list(lab: LabDirectory, _options: Namespace) -> Any:
    shape = shapes.account(lab.world)
    return [{"cloudName": shape.pop("environmentName"), **shape}]


@command("group list", "--tag")
def group_list(lab: LabDirectory, options: Namespace) -> Any:
    return [shapes.resource_group(lab.world, group) for group in lab.world.groups if options.tag is None]


@command("group show", "--name --resource-group -n -g !")
def group_show(lab: LabDirectory, options: Namespace) -> Any:
    return shapes.resource_group(lab.world, lab.world.group(existing_group(lab.world, options.name)))


@command("resource list", IN_GROUP, "--name -n", "--resource-type", "--location -l", "--tag", "--namespace")
def resource_list(lab: LabDirectory, options: Namespace) -> Any:
    world = lab.world
    if options.resource_group is not None:
        existing_group(world, options.resource_group)
    found = [shapes.generic(world, item) for item in world.resources()]
    wanted = {
        "resourceGroup": options.resource_group,
        "name": options.name,
        "type": options.resource_type,
        "location": options.location,
    }
    for field, value in wanted.items():
        if value is not None:
            found = [shape for shape in found if shape[field].casefold() == value.casefold()]
    if options.namespace is not None:
        found = [shape for shape in found if shape["type"].split("/")[0].casefold() == options.namespace.casefold()]
    if options.tag is not None:
        key, has_value, value = options.tag.partition("=")
        found = [s for s in found if key in s["tags"] and (not has_value or s["tags"][key] == value)]
    return found


@command(
    "resource show",
    IN_GROUP,
    "--name -n",
    "--resource-type",
    "--namespace",
    "--parent",
    "--api-version",
    "--include-response-body ?",
    "--ids *",
)
def resource_show(lab: LabDirectory, options: Namespace) -> Any:
    """Takes `--ids` itself: an id of any type may follow."""
    if options.ids:
        shown = [_resource_by_id(lab.world, resource_id) for resource_id in options.ids]
        return shown[0] if len(shown) == 1 else shown
    if not (options.name and options.resource_type and options.resource_group):
        raise usage(
            "(--ids | --resource-group/-g, --name/-n, --resource-type) are required: a resource is identified by its "
            "id, or by its group, name and type"
        )
    kind = options.resource_type if "/" in options.resource_type else f"{options.namespace}/{options.resource_type}"
    return _resource(lab.world, kind, options.resource_group, options.name)


def _resource_by_id(world: World, resource_id: str) -> dict[str, Any]:
    group, kind, names = split_id(resource_id)
    return _resource(world, kind, group, "/".join(names))


def _resource(world: World, kind: str, group: str, name: str) -> dict[str, Any]:
    known = existing_group(world, group)
    for item in world.resources():
        if (shapes.TYPES[type(item)].casefold(), item.resource_group, item.name.casefold()) == (
            kind.casefold(),
            known,
            name.casefold(),
        ):
            return {**shapes.generic(world, item), "properties": {"provisioningState": "Succeeded"}}
    raise resource_not_found(kind, group, name)


# --- machines ---

OF_VM = ("name",)


@command("vm list", IN_GROUP, "--show-details -d ?", "--vmss")
def vm_list(lab: LabDirectory, options: Namespace) -> Any:
    shape = shapes.machine_details if options.show_details else shapes.machine
    return [shape(lab.world, vm) for vm in in_group(lab.world, lab.world.machines, options.resource_group)]


@command("vm show", GROUP, NAME, "--show-details -d ?", "--include-user-data -u ?", ids=OF_VM)
def vm_show(lab: LabDirectory, options: Namespace) -> Any:
    vm = named(lab.world, lab.world.machines, Machine, options, options.name)
    return (shapes.machine_details if options.show_details else shapes.machine)(lab.world, vm)


@command("vm get-instance-view", GROUP, NAME, ids=OF_VM)
def vm_get_instance_view(lab: LabDirectory, options: Namespace) -> Any:
    return shapes.instance_view(lab.world, named(lab.world, lab.world.machines, Machine, options, options.name))


@command("vm list-ip-addresses", IN_GROUP, "--name -n", ids=OF_VM)
def vm_list_ip_addresses(lab: LabDirectory, options: Namespace) -> Any:
    machines = in_group(lab.world, lab.world.machines, options.resource_group)
    wanted = options.name
    return [
        shapes.addresses(lab.world, vm) for vm in machines if wanted is None or vm.name.casefold() == wanted.casefold()
    ]


@command("vm extension list", GROUP, "--vm-name !", ids=("vm_name",))
def vm_extension_list(lab: LabDirectory, options: Namespace) -> Any:
    vm = named(lab.world, lab.world.machines, Machine, options, options.vm_name)
    return [shapes.extension(lab.world, vm, kind) for kind in vm.extensions]


# --- storage accounts ---


@command("storage account list", IN_GROUP)
def storage_account_list(lab: LabDirectory, options: Namespace) -> Any:
    accounts = in_group(lab.world, lab.world.storage_accounts, options.resource_group)
    return [shapes.storage_account(lab.world, account) for account in accounts]


@command("storage account show", IN_GROUP, NAME, "--expand", ids=("name",))
def storage_account_show(lab: LabDirectory, options: Namespace) -> Any:
    world = lab.world
    for account in in_group(world, world.storage_accounts, options.resource_group):
        if account.name.casefold() == options.name.casefold():
            return shapes.storage_account(world, account)
    raise resource_not_found("Microsoft.Storage/storageAccounts", str(options.resource_group), options.name)


# --- what the lab does not model ---


def _register_unmodelled() -> None:
    content = tomllib.loads((Path(__file__).parent / "unmodelled.toml").read_text(encoding="utf-8"))
    for row in content["commands"]:
        if row["words"].endswith("list"):
            command(row["words"], *row["options"])(lambda _lab, _options: [])
        else:
            command(row["words"], *row["options"])(_absent(row["type"]))


def _absent(kind: str) -> Answer:
    def answer(lab: LabDirectory, options: Namespace) -> Any:
        raise resource_not_found(kind, existing_group(lab.world, options.resource_group), options.name)

    return answer


_register_unmodelled()
