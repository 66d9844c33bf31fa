"""The groups and routes of one interface: as Azure computed them where that was read, else from configuration.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview
https://learn.microsoft.com/azure/virtual-network/service-tags-overview
https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, ip_address
from typing import TypeVar

from ghost.net.address_matching import HOST_ADDRESS, ServiceTags, parse_network
from ghost.net.network import Missing, Network, Unread
from ghost.net.resources import (
    EffectiveGroups,
    EffectiveRoutes,
    Interface,
    RouteTable,
    RuleSet,
    Subnet,
    VirtualNetwork,
    key,
    within,
)
from ghost.net.routes import PREFERRED_TO_BGP, Route, select_route
from ghost.net.security import SecurityGroup
from ghost.net.services.direct_routes import with_tags, without_other_services

UNUSED_PREFIXES = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
"""Private space outside the network, for which every interface has a route that drops."""
AZURES_OWN_PREFIXES = (
    "20.35.252.0/22", "23.103.0.0/18", "25.4.0.0/14", "25.33.0.0/16", "25.41.0.0/20", "25.48.0.0/12", "40.108.0.0/17",
    "40.109.0.0/16", "104.146.0.0/17", "104.147.0.0/16", "157.59.0.0/16", "198.18.0.0/15",
)  # fmt: skip
"""Public space with such a route in effective tables recorded in 2023, not in 2020; no page tells of it."""
DEFAULT_PREFIXES = ("0.0.0.0/0", "::/0")
Computed = TypeVar("Computed", EffectiveGroups, EffectiveRoutes)


@dataclass(frozen=True)
class InterfaceRoutes:
    routes: tuple[Route, ...]
    references: tuple[str, ...]
    learned_unknown: bool = False
    """A gateway may add routes that configuration does not show."""
    services: tuple[str, ...] = ()
    """Service endpoints, and tags of user-defined routes: routes with prefixes that configuration does not show."""
    computed: bool = False
    """Whether Azure computed them, those to private endpoints included."""

    @cached_property
    def _by_prefix(self) -> dict[int, dict[int, list[Route]]]:
        """IPv4 routes by length and network: a few look-ups in place of a comparison with each of 400 routes."""
        index: dict[int, dict[int, list[Route]]] = {}
        for route in self.routes:
            network = parse_network(route.prefix)
            if network is not None and network.version == 4:
                index.setdefault(network.prefixlen, {}).setdefault(int(network.network_address), []).append(route)
        return index

    def select(self, address: str) -> Route | None:
        """Return the route that packets to `address` take; None if no active route covers it."""
        destination = ip_address(address)
        if destination.version == 6:
            return select_route(self.routes, address)
        number, found = int(destination), []
        for length, networks in self._by_prefix.items():
            found += networks.get(number >> (32 - length) << (32 - length), [])
        return select_route(found, address)

    def doubt(self, route: Route | None, address: str) -> str | None:
        """Return what may win over `route`, as far as configuration does not show; None if it is certain.

        No learned route wins over those within the network and to peers, and no service has a private address.
        """
        if self.services and ip_address(address).is_global:
            return f"{', '.join(self.services)} may hold {address}, with its own route"
        if self.learned_unknown and not (
            route and route.source == "Default" and route.next_hop_type.casefold() in PREFERRED_TO_BGP
        ):
            return f"a gateway may have advertised a route to {address}"
        if not self.computed and route and route.source == "Default" and within(AZURES_OWN_PREFIXES, address):
            return f"{address} is in an address block of Azure, which may drop the packet"
        return None


@dataclass(frozen=True)
class InterfaceGroups:
    groups: tuple[SecurityGroup, ...]
    tags: ServiceTags
    references: tuple[str, ...]
    computed: bool
    """Whether Azure computed them, so that there is nothing more to read."""
    doubt: str = ""
    """Why it is not known which networks are connected, so that VirtualNetwork should hold them."""


def routes_of(network: Network, interface: Interface) -> InterfaceRoutes:
    """Return the routes that packets of the interface take. Raises `Unread`."""
    place = ("routes", key(interface.id))
    if place not in network.derived:
        network.derived[place] = _routes_of(network, interface)
    routes: InterfaceRoutes = network.derived[place]
    return routes


def _routes_of(network: Network, interface: Interface) -> InterfaceRoutes:
    toward = network.toward
    computed = network.get(EffectiveRoutes, interface.id)
    if computed is not None:
        routes = computed.routes if toward is None else without_other_services(computed.routes, (), toward)[0]
        return InterfaceRoutes(routes, (computed.reference,), computed=True)
    home, subnet = network.subnet_of(interface)
    table = network.one(RouteTable, subnet.route_table) if subnet.route_table else None
    user = table.routes if table else ()
    replaced = {route.prefix for route in user}
    peers = [prefix for peering in home.peerings if peering.is_connected for prefix in peering.remote_prefixes]
    system = [
        *((prefix, "VnetLocal") for prefix in home.prefixes),
        *((prefix, "VNetPeering") for prefix in peers),
        ("0.0.0.0/0", "Internet"),
        *([("::/0", "Internet")] if any(":" in prefix for prefix in home.prefixes) else []),
        *((prefix, "None") for prefix in _unused(home, peers, user)),
    ]
    states = ((prefix, hop, "Invalid" if prefix in replaced else "Active") for prefix, hop in system)
    routes = (*(Route(prefix, hop, state=state) for prefix, hop, state in states), *user)
    references = (interface.reference, home.reference, *((table.reference,) if table else ()))
    learned_unknown = has_gateway(home) and (table is None or table.propagates_bgp)
    tags = tuple(route.prefix for route in user if parse_network(route.prefix) is None)
    services = (*subnet.service_endpoints, *tags)
    if toward is not None:
        routes, services = without_other_services(routes, tags, toward)
    return InterfaceRoutes(routes, references, learned_unknown, services)


def _unused(home: VirtualNetwork, peers: Iterable[str], user: Iterable[Route]) -> list[str]:
    """Return the private space that is dropped: none with a user-defined route for 0.0.0.0/0, and none in a network."""
    if any(route.prefix == "0.0.0.0/0" for route in user):
        return []
    own = [network for prefix in home.prefixes if isinstance(network := parse_network(prefix), IPv4Network)]
    unused = ((prefix, IPv4Network(prefix)) for prefix in UNUSED_PREFIXES if prefix not in peers)
    return [prefix for prefix, reserved in unused if not any(reserved.subnet_of(network) for network in own)]


def groups_of(network: Network, interface: Interface, *, as_configured: bool = False) -> InterfaceGroups:
    """Return the groups that packets of the interface meet, and its tags. Raises `Unread`.

    `as_configured`: with the names of tags in their rules, which Azure's computation replaces by prefixes.
    """
    place = ("configured groups" if as_configured else "groups", key(interface.id))
    if place not in network.derived:
        network.derived[place] = _groups_of(network, interface, as_configured)
    groups: InterfaceGroups = network.derived[place]
    return groups


def _groups_of(network: Network, interface: Interface, as_configured: bool) -> InterfaceGroups:
    as_configured = as_configured or (network.toward is not None and network.toward.host is not None)
    try:
        home, subnet = network.subnet_of(interface)
    except Unread as unread:
        if as_configured:
            raise
        told = computed_for(network, EffectiveGroups, interface, unread)
        open_tags = ServiceTags(others=_application_groups(network), may_hold_more=True)
        return InterfaceGroups(told.groups, open_tags, (told.reference,), computed=True, doubt=unread.reason)
    tags = tags_of(network, home, subnet)
    computed = network.get(EffectiveGroups, interface.id)
    if computed is not None and not as_configured:
        return InterfaceGroups(computed.groups, tags, (computed.reference,), computed=True)
    groups, references = [], [interface.reference, home.reference]
    for group_id, association in ((subnet.security_group, "subnet"), (interface.security_group, "nic")):
        if group_id is not None:
            rules = network.one(RuleSet, group_id)
            groups.append(SecurityGroup(rules.id, "subnet" if association == "subnet" else "nic", rules.rules))
            references.append(rules.reference)
    if network.toward is not None:
        tags = with_tags(tags, network.toward, (rule for group in groups for rule in group.rules))
    nothing_more = network.toward is not None and network.toward.host is not None
    return InterfaceGroups(tuple(groups), tags, tuple(references), computed=nothing_more)


def computed_for(network: Network, of: type[Computed], interface: Interface, unread: Unread) -> Computed:
    """Return what Azure computed for an interface, if this login may not read its virtual network. Raises `Unread`."""
    if unread.missing is not None or not interface.is_read:
        raise unread
    return network.one(of, interface.id)


def tags_of(network: Network, home: VirtualNetwork, subnet: Subnet) -> ServiceTags:
    """Return the tags as the subnet's interfaces see them.

    VirtualNetwork holds the network, the peers it gives access to, the prefixes of user-defined routes and the host.
    It "might also contain default routes", so that a route for 0.0.0.0/0 leaves open what it holds.
    """
    prefixes = [*home.prefixes, f"{HOST_ADDRESS}/32"]
    prefixes += [
        p for peering in home.peerings if peering.is_connected and peering.allow_access for p in peering.remote_prefixes
    ]
    table = network.get(RouteTable, subnet.route_table)
    user = [route.prefix for route in table.routes] if table else []
    prefixes += [prefix for prefix in user if prefix not in DEFAULT_PREFIXES]
    unread = subnet.route_table is not None and table is None
    return ServiceTags(
        tuple(dict.fromkeys(prefixes)),
        _application_groups(network),
        may_hold_more=has_gateway(home) or unread or any(prefix in DEFAULT_PREFIXES for prefix in user),
        members_known=Interface in network.complete,
    )


def has_gateway(home: VirtualNetwork) -> bool:
    """Return whether a gateway of the network, or of a peer, may teach its subnets routes."""
    own = any(subnet.is_for_gateways for subnet in home.subnets)
    return own or any(peering.is_connected and peering.use_remote_gateways for peering in home.peerings)


def _application_groups(network: Network) -> dict[str, tuple[str, ...]]:
    """Return the addresses in each application security group; none where not all interfaces were read."""
    members: dict[str, list[str]] = {}
    for interface in network.all(Interface).values() if Interface in network.complete else ():
        for configuration in interface.configurations:
            for group in configuration.application_groups:
                members.setdefault(group, []).append(configuration.address)
    return {group: tuple(addresses) for group, addresses in members.items()}


def missing_groups(interface: Interface) -> Missing:
    return Missing(EffectiveGroups, interface.id)


def missing_routes(interface: Interface) -> Missing:
    return Missing(EffectiveRoutes, interface.id)
