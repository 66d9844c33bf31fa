"""DNS (RFC 1035) over UDP and TCP port 53: queries and responses matched by id, five-tuple and name, as hosts do.

Of a message header, question and addresses are read. mDNS and LLMNR are counted apart: nobody owes them an answer.

A resolver tries names with the suffixes of its search list, and asks again when it hears nothing. A failure that such
a trial soon made up for is marked as recovered: nothing was lost but time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import DnsQuery, DnsSection, DnsServer
from ghost.pcap.protocols.bounded_counts import EventCounter, Tally, Times, keep_smallest, merged_times, round_robin
from ghost.pcap.protocols.dns_answers import Answers
from ghost.pcap.protocols.dns_failures import Failures
from ghost.pcap.protocols.dns_long_names import LONG, LongNames
from ghost.pcap.protocols.dns_open_questions import Asked, Key, OpenQuestions
from ghost.pcap.protocols.dns_question import is_search_list_trial, rcode_text, read_asked
from ghost.pcap.tcp.stream_endings import beyond

SLOW_NS = 100_000_000
_TENTH_NS = 100_000_000
TRIAL_NS = 3_000_000_000
"""A resolver goes on to its next trial sooner than this."""
_MOST_LISTED = 20_000
_MOST_SLOW = 100
"""Of one server, where there is room for as many of each."""
_MOST_GIVEN_UP = 20
"""Of one server, remembered of those that were forgotten for want of room."""
_LATEST = 100
"""Tenths of a second; what comes later counts as this late."""
_MOST_TOP = 20
_MOST_OPEN = 100_000
_MOST_DONE = 100_000
_MOST_NAMES = 100_000
_MOST_SERVERS = 4_096
_MOST_CLIENTS = 4_096
_MOST_STREAMS = 10_000
_LONGEST_MESSAGE = 1 << 16
_MOST_TRIALS = 16
"""Names that do not exist, remembered for each client, server and first label until another trial succeeds."""
_MOST_TRIED = 16_384


@dataclass(slots=True)
class _Server:
    queries: int = 0
    responses: int = 0
    last_answer_ns: int = 0
    rcodes: Counter[str] = field(default_factory=Counter)
    latencies: Times = field(default_factory=Times)
    late: Counter[int] = field(default_factory=Counter)
    slow: list[Asked] = field(default_factory=list)
    given_up: list[Asked] = field(default_factory=list)
    given_up_total: int = 0
    given_up_recovered: int = 0
    unasked: EventCounter = field(default_factory=EventCounter)
    unasked_client: int | None = None


class DnsTracker:
    """Reads DNS messages; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._queries = self._responses = self._unmatched = self._repeated = 0
        self._malformed = self._truncated = self._mdns = self._llmnr = 0
        self._types, self._rcodes = Tally(1_000), Tally(100)
        self._names, self._long_names = Tally(_MOST_NAMES), LongNames()
        self._open = OpenQuestions()
        self._done: OrderedDict[Key, None] = OrderedDict()
        self._answers = Answers()
        self._servers: dict[int, _Server] = {}
        self._others = _Server()
        """Those for which there is no room, together."""
        self._answered_clients: set[int] = set()
        self._nxdomain, self._servfail = Failures(), Failures()
        self._trials: OrderedDict[tuple[int, int, str], list[Asked]] = OrderedDict()
        """Names that did not exist, by client, server and first label, which all trials of a name share."""
        self._recovered = self._slow = 0
        self._streams: OrderedDict[tuple[int, int], tuple[int, int]] = OrderedDict()
        """By the ends of a TCP direction: where the next length or message begins, and of a message its length."""

    # -------------------------------------------------------------------------------------------------- packets

    def packet(
        self, mark: int, message: bytes, source: int, source_port: int, destination: int, destination_port: int,
        frame: int, now: int, sequence: int = 0,
    ) -> bool:  # fmt: skip
        """Read the payload of one datagram or TCP segment; return False if it holds no DNS message."""
        if mark == L.MARK_MDNS:
            self._mdns += 1
            return True
        if mark == L.MARK_LLMNR:
            self._llmnr += 1
            return True
        sender, receiver = source << 16 | source_port, destination << 16 | destination_port
        if mark == L.MARK_DNS_TCP:
            return self._segment(message, sender, receiver, sequence, frame, now)
        if self._message(message, sender, receiver, frame, now):
            return True
        self._malformed += 1
        return False

    def _segment(self, octets: bytes, sender: int, receiver: int, sequence: int, frame: int, now: int) -> bool:
        """Read a TCP segment: messages have a length prefix (RFC 7766, 8); of a message in several segments the first
        is read."""
        following, size = self._streams.pop((sender, receiver), (sequence, 0))
        at = beyond(following, sequence)
        if not 0 <= at <= _LONGEST_MESSAGE:
            at, size = 0, 0  # repeated, or behind a segment that is missing
        read = False
        while at < len(octets):
            if not size:
                size = int.from_bytes(octets[at : at + 2], "big")
                at += 2
                if at >= len(octets):
                    break  # the length came alone
            read |= self._message(octets[at : at + size], sender, receiver, frame, now)
            at, size = at + size, 0
        self._streams[sender, receiver] = ((sequence + at) % (1 << 32), size)
        if len(self._streams) > _MOST_STREAMS:
            self._streams.popitem(last=False)
        return read

    def _message(self, message: bytes, sender: int, receiver: int, frame: int, now: int) -> bool:
        asking = read_asked(message)
        if asking is None:
            return False
        number = message[0] << 8 | message[1]
        if message[2] & 0x80:
            self._response((receiver, sender, number, asking), message, frame, now)
        else:
            self._query((sender, receiver, number, asking), frame, now)
        return True

    def _server(self, address: int) -> _Server:
        server = self._servers.get(address)
        if server is None:
            if len(self._servers) >= _MOST_SERVERS:
                return self._others
            server = self._servers[address] = _Server()
        return server

    def _query(self, key: Key, frame: int, now: int) -> None:
        self._queries += 1
        client, server, (name, kind) = key[0] >> 16, key[1] >> 16, key[3]
        self._types.add(kind)
        if len(name) > LONG and name not in self._names.counts:
            self._long_names.add(name, client, server, frame)
        self._names.add(name)
        self._server(server).queries += 1
        waiting = self._open.get(key)
        if waiting is not None:
            self._open.again(waiting, frame, now)
            self._repeated += 1
            return
        self._done.pop(key, None)
        self._open.add(Asked(key, (client, server, key[3]), now, now, frame))
        if len(self._open) > _MOST_OPEN:
            self._give_up(self._open.close_oldest())

    def _give_up(self, forgotten: Asked) -> None:
        server = self._server(forgotten.who[1])
        server.given_up_total += 1
        server.given_up_recovered += forgotten.recovered
        if not forgotten.recovered and len(server.given_up) < _MOST_GIVEN_UP:
            server.given_up.append(forgotten)

    def _response(self, key: Key, message: bytes, frame: int, now: int) -> None:
        rcode = rcode_text(message[3] & 15)
        self._responses += 1
        self._rcodes.add(rcode)
        self._truncated += message[2] >> 1 & 1
        client, server = key[0] >> 16, self._server(key[1] >> 16)
        server.responses += 1
        server.last_answer_ns = now
        server.rcodes[rcode] += 1
        if rcode == "NOERROR" and key[3][1] in ("A", "AAAA"):
            self._answers.add(client, key[1] >> 16, key[3][0], message, frame, now)
        if len(self._answered_clients) < _MOST_CLIENTS:
            self._answered_clients.add(client)
        if key not in self._open:
            # An error without its question (RFC 1035 allows FORMERR and the like to drop it).
            found = None if key[3][0] else self._open.numbered(key[:3])
            if found is None:
                if key not in self._done:
                    self._unmatched += 1
                    server.unasked.add(frame)
                    if server.unasked_client is None:
                        server.unasked_client = client
                return
            key = found
        asked = self._open.close(key)
        self._recovered -= asked.recovered
        asked.recovered = False
        self._done[key] = None
        if len(self._done) > _MOST_DONE:
            self._done.popitem(last=False)
        asked.latency, asked.rcode = max(now - asked.last, 0), rcode
        server.latencies.add(asked.latency)
        failed = rcode in ("SERVFAIL", "REFUSED")
        if asked.latency >= SLOW_NS:
            server.late[min(asked.latency // _TENTH_NS, _LATEST)] += not failed
            self._take_slow(server, asked)
        if rcode == "NOERROR":
            self._recover(asked, message[6] << 8 | message[7], now)
        elif rcode == "NXDOMAIN":
            self._nxdomain.add(asked)
            self._remember_trial(asked)
        elif failed:
            self._servfail.add(asked)

    def _take_slow(self, server: _Server, asked: Asked) -> None:
        server.slow.append(asked)
        self._slow += 1
        if len(server.slow) > 4 * _MOST_SLOW:
            self._slow -= len(server.slow) - _MOST_SLOW
            keep_smallest(server.slow, _MOST_SLOW, _slowest)
        if self._slow > 4 * _MOST_LISTED:
            for each in (*self._servers.values(), self._others):
                keep_smallest(each.slow, max(_MOST_LISTED // (len(self._servers) + 1), 1), _slowest)
            self._slow = sum(len(each.slow) for each in (*self._servers.values(), self._others))

    def _remember_trial(self, asked: Asked) -> None:
        group = _trial_group(asked)
        trials = self._trials.setdefault(group, [])
        trials.append(asked)
        del trials[:-_MOST_TRIALS]
        if len(self._trials) > _MOST_TRIED:
            self._trials.popitem(last=False)

    def _recover(self, asked: Asked, answers: int, now: int) -> None:
        """Mark what this success recovers: the same query unanswered, or the same name with a search suffix."""
        self._recovered += self._open.recover(asked, now)
        if not answers or not self._trials:
            return
        group = _trial_group(asked)
        if group not in self._trials:
            return
        left = []
        for trial in self._trials[group]:
            pause = asked.first - trial.last - (trial.latency or 0)
            if 0 <= pause <= TRIAL_NS and is_search_list_trial(trial.key[3][0], asked.key[3][0]):
                trial.recovered = True
                self._recovered += 1
                self._nxdomain.recovered(trial)
            else:
                left.append(trial)
        if left:
            self._trials[group] = left
        else:
            del self._trials[group]

    # -------------------------------------------------------------------------------------------------- results

    def section(self, address: Callable[[int], str], capture_end_ns: int) -> DnsSection | None:
        if not (self._queries or self._responses or self._mdns or self._llmnr or self._malformed):
            return None

        def query(asked: Asked) -> DnsQuery:
            return DnsQuery(
                name=asked.key[3][0],
                type=asked.key[3][1],
                client=address(asked.who[0]),
                server=address(asked.who[1]),
                frame=asked.frame,
                attempts=asked.attempts,
                latency_ms=None if asked.latency is None else asked.latency / 1e6,
                rcode=asked.rcode,
                recovered=asked.recovered,
                count=asked.count,
                tried_ms=max(asked.last - asked.first, 0) / 1e6,
                waited_ms=max(capture_end_ns - asked.first, 0) / 1e6 if asked.rcode is None else None,
            )

        every = [*self._servers.values(), self._others]
        for server in every:
            keep_smallest(server.slow, _MOST_SLOW, _slowest)
        slow = sorted((asked for server in every for asked in server.slow), key=_slowest)
        return DnsSection(
            queries_total=self._queries,
            responses_total=self._responses,
            unanswered_total=sum(server.given_up_total for server in every) + len(self._open),
            repeated_queries=self._repeated,
            responses_unmatched=self._unmatched,
            query_types=self._types.most(),
            rcodes=self._rcodes.most(),
            latency_ms=merged_times(server.latencies for server in every).statistics(),
            servers=self._server_rows(address),
            top_domains=tuple(self._names.most(_MOST_TOP).items()),
            unanswered=tuple(map(query, self._unanswered())),
            slow=tuple(map(query, round_robin(slow, _MOST_LISTED, _server_of))),
            nxdomain=tuple(map(query, sorted(self._nxdomain, key=_earliest))),
            servfail=tuple(map(query, sorted(self._servfail, key=_earliest))),
            nxdomain_total=self._nxdomain.total,
            servfail_total=self._servfail.total,
            distinct_names=len(self._names),
            truncated_responses=self._truncated,
            malformed=self._malformed,
            mdns_packets=self._mdns,
            llmnr_packets=self._llmnr,
            recovered_total=self._recovered,
            long_names=self._long_names.section(address),
            answered_clients=frozenset(map(address, self._answered_clients)),
            answers=self._answers.section(address),
            answers_unlisted=self._answers.unlisted,
        )

    def _unanswered(self) -> list[Asked]:
        """Return the unanswered queries to list, those that nothing recovered first."""
        given_up = [asked for server in self._servers.values() for asked in server.given_up]
        ranked = sorted([*given_up, *self._open], key=lambda asked: (asked.recovered, asked.frame))
        return sorted(round_robin(ranked, _MOST_LISTED, _server_of), key=_earliest)

    def _server_rows(self, address: Callable[[int], str]) -> tuple[DnsServer, ...]:
        waiting, recovered = Counter[int](), Counter[int]()
        for asked in self._open:
            waiting[asked.who[1]] += 1
            recovered[asked.who[1]] += asked.recovered
        rows = [
            DnsServer(
                address=address(number),
                queries=server.queries,
                responses=server.responses,
                unanswered=server.given_up_total + waiting[number],
                latency_ms=server.latencies.statistics(),
                rcodes=dict(sorted(server.rcodes.items(), key=lambda item: (-item[1], item[0]))),
                recovered=server.given_up_recovered + recovered[number],
                late={tenths: times for tenths, times in sorted(server.late.items()) if times},
                unasked=server.unasked.occurrences(),
                nxdomain_unlisted=self._nxdomain.unlisted[number],
                last_answer_ns=server.last_answer_ns,
                unasked_client=None if server.unasked_client is None else address(server.unasked_client),
            )
            for number, server in self._servers.items()
        ]
        return tuple(sorted(rows, key=lambda row: (-row.queries, row.address)))


def _trial_group(asked: Asked) -> tuple[int, int, str]:
    client, server, (name, _) = asked.who
    return client, server, name.partition(".")[0]


def _server_of(asked: Asked) -> int:
    return asked.who[1]


def _earliest(asked: Asked) -> tuple[int, Key]:
    return asked.frame, asked.key


def _slowest(asked: Asked) -> tuple[int, int]:
    return -(asked.latency or 0), asked.frame
