"""Groups failures of one kind by common cause: the server or the client they share.

A service that fails many clients is one finding. Failures of one client with many services are one as well if the kind
of failure can lie near the client. Failures that share neither end stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from ghost.pcap.array_queries import among, distinct
from ghost.pcap.array_types import Array
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_times import stream_times
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, Path, groups_of
from ghost.pcap.findings.phrasing import at, count
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Floats, Mask, PerStream, StreamRows

Part = TypeVar("Part")


def failure_groups(served: PerStream, clients: PerStream, *, near_client: bool) -> Iterator[StreamRows]:
    """Yield groups of indices into `served` and `clients`, largest first.

    A group shares a service. With `near_client` it shares a client instead, if that client fails with more services
    than the service has failing clients, and with too many for chance.
    """
    places = np.arange(len(served))
    if near_client and len(served):
        pairs = np.unique(np.stack([served, clients], axis=1), axis=0, return_counts=True)[0]  # as `distinct` does
        services_of = _times(pairs[:, 1])
        clients_of = _times(pairs[:, 0])
        many = threshold("together.many_services")
        with_client = np.array(
            [
                services_of[client] >= many and services_of[client] > clients_of[service]
                for service, client in zip(served.tolist(), clients.tolist(), strict=True)
            ],
            np.bool_,
        )
    else:
        with_client = np.zeros(len(served), np.bool_)
    shared = np.where(with_client, clients, served)
    for _, some in groups_of(places, with_client.astype(np.int64), shared):
        yield some


def _times(values: Array) -> dict[int, int]:
    known, times = np.unique(values, return_counts=True)
    return dict(zip(known.tolist(), times.tolist(), strict=True))


def grouped_findings(
    seen: Observed, rows: StreamRows, make: Callable[[StreamRows], Finding], *, near_client: bool = False,
    served: PerStream | None = None,
) -> Iterator[Finding]:  # fmt: skip
    """Yield the finding `make` returns for each group of failed streams.

    `served`: per stream, what may be the common cause besides the client; the service by default.
    """
    shared = (seen.service if served is None else served)[rows]
    for some in islice(failure_groups(shared, seen.columns.hosts[rows, CLIENT], near_client=near_client), MOST_GROUPS):
        yield of_streams(seen, rows[some], make)


def of_streams(seen: Observed, rows: StreamRows, make: Callable[[StreamRows], Finding]) -> Finding:
    """Return `make`'s finding for streams with one cause; `restrict` limits it to given host pairs."""
    c = seen.columns
    pairs = c.hosts[rows, CLIENT] << 48 | seen.service[rows]
    known = distinct(pairs).tolist()
    finding = make(rows)
    if finding.first_ns is None:
        first, last = stream_times(seen, finding.kind, rows)
        finding = replace(finding, first_ns=first, last_ns=last)
    if len(known) == 1:
        return finding
    from_client = finding.who.src in {c.host(pair >> 48) for pair in known}
    of_who = {_who(seen, pair, from_client=from_client): pair for pair in known}

    def restrict(whos: Collection[Who]) -> Finding:
        return of_streams(seen, rows[among(pairs, [of_who[who] for who in whos])], make)

    return replace(finding, other_pairs=tuple(who for who in of_who if who != finding.who), restrict=restrict)


