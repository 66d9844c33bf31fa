"""Finding a resource as the CLI does, by group and name in any case; where it is not, the service's own words."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TypeVar

from ghost.lab.azure import shapes
from ghost.lab.azure.commands import split_id
from ghost.lab.azure.errors import AzError, group_not_found, part_not_found, resource_not_found, usage
from ghost.lab.world import (
    Machine,
    NetworkInterface,
    Peering,
    Resource,
    RouteTable,
    SecurityGroup,
    StorageAccount,
    Subnet,
    UserRoute,
    VirtualNetwork,
    Watcher,
    World,
)
from ghost.net import SecurityRule

Whole = TypeVar("Whole", Machine, NetworkInterface, RouteTable, SecurityGroup, StorageAccount, VirtualNetwork)
Part = TypeVar("Part", Peering, SecurityRule, Subnet, UserRoute)


def in_group(world: World, items: Iterable[Whole], group: str | None) -> list[Whole]:
    """All, or those of one resource group. Raises `AzError` where there is no such group."""
    if group is None:
        return list(items)
    known = existing_group(world, group)
    return [item for item in items if item.resource_group == known]


def existing_group(world: World, group: str) -> str:
    for known in world.groups:
        if known.name.casefold() == group.casefold():
            return known.name
    raise group_not_found(group)


def named(world: World, items: Iterable[Whole], kind: type[Whole], options: Namespace, name: str) -> Whole:
    for item in in_group(world, items, options.resource_group):
        if item.name.casefold() == name.casefold():
            return item
    raise resource_not_found(shapes.TYPES[kind], options.resource_group, name)


def part(world: World, owner: Resource, kind: str, parts: Iterable[Part], name: str) -> Part:
    for item in parts:
        if item.name.casefold() == name.casefold():
            return item
    raise part_not_found(shapes.part_id(world, owner, kind, name))


def watched_machine(world: World, options: Namespace) -> Machine:
    """The machine of `--vm`, a name or an id, where a watcher is in its location."""
    if options.vm.startswith("/"):
        group, _, names = split_id(options.vm)
        options = Namespace(resource_group=group, vm=names[-1])
    elif options.resource_group is None:
        raise usage("usage error: --vm ID | --vm NAME --resource-group NAME")
    vm = named(world, world.machines, Machine, options, options.vm)
    require_watcher(world, world.location_of(vm.resource_group))
    return vm


def require_watcher(world: World, location: str) -> Watcher:
    for item in world.watchers:
        if world.location_of(item.resource_group).casefold() == location.casefold():
            return item
    raise AzError(f"network watcher is not enabled for region {location}.")
