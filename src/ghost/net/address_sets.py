"""Sets of addresses and ports, cut where rules and routes differ: one walk for each part stands for all in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from itertools import pairwise
from typing import Final

from ghost.net.address_matching import HOST_ADDRESS, parse_network, parse_ports

LAST_PORT: Final = 65535
NOT_PUBLIC: Final = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", f"{HOST_ADDRESS}/32", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/3",
)  # fmt: skip
"""Space that no host of the internet has: IANA's special-purpose registry (RFC 6890), multicast and reserved space."""


@dataclass(frozen=True, order=True)
class Span:
    """Whole numbers from first to last: of IPv4 addresses, or of ports."""

    first: int
    last: int

    @property
    def address(self) -> str:
        """The first address, which stands for all in the span."""
        return str(IPv4Address(self.first))

    def prefixes(self) -> list[str]:
        return [str(each) for each in summarize_address_range(IPv4Address(self.first), IPv4Address(self.last))]

    def ports(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def address_spans(within: Iterable[str], cut_by: Iterable[str]) -> list[Span]:
    """Return the space of IPv4 prefixes as spans that none of `cut_by` cuts; ranges FIRST-LAST are taken, tags not."""
    return _cut(_merged(_spans(within)), _spans(cut_by))


def public_spans(cut_by: Iterable[str]) -> list[Span]:
    """Return the space of the internet as spans, none of which a prefix of `cut_by` cuts."""
    special = [_span(IPv4Network(prefix)) for prefix in NOT_PUBLIC]
    return [span for span in address_spans(["0.0.0.0/0"], [*cut_by, *NOT_PUBLIC]) if not _inside(span, special)]


def port_spans(cut_by: Iterable[str]) -> list[Span]:
    """Return all ports as spans, none of which a range of `cut_by` cuts."""
    return _cut([Span(0, LAST_PORT)], [Span(*parse_ports(text)) for text in cut_by])


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, adjacent ones as one."""
    return _merged(spans)


def _cut(whole: Iterable[Span], cuts: Iterable[Span]) -> list[Span]:
    starts = sorted({edge for cut in cuts for edge in (cut.first, cut.last + 1)})
    found = []
    for span in whole:
        edges = [span.first, *(edge for edge in starts if span.first < edge <= span.last), span.last + 1]
        found += [Span(first, after - 1) for first, after in pairwise(edges)]
    return found


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return merged


def _spans(prefixes: Iterable[str]) -> Iterator[Span]:
    for prefix in prefixes:
        first, _, last = prefix.partition("-")
        network, end = parse_network(first), parse_network(last or first)
        if isinstance(network, IPv4Network) and isinstance(end, IPv4Network):
            yield Span(int(network.network_address), int(end.broadcast_address))


def _span(network: IPv4Network) -> Span:
    return Span(int(network.network_address), int(network.broadcast_address))


def _inside(span: Span, spaces: Iterable[Span]) -> bool:
    return any(space.first <= span.first and span.last <= space.last for space in spaces)
