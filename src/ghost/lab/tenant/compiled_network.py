"""From a world to the network that `ghost.net.walk` takes packets through: what the lab's Azure itself would know."""

from __future__ import annotations

from typing import Any

from ghost.lab.tenant.bodies import id_of
from ghost.lab.tenant.effective_bodies import effective_groups
from ghost.lab.tenant.gateway_routes import effective_routes
from ghost.lab.tenant.guest_tools import guest_texts
from ghost.lab.tenant.world_documents import admin_rules_of
from ghost.lab.world import World
from ghost.net import (
    AdminRules,
    AzureFirewall,
    EffectiveGroups,
    EffectiveRoutes,
    Gateway,
    Guest,
    Interface,
    Network,
    PublicName,
    VirtualNetwork,
    groups_from_effective_nsg,
    groups_of,
    network_of,
    read_guest,
)


def network_of_world(world: World) -> Network:
    """Return the complete network, with guests, what gateways taught, names of hosts outside, and prefixes of tags.

    Raises `LabError` for a body or text that Azure or a guest would not have.
    """
    told: dict[tuple[type[Any], str], Any] = {
        (AdminRules, world.documents.id_of(f"virtualNetworks/{network}")): admin_rules_of(world, network)
        for network in world.admin_rules
    }
    network = network_of(world.documents, told)
    guests = [read_guest(id_of(world, vm), guest_texts(vm)) for vm in world.machines]
    for home in network.all(VirtualNetwork).values():
        if (AdminRules, home.id) not in told:
            network = network.with_resources(AdminRules, [AdminRules(id=home.id, rules=())])
    network = network.with_resources(Guest, guests, complete=True)
    interfaces = list(network.all(Interface).values())
    within = [firewall.interface for firewall in network.all(AzureFirewall).values()]
    within += [gateway.interface for gateway in network.all(Gateway).values()]
    computed = [
        EffectiveRoutes(id=nic.id, routes=effective_routes(world, network, nic)) for nic in (*interfaces, *within)
    ]
    groups = [
        EffectiveGroups(id=nic.id, groups=groups_from_effective_nsg(effective_groups(world, network, nic)["value"]))
        for nic in interfaces
        if world.service_tags or groups_of(network, nic).tags.may_hold_more
    ]
    names = [PublicName(id=host.name, addresses=(host.address,)) for host in world.outside if host.name]
    network = network.with_resources(PublicName, names)
    network = network.with_resources(EffectiveRoutes, computed, complete=True)
    return network.with_resources(EffectiveGroups, groups)
