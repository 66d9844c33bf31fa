"""DNS queries and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ghost.pcap.model.shared_values import Occurrences, Statistics


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
    count: int = 1
    """Failures: how often this client got it for this name and type."""
    waited_ms: float | None = None
    """Unanswered: from the first attempt to the end of the capture."""
    tried_ms: float = 0.0
    """From the first attempt to the last."""


@dataclass(frozen=True, slots=True)
class DnsServer:
    address: str
    queries: int
    responses: int
    unanswered: int
    latency_ms: Statistics | None
    rcodes: Mapping[str, int]
    recovered: int = 0
    """Of the unanswered ones, those that another attempt made up for."""
    late: Mapping[int, int] = field(default_factory=dict)
    """Answers that came late and are no failures of the server, by whole tenths of a second (from 1 on)."""
    unasked: Occurrences = field(default_factory=Occurrences)
    """Responses whose query is not in the capture."""
    unasked_client: str | None = None
    """Who got the first of them."""
    nxdomain_unlisted: int = 0
    """NXDOMAIN answers for whose names the list has no room."""
    last_answer_ns: int = 0
    """When it answered last; 0 where it never did."""


@dataclass(frozen=True, slots=True)
class DnsAnswer:
    """The addresses that one server gave one client for a name, over the whole capture."""

    name: str
    client: str
    server: str
    addresses: tuple[str, ...]
    private_link: bool
    """An alias on the way to an address, or the name itself, lies in a zone of private endpoints (`privatelink.*`)."""
    complete: bool
    """No answer was truncated, and none has more addresses than are kept."""
    first_ns: int
    frame: int
    """Of the first answer."""


@dataclass(frozen=True, slots=True)
class DnsLongNames:
    """Names below one registered name that carry data: forty random characters or more."""

    domain: str
    names: int
    """Different ones."""
    client: str
    server: str
    frames: tuple[int, ...]


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
    """Some thousands at most, and of each server as many as of any other."""
    slow: tuple[DnsQuery, ...]
    """Slowest first, those above 100 ms; up to a hundred of each server."""
    nxdomain: tuple[DnsQuery, ...]
    """Each client's name and type once, with how often. Bounded for each server, and for each registered name."""
    servfail: tuple[DnsQuery, ...]
    """SERVFAIL and REFUSED; as `nxdomain`."""
    nxdomain_total: int
    servfail_total: int
    distinct_names: int
    truncated_responses: int
    malformed: int
    mdns_packets: int
    llmnr_packets: int
    recovered_total: int = 0
    """Of the NXDOMAIN answers and the unanswered queries, those that a later success made up for."""
    long_names: tuple[DnsLongNames, ...] = ()
    """Most names first."""
    answered_clients: frozenset[str] = frozenset()
    """Who got any response, of the first some thousands."""
    answers: tuple[DnsAnswer, ...] = ()
    """By client, server and name, of the first some thousands."""
    answers_unlisted: int = 0
    """Answers for whose names the list has no room."""
