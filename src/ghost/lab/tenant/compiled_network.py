"""From a world to the network that `ghost.net.walk` takes packets through: what the lab's Azure itself would know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ghost.errors import LabError
from ghost.lab.tenant.bodies import id_of
from ghost.lab.tenant.guest_tools import guest_texts
from ghost.lab.world import World
from ghost.net import (
    AdminRules,
    EffectiveGroups,
    EffectiveRoutes,
    Gateway,
    GatewayConnections,
    Guest,
    Interface,
    Network,
    Route,
    RouteTable,
    SecurityGroup,
    Site,
    VirtualNetwork,
    groups_of,
    key,
    network_of,
    read_guest,
    routes_of,
)


def network_of_world(world: World) -> Network:
    """Return the complete network, with guests, what gateways taught, and the prefixes of service tags.

    Raises `LabError` for a body or text that Azure or a guest would not have.
    """
    told: dict[tuple[type[Any], str], Any] = {
        (AdminRules, world.documents.id_of(f"virtualNetworks/{network}")): list(rules)
        for network, rules in world.admin_rules.items()
    }
    try:
        network = network_of(world.documents, told)
        guests = [read_guest(id_of(world, vm), guest_texts(vm)) for vm in world.machines]
    except (ValueError, KeyError) as error:
        raise LabError(f"the world is not one of Azure's: {error}") from error
    for home in network.all(VirtualNetwork).values():
        if (AdminRules, home.id) not in told:
            network = network.with_resources(AdminRules, [AdminRules(id=home.id, rules=())])
    network = network.with_resources(Guest, guests, complete=True)
    interfaces = [nic for nic in network.all(Interface).values() if nic.is_read]
    computed = [EffectiveRoutes(id=nic.id, routes=effective_routes(world, network, nic)) for nic in interfaces]
    groups = [
        EffectiveGroups(id=nic.id, groups=tuple(_with_tags(world, each) for each in groups_of(network, nic).groups))
        for nic in interfaces
        if world.service_tags
    ]
    network = network.with_resources(EffectiveRoutes, computed, complete=True)
    return network.with_resources(EffectiveGroups, groups)


def effective_routes(world: World, network: Network, nic: Interface) -> tuple[Route, ...]:
    """Return the configured routes and those that gateways taught."""
    configured = routes_of(network, nic).routes
    _, subnet = network.subnet_of(nic)
    table = network.get(RouteTable, subnet.route_table)
    if table is not None and not table.propagates_bgp:
        return configured
    user = {route.prefix for route in configured if route.source == "User"}
    learned = (
        Route(prefix, "VirtualNetworkGateway", source="VirtualNetworkGateway",
              state="Invalid" if prefix in user else "Active")
        for prefix in dict.fromkeys(learned_prefixes(world, network, network.subnet_of(nic)[0]))
    )  # fmt: skip
    return (*configured, *learned)


def learned_prefixes(world: World, network: Network, home: VirtualNetwork) -> Iterator[str]:
    """Yield what the gateway of a network, or the one it uses of a peer, teaches its subnets: sites and BGP.

    https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview#border-gateway-protocol
    """
    homes = {key(home.id)}
    for peering in home.peerings:
        remote = network.get(VirtualNetwork, peering.remote)
        other = next((p for p in remote.peerings if key(p.remote) == key(home.id)), None) if remote else None
        connected = other is not None and peering.is_connected and other.is_connected
        if other and connected and peering.use_remote_gateways and other.allow_gateway_transit:
            homes.add(key(peering.remote))
    for gateway in network.all(Gateway).values():
        if key(gateway.subnet.partition("/subnets/")[0]) in homes:
            yield from world.learned_prefixes.get(gateway.name, ())
            for connection in network.one(GatewayConnections, gateway.id).connections:
                site = network.get(Site, connection.site)
                yield from site.prefixes if site is not None else ()


def _with_tags(world: World, group: SecurityGroup) -> SecurityGroup:
    """Return the group with the tags that the world knows replaced by their prefixes."""
    known = {name.casefold(): prefixes for name, prefixes in world.service_tags.items()}

    def expanded(prefixes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each for prefix in prefixes for each in known.get(prefix.casefold(), (prefix,)))

    rules = (
        replace(
            rule,
            source_prefixes=expanded(rule.source_prefixes),
            destination_prefixes=expanded(rule.destination_prefixes),
        )
        for rule in group.rules
    )
    return replace(group, rules=tuple(rules))
