"""Changes that somebody proposes, as text.

    rule GROUP NAME PRIORITY Inbound|Outbound Allow|Deny PROTOCOL SOURCE DESTINATION PORTS
    no-rule GROUP NAME
    route TABLE NAME PREFIX TYPE [NEXT-HOP]
    no-route TABLE NAME
    peering NETWORK NETWORK
    forwarded NETWORK FROM-NETWORK
    start MACHINE
    balance BALANCER PROTOCOL PORT BACKEND-PORT
    nat-gateway NETWORK SUBNET
    private NETWORK SUBNET
    link ZONE NETWORK
    record ZONE NAME ADDRESSES
    approve ENDPOINT
    service-rule SERVICE NETWORK SUBNET
    service-address SERVICE ADDRESSES
    service-endpoint NETWORK SUBNET NAME
    public-access SERVICE

Resources are named by name or id.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final, TypeVar, get_args

from ghost.net.address_matching import is_address, parse_network, parse_ports
from ghost.net.balancing import LoadBalancer
from ghost.net.balancing.changes import AddBalancingRule, AddNatGateway, MakePrivate
from ghost.net.changes import (
    AddRoute,
    AddRule,
    AllowForwarded,
    ConnectPeering,
    RemoveRoute,
    RemoveRule,
    StartMachine,
)
from ghost.net.hops import Mend
from ghost.net.names.changes import ApproveEndpoint, LinkZone, SetRecord
from ghost.net.names.records import PrivateEndpoint, ZoneLinks, ZoneRecords, is_within, relative_to
from ghost.net.network import Network, Unread
from ghost.net.resources import Machine, Resource, RouteTable, RuleSet, VirtualNetwork, key, name_of
from ghost.net.routes import Route
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Access, Direction, SecurityRule
from ghost.net.services import (
    SERVICE_TYPES,
    AddAddressRule,
    AddressRange,
    AddSubnetRule,
    EnablePublicAccess,
    EnableServiceEndpoint,
    Service,
)

Named = TypeVar("Named", bound=Resource)
CHANGE_FORMS: Final = [line.strip() for line in (__doc__ or "").splitlines() if line.startswith("    ")]
PROTOCOLS: Final = ("Tcp", "Udp", "Icmp", "Esp", "Ah", "*")
HOP_TYPES: Final = ("VirtualAppliance", "VnetLocal", "Internet", "VirtualNetworkGateway", "None")


def proposed(text: str, network: Network) -> Mend:
    """Return the change that `text` describes. Raises `ValueError` with what is wrong."""
    words = check_form(text)
    change = _PARSERS[words[0], len(words) - 1](network, words[1:])
    try:
        change.applied(network)
    except Unread as unread:
        raise ValueError(f"{text!r} changes what was not read: {unread.reason}") from None
    return change


def check_form(text: str) -> list[str]:
    """Return the words of a change. Raises `ValueError` with the forms there are."""
    try:
        words = shlex.split(text)
    except ValueError as unclosed:
        raise ValueError(f"{text!r} is not a change: {unclosed}; close each quote") from None
    if not words or (words[0], len(words) - 1) not in _PARSERS:
        raise ValueError(f"{text!r} is not a change; give one of: {'; '.join(CHANGE_FORMS)}")
    return words


def proposal_of(change: Mend, network: Network) -> str | None:
    """Return the text that is this change in this network; None if no form is."""
    for name in (name_of, str):  # names where they are enough
        try:
            text = shlex.join(_words(change, network, name))
            if proposed(text, network) == change:
                return text
        except (ValueError, Unread):
            continue
    return None


def _words(change: Mend, network: Network, name: Callable[[str], str]) -> list[str]:
    def subnet(subnet_id: str) -> tuple[str, str]:
        homes = network.all(VirtualNetwork).values()
        home = next((each.id for each in homes if key(subnet_id) in (key(s.id) for s in each.subnets)), "")
        return name(home), name_of(subnet_id)

    match change:
        case AddRule(group, rule):
            ends = (",".join(prefixes) for prefixes in (rule.source_prefixes, rule.destination_prefixes))
            which = (rule.name, str(rule.priority), rule.direction, rule.access, rule.protocol)
            return ["rule", name(group), *which, *ends, ",".join(rule.destination_ports)]
        case RemoveRule(group, removed):
            return ["no-rule", name(group), removed]
        case AddRoute(table, route):
            next_hop = [route.next_hop_ip] if route.next_hop_ip else []
            return ["route", name(table), route.name or "", route.prefix, route.next_hop_type, *next_hop]
        case RemoveRoute(table, removed):
            return ["no-route", name(table), removed]
        case ConnectPeering((owner, remote)):
            return ["peering", name(owner), name(remote)]
        case AllowForwarded(owner, remote):
            return ["forwarded", name(owner), name(remote)]
        case StartMachine(machine):
            return ["start", name(machine)]
        case AddBalancingRule(balancer, _, protocol, port, backend_port):
            return ["balance", name(balancer), protocol, str(port), str(backend_port)]
        case AddNatGateway(inside):
            return ["nat-gateway", *subnet(inside)]
        case MakePrivate(inside):
            return ["private", *subnet(inside)]
        case LinkZone(zone, linked):
            return ["link", name(zone), name(linked)]
        case SetRecord(zone, record, addresses):
            return ["record", name(zone), record, ",".join(addresses)]
        case ApproveEndpoint(endpoint):
            return ["approve", name(endpoint)]
        case AddSubnetRule(service, inside):
            return ["service-rule", name(service), *subnet(inside)]
        case AddAddressRule(service, ranges):
            return ["service-address", name(service), ",".join(map(str, ranges))]
        case EnableServiceEndpoint(inside, endpoint):
            return ["service-endpoint", *subnet(inside), endpoint]
        case EnablePublicAccess(service):
            return ["public-access", name(service)]
        case _:
            return []


def _rule(network: Network, words: list[str]) -> Mend:
    group, name, priority, direction, access, protocol, source, destination, ports = words
    if not priority.isdecimal() or not 100 <= int(priority) <= 4096:
        raise ValueError(f"{priority!r} is not a priority: 100 to 4096")
    for port in ports.split(","):
        parse_ports(port)
    for prefix in (*source.split(","), *destination.split(",")):
        if prefix != "*" and parse_network(prefix) is None and not prefix[:1].isalpha():
            raise ValueError(f"{prefix!r} is not a prefix, a tag or *")
    rule = SecurityRule(
        name,
        int(priority),
        _one_of(direction, get_args(Direction)),  # type: ignore[arg-type]
        _one_of(access, get_args(Access)),  # type: ignore[arg-type]
        _one_of(protocol, PROTOCOLS),
        source_prefixes=tuple(source.split(",")),
        destination_prefixes=tuple(destination.split(",")),
        destination_ports=tuple(ports.split(",")),
    )
    known = network.one(RuleSet, _id(network, RuleSet, group))
    for other in known.rules:
        if (other.priority, other.direction) == (rule.priority, rule.direction) and other.name != name:
            raise ValueError(f"{other.name} of {name_of(known.id)} has priority {priority} {rule.direction} already")
    return AddRule(known.id, rule)


def _route(network: Network, words: list[str]) -> Mend:
    table, name, prefix, hop_type, *next_hop = words
    if parse_network(prefix) is None:
        raise ValueError(f"{prefix!r} is not a prefix")
    hop_type = _one_of(hop_type, HOP_TYPES)
    if (hop_type == "VirtualAppliance") != bool(next_hop and is_address(next_hop[0])):
        raise ValueError("VirtualAppliance, and only that, takes the address of the NEXT-HOP")
    made = Route(prefix, hop_type, next_hop[0] if next_hop else None, "User", name=name)
    return AddRoute(_id(network, RouteTable, table), made)


def _no_rule(network: Network, words: list[str]) -> Mend:
    group = network.one(RuleSet, _id(network, RuleSet, words[0]))
    return RemoveRule(
        group.id, _one_of(words[1], [rule.name for rule in group.rules if rule.priority < FIRST_DEFAULT_PRIORITY])
    )


def _no_route(network: Network, words: list[str]) -> Mend:
    table = network.one(RouteTable, _id(network, RouteTable, words[0]))
    return RemoveRoute(table.id, _one_of(words[1], [route.name or "" for route in table.routes]))


def _peering(network: Network, words: list[str]) -> Mend:
    return ConnectPeering(_peers(network, words))


def _forwarded(network: Network, words: list[str]) -> Mend:
    return AllowForwarded(*_peers(network, words))


def _peers(network: Network, words: list[str]) -> tuple[str, str]:
    home, remote = (network.one(VirtualNetwork, _id(network, VirtualNetwork, word)) for word in words)
    if key(remote.id) not in map(key, (peering.remote for peering in home.peerings)):
        raise ValueError(f"{home.name} has no peering with {remote.name}")
    return home.id, remote.id


def _link(network: Network, words: list[str]) -> Mend:
    return LinkZone(_id(network, ZoneLinks, words[0]), _id(network, VirtualNetwork, words[1]))


def _record(network: Network, words: list[str]) -> Mend:
    zone = _id(network, ZoneRecords, words[0])
    name, zone_name = words[1].casefold(), name_of(zone).casefold()
    name = relative_to(name, zone_name) if is_within(name, zone_name) else name
    return SetRecord(zone, name, tuple(str(ip_address(address)) for address in words[2].split(",")))


def _approve(network: Network, words: list[str]) -> Mend:
    return ApproveEndpoint(_id(network, PrivateEndpoint, words[0]))


def _start(network: Network, words: list[str]) -> Mend:
    return StartMachine(_id(network, Machine, words[0]))


def _balance(network: Network, words: list[str]) -> Mend:
    """With one front end and one pool, there is no doubt about which are meant."""
    name, protocol, port, backend_port = words
    balancer = network.one(LoadBalancer, _id(network, LoadBalancer, name))
    if len(balancer.front_ends) != 1 or len(balancer.pools) != 1:
        raise ValueError(f"{balancer.name} has several front ends or pools: which one is meant cannot be stated here")
    ports = [parse_ports(text)[0] for text in (port, backend_port)]
    return AddBalancingRule(balancer.id, balancer.front_ends[0].id, _one_of(protocol, ["Tcp", "Udp", "All"]), *ports)


def _subnet(network: Network, words: list[str]) -> str:
    home = network.one(VirtualNetwork, _id(network, VirtualNetwork, words[0]))
    name = _one_of(words[1], [subnet.name for subnet in home.subnets])
    return next(subnet.id for subnet in home.subnets if subnet.name == name)


def _service_rule(network: Network, words: list[str]) -> Mend:
    service = _service(network, words[0])
    if not service.service_endpoints:
        raise ValueError(f"a {service.kind} has no rules for subnets")
    return AddSubnetRule(service.id, _subnet(network, words[1:]))


def _service_address(network: Network, words: list[str]) -> Mend:
    return AddAddressRule(_service(network, words[0]).id, tuple(map(AddressRange.of, words[1].split(","))))


def _service_endpoint(network: Network, words: list[str]) -> Mend:
    names = [name for of in SERVICE_TYPES for name in of.service_endpoints]
    return EnableServiceEndpoint(_subnet(network, words[:2]), _one_of(words[2], names))


def _public_access(network: Network, words: list[str]) -> Mend:
    return EnablePublicAccess(_service(network, words[0]).id)


def _service(network: Network, named: str) -> Service:
    return _among([each for of in SERVICE_TYPES for each in network.all(of).values()], "service", named)


_PARSERS: Final[Mapping[tuple[str, int], Callable[[Network, list[str]], Mend]]] = {
    ("rule", 9): _rule,
    ("no-rule", 2): _no_rule,
    ("route", 4): _route,
    ("route", 5): _route,
    ("no-route", 2): _no_route,
    ("peering", 2): _peering,
    ("forwarded", 2): _forwarded,
    ("start", 1): _start,
    ("balance", 4): _balance,
    ("nat-gateway", 2): lambda network, words: AddNatGateway(_subnet(network, words)),
    ("private", 2): lambda network, words: MakePrivate(_subnet(network, words)),
    ("link", 2): _link,
    ("record", 3): _record,
    ("approve", 1): _approve,
    ("service-rule", 3): _service_rule,
    ("service-address", 2): _service_address,
    ("service-endpoint", 3): _service_endpoint,
    ("public-access", 1): _public_access,
}


def _id(network: Network, of: type[Resource], named: str) -> str:
    return _among(list(network.all(of).values()), of.kind, named).id


def _among(known: list[Named], kind: str, named: str) -> Named:
    found = [each for each in known if key(named) in (key(each.id), each.name.casefold())]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(each.name for each in known)) or "none"
    which = f"{'several' if found else 'no'} {kind}s"
    raise ValueError(f"{which} on the path are named {named!r}; there are: {names}")


def _one_of(word: str, known: list[str] | tuple[str, ...]) -> str:
    for each in known:
        if each.casefold() == word.casefold():
            return each
    raise ValueError(f"{word!r} is none of {', '.join(known) or 'nothing'}")
