"""VPN and ExpressRoute gateways: the way to sites, by which connection, and whether that stands.

https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-about-vpngateways
https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview#gateways-and-on-premises-connectivity
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Final

from ghost.net.azure_shapes import object_of, objects_of, prefixes_of, resources_in, text_of
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import (
    Interface,
    Peering,
    Resource,
    VirtualNetwork,
    name_of,
    owner_in,
    prefixes_around,
    within,
)
from ghost.net.security import Flow

CONNECTION_QUERY: Final = (
    "[].{id: id, connectionStatus: connectionStatus, enableBgp: enableBgp, site: localNetworkGateway2.id}"
)
"""A whole connection would show its key."""


@dataclass(frozen=True, kw_only=True)
class Gateway(Resource):
    kind = "gateway"

    subnet: str

    @property
    def interface(self) -> Interface:
        """Where packets of sites come in: no network interface that could be read."""
        return Interface(id=self.id, reference=self.reference, subnet=self.subnet, configurations=())


@dataclass(frozen=True)
class Connection:
    name: str
    status: str
    """Connected, Connecting, NotConnected or Unknown."""
    site: str | None
    """Id of the local network gateway; None: an ExpressRoute circuit, or another network."""
    uses_bgp: bool


@dataclass(frozen=True, kw_only=True)
class GatewayConnections(Resource):
    """The connections of one gateway; `id` is the gateway's."""

    kind = "connections of the gateway"

    connections: tuple[Connection, ...]


@dataclass(frozen=True, kw_only=True)
class Site(Resource):
    """A local network gateway: the address space of a site."""

    kind = "local network gateway"

    prefixes: tuple[str, ...]


def read_gateways(answer: Any, reference: str) -> list[Gateway]:
    return [
        Gateway(
            id=text_of(fields, "id"),
            reference=reference,
            subnet=text_of(object_of(objects_of(fields, "ipconfigurations")[0], "subnet"), "id"),
        )
        for fields in resources_in(answer)
        if objects_of(fields, "ipconfigurations")
    ]


def gateway_connections(of: str, answer: Any, reference: str) -> GatewayConnections:
    """Read the rows of `CONNECTION_QUERY`."""
    connections = [
        Connection(
            name=name_of(text_of(fields, "id")),
            status=str(fields.get("connectionstatus") or "Unknown"),
            site=str(fields["site"]) if fields.get("site") else None,
            uses_bgp=bool(fields.get("enablebgp")),
        )
        for fields in resources_in(answer)
    ]
    return GatewayConnections(id=of, reference=reference, connections=tuple(connections))


def sites(answer: Any, reference: str) -> list[Site]:
    return [
        Site(
            id=text_of(fields, "id"),
            reference=reference,
            prefixes=prefixes_of(object_of(fields, "localnetworkaddressspace", {}), "addressprefixes"),
        )
        for fields in resources_in(answer)
    ]


def gateway_of(network: Network, home: VirtualNetwork) -> Gateway | None:
    """Return the gateway that serves a network: its own, or a peer's that it uses; None if that is not one.

    Raises `Unread`.
    """
    owners = [home, *(network.one(VirtualNetwork, p.remote) for p in home.peerings if _uses(p))]
    found = {gateway_id for owner in owners for gateway_id in gateways_in(owner)}
    return network.one(Gateway, found.pop()) if len(found) == 1 else None


def gateways_in(home: VirtualNetwork) -> Iterator[str]:
    """Yield the ids of the gateways in the network's GatewaySubnet."""
    for subnet in home.subnets:
        if subnet.is_for_gateways:
            yield from {owner for each in subnet.occupants if (owner := owner_in(each, "virtualNetworkGateways"))}


