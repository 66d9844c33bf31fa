"""Changes to a network, as data: what would mend a hop, or what somebody proposes. Each gives the changed network.

What Azure computed for an interface is changed with the configuration that it was computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ghost.net.admin_rules import AdminRules
from ghost.net.network import Network
from ghost.net.resources import (
    EffectiveGroups,
    EffectiveRoutes,
    Interface,
    Machine,
    Peering,
    RouteTable,
    RuleSet,
    VirtualNetwork,
    key,
    name_of,
)
from ghost.net.routes import Route
from ghost.net.security import SecurityRule


@dataclass(frozen=True)
class RemoveRule:
    group: str
    rule: str

    def __str__(self) -> str:
        return f"without rule {self.rule} of {name_of(self.group)}"

    def applied(self, network: Network) -> Network:
        return _with_rules(network, self.group, lambda rules: _unnamed(rules, self.rule))


@dataclass(frozen=True)
class AddRule:
    group: str
    rule: SecurityRule

    def __str__(self) -> str:
        return f"with a rule in {name_of(self.group)}: {self.rule}"

    def applied(self, network: Network) -> Network:
        """A rule of that name is replaced, as by Azure."""
        return _with_rules(network, self.group, lambda rules: [*_unnamed(rules, self.rule.name), self.rule])


@dataclass(frozen=True)
class RemoveAdminRule:
    rule: str

    def __str__(self) -> str:
        manager = name_of(key(self.rule).partition("/securityadminconfigurations/")[0])
        return f"without the security admin rule {name_of(self.rule)} of {manager}"

    def applied(self, network: Network) -> Network:
        kept = [
            replace(deployed, rules=tuple(rule for rule in deployed.rules if key(rule.id) != key(self.rule)))
            for deployed in network.all(AdminRules).values()
        ]
        return network.with_resources(AdminRules, kept)


@dataclass(frozen=True)
class AddRoute:
    table: str
    route: Route

    def __str__(self) -> str:
        return f"with a route in {name_of(self.table)}: {self.route}"

    def applied(self, network: Network) -> Network:
        """A user-defined route for that prefix is replaced; one for 0.0.0.0/0 also ends the drop of private space."""
        return _with_routes(network, self.table, lambda routes: [*filter(self._is_kept, routes), self.route])

    def _is_kept(self, other: Route) -> bool:
        if other.source.casefold() == "user":
            return other.prefix != self.route.prefix
        return self.route.prefix != "0.0.0.0/0" or other.next_hop_type.casefold() != "none"


@dataclass(frozen=True)
class RemoveRoute:
    """Of a user-defined route; the system route that it replaced takes its place."""

    table: str
    route: str

    def __str__(self) -> str:
        return f"without route {self.route} of {name_of(self.table)}"

    def applied(self, network: Network) -> Network:
        removed = [route for route in network.one(RouteTable, self.table).routes if route.name == self.route]
        return _with_routes(network, self.table, lambda routes: _without(routes, removed))


@dataclass(frozen=True)
class ConnectPeering:
    """On both sides."""

    networks: tuple[str, str]

    def __str__(self) -> str:
        return f"with {name_of(self.networks[0])} and {name_of(self.networks[1])} connected"

    def applied(self, network: Network) -> Network:
        """A side that was deleted is created with the settings of the other one."""
        for owner, remote in (self.networks, self.networks[::-1]):
            network = _with_side(network, owner, remote)
            network = _with_peering(network, owner, remote, lambda p: replace(p, state="Connected"))
        return network.without(EffectiveRoutes).without(EffectiveGroups)


@dataclass(frozen=True)
class AllowAccess:
    """On both sides."""

    networks: tuple[str, str]

    def __str__(self) -> str:
        return f"with {name_of(self.networks[0])} and {name_of(self.networks[1])} given access to each other"

    def applied(self, network: Network) -> Network:
        for owner, remote in (self.networks, self.networks[::-1]):
            network = _with_peering(network, owner, remote, lambda p: replace(p, allow_access=True))
        return network.without(EffectiveGroups)


@dataclass(frozen=True)
class SyncPeering:
    """The peering takes over the address space that the remote network has now."""

    owner: str
    remote: str

    def __str__(self) -> str:
        return f"with the peering of {name_of(self.owner)} to {name_of(self.remote)} synced"

    def applied(self, network: Network) -> Network:
        synced = _with_peering(
            network, self.owner, self.remote, lambda p: replace(p, remote_prefixes=p.current_prefixes)
        )
        return synced.without(EffectiveRoutes).without(EffectiveGroups)


@dataclass(frozen=True)
class AllowForwarded:
    owner: str
    remote: str

    def __str__(self) -> str:
        return f"with forwarded traffic of {name_of(self.remote)} let into {name_of(self.owner)}"

    def applied(self, network: Network) -> Network:
        return _with_peering(network, self.owner, self.remote, lambda p: replace(p, allow_forwarded=True))


@dataclass(frozen=True)
class UseRemoteGateway:
    """On both sides: the owner uses the gateway, the remote network lets it."""

    owner: str
    remote: str

    def __str__(self) -> str:
        return f"with {name_of(self.owner)} using the gateway of {name_of(self.remote)}"

    def applied(self, network: Network) -> Network:
        network = _with_peering(network, self.owner, self.remote, lambda p: replace(p, use_remote_gateways=True))
        network = _with_peering(network, self.remote, self.owner, lambda p: replace(p, allow_gateway_transit=True))
        return network.without(EffectiveRoutes).without(EffectiveGroups)


@dataclass(frozen=True)
class EnableForwarding:
    interface: str

    def __str__(self) -> str:
        return f"with IP forwarding on at {name_of(self.interface)}"

    def applied(self, network: Network) -> Network:
        interface = replace(network.one(Interface, self.interface), ip_forwarding=True)
        return network.with_resources(Interface, [interface])


@dataclass(frozen=True)
class StartMachine:
    machine: str

    def __str__(self) -> str:
        return f"with {name_of(self.machine)} running"

    def applied(self, network: Network) -> Network:
        return network.with_resources(Machine, [replace(network.one(Machine, self.machine), power="running")])


def _with_rules(
    network: Network, group_id: str, change: Callable[[Iterable[SecurityRule]], list[SecurityRule]]
) -> Network:
    effective = [
        replace(
            computed,
            groups=tuple(
                replace(group, rules=tuple(change(group.rules))) if key(group.name) == key(group_id) else group
                for group in computed.groups
            ),
        )
        for computed in network.all(EffectiveGroups).values()
    ]
    known = network.get(RuleSet, group_id)
    if known is not None:
        network = network.with_resources(RuleSet, [replace(known, rules=tuple(change(known.rules)))])
    return network.with_resources(EffectiveGroups, effective)


def _unnamed(rules: Iterable[SecurityRule], name: str) -> list[SecurityRule]:
    return [rule for rule in rules if rule.name != name]


def _with_routes(network: Network, table_id: str, change: Callable[[Iterable[Route]], Iterable[Route]]) -> Network:
    """Change a table, and what Azure computed for the interfaces that it leads."""
    table = network.one(RouteTable, table_id)
    effective = [
        replace(computed, routes=tuple(change(computed.routes)))
        for computed in network.all(EffectiveRoutes).values()
        if key(network.subnet_of(network.one(Interface, computed.id))[1].route_table or "") == key(table.id)
    ]
    changed = network.with_resources(RouteTable, [replace(table, routes=tuple(change(table.routes)))])
    return changed.with_resources(EffectiveRoutes, effective)


def _without(routes: Iterable[Route], removed: list[Route]) -> Iterable[Route]:
    names, prefixes = {route.name for route in removed}, {route.prefix for route in removed}
    for route in routes:
        if route.source.casefold() == "user" and route.name in names and route.prefix in prefixes:
            continue
        yield replace(route, state="Active") if route.prefix in prefixes else route


def _with_side(network: Network, owner: str, remote: str) -> Network:
    """Return the network with a peering of the owner's: one that is missing mirrors the other side."""
    home, away = network.one(VirtualNetwork, owner), network.one(VirtualNetwork, remote)
    far = next((peering for peering in away.peerings if key(peering.remote) == key(owner)), None)
    if far is None or any(key(peering.remote) == key(remote) for peering in home.peerings):
        return network
    made = replace(
        far,
        name=f"to-{name_of(remote)}",
        remote=remote,
        remote_prefixes=away.prefixes,
        current_prefixes=away.prefixes,
        allow_gateway_transit=far.use_remote_gateways,
        use_remote_gateways=False,
    )
    return network.with_resources(VirtualNetwork, [replace(home, peerings=(*home.peerings, made))])


def _with_peering(network: Network, owner: str, remote: str, change: Callable[[Peering], Peering]) -> Network:
    home = network.one(VirtualNetwork, owner)
    peerings = tuple(change(p) if key(p.remote) == key(remote) else p for p in home.peerings)
    return network.with_resources(VirtualNetwork, [replace(home, peerings=peerings)])
