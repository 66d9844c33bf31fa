"""What stands behind a front end's address: the load balancer, the rule that takes a flow, the members of its pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ghost.net.balancing.resources import (
    BalancingRule,
    FrontEnd,
    InboundNatRule,
    LoadBalancer,
    Member,
    Pool,
    ScaleSetInterfaces,
)
from ghost.net.network import Network
from ghost.net.resources import Interface, IpConfiguration, Subnet, VirtualNetwork, key, name_of, owner_in
from ghost.net.security import Flow


@dataclass(frozen=True)
class Entrance:
    """A front end and the load balancer that has it."""

    balancer: LoadBalancer
    front_end: FrontEnd


@dataclass(frozen=True)
class Backend:
    """A member as an interface, with the address that it is a member with."""

    interface: Interface
    address: str
    admin_state: str = "none"

    @property
    def name(self) -> str:
        return name_of(self.interface.machine or self.interface.id)


def front_end_at(network: Network, address: str, networks: Iterable[VirtualNetwork]) -> Entrance | None:
    """Return the internal front end that has `address` in one of `networks`. Raises `Unread`."""
    subnets = {key(each.id): each for home in networks for each in home.subnets if each.holds(address)}
    for balancer_id in _occupants(subnets.values(), "loadBalancers"):
        network.one(LoadBalancer, balancer_id)
    place = ("front ends", "by address")
    if place not in network.derived:
        by_address: dict[str, list[Entrance]] = {}
        for balancer in network.all(LoadBalancer).values():
            for front_end in balancer.front_ends:
                if front_end.address is not None:
                    by_address.setdefault(front_end.address, []).append(Entrance(balancer, front_end))
        network.derived[place] = by_address
    found: list[Entrance] = network.derived[place].get(address, [])
    return next((each for each in found if key(each.front_end.subnet or "") in subnets), None)


def public_front_end(network: Network, front_end: str) -> Entrance | None:
    """Return the front end that has this id. Raises `Unread`."""
    balancer = network.one(LoadBalancer, owner_in(front_end, "loadBalancers") or front_end)
    found = balancer.front_end_ids.get(key(front_end))
    return Entrance(balancer, found) if found is not None else None


def rule_for(entrance: Entrance, flow: Flow) -> BalancingRule | InboundNatRule | None:
    """Return the rule of the front end that takes the flow: one for its port before one for all ports."""
    rules: tuple[BalancingRule | InboundNatRule, ...] = (*entrance.balancer.nat_rules, *entrance.balancer.rules)
    here = [
        rule
        for rule in rules
        if key(rule.front_end) == key(entrance.front_end.id) and rule.takes(flow.protocol, flow.destination_port or 0)
    ]
    return min(here, key=lambda rule: (_width(rule), rule.name), default=None)


def _width(rule: BalancingRule | InboundNatRule) -> int:
    if isinstance(rule, BalancingRule):
        return 65_536 if rule.port == 0 else 1
    return rule.ports[1] - rule.ports[0] + (1 if rule.configuration else 2)


def members_of(balancer: LoadBalancer, rule: BalancingRule | InboundNatRule) -> tuple[Member, ...]:
    if isinstance(rule, InboundNatRule) and rule.configuration is not None:
        return (Member(rule.configuration),)
    named = rule.pools if isinstance(rule, BalancingRule) else (rule.pool,) if rule.pool else ()
    pools = (balancer.pool_ids.get(key(pool)) for pool in named)
    return tuple(member for pool in pools if pool is not None for member in pool.members)


def backends_of(network: Network, members: Iterable[Member]) -> tuple[list[Backend], list[Member]]:
    """Return the members that were found, in an order of their own, and those that were not. Raises `Unread`."""
    found, unfound = {}, []
    for member in members:
        backend = _backend(network, member)
        if backend is None:
            unfound.append(member)
        else:
            found[key(backend.interface.id), backend.address] = backend
    return [found[place] for place in sorted(found)], unfound


def _backend(network: Network, member: Member) -> Backend | None:
    if member.configuration is not None:
        found = configuration_of(network, member.configuration)
        return Backend(found[0], found[1].address, member.admin_state) if found is not None else None
    home = [network.one(VirtualNetwork, member.network)] if member.network else []
    interface = interface_at(network, member.address or "", home)
    return Backend(interface, member.address or "", member.admin_state) if interface is not None else None


def configuration_of(network: Network, configuration: str) -> tuple[Interface, IpConfiguration] | None:
    """Return the interface of an IP configuration, and the configuration. Raises `Unread`."""
    interface_id = owner_in(configuration, "networkInterfaces") or configuration
    if network.get(Interface, interface_id) is None:
        scale_set = owner_in(interface_id, "virtualMachineScaleSets")
        if scale_set is not None:
            network.one(ScaleSetInterfaces, scale_set)
        else:
            network.whole(Interface)
    interface = network.get(Interface, interface_id)
    if interface is None:
        return None
    named = (c for c in interface.configurations if c.name.casefold() == name_of(configuration).casefold())
    return interface, next(named, interface.configurations[0])


def interface_at(network: Network, address: str, networks: Iterable[VirtualNetwork]) -> Interface | None:
    """Return the interface that has `address` in one of `networks`: also of a scale set's instance. Raises `Unread`."""
    networks = list(networks)
    found = network.interface_at(address, networks)
    if found is not None:
        return found
    subnets = (subnet for each in networks for subnet in each.subnets if subnet.holds(address))
    for scale_set in _occupants(subnets, "virtualMachineScaleSets"):
        network.one(ScaleSetInterfaces, scale_set)
    return network.interface_at(address, networks)


def _occupants(subnets: Iterable[Subnet], kind: str) -> list[str]:
    """Return the ids of the resources of a kind that have addresses in the subnets."""
    owners = (owner_in(each, kind) for subnet in subnets for each in subnet.occupants)
    return list({key(owner): owner for owner in owners if owner is not None}.values())


def pools_with(network: Network, configuration: IpConfiguration) -> list[tuple[LoadBalancer, Pool]]:
    """Return the pools that an IP configuration is a member of. Raises `Unread`."""
    balancers = (
        (network.one(LoadBalancer, owner_in(pool, "loadBalancers") or pool), pool) for pool in configuration.pools
    )
    found = ((balancer, balancer.pool_ids.get(key(pool))) for balancer, pool in balancers)
    return [(balancer, pool) for balancer, pool in found if pool is not None]
