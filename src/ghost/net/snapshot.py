"""What must be read for a walk, and how an answer of `az` becomes part of the network.

Pure: `needed` names reads, `absorb` takes their text. `collect` repeats both over a caller's `execute`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ghost.net.admin_rules import NetworkManager
from ghost.net.az_reads import AZ_READS, MOST_TOGETHER, READ_TOGETHER, argv_of, is_readable, resources_of
from ghost.net.dig_reads import dig_of, public_name
from ghost.net.firewall import FirewallPolicy, RuleCollectionGroup
from ghost.net.listed_resources import ListedResource, type_in
from ghost.net.names.records import ForwardingRulesets, PrivateZones, PublicName
from ghost.net.network import Missing, Network, Unread
from ghost.net.resources import Interface, Machine, Resource, RouteTable, RuleSet, VirtualNetwork, key, subscription_of
from ghost.net.security import Flow
from ghost.net.services import KeyVaultName
from ghost.net.tenant_bodies import LISTED
from ghost.net.walks import walk

Found = TypeVar("Found")
FIRST: Final = (Interface, VirtualNetwork)
"""Of which there are some in every subscription."""
MAX_ROUNDS: Final = 20
"""Rounds of reads; each asks for something new, so that an end is sure."""


@dataclass(frozen=True)
class Read:
    """One read: of Azure as `az` is called, or of public DNS by `dig`."""

    argv: tuple[str, ...]
    missing: Missing


@dataclass(frozen=True)
class Answer:
    """What a read told. `reference`: the caller's name for it; `failure`: why it told nothing."""

    text: str
    reference: str = ""
    failure: str | None = None


def needed(network: Network, flows: Iterable[Flow]) -> list[Read]:
    """Return the reads that walks of these flows still need, without repetition."""
    flows = list(flows)
    missing = dict.fromkeys(missing for flow in flows for missing in walk(network, flow).missing)
    return [read_of(network, each) for each in _together(network, flows, filter(is_readable, missing))]


def _together(network: Network, flows: Iterable[Flow], missing: Iterable[Missing]) -> list[Missing]:
    """Return the reads as few commands: what is one's of the same type, with what the ends of the flows will need.

    What a command for several did not tell is asked for alone. All networks are one command, of one subscription. The
    list of all resources, which takes the place of that of network managers, spares those of what there is not.
    """
    listing = Missing(ListedResource)
    is_unlisted = not network.all(ListedResource) and listing not in network.failed
    reads: dict[Missing, None] = {}
    batches: dict[type[Resource], dict[str, str]] = {}
    tried = {(each.of, key(one)) for each in network.failed if each.others for one in (each.resource, *each.others)}
    for each in missing:
        every = Missing(each.of)
        if each.of is VirtualNetwork and not network.all(VirtualNetwork) and every not in network.failed:
            reads[every] = None
        elif is_unlisted and (each == every or each.of in (PrivateZones, ForwardingRulesets)) and each.of not in FIRST:
            reads[listing] = None
        elif each.of in READ_TOGETHER and each.resource and (each.of, key(each.resource)) not in tried:
            batches.setdefault(each.of, {})[key(each.resource)] = each.resource
        else:
            reads[each] = None
    for each in filter(is_readable, _expected(network, flows)):
        if each.of in batches and (each.of, key(each.resource)) not in tried and each not in network.failed:
            batches[each.of].setdefault(key(each.resource), each.resource)
    for of, ids in batches.items():
        known = list(ids.values())
        for start in range(0, len(known), MOST_TOGETHER):
            first, *others = known[start : start + MOST_TOGETHER]
            reads[Missing(of, first, tuple(others))] = None
    return list(reads)


def _expected(network: Network, flows: Iterable[Flow]) -> Iterator[Missing]:
    """Yield what walks of these flows come to at both ends, and the rules of policies; not what is read."""
    for policy in network.all(FirewallPolicy).values():
        groups = (group for group in policy.groups if network.get(RuleCollectionGroup, group) is None)
        yield from (Missing(RuleCollectionGroup, group) for group in groups)
    for address in dict.fromkeys(end for flow in flows for end in (flow.source_address, flow.destination_address)):
        for interface in network.interfaces_with(address):
            home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
            subnet = home.subnet_ids.get(key(interface.subnet)) if home is not None else None
            ids = [(Machine, interface.machine), (RuleSet, interface.security_group)]
            ids += [(RuleSet, subnet.security_group), (RouteTable, subnet.route_table)] if subnet is not None else []
            for of, resource in ids:
                if resource and network.get(of, resource) is None and of not in network.complete:
                    yield Missing(of, resource)


