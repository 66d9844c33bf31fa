"""What Azure Firewall does with the first packet of a flow.

Rules for translation come first, then network rules, then application rules, each kind through the groups of the base
policy and of the policy itself by priority; the first that matches decides, and without one the packet is dropped.

https://learn.microsoft.com/azure/firewall/rule-processing
https://learn.microsoft.com/azure/firewall/snat-private-range
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final, Literal

from ghost.net.address_matching import Address, covers_port, parse_address, parse_network
from ghost.net.firewall.resources import (
    AzureFirewall,
    FirewallPolicy,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
    RuleKind,
)
from ghost.net.network import Network
from ghost.net.security import Flow
from ghost.net.services import without_tags

MAX_POLICIES: Final = 5
"""Of a chain of base policies; Azure allows one level."""
IANA_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")


@dataclass(frozen=True)
class FirewallDecision:
    verdict: Literal["pass", "rewrite", "drop", "unknown"]
    reason: str
    rule: str | None
    """COLLECTION/RULE; None where no rule matches."""
    references: tuple[str, ...]
    flow: Flow
    """As it leaves the firewall."""


def decide(network: Network, firewall: AzureFirewall, flow: Flow, *, inbound: bool = False) -> FirewallDecision:
    """Return the decision about `flow`; `inbound`: it came to a public address of the firewall. Raises `Unread`."""
    groups, ranges, references = _rules_of(network, firewall)
    for kind in _kinds(inbound):
        for collection in _in_order(groups, kind):
            for rule in collection.rules:
                matched = _matches(network, rule, flow, kind, references)
                name = f"{collection.name}/{rule.name}"
                if matched is None:
                    reason = f"{name} of {firewall.name} may match: it names hosts, tags or categories"
                    return FirewallDecision("unknown", reason, name, tuple(references), flow)
                if matched:
                    return _decided(firewall, collection, rule, flow, ranges, tuple(references))
    reason = f"no rule of {firewall.name} allows {flow}"
    if flow.destination_port in (80, 443) and ip_address(flow.destination_address).is_global:
        reason += " (host names of Azure's own infrastructure still pass)"
    return FirewallDecision("drop", reason, None, tuple(references), flow)


def _kinds(inbound: bool) -> tuple[RuleKind, ...]:
    return ("nat",) if inbound else ("network", "application")


def _decided(
    firewall: AzureFirewall,
    collection: RuleCollection,
    rule: FirewallRule,
    flow: Flow,
    ranges: tuple[str, ...],
    references: tuple[str, ...],
) -> FirewallDecision:
    name = f"{collection.name}/{rule.name}"
    reason = f"{collection.action} by {name} of {firewall.name}"
    if collection.action == "Deny":
        return FirewallDecision("drop", reason, name, references, flow)
    if collection.action == "Dnat":
        if _parsed(rule.translated_address) is None or not rule.translated_port.isdecimal():
            return FirewallDecision("unknown", f"{reason}: to a host by name", name, references, flow)
        to = replace(
            flow,
            source_address=firewall.address,
            destination_address=rule.translated_address,
            destination_port=int(rule.translated_port),
        )
        return FirewallDecision("rewrite", f"{reason} to {to.destination_address}", name, references, to)
    if collection.kind == "application" or not _covers(ranges, flow.destination_address):
        to = replace(flow, source_address=firewall.address)
        return FirewallDecision("rewrite", f"{reason}, from its own address", name, references, to)
    return FirewallDecision("pass", reason, name, references, flow)


def _rules_of(
    network: Network, firewall: AzureFirewall
) -> tuple[list[tuple[RuleCollection, ...]], tuple[str, ...], list[str]]:
    """Return the groups of collections in the order in which they are asked, the private ranges, and references."""
    references = [firewall.reference]
    if firewall.policy is None:
        return [firewall.collections], IANA_PRIVATE, references
    ordered: list[tuple[RuleCollection, ...]] = []
    ranges: tuple[str, ...] = ()
    policy_id: str | None = firewall.policy
    for _ in range(MAX_POLICIES):
        if policy_id is None:
            break
        policy = network.one(FirewallPolicy, policy_id)
        groups = sorted((_read(network, group, references) for group in policy.groups), key=lambda each: each.priority)
        ordered = [*(group.collections for group in groups), *ordered]
        ranges = ranges or policy.private_ranges
        references.append(policy.reference)
        policy_id = policy.base
    known = tuple(IANA_PRIVATE if each.casefold() == "ianaprivateranges" else (each,) for each in ranges)
    return (
        [firewall.collections, *ordered],
        tuple(prefix for part in known for prefix in part) or IANA_PRIVATE,
        references,
    )


def _read(network: Network, group_id: str, references: list[str]) -> RuleCollectionGroup:
    group = network.one(RuleCollectionGroup, group_id)
    references.append(group.reference)
    return group


def _in_order(groups: Iterable[tuple[RuleCollection, ...]], kind: RuleKind) -> Iterator[RuleCollection]:
    for collections in groups:
        yield from sorted((each for each in collections if each.kind == kind), key=lambda each: each.priority)


def _matches(network: Network, rule: FirewallRule, flow: Flow, kind: RuleKind, references: list[str]) -> bool | None:
    """Return whether a rule matches; None if that hangs on names, tags or categories."""
    known: list[bool | None] = [_protocol_matches(rule, flow, kind)]
    known.append(_among(network, rule.sources, rule.source_groups, flow.source_address, references))
    if kind == "application":
        by_name = _names(network, rule.host_names)
        return False if False in known else by_name
    known.append(covers_port(rule.destination_ports, flow.destination_port, has_ports=flow.has_ports))
    if not flow.has_ports:
        known[-1] = True
    destinations = without_tags(network.toward, rule.destinations)
    addresses = _among(network, destinations, rule.destination_groups, flow.destination_address, references)
    by_name = _names(network, rule.host_names) or None  # one address may have several names
    known.append(by_name if addresses is False and rule.host_names else addresses)
    if False in known:
        return False
    return None if None in known else True


def _names(network: Network, names: tuple[str, ...]) -> bool | None:
    """Return whether host names, tags or categories hold the destination; None if that is not known."""
    host = network.toward.host.casefold() if network.toward is not None and network.toward.host else None
    if "*" in names:
        return True
    hosts = [name.casefold() for name in names if "." in name and "/" not in name]
    if host is not None and any(host == n or (n.startswith("*") and host.endswith(n[1:])) for n in hosts):
        return True
    return False if host is not None and len(hosts) == len(names) else None


def _protocol_matches(rule: FirewallRule, flow: Flow, kind: RuleKind) -> bool:
    protocols = [protocol.casefold() for protocol in rule.protocols]
    if kind != "application":
        return "any" in protocols or flow.protocol.casefold() in protocols
    ports = [protocol.partition(":")[2] for protocol in protocols]
    return flow.protocol.casefold() == "tcp" and str(flow.destination_port) in ports


def _among(
    network: Network, prefixes: tuple[str, ...], groups: tuple[str, ...], address: str, references: list[str]
) -> bool | None:
    """Return whether prefixes or IP groups hold the address; None if a tag may. Raises `Unread`."""
    members = list(prefixes)
    for group_id in groups:
        group = network.one(IpGroup, group_id)
        references.append(group.reference)
        members += group.addresses
    return _covers(members, address)


def _covers(prefixes: Iterable[str], address: str) -> bool | None:
    parsed = parse_address(address)
    answer: bool | None = False
    for prefix in prefixes:
        network = parse_network(prefix)
        first, _, last = prefix.partition("-")
        if prefix == "*" or (network is not None and parsed in network):
            return True
        low, high = _parsed(first), _parsed(last)
        if low is not None and high is not None:
            if low.version == parsed.version and int(low) <= int(parsed) <= int(high):
                return True
        elif network is None:
            answer = None
    return answer


def _parsed(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
