"""Public addresses: what a packet from the internet meets at one, and as whom a packet leaves for the internet.

A subnet's NAT gateway is first, then the interface's own public address, the load balancers whose pools it is in, and
last the default outbound access that Azure gives where nothing else was configured.

https://learn.microsoft.com/azure/nat-gateway/nat-overview
https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access
https://learn.microsoft.com/azure/load-balancer/outbound-rules
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Final

from ghost.net.balancing.changes import AddGroup, AddNatGateway, AttachPublicAddress
from ghost.net.balancing.front_ends import configuration_of, pools_with, public_front_end
from ghost.net.balancing.resources import LoadBalancer, NatGateway, OutboundRule, Pool, PublicAddress, PublicPrefix
from ghost.net.balancing.rotation import Balanced, Target, balance
from ghost.net.effective import groups_of
from ghost.net.firewall import AzureFirewall
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, IpConfiguration, Machine, Subnet, VirtualNetwork, key, name_of, owner_in
from ghost.net.security import Flow

DEFAULT_PORTS: Final = ((50, 1024), (100, 512), (200, 256), (400, 128), (800, 64), (1000, 32))
"""SNAT ports of each member without an allocation, by the size of the pool."""


@dataclass(frozen=True)
class Translated:
    """As whom a packet leaves for the internet."""

    hop: Hop
    addresses: tuple[str, ...] | None = None
    """None: not known."""


def public_entrance(network: Network, flow: Flow, sender: Interface | None = None) -> Balanced | None:
    """Return what a public address does with a packet that is for it; None if no address that was read is this.

    Raises `Unread`.
    """
    found = _by_address(network).get(flow.destination_address)
    if found is None:
        return None
    hop = Hop("public_address", found.id, "unknown", "", references=(found.reference,))
    what = f"{found.address} is {found.name}"
    if found.nat_gateway is not None:
        reason = f"{what}, of the NAT gateway {name_of(found.nat_gateway)}, which accepts only answers"
        return Balanced((replace(hop, verdict="drop", reason=reason, fault="nat_inbound"),))
    if found.attached_to is None:
        reason = f"{what}, which is attached to nothing"
        return Balanced((replace(hop, verdict="drop", reason=reason, fault="public_address_unattached"),))
    owner = key(found.attached_to)
    if "/loadbalancers/" in owner:
        entrance = public_front_end(network, found.attached_to)
        if entrance is not None:
            return balance(network, entrance, flow, sender)
    elif "/networkinterfaces/" in owner and (place := configuration_of(network, found.attached_to)) is not None:
        interface, configuration = place
        arriving = replace(flow, destination_address=configuration.address)
        reason = f"{what}, of {interface.name}: to {configuration.address}"
        return Balanced(
            (replace(hop, verdict="rewrite", reason=reason),),
            (Target(interface, arriving, needs_group=found.is_standard),),
        )
    elif firewall_id := owner_in(found.attached_to, "azureFirewalls"):
        firewall = network.one(AzureFirewall, firewall_id)
        reason = f"{what}, of the firewall {firewall.name}"
        return Balanced((replace(hop, verdict="pass", reason=reason),), (Target(firewall.interface, flow),))
    reason = f"{what}, of {name_of(found.attached_to)}: how that treats a packet is not known"
    return Balanced((replace(hop, reason=reason),))


def closed_by_default(network: Network, target: Target) -> Hop | None:
    """Return the drop of a packet from the internet that no security group allows, where one must."""
    if not target.needs_group:
        return None
    try:
        effective = groups_of(network, target.interface)
    except Unread:
        return None
    if effective.groups:
        return None
    reason = f"{target.interface.name} has no security group: Standard addresses are closed until one allows the flow"
    mends = (AddGroup(target.interface.id, target.flow),)
    return Hop("public_address", target.interface.id, "drop", reason, fault="public_without_group",
               references=effective.references, flow=target.flow, mends=mends)  # fmt: skip


def translated(network: Network, here: Interface, flow: Flow) -> Translated:
    """Return the hop of a packet that leaves for the internet from an interface, and its public addresses."""
    home, subnet = network.subnet_of(here)
    hop = Hop("nat", here.id, "rewrite", "", references=(here.reference, home.reference))
    try:
        return _translated(network, here, home, subnet, flow, hop)
    except Unread as unread:
        return Translated(replace(hop, verdict="unknown", reason=unread.reason, missing=unread.missing))


def _translated(
    network: Network, here: Interface, home: VirtualNetwork, subnet: Subnet, flow: Flow, hop: Hop
) -> Translated:
    if ip_address(flow.destination_address).version == 6:
        return Translated(
            replace(
                hop, verdict="unknown", reason="the source address with which an IPv6 packet leaves is not modelled"
            )
        )
    if not here.configurations:
        return Translated(
            replace(
                hop, verdict="unknown", reason=f"the source address with which {here.name} forwards it is not known"
            )
        )
    own = next((c for c in here.configurations if c.address == flow.source_address), here.configurations[0])
    gateway = subnet.nat_gateway or home.nat_gateway
    if gateway is not None:
        return _by_nat_gateway(network, network.one(NatGateway, gateway), own, flow, hop)
    if (firewall := network.get(AzureFirewall, here.id)) is not None:
        addresses = [_address_of(network, each) for each in firewall.public_addresses]
        return _leaving(hop, f"the Azure Firewall {firewall.name}", addresses)
    if own.public_address is not None:
        address = _address_of(network, own.public_address)
        return _leaving(hop, f"the public address {name_of(own.public_address)}", [address])
    return _by_balancer(network, here, own, flow, hop) or _by_default(network, here, subnet, hop)


def _by_nat_gateway(network: Network, gateway: NatGateway, own: IpConfiguration, flow: Flow, hop: Hop) -> Translated:
    hop = replace(hop, resource=gateway.id, rule=gateway.name, references=(*hop.references, gateway.reference))
    if not gateway.public_addresses and not gateway.public_prefixes:
        reason = f"the NAT gateway {gateway.name} has no public address"
        mends = (AttachPublicAddress(gateway.id),)
        return Translated(replace(hop, verdict="drop", reason=reason, fault="nat_without_address", mends=mends))
    if not flow.has_ports:
        reason = f"the NAT gateway {gateway.name} translates TCP and UDP only"
        if own.public_address is not None:
            reason += f"; whether {name_of(own.public_address)} is used instead is not known"
            return Translated(replace(hop, verdict="unknown", reason=reason))
        return Translated(replace(hop, verdict="drop", reason=reason, fault="nat_protocol"))
    addresses = [_address_of(network, each) for each in gateway.public_addresses]
    addresses += [each for prefix in gateway.public_prefixes for each in _addresses_in(network, prefix)]
    return _leaving(hop, f"the NAT gateway {gateway.name}", addresses)


def _by_balancer(network: Network, here: Interface, own: IpConfiguration, flow: Flow, hop: Hop) -> Translated | None:
    """Return what the balancers whose pools the interface is in do; None if they leave it to default outbound access.

    A pool by addresses, and an internal one of the Basic SKU, changes nothing.
    """
    pools = [(balancer, pool) for balancer, pool in pools_with(network, own) if not pool.by_address]
    ruled = [(balancer, pool) for balancer, pool in pools if any(_uses(balancer, pool))]
    if not pools and own.nat_rules:
        reason = (
            f"{here.name} is behind inbound NAT rules only: whether that ends its default outbound access is not known"
        )
        return Translated(replace(hop, verdict="unknown", reason=reason))
    if not pools:
        return None
    if own is not here.configurations[0]:
        reason = f"{own.address} is a secondary address, for which load balancers provide no outbound access"
        return Translated(replace(hop, verdict="unknown", reason=reason))
    protocols = ("all", flow.protocol.casefold()) if flow.has_ports else ()
    for balancer, pool in ruled:
        for outbound in balancer.outbound_rules:
            if key(outbound.pool) == key(pool.id) and outbound.protocol.casefold() in protocols:
                return _by_front_ends(
                    network, hop, balancer, outbound.name, outbound.front_ends, _ports(outbound, pool)
                )
    for balancer, pool in ruled:
        rules = [r for r in balancer.rules if r.outbound_snat and key(pool.id) in map(key, r.pools)]
        front_ends = [
            rule.front_end
            for rule in sorted(rules, key=lambda rule: rule.name)
            if rule.protocol.casefold() in protocols
            and (front := balancer.front_end_ids.get(key(rule.front_end))) is not None
            and front.is_public
        ]
        if front_ends:
            return _by_front_ends(network, hop, balancer, rules[0].name, front_ends, _ports(None, pool))
    standard = [balancer for balancer, _ in pools if balancer.is_standard]
    if not standard:
        return None
    names = ", ".join(sorted({balancer.name for balancer in standard}))
    if not any(balancer.is_standard for balancer, _ in ruled):
        reason = (
            f"{here.name} is in a pool of {names} that no rule uses: whether that ends its outbound access is not known"
        )
        return Translated(replace(hop, verdict="unknown", reason=reason))
    reason = (
        f"{here.name} is in a pool of {names}, none of whose rules translates {flow.protocol.upper()} to the internet"
    )
    return _nowhere(hop, here, reason)


def _uses(balancer: LoadBalancer, pool: Pool) -> Iterable[bool]:
    yield from (key(pool.id) in map(key, rule.pools) for rule in balancer.rules)
    yield from (key(pool.id) == key(rule.pool) for rule in balancer.outbound_rules)
    yield from (key(pool.id) == key(rule.pool or "") for rule in balancer.nat_rules)


def _ports(outbound: OutboundRule | None, pool: Pool) -> int:
    size = len(pool.members)
    default = next((ports for most, ports in DEFAULT_PORTS if size <= most), DEFAULT_PORTS[-1][1])
    return (outbound.allocated_ports if outbound else 0) or default


def _by_front_ends(
    network: Network, hop: Hop, balancer: LoadBalancer, rule: str, front_ends: Iterable[str], ports: int
) -> Translated:
    addresses: list[str | None] = []
    for front_end in (balancer.front_end_ids.get(key(each)) for each in dict.fromkeys(front_ends)):
        if front_end is not None and front_end.public_address is not None:
            addresses.append(_address_of(network, front_end.public_address))
        if front_end is not None and front_end.public_prefix is not None:
            addresses += _addresses_in(network, front_end.public_prefix)
    hop = replace(hop, resource=balancer.id, rule=rule, references=(*hop.references, balancer.reference))
    return _leaving(hop, f"{rule} of {balancer.name}, with {ports} SNAT ports a member", addresses)


def _by_default(network: Network, here: Interface, subnet: Subnet, hop: Hop) -> Translated:
    if not subnet.default_outbound:
        return _nowhere(hop, here, f"{subnet.name} is a private subnet, without default outbound access")
    machine = network.get(Machine, here.machine)
    if machine is not None and machine.scale_set is not None:
        reason = (
            f"{machine.name} is of the flexible scale set {name_of(machine.scale_set)}, without default outbound access"
        )
        return _nowhere(hop, here, reason)
    for other in network.all(Interface).values() if here.machine else ():
        if (
            other.id != here.id
            and key(other.machine or "") == key(here.machine or "")
            and _has_standard(network, other)
        ):
            return _nowhere(
                hop, here, f"{other.name} of the same machine has a public address, which ends default outbound access"
            )
    reason = "leaves with default outbound access, through an address of Microsoft that may change"
    return Translated(replace(hop, reason=reason, rule="default outbound access"))


def _has_standard(network: Network, interface: Interface) -> bool:
    named = (c.public_address for c in interface.configurations if c.public_address is not None)
    return any(network.one(PublicAddress, each).is_standard for each in named)


def _nowhere(hop: Hop, here: Interface, reason: str) -> Translated:
    what = f"{reason}: no NAT gateway, public address or outbound rule gives it access to the internet"
    return Translated(
        replace(hop, verdict="drop", reason=what, fault="no_outbound_access", mends=(AddNatGateway(here.subnet),))
    )


def _leaving(hop: Hop, how: str, addresses: Iterable[str | None]) -> Translated:
    found = list(addresses)
    known = tuple(each for each in found if each is not None)
    if len(known) < len(found) or not known:
        return Translated(replace(hop, reason=f"leaves through {how}, whose address is not known"))
    shown = ", ".join(known[:2]) + (f" or {len(known) - 2} others" if len(known) > 2 else "")
    return Translated(replace(hop, reason=f"leaves as {shown}, through {how}"), known)


def _address_of(network: Network, public_address: str) -> str | None:
    network.whole(PublicAddress)
    return network.one(PublicAddress, public_address).address


def _addresses_in(network: Network, prefix: str) -> list[str]:
    return [str(each) for each in ip_network(network.one(PublicPrefix, prefix).prefix)]


def _by_address(network: Network) -> dict[str, PublicAddress]:
    addresses = network.whole(PublicAddress)
    place = ("public addresses", "by address")
    if place not in network.derived:
        network.derived[place] = {each.address: each for each in addresses.values() if each.address is not None}
    found: dict[str, PublicAddress] = network.derived[place]
    return found
