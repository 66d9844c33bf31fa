"""What a machine gets for a name: who answers it, by which zone and record, or that public DNS is asked.

What a server of one's own answers, and the addresses of public names, Azure's configuration does not show.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-name-resolution-for-vms-and-role-instances
https://learn.microsoft.com/azure/dns/private-dns-privatednszone
https://learn.microsoft.com/azure/private-link/private-endpoint-dns
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Final

from ghost.net.address_matching import HOST_ADDRESS
from ghost.net.balancing import LoadBalancer
from ghost.net.hops import Hop, HopVerdict, Walk
from ghost.net.names.changes import LinkZone, SetRecord
from ghost.net.names.private_links import canonical, endpoints_of_name, has_subresource, is_named_by_interface
from ghost.net.names.records import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    RecordSet,
    ZoneGroups,
    ZoneLink,
    ZoneLinks,
    ZoneRecords,
    dns_name,
    is_within,
    relative_to,
    without_private_link,
)
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, Resource, Subnet, VirtualNetwork, key, name_of, subscription_of
from ghost.net.security import Flow
from ghost.net.services import StorageAccount, service_named

MAX_ALIASES: Final = 16
MACHINE_NAMES: Final = "internal.cloudapp.net"
NEVER_PUBLIC: Final = ("internal", "local", "home.arpa", "test", "example", "invalid", "localhost")
"""Suffixes that public DNS never holds (RFC 6761, 6762, 8375; ICANN's reservation of `internal`)."""

Walker = Callable[[Network, Flow, str], Walk]
"""Walks to an address, from the interface with this id."""


@dataclass(frozen=True)
class Resolution:
    hops: tuple[Hop, ...]
    addresses: tuple[str, ...] = ()
    public: str | None = None
    """The name that public DNS is asked for: its address is not shown by Azure's configuration."""
    bypassed: Hop | None = None
    """With `public`: the zone of a private endpoint that is not linked; the fault, if the public way is closed."""


def resolve(network: Network, interface: Interface, name: str, walker: Walker) -> Resolution:
    """Return what the machine gets for a name. Raises `ValueError` if it is none."""
    question = _Question(network, interface)
    try:
        place = question.server(walker)
        return question.answered(place, dns_name(name)) if place is not None else question.ended()
    except Unread as unread:
        question.hop("name", interface.id, "unknown", unread.reason, missing=unread.missing)
        return question.ended()


class _Question:
    def __init__(self, network: Network, interface: Interface) -> None:
        self.network, self.interface = network, interface
        self.hops: list[Hop] = []
        self.known: dict[str, list[str]] = {}
        """Ids of the private zones near a network, by its id, the longest name first."""
        self.searched: set[str] = set()
        """Networks for which the zones of private endpoints were looked for."""
        self.unreadable: dict[str, Unread] = {}
        """Networks near which zones may be that could not be read."""

    def hop(self, kind: str, resource: str, verdict: HopVerdict, reason: str, **more: Any) -> None:
        self.hops.append(Hop(kind, resource, verdict, reason, **more))

    def ended(self, addresses: tuple[str, ...] = ()) -> Resolution:
        return Resolution(tuple(self.hops), addresses)

    def server(self, walker: Walker) -> VirtualNetwork | None:
        """Return the network whose zones answer, or None if that is not known or nothing answers."""
        home, subnet = self.network.subnet_of(self.interface)
        servers = self.interface.dns_servers or home.dns_servers or (HOST_ADDRESS,)
        where = self.interface.name if self.interface.dns_servers else home.name
        dead: list[str] = []
        rests: dict[str, None] = {}
        for server in servers:
            asked = walker(
                self.network, Flow("Udp", self.interface.address, None, _address(server), 53), self.interface.id
            )
            off = next((hop for hop in asked.hops if hop.stops and hop.resource == self.interface.machine), None)
            if off is not None and off.kind == "machine":
                self.hops.append(off)
                return None
            own = server != HOST_ADDRESS
            stops = [each for each in asked.hops if each.stops and not (own and _may_bypass(each, subnet))]
            if stops:
                dead.append(f"{server}: {stops[0].reason}")
                rests |= dict.fromkeys((home.reference, *stops[0].references))
                continue
            before = f" after {'; '.join(dead)}" if dead else ""
            references = tuple(dict.fromkeys(reference for each in asked.hops for reference in each.references))
            for each in asked.hops:
                if each.verdict == "unknown":
                    self.hops.append(replace(each, kind="name", leg="forward"))
            if server == HOST_ADDRESS:
                self.hop(
                    "name", home.id, "pass", f"Azure's DNS answers {where}{before}", rule=server, references=references
                )
                return home
            reason = f"what {server}, the DNS server of {where}, answers is not shown by Azure{before}"
            self.hop("name", self.interface.id, "unknown", reason, rule=server, references=references)
            return None
        reason = f"no DNS server of {where} is reached: {'; '.join(dead)}"
        fault = "dns_server_unreachable"
        self.hop("name", self.interface.id, "drop", reason, rule=servers[0], fault=fault, references=tuple(rests))
        return None

    def answered(self, home: VirtualNetwork, name: str) -> Resolution:
        """Return what Azure's DNS answers for a network: private zones linked to it come before public DNS."""
        for _ in range(MAX_ALIASES):
            if is_within(name, MACHINE_NAMES) or "." not in name:
                raise Unread(None, f"{name} is a name that Azure assigns to machines: az does not print these")
            found = self.linked(home, name)
            if found is None:
                private = self.private_link(home, name)
                if private is not None:
                    name = private
                elif not self.zones_elsewhere(home, name):
                    return self.asked_publicly(home, name)
                continue
            zone, link = found
            sets = self.records(zone, link, name)
            alias = next((each.alias for each in sets if each.alias), None)
            if alias is not None:
                reference = self.network.one(ZoneRecords, zone).reference
                reason = f"{name} is an alias of {alias} in {name_of(zone)}"
                self.hop("alias", zone, "pass", reason, rule=sets[0].name, references=(reference,))
                name = alias
            elif any(each.addresses for each in sets):
                return self.addressed(home, zone, name, sets)
            elif not sets and link.falls_back and "privatelink" in name_of(zone).split("."):
                reference = self.network.one(ZoneLinks, zone).reference
                reason = f"{name_of(zone)} has no record {name}: its link falls back to the internet"
                self.hop("zone", zone, "pass", reason, references=(reference,))
                return Resolution(tuple(self.hops), public=name)
            else:
                self.missing_record(zone, name, exists=bool(sets))
                return self.ended()
        raise Unread(None, f"more than {MAX_ALIASES} aliases lead from one name to the next: they may form a loop")

    def subscriptions(self, home: VirtualNetwork) -> list[str]:
        ids = dict.fromkeys(subscription_of(each) for each in (home.id, *(p.remote for p in home.peerings)))
        return [f"/subscriptions/{each}" for each in ids]

    def zones(self, home: VirtualNetwork) -> list[str]:
        """Return the ids of the private zones of the network's subscription and its peers'. Raises `Unread`."""
        if home.id not in self.known:
            found: list[str] = []
            for subscription in self.subscriptions(home):
                try:
                    found += self.network.one(PrivateZones, subscription).zones
                except Unread as unread:
                    if unread.missing is not None:
                        raise
                    self.unreadable[home.id] = unread
            self.known[home.id] = sorted(found, key=lambda zone: (-len(name_of(zone)), key(zone)))
        return self.known[home.id]

    def link(self, zone: str, home: VirtualNetwork) -> ZoneLink | None:
        links = self.network.one(ZoneLinks, zone).links
        return next((link for link in links if key(link.network) == key(home.id)), None)

    def linked(self, home: VirtualNetwork, name: str) -> tuple[str, ZoneLink] | None:
        """Return the zone linked to the network that has the longest suffix of the name. Raises `Unread`."""
        holding = [zone for zone in self.zones(home) if is_within(name, name_of(zone).casefold())]
        found = [(zone, link) for zone in holding if (link := self.link(zone, home)) is not None]
        if len(found) > 1 and name_of(found[0][0]).casefold() == name_of(found[1][0]).casefold():
            raise Unread(None, f"several zones named {name_of(found[0][0])} are linked to {home.name}")
        if not found and home.id in self.unreadable:
            raise self.unreadable[home.id]
        return found[0] if found else None

    def records(self, zone: str, link: ZoneLink, name: str) -> list[RecordSet]:
        if link.state.casefold() != "completed":
            raise Unread(None, f"the link of {name_of(zone)} is {link.state}: it answers once that is Completed")
        sets, doubt = self.network.one(ZoneRecords, zone).find(relative_to(name, name_of(zone)))
        if doubt is not None:
            raise Unread(None, f"whether the wildcard {doubt} of {name_of(zone)} answers for {name} is not known")
        return sets

    def endpoints(self, name: str) -> list[tuple[PrivateEndpoint, tuple[str, ...]]]:
        """Return the private endpoints of a name, without a read where neither zone nor interface speaks of one."""
        concerns = "privatelink" in name.split(".") or is_named_by_interface(self.network, name)
        return endpoints_of_name(self.network, name) if concerns else []

    def addressed(self, home: VirtualNetwork, zone: str, name: str, sets: list[RecordSet]) -> Resolution:
        record = sets[0].name
        addresses = tuple(dict.fromkeys(address for each in sets for address in each.addresses))
        reason = f"{name} is {', '.join(addresses)} by record {record} of {name_of(zone)}"
        read = self.network.one(ZoneRecords, zone)
        told = Hop("zone", zone, "pass", reason, record, references=(read.reference,))
        wanted = [address for _, of in self.endpoints(name) for address in of]
        wrong = [address for address in addresses if address not in wanted] if wanted else []
        if wrong:
            reason = f"{reason}, not {', '.join(wanted)} of its private endpoint"
            certain = len(wrong) == len(addresses) and all(self.is_no_machine(home, address) for address in wrong)
            told = replace(told, verdict="unknown", reason=reason)
            if certain:
                mends = (SetRecord(zone, record, tuple(wanted)),)
                told = replace(told, verdict="drop", fault="dns_record_stale", mends=mends)
        self.hops.append(told)
        versions = {ip_address(configuration.address).version for configuration in self.interface.configurations}
        usable = tuple(address for address in addresses if ip_address(address).version in versions)
        if not usable:
            raise Unread(None, f"{name} has no address of a family that {self.interface.name} has")
        return self.ended(usable)

    def is_no_machine(self, home: VirtualNetwork, address: str) -> bool:
        """Return whether an address is surely no machine's or load balancer's, which may pass on what they get."""
        if any(interface.machine for interface in self.network.interfaces_with(address)):
            return False
        if any(each.address == address for of in self.network.whole(LoadBalancer).values() for each in of.front_ends):
            return False
        read = {subscription_of(interface) for interface in self.network.all(Interface)}
        peers = (self.network.get(VirtualNetwork, peering.remote) for peering in home.peerings)
        near = [place for place in (home, *peers) if place is not None and place.holds(address)]
        return bool(near) and all(subscription_of(key(place.id)) in read for place in near)

    def missing_record(self, zone: str, name: str, *, exists: bool) -> None:
        record = relative_to(name, name_of(zone))
        wanted = tuple(address for _, of in self.endpoints(name) for address in of)
        mends = (SetRecord(zone, record, wanted),) if wanted and not exists else ()
        held = "no address" if exists else "no record"
        reason = f"{name_of(zone)}, which answers for {name}, holds {held} for that name"
        references = (self.network.one(ZoneRecords, zone).reference,)
        self.hop(
            "zone", zone, "drop", reason, rule=record, fault="dns_record_missing", references=references, mends=mends
        )

    def private_link(self, home: VirtualNetwork, name: str) -> str | None:
        """Return the name to which public DNS sends on one of a service with an approved private endpoint, if a zone
        linked to the network answers that. Raises `Unread`.
        """
        for zone, private in self.private_names(home, name):
            if self.link(zone, home) is not None:
                endpoints = endpoints_of_name(self.network, name)
                approved = next((endpoint for endpoint, _ in endpoints if endpoint.is_approved), None)
                since: Resource | None = approved or self.service_with_endpoint(name, private)
                if since is None:
                    return None
                reason = f"public DNS redirects {name} to {private}, because a private endpoint of it is approved"
                self.hop("alias", since.id, "pass", reason, rule=since.name, references=(since.reference,))
                return private
        return None

    def zones_elsewhere(self, home: VirtualNetwork, name: str) -> bool:
        """Take in the zones that hold the records of a name's approved private endpoints, in whatever subscription.

        Return whether there are any that were not known. Raises `Unread`, also where no zone of them is told.
        """
        if home.id in self.searched or not has_subresource(canonical(name)):
            return False
        self.searched.add(home.id)
        approved = [endpoint for endpoint, _ in endpoints_of_name(self.network, name) if endpoint.is_approved]
        named = [zone for each in approved for zone in self.network.one(ZoneGroups, each.id).zones]
        if approved and not named and not self.private_names(home, name):
            raise Unread(
                None, f"{approved[0].name} is a private endpoint of {name}, but no zone with its record was read"
            )
        seen = {key(zone) for zone in self.zones(home)}
        found = [zone for zone in named if key(zone) not in seen]
        self.known[home.id] = sorted([*self.zones(home), *found], key=lambda zone: (-len(name_of(zone)), key(zone)))
        return bool(found)

    def service_with_endpoint(self, name: str, private: str) -> Resource | None:
        """Return the service of a public name if a private endpoint of it is approved, wherever. Raises `Unread`.

        Those of a storage account do not tell which of its names they are for.
        """
        unclear = f"whether public DNS redirects {name} to {private} is not known"
        try:
            service = service_named(self.network, name)
        except Unread as unread:
            raise Unread(unread.missing, f"{unclear}: {unread.reason}") from None
        if service is None or (service.private_endpoints and isinstance(service, StorageAccount)):
            raise Unread(None, f"{unclear}: no approved private endpoint of this name is in what was read")
        return service if service.private_endpoints else None

    def private_names(self, home: VirtualNetwork, name: str) -> list[tuple[str, str]]:
        """Return the zones of private links for a public name, with its name in each."""
        plain, found = canonical(name), []
        for zone in self.zones(home) if name == without_private_link(name) else ():
            zone_name = name_of(zone).casefold()
            base = without_private_link(zone_name)
            if base != zone_name and is_within(plain, base) and plain != base:
                found.append((zone, plain.removesuffix(base) + zone_name))
        return found

    def asked_publicly(self, home: VirtualNetwork, name: str) -> Resolution:
        """Return that no private zone answers; a zone that would, were it linked, is told."""
        unlinked = [zone for zone in self.zones(home) if is_within(name, name_of(zone).casefold())]
        holding = self.with_endpoint(home, name)
        zone = next(iter([*holding, *unlinked]), None)
        if zone is None:
            return self.publicly(home, name)
        links = self.network.one(ZoneLinks, zone)
        reason = f"{name} is resolved by public DNS: {name_of(zone)}, which holds it, is not linked to {home.name}"
        if holding:
            reason = f"{reason}, so its private endpoint is not found"
        never = zone in unlinked and any(is_within(name, suffix) for suffix in NEVER_PUBLIC)
        if holding or never:
            rulesets = [self.network.one(ForwardingRulesets, each) for each in self.subscriptions(home)]
            if named := [ruleset for each in rulesets for ruleset in each.names]:
                raise Unread(
                    None, f"{reason}; whether the DNS forwarding ruleset {', '.join(named)} answers is not known"
                )
        unlinked_hop = Hop(
            "zone",
            zone,
            "drop",
            reason,
            name_of(home.id),
            "dns_zone_not_linked",
            references=(links.reference,),
            mends=(LinkZone(zone, home.id),),
        )
        if never:
            self.hops.append(unlinked_hop)
            return self.ended()
        self.hops.append(replace(unlinked_hop, verdict="pass", fault=None, mends=()))
        return Resolution(tuple(self.hops), public=name, bypassed=unlinked_hop if holding else None)

    def with_endpoint(self, home: VirtualNetwork, name: str) -> list[str]:
        """Return the zones with the address of an approved private endpoint for a public name."""
        private = self.private_names(home, name)
        endpoints = endpoints_of_name(self.network, name) if private else []
        wanted = {address for endpoint, of in endpoints if endpoint.is_approved for address in of}
        if not wanted:
            return []
        held = (
            (zone, self.network.one(ZoneRecords, zone).find(relative_to(n, name_of(zone)))[0]) for zone, n in private
        )
        return [zone for zone, sets in held if any(wanted.intersection(each.addresses) for each in sets)]

    def publicly(self, home: VirtualNetwork, name: str) -> Resolution:
        reason = (
            f"{name} is resolved by public DNS: no private zone that was read is linked to {home.name} and holds it"
        )
        lists = (self.network.get(PrivateZones, each) for each in self.subscriptions(home))
        self.hop(
            "name", home.id, "pass", reason, references=tuple(each.reference for each in lists if each is not None)
        )
        return Resolution(tuple(self.hops), public=name)


def _may_bypass(hop: Hop, subnet: Subnet) -> bool:
    """Return whether a query to a server of one's own may pass here: Azure's page says that port 53 bypasses the group
    of the subnet then.
    """
    group = subnet.security_group
    return hop.kind == "security_group" and group is not None and key(hop.resource) == key(group)


def _address(server: str) -> str:
    try:
        return str(ip_address(server))
    except ValueError:
        raise Unread(None, f"{server[:80]!r} is not the address of a DNS server") from None
