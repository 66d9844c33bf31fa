"""What must be read for a walk, and how an answer of `az` becomes part of the network.

Pure: `needed` names reads, `absorb` takes their text. `collect` repeats both over a caller's `execute`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ghost.net.az_reads import argv_of, is_readable, resources_of
from ghost.net.network import Missing, Network, Unread
from ghost.net.resources import Interface, key, subscription_of
from ghost.net.security import Flow
from ghost.net.walks import walk

Found = TypeVar("Found")
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


def needed(network: Network, flows: Iterable[Flow]) -> list[Read]:
    """Return the reads that walks of these flows still need, without repetition."""
    missing = dict.fromkeys(missing for flow in flows for missing in walk(network, flow).missing)
    return [read_of(network, each) for each in missing if is_readable(each)]


def absorb(network: Network, read: Read, answer: Answer) -> Network:
    """Return the network with what a read told. One that cannot be understood told nothing, and is not repeated."""
    if answer.failure is not None:
        return _failed(network, read, answer.failure)
    try:
        found = resources_of(read.missing, json.loads(answer.text), answer.reference)
    except (ValueError, RecursionError) as unreadable:
        return _failed(network, read, f"az {' '.join(read.argv[1:4])} gave no usable answer: {str(unreadable)[:200]}")
    if read.missing.resource and key(read.missing.resource) not in (key(each.id) for each in found):
        return _failed(network, read, f"az {' '.join(read.argv[1:4])} answered about something else")
    network = network.with_resources(read.missing.of, found, complete=not read.missing.resource)
    parts = [part for resource in found for part in resource.parts]
    for kind in dict.fromkeys(map(type, parts)):
        network = network.with_resources(kind, [part for part in parts if type(part) is kind])
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
    home = next((subscription_of(interface.id) for interface in network.all(Interface).values()), "")
    return Read(argv_of(missing, home), missing)


def _failed(network: Network, read: Read, reason: str) -> Network:
    return replace(network, failed={**network.failed, read.missing: reason})
