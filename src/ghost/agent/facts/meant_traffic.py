"""What code says of the traffic that a symptom means: whether a cause's flow is of it, and whether it passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ghost.agent.facts.second_walk import flows_of, told_walk
from ghost.agent.session import MeantTraffic
from ghost.net import Fault, Flow, Network, explain, known_kinds, walk


def includes(meant: MeantTraffic, network: Network, stated: Mapping[str, Any]) -> bool:
    """Return whether a cause's flow is of this traffic, by its ends: the address of a name is as good as the name."""
    of_cause = [(flow, _destinations(network, flow, source)) for flow, source in flows_of(network, stated)]
    for each in meant.flows:
        ways = list(flows_of(network, asdict(each))) if each.source else []
        there = {each.destination, *(end for flow, source in ways for end in _destinations(network, flow, source))}
        sources = {flow.source_address for flow, _ in ways}
        for flow, destinations in of_cause:
            same_source = not each.source or flow.source_address in sources
            if same_source and there & destinations and each.port in (None, flow.destination_port):
                return True
    return False


def _destinations(network: Network, flow: Flow, source: str | None) -> set[str]:
    return {flow.destination_address, walk(network, flow, source=source).flow.destination_address}


def against_the_walk(meant: MeantTraffic, network: Network, layer: str) -> str | None:
    """Return why a layer is not clear: the walk of the traffic that is stopped there."""
    for flow, source, faults in _walks(meant, network):
        if any(_layer(fault) == layer for fault in faults):
            return f"the walk says otherwise: {told_walk(network, flow, source)}"
    return None


def not_passing(meant: MeantTraffic, network: Network) -> Iterator[str]:
    """Yield the walks of the traffic that do not pass; one line where the words leave open which it is."""
    if not meant.sure:
        yield "the symptom does not say for certain which traffic is meant"
    for flow, source, faults in _walks(meant, network):
        if faults or walk(network, flow, source=source).outcome != "passes":
            yield told_walk(network, flow, source)


def stopped(meant: MeantTraffic, network: Network) -> Iterator[str]:
    """Yield the walks of the traffic that something stops, for one member of a pool at least."""
    for flow, source, _ in _walks(meant, network):
        if walk(network, flow, source=source).first_stop is not None:
            yield told_walk(network, flow, source)


def _walks(meant: MeantTraffic, network: Network) -> Iterator[tuple[Flow, str | None, Sequence[Fault]]]:
    for each in meant.flows if meant.sure else ():
        for flow, source in flows_of(network, asdict(each)):
            yield flow, source, explain(network, flow, source=source)


def _layer(fault: Fault) -> str:
    kind = known_kinds().get(fault.kind)
    layer = kind.layer if kind is not None else ""
    return f"nsg_{(fault.hop.direction or '').casefold()}" if layer == "nsg" else layer
