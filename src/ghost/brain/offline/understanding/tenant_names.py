"""What has a name in the tenant: machines, groups of them, load balancers, services and their endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_network
from typing import Any, Final

from ghost.brain.offline.azure_reads import resource_id
from ghost.brain.offline.complaint import End
from ghost.brain.offline.understanding.name_matching import Described, NameIndex, spoken, tokens
from ghost.net import Interface, LoadBalancer, Network, PublicAddress, Site, VirtualNetwork, key, name_of, owner_in

SERVICE_HOSTS: Final = {
    "storageaccounts": "{}.blob.core.windows.net",
    "servers": "{}.database.windows.net",
    "redis": "{}.redis.cache.windows.net",
    "vaults": "{}.vault.azure.net",
}
"""By the type in a resource id, folded: the host name that its clients ask for."""
TELLING_TYPES: Final = {
    "loadbalancers": "balancer",
    "publicipaddresses": "public address",
    "localnetworkgateways": "site",
}
"""Whose address must be read, by the type in a resource id."""


@dataclass(frozen=True)
class Named:
    name: str
    ends: tuple[End, ...]
    """All that the name stands for; of what must be read first, without an address."""
    kind: str = "machine"
    """machine, group, interface, service, balancer, public address or site."""
    resource: str = ""
    """Id of what must be read for the address."""


@dataclass(frozen=True)
class TenantNames:
    network: Network = field(default_factory=Network)
    listed: Sequence[Mapping[str, Any]] = ()
    """Further resources, `{id, tags}`, where they were read."""

    @cached_property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """Keys and values of the tags by folded id."""
        return {
            key(str(row["id"])): tuple(str(part) for pair in row["tags"].items() for part in pair if part)
            for row in self.listed
            if isinstance(row.get("id"), str) and isinstance(row.get("tags"), dict)
        }

    @cached_property
    def machines(self) -> dict[str, End]:
        """The machines by folded id, each by its first interface."""
        found: dict[str, End] = {}
        for interface in self.network.all(Interface).values():
            if interface.machine and resource_id(interface.machine) is not None:
                found.setdefault(key(interface.machine), end_of(interface))
        return found

    @cached_property
    def named(self) -> list[Named]:
        known = [Named(end.label, (end,)) for end in self.machines.values()]
        for interface in self.network.all(Interface).values():
            known.append(Named(interface.name, (end_of(interface),), "interface"))
        endpoints = [end_of(each) for each in self.network.all(Interface).values() if not each.machine]
        known += [Named(end.label.partition(".")[0], (end,), "service") for end in endpoints if "." in end.label]
        known += [Named(name, tuple(ends), "group") for name, ends in self._groups.items()]
        known += [
            self._listed(each)
            for each in dict.fromkeys([*self._occupants, *(str(row.get("id")) for row in self.listed)])
        ]
        return [each for each in known if each.name and (each.ends or each.resource)]

    @cached_property
    def by_name(self) -> dict[str, list[Named]]:
        """By folded name; a machine goes before what has the same name."""
        found: dict[str, list[Named]] = defaultdict(list)
        for each in self.named:
            found[each.name.casefold()].append(each)
        return found

    @cached_property
    def described(self) -> list[Named]:
        """What is found by words: machines, services, endpoints and load balancers."""
        ways = [n for n in self.named if n.kind in ("machine", "service", "balancer", "site")]
        ways += [n for n in self.named if n.kind == "interface" and not n.ends[0].machine]
        return list({(each.name.casefold(), each.kind): each for each in ways}.values())

    @cached_property
    def index(self) -> NameIndex:
        return NameIndex([self._description(each) for each in self.described])

    def at(self, address: str) -> End | None:
        """Return whose address it is, if one interface has it."""
        there = self.network.interfaces_with(address)
        return end_of(there[0], address) if len(there) == 1 else None

    def place_of(self, end: End) -> tuple[str, str]:
        """Return the names of network and subnet of an end's interface."""
        interface = self.network.get(Interface, end.interface)
        if interface is None:
            return "", ""
        return name_of(interface.subnet.partition("/subnets/")[0]), name_of(interface.subnet)

    @property
    def sites(self) -> list[str]:
        """Ids of the networks behind gateways, where the list of all resources was read."""
        ids = [str(row.get("id")) for row in self.listed]
        return [each for each in ids if "/localnetworkgateways/" in key(each) and resource_id(each) is not None]

    @cached_property
    def _groups(self) -> dict[str, list[End]]:
        """The machines of each subnet, network, resource group and application security group, by its name."""
        found: dict[str, list[End]] = defaultdict(list)
        for end in self.machines.values():
            interface = self.network.all(Interface)[key(end.interface)]
            groups = [name_of(asg) for each in interface.configurations for asg in each.application_groups]
            owner = resource_id(end.machine)
            for name in dict.fromkeys([*self.place_of(end), owner.group if owner else "", *groups]):
                found[name].append(end)
        return found

    @cached_property
    def _occupants(self) -> list[str]:
        """Ids of the load balancers that have an address in a subnet."""
        places = (each for network in self.network.all(VirtualNetwork).values() for each in network.subnets)
        return [owner for place in places for each in place.occupants if (owner := owner_in(each, "loadBalancers"))]

    def _listed(self, text: str) -> Named:
        resource = resource_id(text)
        if resource is None or len(resource.names) > 1:
            return Named("", ())
        kind = text.split("/")[-2].casefold()
        if kind in SERVICE_HOSTS and ("microsoft.sql" in text.casefold() or kind != "servers"):
            host = SERVICE_HOSTS[kind].format(resource.name.casefold())
            return Named(resource.name, (End(resource.name, host),), "service")
        if kind not in TELLING_TYPES:
            return Named("", ())
        ends = tuple(End(resource.name, address) for address in self._addresses(text))
        return Named(resource.name, ends, TELLING_TYPES[kind], text)

    def _addresses(self, text: str) -> list[str]:
        """Return the addresses of a front end, a public address or a site, where it was read."""
        if (balancer := self.network.get(LoadBalancer, text)) is not None:
            return [each.address for each in balancer.front_ends if each.address]
        if (site := self.network.get(Site, text)) is not None:
            return [first_address(prefix) for prefix in site.prefixes[:1]]
        public = self.network.get(PublicAddress, text)
        return [public.address] if public is not None and public.address else []

    def _description(self, named: Named) -> Described:
        end = named.ends[0] if named.ends else End(named.name, "")
        labels = (named.name, end.label)
        tags = self.tags.get(key(end.machine or named.resource), ())
        owner = resource_id(end.machine)
        around = " ".join([*tags, *self.place_of(end), owner.group if owner else ""])
        strong = frozenset().union(*(tokens(label.partition(".")[0]) for label in labels))
        return Described(named.name, strong, tokens(around), tuple(spoken(text) for text in (*labels, *tags)))


def first_address(prefix: str) -> str:
    """Return the first address of a machine in a prefix."""
    return str(next(iter(ip_network(prefix, strict=False).hosts())))


def end_of(interface: Interface, address: str = "") -> End:
    """Return the end at an interface: the machine, the name that leads to a private endpoint, or the interface."""
    if interface.machine:
        return End(name_of(interface.machine), address or interface.address, interface.machine, interface.id)
    names = [name for each in interface.configurations for name in each.names]
    if names and not address:
        return End(names[0], names[0], "", interface.id)
    return End(names[0] if names else interface.name, address or interface.address, "", interface.id)
