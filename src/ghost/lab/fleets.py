"""The machines of a world's fleets: added where a lab runs, so that its file stays small and az starts fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network

from ghost.errors import LabError
from ghost.lab.tenant_facts import Fleet
from ghost.lab.world import Machine, NetworkInterface, ResourceGroup, World, named

AGENT = ("NetworkWatcherAgentLinux",)


def with_fleets(world: World) -> World:
    """Return the world with the machines, interfaces and groups of its fleets. Raises `LabError` if they do not fit."""
    for fleet in world.fleet:
        machines = list(_machines(world, fleet))
        home = world.virtual_network(fleet.network)
        location = world.location_of(home.resource_group)
        groups = [ResourceGroup(_group(fleet, number), location) for number in range(fleet.groups)]
        world = replace(
            world,
            groups=(*world.groups, *groups),
            interfaces=(*world.interfaces, *(nic for nic, _ in machines)),
            machines=(*world.machines, *(vm for _, vm in machines)),
        )
    return replace(world, fleet=()) if world.fleet else world


def _machines(world: World, fleet: Fleet) -> Iterator[tuple[NetworkInterface, Machine]]:
    subnet = named(world.virtual_network(fleet.network).subnets, fleet.subnet, f"subnet of {fleet.network}")
    prefix = ip_network(subnet.prefix)
    if fleet.groups < 1 or fleet.machines + fleet.first_address >= prefix.num_addresses:
        raise LabError(f"the fleet {fleet.prefix} of {fleet.machines} does not fit into {subnet.name} {subnet.prefix}")
    for number in range(fleet.machines):
        name, group = f"{fleet.prefix}-{number + 1:03}", _group(fleet, number % fleet.groups)
        mac = f"00-0D-3A-F0-{number // 256:02X}-{number % 256:02X}"
        address = str(prefix[fleet.first_address + number])
        yield (
            NetworkInterface(f"{name}-nic", group, fleet.network, fleet.subnet, address, mac),
            Machine(name, group, f"{name}-nic", tags={"fleet": fleet.prefix}, extensions=AGENT),
        )


def _group(fleet: Fleet, number: int) -> str:
    return f"{fleet.prefix}-rg-{number + 1:02}"
