"""A network as data: what Azure was read to hold.

What was not read is unknown, not absent: a look-up returns the resource, None where a whole list was read without it,
or raises `Unread`, which says what to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ghost.net.resources import (
    Interface,
    Resource,
    Subnet,
    SubscriptionInterfaces,
    VirtualNetwork,
    key,
    name_of,
    subscription_of,
)

if TYPE_CHECKING:
    from ghost.net.services import PublicService

Known = TypeVar("Known", bound=Resource)


@dataclass(frozen=True)
class Missing:
    """What must be read to go on: one resource by its id, or the whole list of its type."""

    of: type[Resource]
    resource: str = ""
    others: tuple[str, ...] = ()
    """Ids of more resources of the type that the same command reads."""

    def __str__(self) -> str:
        names = ", ".join(map(name_of, (self.resource, *self.others)))
        return f"{self.of.kind}{'s' if self.others else ''} {names}" if self.resource else f"every {self.of.kind}"


class Unread(Exception):  # noqa: N818 - an answer, not a failure: the walk turns it into an unknown hop
    def __init__(self, missing: Missing | None, reason: str) -> None:
        super().__init__(reason)
        self.missing = missing
        self.reason = reason


@dataclass(frozen=True)
class Network:
    """A snapshot. `complete`: the types whose whole list was read, so that what is not in it does not exist."""

    resources: Mapping[type[Resource], Mapping[str, Resource]] = field(default_factory=dict)
    """Of each type by folded id (`key`)."""
    complete: frozenset[type[Resource]] = frozenset()
    failed: Mapping[Missing, str] = field(default_factory=dict)
    """Reads that were tried and told nothing, with the reason: they are not asked for again."""
    toward: PublicService | None = None
    """In a walk to the public endpoint of a service: what every public address stands for."""

    @cached_property
    def derived(self) -> dict[tuple[str, str], Any]:
        """What was derived for interfaces, by kind and id: kept, since a network does not change."""
        return {}

    def all(self, of: type[Known]) -> Mapping[str, Known]:
        """Return what was read of a type, by folded id; `of in complete` tells whether that is all there is."""
        return cast("Mapping[str, Known]", self.resources.get(of, {}))

    def whole(self, of: type[Known]) -> Mapping[str, Known]:
        """Return all there are of a type. Raises `Unread`."""
        if of not in self.complete:
            self.need(Missing(of), f"not every {of.kind} was read")
        return self.all(of)

    def get(self, of: type[Known], resource_id: str | None) -> Known | None:
        """Return the resource if it was read."""
        return self.all(of).get(key(resource_id)) if resource_id else None

    def one(self, of: type[Known], resource_id: str) -> Known:
        """Return the resource that has this id. Raises `Unread`."""
        found = self.get(of, resource_id)
        if found is None:
            what = f"the {of.kind} {name_of(resource_id)}"
            if of not in self.complete or self._is_elsewhere(resource_id):
                self.need(Missing(of, resource_id), f"{what} was not read")
            raise Unread(None, f"{what} does not exist, or this login may not read it")
        return found

    def with_resources(self, of: type[Known], resources: Iterable[Known], *, complete: bool = False) -> Network:
        """Return the network with these resources added or replaced. `complete`: they are all there are of the type."""
        known = {**self.all(of), **{key(resource.id): resource for resource in resources}}
        now_complete = self.complete | {of} if complete else self.complete
        return replace(self, resources={**self.resources, of: known}, complete=now_complete)

    def without(self, of: type[Resource]) -> Network:
        """Return the network as if nothing of a type had been read."""
        others = {each: known for each, known in self.resources.items() if each is not of}
        return replace(self, resources=others, complete=self.complete - {of})

    def need(self, missing: Missing, reason: str) -> None:
        """Raise `Unread`: what to read, or why it could not be read."""
        if missing in self.failed:
            raise Unread(None, f"{reason} ({self.failed[missing]})")
        raise Unread(missing, reason)

    @cached_property
    def _by_address(self) -> dict[str, list[Interface]]:
        found: dict[str, list[Interface]] = {}
        for interface in self.all(Interface).values():
            for configuration in interface.configurations:
                found.setdefault(configuration.address, []).append(interface)
        return found

    def interfaces_with(self, address: str) -> list[Interface]:
        """Return the interfaces that have `address`, in any network: address spaces may overlap."""
        return self._by_address.get(address, [])

    def interface_at(self, address: str, networks: Iterable[VirtualNetwork]) -> Interface | None:
        """Return the interface that has `address` in one of `networks`. Raises `Unread`."""
        networks = list(networks)
        places = [network.subnet_ids for network in networks]
        there = [each for each in self.interfaces_with(address) if any(key(each.subnet) in ids for ids in places)]
        if len(there) > 1:
            names = ", ".join(sorted(each.name for each in there))
            raise Unread(None, f"{address} is the address of {names}, in networks that overlap")
        if there:
            return there[0]
        if Interface not in self.complete:
            self.need(Missing(Interface), f"no interface that was read has {address}")
        for elsewhere in self._other_subscriptions(networks):
            if elsewhere not in self.all(SubscriptionInterfaces):
                missing = Missing(SubscriptionInterfaces, elsewhere)
                self.need(missing, f"no interface of {address} was read: its network is in another subscription")
        return None

    def _other_subscriptions(self, networks: Iterable[VirtualNetwork]) -> list[str]:
        """Return the ids of the subscriptions of `networks` that the list of all interfaces does not hold."""
        home = next((subscription_of(each.id) for each in self.all(Interface).values()), None)
        others = dict.fromkeys(key(subscription_of(network.id)) for network in networks)
        return [f"/subscriptions/{each}" for each in others if each and home and each != key(home)]

    def _is_elsewhere(self, resource_id: str) -> bool:
        """Return whether a resource is of another subscription than that of the lists that were read."""
        home = next((subscription_of(each.id) for each in self.all(Interface).values()), "")
        return bool(home) and key(subscription_of(resource_id)) not in ("", key(home))

    def subnet_of(self, interface: Interface) -> tuple[VirtualNetwork, Subnet]:
        """Return the interface's network and subnet. Raises `Unread`."""
        home = self.one(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
        subnet = home.subnet_ids.get(key(interface.subnet))
        if subnet is None:
            raise Unread(
                None, f"{home.name} has no subnet {name_of(interface.subnet)}, where {interface.name} should be"
            )
        return home, subnet
