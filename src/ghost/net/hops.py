"""The hops of a walk: what decided about a packet, how, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from ghost.net.network import Missing, Network
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Direction, Flow

Leg = Literal["forward", "return"]
HopVerdict = Literal["pass", "drop", "reject", "rewrite", "unknown"]
Outcome = Literal["passes", "blocked", "unknown"]

_AZURE: Final = "https://learn.microsoft.com/azure/virtual-network/"
PAGES: Final = {
    "machine": "https://learn.microsoft.com/azure/virtual-machines/states-billing",
    "admin_rule": "https://learn.microsoft.com/azure/virtual-network-manager/concept-security-admins",
    "security_group": f"{_AZURE}network-security-group-how-it-works",
    "route": f"{_AZURE}virtual-networks-udr-overview#how-azure-selects-a-route",
    "peering": f"{_AZURE}virtual-network-manage-peering",
    "appliance": f"{_AZURE}virtual-networks-udr-overview#user-defined",
    "interface": f"{_AZURE}virtual-network-network-interface",
    "guest": "https://learn.microsoft.com/troubleshoot/azure/virtual-machines/linux/",
    "firewall": "https://learn.microsoft.com/azure/firewall/rule-processing",
    "internet": f"{_AZURE}ip-services/default-outbound-access",
    "gateway": "https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-about-vpngateways",
    "service": f"{_AZURE}virtual-network-service-endpoints-overview",
    "name": f"{_AZURE}virtual-networks-name-resolution-for-vms-and-role-instances",
    "zone": "https://learn.microsoft.com/azure/dns/private-dns-privatednszone",
    "alias": "https://learn.microsoft.com/azure/private-link/private-endpoint-dns",
    "private_endpoint": "https://learn.microsoft.com/azure/private-link/private-endpoint-overview",
    "storage": "https://learn.microsoft.com/azure/storage/common/storage-network-security",
    "sql": "https://learn.microsoft.com/azure/azure-sql/database/network-access-controls-overview",
    "redis": "https://learn.microsoft.com/azure/azure-cache-for-redis/cache-network-isolation",
    "key_vault": "https://learn.microsoft.com/azure/key-vault/general/network-security",
    "platform": f"{_AZURE}what-is-ip-address-168-63-129-16",
    "load_balancer": "https://learn.microsoft.com/azure/load-balancer/components",
    "public_address": f"{_AZURE}ip-services/public-ip-addresses",
    "nat": "https://learn.microsoft.com/azure/nat-gateway/nat-overview#outbound-connectivity",
}


class Mend(Protocol):
    """A change to the network that would let the packet pass."""

    def applied(self, network: Network) -> Network: ...


@dataclass(frozen=True)
class Sight:
    """Where and as what the guest of a machine meets the packet."""

    interface: str
    """The id."""
    flow: Flow
    """Of the packet: an answer's source is who answers."""


@dataclass(frozen=True)
class Hop:
    """One decision on the way of a packet."""

    kind: str
    """A key of `PAGES`."""
    resource: str
    """The id of what decides."""
    verdict: HopVerdict
    reason: str
    """One sentence: what was decided, and why."""
    rule: str | None = None
    """The decisive rule, route or setting."""
    fault: str | None = None
    """The kind of fault, where the verdict is drop or reject."""
    direction: Direction | None = None
    priority: int | None = None
    """Of the decisive security rule."""
    references: tuple[str, ...] = ()
    """Of the reads that the verdict rests on."""
    missing: Missing | None = None
    """What would have to be read, where the verdict is unknown; None if nothing tells."""
    leg: Leg = "forward"
    flow: Flow | None = None
    """The packet as a security group met it, translated, or a probe's; as a guest that translates sends it on."""
    mends: tuple[Mend, ...] = ()
    """What would mend a drop, the smallest first, where the layer that drops knows best."""
    sight: Sight | None = None
    """On hops of machines."""
    doubt: str = ""
    """Of a certain drop: what may lie behind it that could not be read."""

    @property
    def stops(self) -> bool:
        return self.verdict in ("drop", "reject")

    @property
    def is_default_rule(self) -> bool:
        return self.priority is None or self.priority >= FIRST_DEFAULT_PRIORITY

    @property
    def page(self) -> str:
        """The Azure page that says so."""
        return PAGES[self.kind]


@dataclass(frozen=True)
class Walk:
    flow: Flow
    hops: tuple[Hop, ...]
    others: tuple[Walk, ...] = ()
    """The ways by other members of a load balancer's pool, where they are several."""

    @property
    def outcome(self) -> Outcome:
        if self.blocker is not None:
            return "blocked"
        return "unknown" if any(hop.verdict == "unknown" for hop in self.hops) else "passes"

    @property
    def blocker(self) -> Hop | None:
        """The first hop that stops the packet or its answer."""
        return next((hop for hop in self.hops if hop.stops), None)

    @property
    def first_stop(self) -> Hop | None:
        """What stops the packet, or a share of the connections: at some members of a pool."""
        return self.blocker or next((stop for other in self.others if (stop := other.first_stop)), None)

    @property
    def missing(self) -> tuple[Missing, ...]:
        own = (hop.missing for hop in self.hops if hop.missing is not None)
        return tuple(dict.fromkeys((*own, *(missing for other in self.others for missing in other.missing))))
