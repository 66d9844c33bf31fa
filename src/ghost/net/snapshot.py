"""What must be read for a walk, and how an answer of `az` becomes part of the network.

Pure: `needed` names reads, `absorb` takes their text. `collect` repeats both over a caller's `execute`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from ghost.net import azure_resources
from ghost.net.azure_json import groups_from_effective_nsg, routes_from_effective_table
from ghost.net.network import EffectiveGroups, EffectiveRoutes, Missing, Network, key, name_of
from ghost.net.packet_path import walk
from ghost.net.security import Flow

MAX_ROUNDS: Final = 20
"""Rounds of reads; each asks for something new, so that an end is sure."""


@dataclass(frozen=True)
class Read:
    """One read of Azure, as `az` is called."""

    argv: tuple[str, ...]
    missing: Missing


@dataclass(frozen=True)
class Answer:
    """What a read told. `reference`: the caller's name for it; `failure`: why it told nothing."""

    text: str
    reference: str = ""
    failure: str | None = None


_COMMANDS: Final = {
    "interfaces": ("network", "nic", "list"),
    "virtual_networks": ("network", "vnet", "show"),
    "security_groups": ("network", "nsg", "show"),
    "route_tables": ("network", "route-table", "show"),
    "machines": ("vm", "get-instance-view"),
    "effective_groups": ("network", "nic", "list-effective-nsg"),
    "effective_routes": ("network", "nic", "show-effective-route-table"),
}


def needed(network: Network, flows: Iterable[Flow]) -> list[Read]:
    """Return the reads that walks of these flows still need, without repetition."""
    missing = dict.fromkeys(missing for flow in flows for missing in walk(network, flow).missing)
    return [Read(argv_of(each), each) for each in missing]


def absorb(network: Network, read: Read, answer: Answer) -> Network:
    """Return the network with what a read told. One that cannot be understood told nothing, and is not repeated."""
    if answer.failure is not None:
        return _failed(network, read, answer.failure)
    try:
        return _absorbed(network, read.missing, json.loads(answer.text), answer.reference)
    except (ValueError, RecursionError) as unreadable:
        return _failed(network, read, f"az {' '.join(read.argv[1:4])} gave no usable answer: {str(unreadable)[:200]}")


def read_interfaces(execute: Callable[[Read], Answer], network: Network | None = None) -> Network:
    """Return the network with all interfaces: what names and addresses stand for."""
    missing = Missing("interfaces")
    read = Read(argv_of(missing), missing)
    return absorb(network or Network(), read, execute(read))


def collect(flows: Iterable[Flow], execute: Callable[[Read], Answer], network: Network | None = None) -> Network:
    """Return a network that holds what the flows' walks need, as far as `execute` tells it."""
    flows, network = list(flows), network or Network()
    for _ in range(MAX_ROUNDS):
        reads = needed(network, flows)
        if not reads:
            break
        for read in reads:
            network = absorb(network, read, execute(read))
    return network


def argv_of(missing: Missing) -> tuple[str, ...]:
    if not missing.resource:
        return ("az", *_COMMANDS[missing.kind], "-o", "json")
    group = missing.resource.partition("/resourceGroups/")[2].partition("/")[0]
    where = ("-g", group or "unknown", "-n", name_of(missing.resource))
    return ("az", *_COMMANDS[missing.kind], *where, "-o", "json")


def _absorbed(network: Network, missing: Missing, answer: Any, reference: str) -> Network:
    of = key(missing.resource)
    match missing.kind:
        case "effective_groups":
            groups = EffectiveGroups(groups_from_effective_nsg(answer), reference)
            return replace(network, effective_groups={**network.effective_groups, of: groups})
        case "effective_routes":
            routes = EffectiveRoutes(routes_from_effective_table(answer), reference)
            return replace(network, effective_routes={**network.effective_routes, of: routes})
        case kind:
            read = getattr(azure_resources, kind)
            return network.with_resources(kind, read(answer, reference), complete=not of)


def _failed(network: Network, read: Read, reason: str) -> Network:
    return replace(network, failed={**network.failed, read.missing: reason})
