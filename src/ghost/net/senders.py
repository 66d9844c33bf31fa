"""Who sends a packet: an interface of ours, a gateway, or somebody outside."""

from __future__ import annotations

from ghost.net.address_matching import parse_address
from ghost.net.balancing import interface_at
from ghost.net.gateways import gateway_in
from ghost.net.hops import Hop
from ghost.net.network import Missing, Network, Unread
from ghost.net.resources import Interface, VirtualNetwork, key
from ghost.net.security import Flow


def sender(network: Network, flow: Flow, source: str | None) -> Interface | Hop:
    """Return the interface that sends, or why it is not known."""
    found = [i for i in network.interfaces_with(flow.source_address) if source is None or key(i.id) == key(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(interface.name for interface in found))
        return Hop(
            "interface", "", "unknown", f"{flow.source_address} is the address of {names}: name the one that sends"
        )
    missing = Missing(Interface)
    if Interface in network.complete:
        try:
            interface_at(network, flow.source_address, network.all(VirtualNetwork).values())
            gateway = gateway_in(network, flow)
        except Unread as unread:
            return Hop("interface", "", "unknown", unread.reason, missing=unread.missing)
        if gateway is not None:
            return gateway.interface
        return Hop("interface", "", "unknown", f"no interface has {flow.source_address}: it is not in what was read")
    reason = network.failed.get(missing) or f"no interface that was read has {flow.source_address}"
    return Hop("interface", "", "unknown", reason, missing=None if missing in network.failed else missing)


def comes_from_outside(network: Network, address: str) -> bool:
    """Return whether an address is the internet's: networks may use public ones of their own."""
    return is_public(address) and Interface in network.complete and not network.interfaces_with(address)


def no_packet(flow: Flow) -> str | None:
    """Return why no packet of a virtual network has these addresses, if so."""
    addresses = [parse_address(text) for text in (flow.source_address, flow.destination_address)]
    if addresses[0].version != addresses[1].version:
        return f"no packet has both {flow.source_address} and {flow.destination_address}: one is IPv4, one IPv6"
    several = next((each for each in addresses if each.is_multicast or each.is_reserved or each.is_unspecified), None)
    return (
        f"{several} is not the address of one machine: virtual networks carry no multicast or broadcast"
        if several
        else None
    )


def is_public(address: str) -> bool:
    return parse_address(address).is_global
