"""The effective configuration of a network interface in `ghost.net`'s types: gates, tags and routes.

The simulated fabric only supplies the input; `ghost.net` decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ghost.lab.world import NetworkInterface, UserRoute, VirtualNetwork, World
from ghost.net import HOST_ADDRESS, Flow, Route, SecurityGroup, ServiceTags, Verdict, evaluate_gates, select_route

UNUSED_PREFIXES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
"""Private space outside the network, for which every interface has a route that drops.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview#default
"""


@dataclass(frozen=True)
class Reach:
    """Whether a machine's packets reach another, and what stops them otherwise."""

    source_route: Route | None
    return_route: Route | None
    outbound: Verdict
    """Of the source's gates."""
    inbound: Verdict
    """Of the destination's gates; meaningful only if the packet arrives there."""

    @property
    def leaves(self) -> bool:
        """True if the packet passes the source's gates and a route carries it to the other machine."""
        return self.outbound.allowed and carries(self.source_route)

    @property
    def arrives(self) -> bool:
        return self.leaves and self.inbound.allowed

    @property
    def answers_return(self) -> bool:
        return carries(self.return_route)


def reach(world: World, source: str, destination: str, protocol: str, port: int | None) -> Reach:
    """Return the result for a packet from machine `source` to `port` of machine `destination`, by configuration
    alone.
    """
    near, far = world.interface_of(source), world.interface_of(destination)
    flow = Flow(protocol, near.address, None, far.address, port)
    return Reach(
        source_route=select_route(effective_routes(world, near), far.address),
        return_route=select_route(effective_routes(world, far), near.address),
        outbound=evaluate_gates(gates(world, near), flow, "Outbound", service_tags(world, near)),
        inbound=evaluate_gates(gates(world, far), flow, "Inbound", service_tags(world, far)),
    )


def carries(route: Route | None) -> bool:
    """Return whether a route leads to another machine of the tenant; appliances of these worlds forward nothing."""
    return route is not None and route.next_hop_type in ("VnetLocal", "VNetPeering")


def gates(world: World, interface: NetworkInterface) -> tuple[SecurityGroup, ...]:
    """Return the groups at the subnet and the interface, named by resource id."""
    subnet = world.subnet_of(interface)
    found = []
    if subnet.security_group is not None:
        group = world.security_group(subnet.security_group)
        found.append(SecurityGroup(group_id(world, group.name), "subnet", group.rules))
    if interface.security_group is not None:
        group = world.security_group(interface.security_group)
        found.append(SecurityGroup(group_id(world, group.name), "nic", group.rules))
    return tuple(found)


def group_id(world: World, name: str) -> str:
    group = world.security_group(name)
    return world.resource_id("Microsoft.Network/networkSecurityGroups", group.resource_group, group.name)


def service_tags(world: World, interface: NetworkInterface) -> ServiceTags:
    """Return the tags. VirtualNetwork holds the network, its peers, the host's address, and user-defined route
    prefixes.

    https://learn.microsoft.com/azure/virtual-network/service-tags-overview#available-service-tags
    """
    network = world.virtual_network(interface.network)
    prefixes = [*network.prefixes]
    for peer in peers(world, network):
        prefixes.extend(peer.prefixes)
    prefixes.extend(route.prefix for route in user_routes(world, interface))
    return ServiceTags((*dict.fromkeys(prefixes), f"{HOST_ADDRESS}/32"))


def user_routes(world: World, interface: NetworkInterface) -> tuple[UserRoute, ...]:
    table = world.subnet_of(interface).route_table
    return world.route_table(table).routes if table is not None else ()


def peers(world: World, network: VirtualNetwork) -> tuple[VirtualNetwork, ...]:
    """Return the networks with a connected and permitted peering with this one."""
    return tuple(
        world.virtual_network(peering.remote)
        for peering in network.peerings
        if peering.state == "Connected" and peering.allow_access
    )


def effective_routes(world: World, interface: NetworkInterface) -> tuple[Route, ...]:
    """Return Azure's default routes and the subnet's own; a replaced default route is Invalid."""
    network, table = world.virtual_network(interface.network), user_routes(world, interface)
    replaced = {route.prefix for route in table}
    present = {
        *network.prefixes,
        *(prefix for peer in peers(world, network) for prefix in peer.prefixes),
    }
    defaults = [
        *((prefix, "VnetLocal") for prefix in network.prefixes),
        *((prefix, "VNetPeering") for peer in peers(world, network) for prefix in peer.prefixes),
        ("0.0.0.0/0", "Internet"),
        *((prefix, "None") for prefix in UNUSED_PREFIXES if prefix not in present),
    ]
    return (
        *(Route(prefix, hop, state="Invalid" if prefix in replaced else "Active") for prefix, hop in defaults),
        *(Route(r.prefix, r.next_hop_type, r.next_hop_address, "User", "Active", r.name) for r in table),
    )
