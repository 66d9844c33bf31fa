"""Long names by registered name; a DNS tunnel makes one of every packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import DnsLongNames
from ghost.pcap.protocols.bounded_counts import Tally
from ghost.pcap.protocols.dns_question import registered

LONG = 40
"""Characters of a whole name; shorter ones carry next to nothing."""
_MOST_DOMAINS = 4_096
_MOST_CLIENTS = 64
_SAMPLE = 64


@dataclass(slots=True)
class _Below:
    names: int = 0
    queries: int = 0
    clients: Counter[int] = field(default_factory=Counter)
    servers: Counter[int] = field(default_factory=Counter)
    kinds: Tally = field(default_factory=lambda: Tally(20))
    frames: list[int] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)
    """The names that were new last."""


class LongNames:
    def __init__(self) -> None:
        self._domains: dict[str, _Below] = {}

    def add(self, name: str, kind: str, client: int, server: int, frame: int, *, new: bool) -> None:
        """Count one query for a name of at least `LONG` characters; `new`: not queried before."""
        domain = registered(name)
        below = self._domains.get(domain)
        if below is None:
            if len(self._domains) >= _MOST_DOMAINS:
                self._forget_half()
            below = self._domains[domain] = _Below()
        below.queries += 1
        below.kinds.add(kind)
        for counts, host in ((below.clients, client), (below.servers, server)):
            if host in counts or len(counts) < _MOST_CLIENTS:
                counts[host] += 1
        if not new:
            return
        if len(below.frames) < L.SAMPLE_FRAMES:
            below.frames.append(frame)
        if len(below.sample) < _SAMPLE:
            below.sample.append(name)
        else:
            below.sample[below.names % _SAMPLE] = name
        below.names += 1

    def _forget_half(self) -> None:
        """Forget the half with the fewest names; a tunnel makes ever new ones."""
        ranked = sorted(self._domains.items(), key=lambda item: -item[1].names)
        self._domains = dict(ranked[: _MOST_DOMAINS // 2])

    def section(self, address: Callable[[int], str]) -> tuple[DnsLongNames, ...]:
        """Most names first."""
        rows = [
            DnsLongNames(
                domain=domain,
                names=below.names,
                queries=below.queries,
                client=address(below.clients.most_common(1)[0][0]),
                server=address(below.servers.most_common(1)[0][0]),
                query_types=below.kinds.most(),
                sample=tuple(below.sample),
                frames=tuple(below.frames),
            )
            for domain, below in self._domains.items()
            if below.names
        ]
        return tuple(sorted(rows, key=lambda row: (-row.names, row.domain)))
