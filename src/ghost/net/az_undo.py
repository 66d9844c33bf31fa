"""For each command that makes a change, the command that undoes it, from the network as it was before.

There is none where a command line cannot state what was there, or it was not read: a rule of a network manager, a
peering that is synced or was disconnected, the lifetime of an alias.
"""

from __future__ import annotations

from typing import Final

from ghost.net.az_changes import FLAGS, Words, command_line, command_words, route_options, rule_options
from ghost.net.balancing.changes import AddBalancingRule, AddNatGateway, AttachPublicAddress, SetProbePort
from ghost.net.balancing.resources import LoadBalancer, NatGateway
from ghost.net.changes import AddRoute, AddRule, EnableForwarding, RemoveRoute, RemoveRule, StartMachine
from ghost.net.hops import Mend
from ghost.net.network import Network, Unread
from ghost.net.resources import (
    Interface,
    Machine,
    RouteTable,
    RuleSet,
    Subnet,
    VirtualNetwork,
    key,
    segment_after,
)
from ghost.net.services import EnablePublicAccess, EnableServiceEndpoint
from ghost.net.services.service_host_names import service_with_id

NAMING: Final = {
    *("-g", "-n", "-s", "-z", "--subscription", "--nsg-name", "--route-table-name", "--vnet-name", "--lb-name"),
    *("--account-name", "--rule-name", "--policy-name", "--rcg-name", "--firewall-name"),
}
"""Options that say what a command is about."""
ASKS: Final = (("network", "private-dns", "link", "vnet"), ("network", "firewall", "policy", "rule-collection-group"))
"""Of which az asks before it deletes one."""
OPPOSITES: Final = {"add-record": "remove-record", "remove-record": "add-record", "add": "remove"}
STOPPED_BY: Final = {"deallocated": "deallocate", "stopped": "stop"}
CLOSED: Final = {
    "--public-network-access": "Disabled",
    "--enable-public-network": "false",
    "--set": "publicNetworkAccess=Disabled",
}
NOTHING: Final = ("null",)
"""With it az takes a property away."""
REDACTED: Final = "[REDACTED"

Options = dict[str, Words]


def undo_for(mend: Mend, network: Network) -> tuple[str | None, ...]:
    """Return what undoes each of `commands_for`, to be run in the opposite order; None where nothing does."""
    return tuple(_undo(words, mend, network) for words in command_words(mend, network))


def _undo(words: Words, mend: Mend, network: Network) -> str | None:
    start = next(at for at, word in enumerate(words) if word.startswith("-"))
    options: Options = {}
    for word in words[start:]:
        if word.startswith("-"):
            options[word] = ()
            option = word
        else:
            options[option] += (word,)
    try:
        undoing = _words(words[: start - 1], words[start - 1], options, mend, network)
    except (Unread, ValueError, LookupError):
        return None
    command = command_line(undoing)
    return command if command is not None and REDACTED not in command else None


def _words(place: Words, verb: str, options: Options, mend: Mend, network: Network) -> Words:
    """Raises `Unread`, or `LookupError` where nothing undoes the command."""
    named = {name: values for name, values in options.items() if name in NAMING}
    if verb in OPPOSITES:
        return (*place, OPPOSITES[verb], *_flat(options))
    if verb == "add-filter-collection":
        return (*place, "remove", *_flat({name: named[name] for name in named if name != "--rule-name"}))
    if verb == "start" and isinstance(mend, StartMachine):
        return (*place, STOPPED_BY[network.one(Machine, mend.machine).power or ""], *_flat(options))
    if verb == "update":
        (changed,) = options.keys() - NAMING
        return (*place, verb, *_flat(named), changed, *_value_before(changed, options, mend, network))
    was = _before(mend, options["-n"][0], network)
    if was:
        return (*place, "create", *_flat(named), *was)
    if verb != "create":
        raise LookupError(verb)
    if place == ("network", "firewall", "network-rule"):
        return (*place, "collection", "delete", *_flat(named))
    return (*place, "delete", *_flat(named), *(("--yes",) if place in ASKS else ()))


def _before(mend: Mend, name: str, network: Network) -> Words:
    """Return the options of what was deleted or replaced; none where there was nothing."""
    match mend:
        case RemoveRule(owner) | AddRule(owner):
            rules = [rule for rule in network.one(RuleSet, owner).rules if rule.name == name]
            return rule_options(rules[0]) if rules else ()
        case RemoveRoute(owner) | AddRoute(owner):
            routes = [route for route in network.one(RouteTable, owner).routes if route.name == name]
            return route_options(routes[0]) if routes else ()
        case AddBalancingRule(owner):
            if any(rule.name == name for rule in network.one(LoadBalancer, owner).rules):
                raise LookupError(name)
    return ()


def _value_before(option: str, options: Options, mend: Mend, network: Network) -> Words:
    if option in FLAGS:
        group, home, side = (options[name][0].casefold() for name in ("-g", "--vnet-name", "-n"))
        (peering,) = (
            peering
            for each in network.all(VirtualNetwork).values()
            if (each.name.casefold(), segment_after(each.id, "resourcegroups").casefold()) == (home, group)
            for peering in each.peerings
            if peering.name.casefold() == side
        )
        return (str(getattr(peering, FLAGS[option])).casefold(),)
    match mend:
        case EnableForwarding(interface):
            return (str(network.one(Interface, interface).ip_forwarding).casefold(),)
        case SetProbePort(balancer, probe_id):
            probes = network.one(LoadBalancer, balancer).probes
            return tuple(str(probe.port) for probe in probes if key(probe.id) == key(probe_id))
        case EnableServiceEndpoint(subnet):
            return _subnet(network, subnet).service_endpoints or NOTHING
        case AddNatGateway(subnet):
            before = _subnet(network, subnet).nat_gateway
            return (before,) if before else NOTHING
        case AttachPublicAddress(gateway):
            return network.one(NatGateway, gateway).public_addresses or NOTHING
        case EnablePublicAccess(service) if service_with_id(network, service).public_access.casefold() == "disabled":
            return (CLOSED[option],)
    return {"--network-security-group": NOTHING, "--default-outbound-access": ("true",)}[option]


def _subnet(network: Network, subnet_id: str) -> Subnet:
    return network.one(VirtualNetwork, subnet_id.partition("/subnets/")[0]).subnet_ids[key(subnet_id)]


def _flat(options: Options) -> Words:
    return tuple(word for name, values in options.items() for word in (name, *values))
