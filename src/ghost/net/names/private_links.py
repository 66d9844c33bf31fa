"""Private endpoints: who has a name, how a packet comes to one, and what stands before it.

https://learn.microsoft.com/azure/private-link/private-endpoint-overview
https://learn.microsoft.com/azure/private-link/disable-private-endpoint-network-policy
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ghost.net.address_matching import parse_address, parse_network
from ghost.net.gate_hops import gates
from ghost.net.hops import Hop
from ghost.net.names.changes import ApproveEndpoint
from ghost.net.names.records import PrivateEndpoint, is_within, without_private_link
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, VirtualNetwork, key, name_of
from ghost.net.routes import Route
from ghost.net.security import Flow

FORWARDED_AS: Final = {
    "vault.azure.net": "vaultcore.azure.net",
    "sqlondemand.azuresynapse.net": "sql.azuresynapse.net",
}
"""Suffixes of services whose private zone is not called like them; see `private-endpoint-dns`."""
SUBRESOURCES: Final = {
    "blob": "blob", "file": "file", "queue": "queue", "table": "table", "dfs": "dfs", "database": "sqlserver",
    "vaultcore": "vault", "redis": "rediscache",
}  # fmt: skip
"""The subresource of an endpoint, by the first word of its names' suffix; see `private-endpoint-dns`."""


def canonical(name: str) -> str:
    """Return the name that all names of one private endpoint share: without `privatelink`, in its zone's suffix."""
    plain = without_private_link(name)
    for suffix, zone in FORWARDED_AS.items():
        if is_within(plain, suffix):
            return plain.removesuffix(suffix) + zone
    return plain


def is_named_by_interface(network: Network, name: str) -> bool:
    """Return whether an interface says that the name should lead to it."""
    wanted = canonical(name)
    return any(
        canonical(each) == wanted
        for interface in network.all(Interface).values()
        for configuration in interface.configurations
        for each in configuration.names
    )


def endpoints_of_name(network: Network, name: str) -> list[tuple[PrivateEndpoint, tuple[str, ...]]]:
    """Return the private endpoints that a name should lead to, with its addresses. Raises `Unread`."""
    wanted, found = canonical(name), []
    for _, endpoint in sorted(network.whole(PrivateEndpoint).items()):
        interfaces = list(filter(None, (network.get(Interface, each) for each in endpoint.interfaces)))
        told = [(each, (c.address,)) for interface in interfaces for c in interface.configurations for each in c.names]
        addresses = [a for each, of in (*told, *endpoint.names) if canonical(each) == wanted for a in of]
        if not addresses and _serves(endpoint, wanted):
            addresses = [each.address for each in interfaces]
        if addresses:
            found.append((endpoint, tuple(dict.fromkeys(addresses))))
    return found


def has_subresource(name: str) -> bool:
    """Return whether a name, as `canonical` gives it, may be that of a service with private endpoints."""
    return name.partition(".")[2].partition(".")[0] in SUBRESOURCES


def _serves(endpoint: PrivateEndpoint, wanted: str) -> bool:
    """Return whether a name is that of the endpoint's own service and subresource.

    Where a group of zones holds the names, Azure leaves the endpoint's list of them empty.
    """
    host, _, suffix = wanted.partition(".")
    subresource = SUBRESOURCES.get(suffix.partition(".")[0])
    groups = [group.casefold() for group in endpoint.groups]
    return subresource in groups and host in (name_of(each).casefold() for each in endpoint.services)


def endpoint_at(network: Network, interface: Interface) -> PrivateEndpoint | None:
    """Return the private endpoint that an interface belongs to. Raises `Unread`."""
    if interface.machine is not None:
        return None
    endpoints = network.whole(PrivateEndpoint).values()
    return next((e for e in endpoints if key(interface.id) in map(key, e.interfaces)), None)


