"""What gateways teach the subnets of a world: configuration in Azure does not tell it."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.lab.world import World
from ghost.net import (
    Gateway,
    GatewayConnections,
    Interface,
    Network,
    Route,
    RouteTable,
    Site,
    VirtualNetwork,
    key,
    routes_of,
)


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
