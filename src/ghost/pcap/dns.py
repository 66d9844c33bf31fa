"""DNS (RFC 1035) over UDP and TCP port 53: queries and responses matched by id, five-tuple and name, as hosts do.

Messages are read with dnspython; what was read is remembered by its bytes without the id, so repeated questions cost
nothing. Only header and question are kept. mDNS and LLMNR are counted apart: nobody owes them an answer.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ghost.pcap.layout import MARK_DNS_TCP, MARK_LLMNR, MARK_MDNS
from ghost.pcap.model import DnsQuery, DnsSection, DnsServer
from ghost.pcap.samples import Samples

SLOW_MS = 100.0
_MOST_LISTED = 50
_MOST_TOP = 20
_MOST_OPEN = 100_000
_MOST_NAMES = 100_000
_MOST_SERVERS = 4096
_OTHER_NAMES = "(others)"

_Key = tuple[int, int, int, int, int, str, str]


@dataclass(frozen=True, slots=True)
class Question:
    response: bool
    opcode: int
    truncated: bool
    rcode: str
    name: str
    type: str


@dataclass(slots=True)
class _Open:
    first: int
    last: int
    frame: int
    attempts: int = 1


@dataclass(slots=True)
class _Server:
    number: int
    queries: int = 0
    responses: int = 0
    unanswered: int = 0
    rcodes: Counter[str] = field(default_factory=Counter)


@lru_cache(maxsize=4096)
def read_question(message: bytes) -> Question | None:
    """Header and first question of a message (whose id may be blanked); None where it cannot be read."""
    import dns.exception
    import dns.name
    import dns.rcode
    import dns.rdatatype

    if len(message) < 12:
        return None
    flags, questions = int.from_bytes(message[2:4], "big"), int.from_bytes(message[4:6], "big")
    name, kind = "", ""
    if questions:
        try:
            parsed, used = dns.name.from_wire(message, 12)
        except (dns.exception.DNSException, ValueError, IndexError):
            return None
        if len(message) < 12 + used + 4:
            return None
        name = parsed.to_text(omit_final_dot=True).lower() or "."
        kind = _type_text(int.from_bytes(message[12 + used : 14 + used], "big"))
    elif not flags & 0x8000:
        return None
    return Question(
        response=bool(flags & 0x8000),
        opcode=flags >> 11 & 15,
        truncated=bool(flags & 0x0200),
        rcode=dns.rcode.to_text(dns.rcode.Rcode(flags & 15)) if (flags & 15) <= 10 else f"RCODE{flags & 15}",
        name=name,
        type=kind,
    )


def _type_text(number: int) -> str:
    import dns.rdatatype

    return dns.rdatatype.to_text(dns.rdatatype.RdataType.make(number))


class DnsTracker:
    """Takes DNS messages; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._queries = self._responses = self._unmatched = self._repeated = 0
        self._malformed = self._truncated = self._mdns = self._llmnr = 0
        self._types: Counter[str] = Counter()
        self._rcodes: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._open: OrderedDict[_Key, _Open] = OrderedDict()
        self._done: OrderedDict[_Key, None] = OrderedDict()
        self._servers: dict[int, _Server] = {}
        self._samples = Samples()
        self._latencies: list[tuple[int, int]] = []
        self._unanswered: list[tuple[_Key, _Open]] = []
        self._unanswered_total = 0
        self._slow: list[tuple[float, _Key, _Open, str]] = []
        self._nxdomain: dict[tuple[int, int, str, str], tuple[_Key, _Open, float]] = {}
        self._servfail: dict[tuple[int, int, str, str], tuple[_Key, _Open, float, str]] = {}
        self._nxdomain_total = self._servfail_total = 0

    def packet(
        self, mark: int, message: bytes, source: int, source_port: int, destination: int, destination_port: int,
        frame: int, now: int,
    ) -> bool:  # fmt: skip
        """Take in the payload of one datagram or TCP segment; False if no DNS message can be read in it."""
        if mark == MARK_MDNS:
            self._mdns += 1
            return True
        if mark == MARK_LLMNR:
            self._llmnr += 1
            return True
        if mark == MARK_DNS_TCP:
            # RFC 7766: a length goes before. Messages in several segments are not put together.
            read = False
            while len(message) >= 14:
                size = int.from_bytes(message[:2], "big")
                read |= self._message(
                    message[2 : 2 + size], source, source_port, destination, destination_port, frame, now
                )
                message = message[2 + size :]
            return read
        if self._message(message, source, source_port, destination, destination_port, frame, now):
            return True
        self._malformed += 1
        return False

    def _message(
        self,
        message: bytes,
        source: int,
        source_port: int,
        destination: int,
        destination_port: int,
        frame: int,
        now: int,
    ) -> bool:
        question = read_question(b"\0\0" + message[2:])
        if question is None:
            return False
        number = int.from_bytes(message[:2], "big")
        if question.response:
            key = (destination, destination_port, source, source_port, number, question.name, question.type)
            self._response(key, question, now)
        else:
            key = (source, source_port, destination, destination_port, number, question.name, question.type)
            self._query(key, question, frame, now)
        return True

    def _server(self, address: int) -> _Server:
        server = self._servers.get(address)
        if server is None:
            server = _Server(len(self._servers) + 1)
            if len(self._servers) < _MOST_SERVERS:
                self._servers[address] = server
        return server

    def _query(self, key: _Key, question: Question, frame: int, now: int) -> None:
        self._queries += 1
        self._types[question.type] += 1
        known = question.name in self._names or len(self._names) < _MOST_NAMES
        self._names[question.name if known else _OTHER_NAMES] += 1
        self._server(key[2]).queries += 1
        waiting = self._open.get(key)
        if waiting is not None:
            waiting.attempts += 1
            waiting.last, waiting.frame = now, frame
            self._repeated += 1
            return
        self._done.pop(key, None)
        self._open[key] = _Open(now, now, frame)
        if len(self._open) > _MOST_OPEN:
            self._give_up(*self._open.popitem(last=False))

    def _give_up(self, key: _Key, waiting: _Open) -> None:
        self._unanswered_total += 1
        self._server(key[2]).unanswered += 1
        if len(self._unanswered) < _MOST_LISTED:
            self._unanswered.append((key, waiting))

    def _response(self, key: _Key, question: Question, now: int) -> None:
        self._responses += 1
        self._rcodes[question.rcode] += 1
        self._truncated += question.truncated
        server = self._server(key[2])
        server.responses += 1
        server.rcodes[question.rcode] += 1
        waiting = self._open.pop(key, None)
        if waiting is None and not question.name:
            # An error without its question (RFC 1035 allows FORMERR and the like to drop it).
            key, waiting = self._by_id(key)
        if waiting is None:
            if key not in self._done:
                self._unmatched += 1
            return
        self._done[key] = None
        if len(self._done) > 4096:
            self._done.popitem(last=False)
        latency = max(now - waiting.last, 0)
        self._latencies.append((server.number, latency))
        if len(self._latencies) >= 4096:
            self._flush()
        latency_ms = latency / 1e6
        if latency_ms >= SLOW_MS:
            self._slow.append((latency_ms, key, waiting, question.rcode))
            if len(self._slow) > 4 * _MOST_LISTED:
                self._slow.sort(key=lambda one: -one[0])
                del self._slow[_MOST_LISTED:]
        who = (key[0], key[2], key[5], key[6])
        if question.rcode == "NXDOMAIN":
            self._nxdomain_total += 1
            if len(self._nxdomain) < _MOST_LISTED:
                self._nxdomain.setdefault(who, (key, waiting, latency_ms))
        elif question.rcode in ("SERVFAIL", "REFUSED"):
            self._servfail_total += 1
            if len(self._servfail) < _MOST_LISTED:
                self._servfail.setdefault(who, (key, waiting, latency_ms, question.rcode))

    def _by_id(self, key: _Key) -> tuple[_Key, _Open | None]:
        for candidate in self._open:
            if candidate[:5] == key[:5]:
                return candidate, self._open.pop(candidate)
        return key, None

    def _flush(self) -> None:
        if self._latencies:
            columns = np.array(self._latencies, np.int64)
            self._samples.add(columns[:, 0], columns[:, 1])
            self._latencies.clear()

    def section(self, address: Callable[[int], str]) -> DnsSection | None:
        if not (self._queries or self._responses or self._mdns or self._llmnr or self._malformed):
            return None
        self._flush()
        while self._open:
            self._give_up(*self._open.popitem(last=False))

        def query(key: _Key, waiting: _Open, latency_ms: float | None, rcode: str | None) -> DnsQuery:
            return DnsQuery(
                name=key[5],
                type=key[6],
                client=address(key[0]),
                server=address(key[2]),
                frame=waiting.frame,
                attempts=waiting.attempts,
                latency_ms=latency_ms,
                rcode=rcode,
            )

        return DnsSection(
            queries_total=self._queries,
            responses_total=self._responses,
            unanswered_total=self._unanswered_total,
            repeated_queries=self._repeated,
            responses_unmatched=self._unmatched,
            query_types=dict(self._types.most_common()),
            rcodes=dict(self._rcodes.most_common()),
            latency_ms=self._samples.of_all(0, 1),
            servers=tuple(
                DnsServer(
                    address=address(number),
                    queries=server.queries,
                    responses=server.responses,
                    unanswered=server.unanswered,
                    latency_ms=self._samples.of(server.number),
                    rcodes=dict(server.rcodes.most_common()),
                )
                for number, server in sorted(self._servers.items(), key=lambda item: -item[1].queries)
            ),
            top_domains=tuple(self._names.most_common(_MOST_TOP)),
            unanswered=tuple(query(*one, None, None) for one in self._unanswered),
            slow=tuple(
                query(key, waiting, latency_ms, rcode)
                for latency_ms, key, waiting, rcode in sorted(self._slow, key=lambda one: -one[0])[:_MOST_LISTED]
            ),
            nxdomain=tuple(query(*one, "NXDOMAIN") for one in self._nxdomain.values()),
            servfail=tuple(query(*one) for one in self._servfail.values()),
            nxdomain_total=self._nxdomain_total,
            servfail_total=self._servfail_total,
            distinct_names=len(self._names),
            truncated_responses=self._truncated,
            malformed=self._malformed,
            mdns_packets=self._mdns,
            llmnr_packets=self._llmnr,
        )