def absorb(network: Network, read: Read, answer: Answer) -> Network:
    """Return the network with what a read told. One that cannot be understood told nothing, and is not repeated."""
    if answer.failure is not None:
        return _failed(network, read, answer.failure)
    try:
        found = _told(read.missing, answer)
    except (ValueError, RecursionError) as unreadable:
        return _failed(network, read, f"{' '.join(read.argv[:4])} gave no usable answer: {str(unreadable)[:200]}")
    asked = {key(each) for each in (read.missing.resource, *read.missing.others)}
    if read.missing.resource and asked.isdisjoint(key(each.id) for each in found):
        return _failed(network, read, f"az {' '.join(read.argv[1:4])} gave the answer for another resource")
    if read.missing in (Missing(VirtualNetwork), Missing(ListedResource)) and not found:
        return _failed(network, read, f"the list of {read.missing.of.kind}s that this login may read is empty")
    # Peerings lead to networks of other subscriptions, which are in no list.
    is_all = not read.missing.resource and read.missing.of is not VirtualNetwork
    network = network.with_resources(read.missing.of, found, complete=is_all)
    if read.missing.of is ListedResource:
        network = _with_listed(network, [each.id for each in found], answer.reference)
    parts = [part for resource in found for part in resource.parts]
    for kind in dict.fromkeys(map(type, parts)):
        network = network.with_resources(kind, [part for part in parts if type(part) is kind])
    return network


def _told(missing: Missing, answer: Answer) -> list[Resource]:
    if missing.of is PublicName:
        return [public_name(missing.resource, answer.text, answer.reference)]
    return resources_of(missing, json.loads(answer.text), answer.reference)


def _with_listed(network: Network, ids: list[str], reference: str) -> Network:
    """Return the network with what the list of resources tells: types that it lacks, and those known by id alone."""
    of_type: dict[str, list[str]] = {}
    for each in ids:
        of_type.setdefault(type_in(each), []).append(each)
    for kind, name in LISTED.items():
        found = of_type.get(name, [])
        if ids and AZ_READS[kind].every and (kind in (KeyVaultName, NetworkManager) or not found):
            known = [kind(id=each, reference=reference) for each in found]
            network = network.with_resources(kind, known, complete=kind is not VirtualNetwork)
    for kind, name in ((PrivateZones, "privatednszones"), (ForwardingRulesets, "dnsforwardingrulesets")):
        rows = [{"id": each} for each in of_type.get(f"microsoft.network/{name}", [])]
        for home in {f"/subscriptions/{subscription_of(each)}" for each in ids[:1]}:
            network = network.with_resources(kind, resources_of(Missing(kind, home), rows, reference))
    return network


def read_interfaces(execute: Callable[[Read], Answer], network: Network | None = None) -> Network:
    """Return the network with all interfaces: what names and addresses stand for."""
    missing = Missing(Interface)
    read = Read(argv_of(missing), missing)
    return absorb(network or Network(), read, execute(read))


def look_up(
    network: Network, execute: Callable[[Read], Answer], ask: Callable[[Network], Found]
) -> tuple[Network, Found | None]:
    """Return what `ask` tells, after reading what it misses; None where that cannot be read."""
    for _ in range(MAX_ROUNDS):
        try:
            return network, ask(network)
        except Unread as unread:
            if unread.missing is None:
                break
            read = read_of(network, unread.missing)
            network = absorb(network, read, execute(read))
    return network, None


def collect(
    flows: Iterable[Flow],
    execute: Callable[[Read], Answer],
    network: Network | None = None,
    changed: Callable[[Network], Network] = lambda network: network,
) -> Network:
    """Return a network that holds what the flows' walks need, as far as `execute` tells it.

    `changed`: the walks are those of the network that it gives; what is returned is as it was read. A change can make
    a read say nothing: none is repeated.
    """
    flows, network = list(flows), network or Network()
    done: set[Missing] = set()
    for _ in range(MAX_ROUNDS):
        reads = [read for read in needed(changed(network), flows) if read.missing not in done]
        if not reads:
            break
        for read in reads:
            network = absorb(network, read, execute(read))
        done.update(read.missing for read in reads)
    return network


def read_of(network: Network, missing: Missing) -> Read:
    """Return the read that tells what is missing; another subscription than that of the interfaces is named."""
    if missing.of is PublicName:
        return Read(dig_of(missing.resource), missing)
    home = next((subscription_of(interface.id) for interface in network.all(Interface).values()), "")
    return Read(argv_of(missing, home), missing)


def _failed(network: Network, read: Read, reason: str) -> Network:
    return replace(network, failed={**network.failed, read.missing: reason})
