"""Machines behind the same gates, of which one stands for all; and who is likely to send where nobody was named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ghost.brain.offline.complaint import End
from ghost.brain.offline.understanding.tenant_names import end_of
from ghost.net import (
    Interface,
    Network,
    RuleSet,
    SecurityRule,
    VirtualNetwork,
    is_address,
    key,
    within,
)

MAX_SENDERS: Final = 8
"""Groups of senders that are walked where no source was named."""
MANAGEMENT: Final = frozenset({"22", "3389", "5985", "5986"})


def one_of_each(network: Network, ends: Iterable[End]) -> list[End]:
    """Return one end for each set of equal gates: subnet, groups, pools, a public address; the rest it stands for."""
    groups: dict[object, list[End]] = {}
    for end in ends:
        groups.setdefault(_gates(network, end), []).append(end)
    return [_example(members) for members in groups.values()]


def _example(members: Sequence[End]) -> End:
    first = min(members, key=lambda end: end.label)
    others = sorted({end.label for end in members} - {first.label})
    return replace(first, stands_for=tuple(dict.fromkeys((*first.stands_for, *others)))) if others else first


def _gates(network: Network, end: End) -> object:
    interface = network.get(Interface, end.interface)
    if interface is None or not end.machine or not is_address(end.address):
        return end.address
    configurations = interface.configurations
    return (
        key(interface.subnet),
        key(interface.security_group or ""),
        frozenset(key(group) for each in configurations for group in each.application_groups),
        frozenset(key(pool) for each in configurations for pool in each.pools),
        any(each.public_address for each in configurations),
        interface.ip_forwarding,
    )


def groups_before(network: Network, destination: End) -> list[str]:
    """Return the ids of the security groups before an end: of its subnet and its interface."""
    interface = network.get(Interface, destination.interface)
    if interface is None:
        return []
    home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
    subnet = home.subnet_ids.get(key(interface.subnet)) if home else None
    return [each for each in (subnet.security_group if subnet else None, interface.security_group) if each]


def likely_senders(network: Network, destination: End, port: int | None) -> list[End]:
    """Return whom the rules before the destination let in by address; without such rules, all that could reach it."""
    machines = [
        end_of(i) for i in network.all(Interface).values() if i.machine and key(i.machine) != key(destination.machine)
    ]
    reachable = [end for end in machines if _may_reach(network, end, destination)]
    let_in = []
    for rule in _allowing(network, destination, port):
        origin = f"the rule {rule.name} lets it in"
        let_in += [replace(end, origin=origin) for end in reachable if _is_source(network, rule, end)]
    others = [replace(end, origin="it could reach the destination") for end in reachable]
    senders = one_of_each(network, {end.label: end for end in reversed(let_in or others)}.values())
    home = _subnet(network, destination)
    senders.sort(key=lambda end: (_subnet(network, end) == home, -len(end.stands_for), end.label))
    return senders[:MAX_SENDERS]


def port_by_rules(network: Network, destination: End, sources: Sequence[End]) -> int | None:
    """Return the only port that rules before the destination open by address, to the sources if these are known."""
    rules = _allowing(network, destination, None)
    rules = [rule for rule in rules if not sources or any(_is_source(network, rule, end) for end in sources)]
    opened = {port for rule in rules for port in rule.destination_ports}
    ports = {
        low
        for text in opened - MANAGEMENT
        for low, _, high in [text.partition("-")]
        if low.isdecimal() and high in ("", low)
    }
    wide = any((not text.isdecimal() and len(set(text.split("-"))) > 1) or text == "*" for text in opened)
    return int(ports.pop()) if len(ports) == 1 and not wide else None


def opens(network: Network, end: End, port: int) -> bool | None:
    """Return whether a rule of the groups before an end lets this very port in; None where no group stands there."""
    groups = [rules for group in groups_before(network, end) if (rules := network.get(RuleSet, group)) is not None]
    allowing = [rule for group in groups for rule in group.rules if not rule.is_default and rule.direction == "Inbound"]
    named = [rule for rule in allowing if rule.access == "Allow" and "*" not in rule.destination_ports]
    return any(_holds_port(rule, port) for rule in named) if groups else None


def let_in(group: RuleSet | None, port: int | None) -> list[str]:
    """Return the prefixes that rules of a group let in, at this port if it is known."""
    rules = [rule for rule in group.rules if rule.access == "Allow" and rule.direction == "Inbound"] if group else []
    return [prefix for rule in rules if port is None or _holds_port(rule, port) for prefix in rule.source_prefixes]


def _allowing(network: Network, destination: End, port: int | None) -> list[SecurityRule]:
    """Return the rules that let certain addresses or groups in, at this port if it is known."""
    found = []
    for group in groups_before(network, destination):
        rules = network.get(RuleSet, group)
        for rule in rules.rules if rules else ():
            allows = rule.direction == "Inbound" and rule.access == "Allow" and not rule.is_default
            named = all(
                prefix not in ("*", "VirtualNetwork", "Internet", "AzureLoadBalancer", "0.0.0.0/0")
                for prefix in rule.source_prefixes
            )
            if allows and named and (port is None or _holds_port(rule, port)):
                found.append(rule)
    return found


def _holds_port(rule: SecurityRule, port: int) -> bool:
    for text in rule.destination_ports:
        low, _, high = text.partition("-")
        if text == "*" or (low.isdecimal() and int(low) <= port <= int(high if high.isdecimal() else low)):
            return True
    return False


def _is_source(network: Network, rule: SecurityRule, end: End) -> bool:
    interface = network.get(Interface, end.interface)
    groups = (
        {key(group) for each in interface.configurations for group in each.application_groups} if interface else set()
    )
    prefixes = [prefix for prefix in rule.source_prefixes if is_address(prefix.partition("/")[0])]
    return (is_address(end.address) and within(prefixes, end.address)) or any(
        key(prefix) in groups for prefix in rule.source_prefixes
    )


def _may_reach(network: Network, source: End, destination: End) -> bool:
    """Return whether a way in the network is conceivable: the same network or peered ones, or a destination beyond."""
    there, here = _home(network, destination), _home(network, source)
    if not there or not here or here == there:
        return True
    home = network.get(VirtualNetwork, here)
    hubs = {key(peering.remote) for peering in home.peerings} if home else set()
    if there in hubs:
        return True
    away = network.get(VirtualNetwork, there)
    return bool(hubs & ({key(peering.remote) for peering in away.peerings} if away else set()))


def _subnet(network: Network, end: End) -> str:
    interface = network.get(Interface, end.interface)
    return key(interface.subnet) if interface else ""


def _home(network: Network, end: End) -> str:
    return _subnet(network, end).partition("/subnets/")[0]
