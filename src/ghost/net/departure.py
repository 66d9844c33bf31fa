"""Where a packet leaves the virtual networks, and as whom it then arrives."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from ghost.net.balancing import translated
from ghost.net.hops import Hop
from ghost.net.network import Network
from ghost.net.resources import Interface
from ghost.net.route_hops import Exit
from ghost.net.security import Flow
from ghost.net.services import endpoint_hop

SMTP: Final = 25


@dataclass(frozen=True)
class Origin:
    """As whom a packet arrives at a public endpoint."""

    subnet: str | None = None
    """Id of the subnet, where it comes by a service endpoint: with its private address."""
    addresses: tuple[str, ...] | None = None
    """The public addresses that it may come from; None: not known."""
    left_from: str | None = None
    """Id of the subnet from which it left to the internet; None if it did not come out of one that is known."""


def leave(network: Network, here: Interface, flow: Flow, leaves_by: Exit) -> tuple[list[Hop], Origin | None]:
    """Return the hops of a way out, and as whom the packet leaves; None if it does not."""
    if leaves_by == "internet" and ip_address(flow.destination_address).is_global:
        out = translated(network, here, flow)
        hops = [out.hop, *_mail(here, flow)]
        return hops, None if out.hop.stops else Origin(addresses=out.addresses, left_from=here.subnet)
    if network.toward is not None and leaves_by == "service":
        return [endpoint_hop(network, here)], Origin(subnet=here.subnet)
    beyond = "a service endpoint" if leaves_by == "service" else f"the {leaves_by}"
    reason = f"{flow.destination_address} is beyond {beyond}: Azure does not show what is there"
    hop = Hop(leaves_by, here.id, "unknown", reason)
    return [hop], Origin(
        subnet=here.subnet if leaves_by == "service" else None,
        left_from=here.subnet if leaves_by == "internet" else None,
    )


def _mail(here: Interface, flow: Flow) -> list[Hop]:
    """Return what is not known of mail: for most subscriptions Azure blocks it, for some it does not.

    https://learn.microsoft.com/azure/virtual-network/troubleshoot-outbound-smtp-connectivity
    """
    if flow.protocol.casefold() != "tcp" or flow.destination_port != SMTP:
        return []
    reason = "Azure blocks TCP port 25 to the internet for most subscriptions: it does not show whether for this one"
    return [Hop("internet", here.id, "unknown", reason)]
