"""Lines of a described network for gateways.

gateway NAME NETWORK                                    in the network's GatewaySubnet
connection GATEWAY NAME [PREFIXES] [status=S] [bgp=yes]  with the address space of a site; without: a circuit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ghost.net.gateways import Connection, Gateway, GatewayConnections, Site
from ghost.net.network import Network
from ghost.net.resources import VirtualNetwork
from tests.net.small_network import PROVIDER, subnet_id, vnet_id


def add_gateways(network: Network, of: Mapping[str, list[tuple[list[str], dict[str, str]]]]) -> Network:
    for (name, home), _ in of.get("gateway", ()):
        gateway, subnet = f"{PROVIDER}/virtualNetworkGateways/{name}", subnet_id(f"{home}/GatewaySubnet")
        connections = []
        for (owner, called, *prefixes), settings in of.get("connection", ()):
            if owner == name:
                site = f"{PROVIDER}/localNetworkGateways/{called}" if prefixes else None
                connections.append(
                    Connection(called, settings.get("status", "Connected"), site, uses_bgp=settings.get("bgp") == "yes")
                )
                if site:
                    network = network.with_resources(Site, [Site(id=site, prefixes=tuple(prefixes[0].split(",")))])
        known = GatewayConnections(id=gateway, connections=tuple(connections), reference="read-connections")
        network = network.with_resources(Gateway, [Gateway(id=gateway, subnet=subnet, reference="read-gateway")])
        network = network.with_resources(GatewayConnections, [known])
        hub = network.one(VirtualNetwork, vnet_id(home))
        inside = tuple(
            replace(each, occupants=(f"{gateway}/ipConfigurations/one",)) if each.id == subnet else each
            for each in hub.subnets
        )
        network = network.with_resources(VirtualNetwork, [replace(hub, subnets=inside)])
    return network
