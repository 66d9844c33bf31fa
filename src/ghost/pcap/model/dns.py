"""Names that were asked for, and what became of the questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ghost.pcap.model.common import Statistics


@dataclass(frozen=True, slots=True)
class DnsQuery:
    """One query worth naming: unanswered, slow or failed."""

    name: str
    type: str
    client: str
    server: str
    frame: int
    """Of the (last) query."""
    attempts: int
    """Same client, server, id, name: 1 unless the client repeated it."""
    latency_ms: float | None
    rcode: str | None
    recovered: bool = False
    """The client soon got what it wanted: the name without a search suffix, or the same question, answered."""


@dataclass(frozen=True, slots=True)
class DnsServer:
    address: str
    queries: int
    responses: int
    unanswered: int
    latency_ms: Statistics | None
    rcodes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DnsSection:
    """Unicast DNS on port 53, over UDP and TCP; mDNS and LLMNR are counted apart."""

    queries_total: int
    responses_total: int
    unanswered_total: int
    """Distinct queries (repeats folded) without a response."""
    repeated_queries: int
    responses_unmatched: int
    query_types: Mapping[str, int]
    rcodes: Mapping[str, int]
    """By mnemonic: NOERROR, NXDOMAIN, SERVFAIL, REFUSED, ..."""
    latency_ms: Statistics | None
    servers: tuple[DnsServer, ...]
    top_domains: tuple[tuple[str, int], ...]
    """Asked names, most frequent first, up to twenty."""
    unanswered: tuple[DnsQuery, ...]
    """These four up to fifty each."""
    slow: tuple[DnsQuery, ...]
    """Slowest first, those above 100 ms."""
    nxdomain: tuple[DnsQuery, ...]
    servfail: tuple[DnsQuery, ...]
    """SERVFAIL and REFUSED."""
    nxdomain_total: int
    servfail_total: int
    distinct_names: int
    truncated_responses: int
    malformed: int
    mdns_packets: int
    llmnr_packets: int
    recovered_total: int = 0
    """Of the NXDOMAIN answers and the unanswered queries, those that a later success made up for."""
