"""Walks of sets: from which addresses something is reached, and at which ports.

Addresses and ports are cut wherever something in the network tells them apart; one walk for each part stands for all in
it, and parts that end alike are told as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address

from ghost.net.address_sets import Span, address_spans, joined, port_spans, public_spans
from ghost.net.balancing import LoadBalancer, PublicAddress
from ghost.net.gate_hops import PLATFORM_TAGS
from ghost.net.gateways import Site
from ghost.net.hops import Walk
from ghost.net.named_addresses import addresses_named, collections_of, resources_of, security_rules_of
from ghost.net.network import Network
from ghost.net.resources import Guest, Interface, Resource
from ghost.net.security import Flow
from ghost.net.services import RedisCache
from ghost.net.walks import walk

FIRST_PUBLIC = "1.0.0.1"
"""An address of the internet, by which to learn what must be read before it is cut."""


@dataclass(frozen=True)
class Part:
    """What ends alike: prefixes of sources, or ranges of ports."""

    of: tuple[str, ...]
    walk: Walk
    """Of one of them."""


def public_address_of(network: Network, address: str) -> str | None:
    """Return the public address by which the internet reaches an interface's address; None: none. Raises `Unread`."""
    for interface in network.interfaces_with(address):
        for configuration in interface.configurations:
            if configuration.address == address and configuration.public_address:
                return network.one(PublicAddress, configuration.public_address).address
    return None


def ports_to(network: Network, flow: Flow) -> list[Part]:
    """Return all ports of the flow's destination, by how a packet to them ends."""
    named = [text for resource in resources_of(network) for text in _ports_named(resource)]
    named += [str(port) for _, port in PLATFORM_TAGS]
    spans = [Span(max(span.first, 1), span.last) for span in port_spans(named) if span.last > 0]
    return [
        Part(tuple(span.ports() for span in joined(alike)), walked)
        for alike, walked in _alike((span, walk(network, replace(flow, destination_port=span.first))) for span in spans)
    ]


def sources_of(network: Network, flow: Flow, public: str | None = None) -> list[Part]:
    """Return who sends to the flow's destination, by how it ends: each interface, known sites, and the internet.

    `public`: the public address by which the internet reaches the destination; None: it has none.
    """
    named = list(addresses_named(network))
    inside = {
        int(ip_address(interface.address))
        for interface in network.all(Interface).values()
        if not interface.has(flow.destination_address) and ip_address(interface.address).version == 4
    }
    beyond = address_spans([prefix for site in network.all(Site).values() for prefix in site.prefixes], named)
    outside = public_spans(named) if public else []
    walks = [
        *((Span(n, n), walk(network, replace(flow, source_address=Span(n, n).address))) for n in sorted(inside)),
        *((span, walk(network, replace(flow, source_address=span.address))) for span in beyond),
        *(
            (span, walk(network, replace(flow, source_address=span.address, destination_address=public or "")))
            for span in outside
        ),
    ]
    return [
        Part(tuple(prefix for span in joined(alike) for prefix in span.prefixes()), walked)
        for alike, walked in _alike(walks)
    ]


def _alike(walks: Iterable[tuple[Span, Walk]]) -> Iterator[tuple[list[Span], Walk]]:
    """Yield the spans that end alike, with the walk of the first of them."""
    found: dict[tuple[object, ...], tuple[list[Span], Walk]] = {}
    for span, walked in walks:
        found.setdefault(_end(walked), ([], walked))[0].append(span)
    yield from found.values()


def _end(walked: Walk) -> tuple[object, ...]:
    decisive = walked.blocker or next((hop for hop in walked.hops if hop.verdict == "unknown"), None)
    if decisive is None:
        return (walked.outcome,)
    return walked.outcome, decisive.kind, decisive.resource, decisive.rule, decisive.direction, decisive.leg


def _ports_named(resource: Resource) -> Iterator[str]:
    for rule in security_rules_of(resource):
        yield from rule.destination_ports
    for collection in collections_of(resource):
        for firewall_rule in collection.rules:
            yield from firewall_rule.destination_ports
            yield from (each.partition(":")[2] for each in firewall_rule.protocols if ":" in each)
    match resource:
        case LoadBalancer():
            yield from (str(rule.port) for rule in resource.rules if rule.port)
            yield from (f"{rule.ports[0]}-{rule.ports[1]}" for rule in resource.nat_rules)
        case RedisCache():
            yield from map(str, resource.closed_ports)
        case Guest():
            yield from (str(listener.port) for _, listener in resource.listeners or ())
            yield from _filtered_ports(resource)


def _filtered_ports(guest: Guest) -> Iterator[str]:
    for table in guest.packet_filter.tables if guest.packet_filter else ():
        for match in (match for chain in table.chains for rule in chain.rules for match in rule.matches):
            for at, field in enumerate(match.fields):
                if field.endswith("port"):
                    yield from (f"{element[at][0]}-{min(element[at][1], 65535)}" for element in match.elements)