def endpoint_route(network: Network, home: VirtualNetwork, destination: str, other: Route | None) -> Route | None:
    """Return the route that a private endpoint in a network or its peers adds, unless `other` wins. Raises `Unread`.

    A user-defined route wins if it is as long, or if it is as long as the address space of the endpoint's network and
    routes apply to private endpoints of its subnet.
    """
    if not any(interface.machine is None for interface in network.interfaces_with(destination)):
        return None
    peers = [network.one(VirtualNetwork, peering.remote) for peering in home.peerings if peering.is_connected]
    there = network.interface_at(destination, [place for place in (home, *peers) if place.holds(destination)])
    if there is None or endpoint_at(network, there) is None:
        return None
    away, subnet = network.subnet_of(there)
    prefix = parse_network(other.prefix) if other is not None and other.source.casefold() == "user" else None
    if prefix is not None:
        address = parse_address(destination)
        spaces = [s for s in map(parse_network, away.prefixes) if s is not None and address in s]
        replaces = subnet.routes_reach_endpoints and all(prefix.prefixlen >= space.prefixlen for space in spaces)
        if replaces or prefix.prefixlen == prefix.max_prefixlen:
            return None
    return Route(f"{destination}/32", "InterfaceEndpoint")


def inbound(network: Network, there: Interface, flow: Flow) -> Iterator[Hop]:
    """Yield the groups before an interface; before a private endpoint they stand only where its subnet says so."""
    try:
        endpoint = endpoint_at(network, there)
        applies = endpoint is None or network.subnet_of(there)[1].groups_reach_endpoints
    except Unread as unread:
        yield Hop("private_endpoint", there.id, "unknown", unread.reason, missing=unread.missing)
        return
    if applies:
        yield from gates(network, there, flow, "Inbound", any_source_port=endpoint is not None)


def arrival(network: Network, there: Interface, flow: Flow) -> Iterator[Hop]:
    """Yield what a private endpoint does with a packet for it."""
    try:
        endpoint = endpoint_at(network, there)
    except Unread:
        return
    if endpoint is None:
        if there.machine is None and there.is_read:
            reason = f"{there.name} belongs to no machine or private endpoint that was read"
            yield Hop("interface", there.id, "unknown", reason, references=(there.reference,))
        return
    service = next((name_of(each) for each in endpoint.services if each), "its service")
    status = next((s for s in endpoint.statuses if s.casefold() != "approved"), "Approved")
    reason = f"the connection of {endpoint.name} to {service} is {status}"
    hop = Hop("private_endpoint", endpoint.id, "pass", reason, status, references=(endpoint.reference,))
    if not endpoint.statuses or status.casefold() not in ("approved", "pending", "rejected", "disconnected"):
        yield _unknown(hop, f"{endpoint.name} shows no known status of its connection")
    elif not endpoint.is_approved:
        mends = (ApproveEndpoint(endpoint.id),)
        yield Hop(
            "private_endpoint",
            endpoint.id,
            "drop",
            reason,
            status,
            "private_endpoint_not_approved",
            references=hop.references,
            mends=mends,
        )
    elif flow.protocol.casefold() != "tcp":
        yield _unknown(
            hop, f"Azure documents that private endpoints carry TCP, but not what happens to {flow.protocol}"
        )
    else:
        yield hop


def answers_itself(network: Network, there: Interface) -> bool:
    """Return whether an interface is, or may be, a private endpoint's: routes of its subnet do not lead its answers."""
    try:
        return endpoint_at(network, there) is not None
    except Unread:
        return True


def answer(there: Interface, appliances: tuple[str, ...]) -> Iterator[Hop]:
    """Yield how a private endpoint answers where the packet came through an appliance, which may miss the answer."""
    for appliance in appliances:
        reason = (
            f"the answer of {there.name} comes through {name_of(appliance)} only if that translates the source's "
            "address, which Azure does not show"
        )
        yield Hop("private_endpoint", there.id, "unknown", reason, leg="return")


def _unknown(hop: Hop, reason: str) -> Hop:
    return Hop(hop.kind, hop.resource, "unknown", reason, hop.rule, references=hop.references)