def group_paths(seen: Observed, ways: Sequence[Path], marks: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Yield groups of indices into `ways` (directed host pairs) that share one end in the same direction, and the same
    mark (0 to 99)."""
    served, clients = [], []
    for place, way in enumerate(ways):
        by_server = _sent_by_server(seen, way)
        # What no TCP stream of the capture belongs to shares no end with anything.
        ends = [seen.number_of.get(host, -1 - place) * 200 + 100 * by_server for host in way]
        mark = marks[place] if marks else 0
        served.append(ends[1 - by_server] + mark)
        clients.append(ends[by_server] + mark)
    for some in failure_groups(np.array(served, np.int64), np.array(clients, np.int64), near_client=True):
        yield some.tolist()


def _sent_by_server(seen: Observed, way: Path) -> bool:
    sides = seen.of_path(way)[1]
    return 2 * int(sides.sum()) > len(sides)


def merged_finding(
    parts: Sequence[Part], make: Callable[[Sequence[Part]], Finding], who_of: Callable[[Part], Who]
) -> Finding:
    """Return `make`'s finding for several host pairs; `restrict` limits it to given pairs."""
    finding = make(parts)
    if len(parts) == 1:
        return finding
    whos = {who_of(part): part for part in parts}

    def restrict(some: Collection[Who]) -> Finding:
        return merged_finding([whos[who] for who in some], make, who_of)

    return replace(finding, other_pairs=tuple(who for who in whos if who != finding.who), restrict=restrict)


def _who(seen: Observed, pair: int, *, from_client: bool) -> Who:
    client, (server, port) = seen.columns.host(pair >> 48), seen.name_of(pair & (1 << 48) - 1)
    return Who(client, server, port) if from_client else Who(server, client, port)


def hosts_of(hosts: Sequence[str]) -> str:
    """Return the host, or how many there are."""
    number = len(dict.fromkeys(hosts))
    return hosts[0] if number == 1 else f"{number:,} hosts"


def other_clients_of(who: Who, clients: Iterable[str]) -> tuple[Who, ...]:
    """Return the further client pairs of a finding about one service."""
    return tuple(Who(client, who.dst, who.port) for client in dict.fromkeys(clients) if client != who.src)


def all_of_pair(seen: Observed, rows: StreamRows, holds: Mask) -> Mask:
    """Return bool[n]: whether `holds` is true for all of `rows` with the same client and service."""
    pairs = seen.columns.hosts[rows, CLIENT] << 48 | seen.service[rows]
    return ~among(pairs, pairs[~holds])


# ------------------------------------------------------------------------------------------------------------ words


@dataclass(frozen=True)
class Parties:
    """The hosts concerned: one or many clients of one or many services."""

    client: str
    server: str
    port: int
    """Those between whom it happens most often."""
    times: int
    clients: int
    services: int

    @property
    def whom(self) -> str:
        return self.client if self.clients == 1 else f"{self.clients:,} clients"

    @property
    def where(self) -> str:
        place = at(self.server, self.port)
        return place if self.services == 1 else f"{self.services:,} services, such as {place}"

    @property
    def mostly(self) -> str:
        """Return a sentence naming the most affected client; empty for one client and one service."""
        if self.clients == self.services == 1:
            return ""
        most = f"{self.client} with {at(self.server, self.port)}" if self.services > 1 else self.client
        who = count(self.clients, "client") if self.clients > 1 else count(self.services, "service")
        if self.times == 1:
            return f" Each of {who} met it once, for example {most}."
        return f" Of {who}, {most} met it most often: {self.times:,} times."

    @property
    def measured(self) -> dict[str, int]:
        several = {"clients": self.clients, "services": self.services}
        return {name: number for name, number in several.items() if number > 1}


def parties(seen: Observed, rows: StreamRows) -> Parties:
    c = seen.columns
    pairs = list(groups_of(rows, c.hosts[:, CLIENT], seen.service))
    (client, service), most = pairs[0]
    server, port = seen.name_of(service)
    clients, services = ({key[end] for key, _ in pairs} for end in (CLIENT, SERVER))
    return Parties(c.host(client), server, port, len(most), len(clients), len(services))


def clients_of(seen: Observed, rows: StreamRows) -> tuple[str, int]:
    """Return the client of most of these streams, of equals the first, and how many clients there are."""
    hosts, first, tries = np.unique(seen.columns.hosts[rows, CLIENT], return_index=True, return_counts=True)
    return seen.columns.host(int(hosts[np.lexsort((first, -tries))[0]])), len(hosts)


def representative_rows(seen: Observed, rows: StreamRows, worst: Floats | PerStream | None = None) -> StreamRows:
    """Return `rows` in display order: the worst first, and one of every client before a second."""
    if worst is not None:
        rows = rows[np.argsort(-worst, kind="stable")]
    clients = seen.columns.hosts[rows, CLIENT]
    order = np.argsort(clients, kind="stable")
    begins = np.concatenate([[True], clients[order][1:] != clients[order][:-1]])
    place = np.arange(len(rows))
    turn = np.zeros(len(rows), np.int64)
    turn[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return rows[np.argsort(turn, kind="stable")]