def through_gateway(network: Network, gateway: Gateway, address: str) -> Hop:
    """Return what stands between a gateway and the site that has `address`: a connection of it that is up.

    A drop only where every connection that may lead there is down, and a site is known to have the address: clients of
    a point-to-site VPN have no connection.
    """
    hop = Hop("gateway", gateway.id, "unknown", "", references=(gateway.reference,))
    try:
        known = network.one(GatewayConnections, gateway.id)
        leading = [c for c in known.connections if _leads(network, c, address)]
    except Unread as unread:
        return replace(hop, reason=unread.reason, missing=unread.missing)
    hop = replace(hop, references=(gateway.reference, known.reference))
    up = [connection for connection in leading if connection.status.casefold() == "connected"]
    if up:
        reason = (
            f"{address} is reached by {up[0].name} of {gateway.name}, which is Connected; its site is outside Azure"
        )
        return replace(hop, verdict="pass", reason=reason)
    known_site = any(each.site is not None and _holds(network, each.site, address) for each in leading)
    if known_site and all(connection.status.casefold() == "notconnected" for connection in leading):
        names = ", ".join(connection.name for connection in leading)
        reason = f"{names} of {gateway.name}, through which {address} is reached, is not connected"
        return replace(hop, verdict="drop", reason=reason, rule=leading[0].name, fault="gateway_disconnected")
    if not leading:
        return replace(hop, reason=f"no connection of {gateway.name} is known to lead to {address}")
    return replace(hop, reason=f"{leading[0].name} of {gateway.name} is {leading[0].status}")


def out_by_gateway(network: Network, here: Interface, address: str) -> tuple[Hop, Interface | None]:
    """Return the hop of the gateway by which a packet goes to a site, and where its answer comes in."""
    hop = Hop("gateway", here.id, "unknown", f"which gateway leads to {address} is not known")
    try:
        gateway = gateway_of(network, network.subnet_of(here)[0])
    except Unread as unread:
        return replace(hop, reason=unread.reason, missing=unread.missing), None
    if gateway is None:
        return hop, None
    return through_gateway(network, gateway, address), gateway.interface


def gateway_in(network: Network, flow: Flow) -> Gateway | None:
    """Return the gateway by which a packet of a site comes in: that of the destination's network. Raises `Unread`.

    None where it may come in elsewhere: from the internet, or from a peer whose interfaces were not read.
    """
    there = network.interfaces_with(flow.destination_address)
    if len(there) != 1 or network.interfaces_with(flow.source_address) or ip_address(flow.source_address).is_global:
        return None
    home, _ = network.subnet_of(there[0])
    return None if within(prefixes_around(home), flow.source_address) else gateway_of(network, home)


def may_teach(network: Network, home: VirtualNetwork, address: str) -> bool:
    """Return whether the gateway that serves a network may teach it a route to an address. Raises `Unread`.

    To an address of a known virtual network, none does but by a connection that may lead there.
    """
    gateway = gateway_of(network, home)
    if gateway is None or not any(each.holds(address) for each in network.all(VirtualNetwork).values()):
        return True
    return any(_leads(network, each, address) for each in network.one(GatewayConnections, gateway.id).connections)


def unused_gateway(network: Network, home: VirtualNetwork, address: str) -> Peering | None:
    """Return the peering to a network whose gateway knows the site of `address`, where `home` does not use it.

    Raises `Unread`.
    """
    for peering in home.peerings:
        if peering.is_connected and not peering.use_remote_gateways:
            for gateway_id in gateways_in(network.one(VirtualNetwork, peering.remote)):
                known = network.one(GatewayConnections, gateway_id)
                if any(
                    connection.site and _holds(network, connection.site, address) for connection in known.connections
                ):
                    return peering
    return None


def _leads(network: Network, connection: Connection, address: str) -> bool:
    """Return whether a connection leads, or by BGP may lead, to an address."""
    if connection.site is None or connection.uses_bgp:
        return True
    return _holds(network, connection.site, address)


def _holds(network: Network, site_id: str, address: str) -> bool:
    return within(network.one(Site, site_id).prefixes, address)


def _uses(peering: Peering) -> bool:
    return peering.is_connected and peering.use_remote_gateways
