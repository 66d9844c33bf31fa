"""Route selection: which effective route a packet takes.

The longest matching prefix wins; among equal prefixes a user-defined route beats one learned by BGP, which beats a
default route. One exception: default routes to the network itself, its peers and service endpoints are preferred
even to more specific BGP routes.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview#how-azure-selects-a-route
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from ghost.net.address_matching import parse_network

SOURCE_RANK = {"user": 0, "virtualnetworkgateway": 1, "default": 2}
PREFERRED_TO_BGP = frozenset({"vnetlocal", "vnetpeering", "virtualnetworkserviceendpoint"})


@dataclass(frozen=True)
class Route:
    prefix: str
    next_hop_type: str
    """VnetLocal, VNetPeering, Internet, VirtualAppliance, VirtualNetworkGateway, None, ..."""
    next_hop_ip: str | None = None
    source: str = "Default"
    """User, VirtualNetworkGateway (BGP) or Default."""
    state: str = "Active"
    name: str | None = None
    """Only user-defined routes carry one."""
    tag: str | None = None
    """The service tag whose prefixes this is one of."""

    def __str__(self) -> str:
        via = f" via {self.next_hop_ip}" if self.next_hop_ip else ""
        called = f" ({self.name})" if self.name else ""
        return f"{self.tag or self.prefix} -> {self.next_hop_type}{via}{called}, {self.source} route"


def select_route(routes: Iterable[Route], address: str) -> Route | None:
    """Return the route for packets to `address`; None if no active route covers it and they are dropped.

    A route whose next hop type is "None" also drops the packet.
    """
    destination = ip_address(address)
    candidates: list[tuple[int, int, Route]] = []
    for route in routes:
        network = parse_network(route.prefix)
        if network is not None and route.state.casefold() == "active" and destination in network:
            candidates.append((-network.prefixlen, SOURCE_RANK.get(route.source.casefold(), 2), route))
    if any(rank == 2 and route.next_hop_type.casefold() in PREFERRED_TO_BGP for _, rank, route in candidates):
        candidates = [candidate for candidate in candidates if candidate[1] != 1]
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None
