"""DNS (RFC 1035) over UDP and TCP port 53: queries and responses matched by id, five-tuple and name, as hosts do.

Only header and question are kept. mDNS and LLMNR are counted apart: nobody owes them an answer.

A resolver tries names with the suffixes of its search list, and asks again when it hears nothing. A failure that such
a trial soon made up for is marked as recovered: nothing was lost but time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap.bounded import Tally, Times, keep_least, merged_times
from ghost.pcap.dns_question import is_trial_of, rcode_text, read_asked
from ghost.pcap.endings import beyond
from ghost.pcap.layout import MARK_DNS_TCP, MARK_LLMNR, MARK_MDNS
from ghost.pcap.model import DnsQuery, DnsSection, DnsServer

SLOW_NS = 100_000_000
RECOVERY_NS = 10_000_000_000
"""An answer to the same question that comes later than this made up for nothing."""
TRIAL_NS = 3_000_000_000
"""A resolver goes on to its next trial sooner than this."""
_MOST_LISTED = 50
_MOST_TOP = 20
_MOST_OPEN = 100_000
_MOST_DONE = 100_000
_MOST_NAMES = 100_000
_MOST_SERVERS = 4_096
_MOST_CLIENTS = 4_096
_MOST_STREAMS = 10_000
_LONGEST_MESSAGE = 1 << 16
_MOST_TRIALS = 16
"""Names that do not exist, remembered for each client and server until another trial succeeds."""

_Asking = tuple[str, str]
"""Name and type."""
_Key = tuple[int, int, int, _Asking]
"""Endpoints of client and server (address id << 16 | port), message id, name and type."""
_Who = tuple[int, int, _Asking]
"""Client, server, name and type."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A question, and what became of it."""

    key: _Key
    who: _Who
    first: int
    last: int
    frame: int
    attempts: int = 1
    latency: int | None = None
    rcode: str | None = None
    recovered: bool = False


@dataclass(slots=True)
class _Server:
    queries: int = 0
    responses: int = 0
    rcodes: Counter[str] = field(default_factory=Counter)
    latencies: Times = field(default_factory=Times)


class DnsTracker:
    """Takes DNS messages; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._queries = self._responses = self._unmatched = self._repeated = 0
        self._malformed = self._truncated = self._mdns = self._llmnr = 0
        self._types, self._rcodes = Tally(1_000), Tally(100)
        self._names = Tally(_MOST_NAMES)
        self._open: OrderedDict[_Key, _Asked] = OrderedDict()
        self._by_number: dict[tuple[int, int, int], list[_Key]] | None = None
        """Open questions by endpoints and id; made when the first answer without its question asks for it."""
        self._by_name: dict[_Who, _Asked | list[_Asked]] = {}
        """Open questions: one, or where there were several a list."""
        self._done: OrderedDict[_Key, None] = OrderedDict()
        self._servers: dict[int, _Server] = {}
        self._given_up: list[_Asked] = []
        """Forgotten for want of room."""
        self._given_up_total = 0
        self._given_up_by: Counter[int] = Counter()
        self._slow: list[_Asked] = []
        self._failed: dict[str, dict[_Who, _Asked]] = {"nxdomain": {}, "servfail": {}}
        """By client, server, name and type: the first."""
        self._failures: Counter[str] = Counter()
        self._trials: OrderedDict[tuple[int, int], list[_Asked]] = OrderedDict()
        """Names that did not exist, by client and server."""
        self._recovered = 0
        self._streams: OrderedDict[tuple[int, int], tuple[int, int]] = OrderedDict()
        """By the ends of a TCP direction: where the next length or message begins, and of a message its length."""

    # -------------------------------------------------------------------------------------------------- packets

    def packet(
        self, mark: int, message: bytes, source: int, source_port: int, destination: int, destination_port: int,
        frame: int, now: int, sequence: int = 0,
    ) -> bool:  # fmt: skip
        """Take in the payload of one datagram or TCP segment; False if no DNS message can be read in it."""
        if mark == MARK_MDNS:
            self._mdns += 1
            return True
        if mark == MARK_LLMNR:
            self._llmnr += 1
            return True
        sender, receiver = source << 16 | source_port, destination << 16 | destination_port
        if mark == MARK_DNS_TCP:
            return self._segment(message, sender, receiver, sequence, frame, now)
        if self._message(message, sender, receiver, frame, now):
            return True
        self._malformed += 1
        return False

    def _segment(self, octets: bytes, sender: int, receiver: int, sequence: int, frame: int, now: int) -> bool:
        """Messages over TCP have their length before them (RFC 7766, 8); of one in several segments the first is read,
        and the others are passed over."""
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
            self._response((receiver, sender, number, asking), message, now)
        else:
            self._query((sender, receiver, number, asking), frame, now)
        return True

    def _server(self, address: int) -> _Server:
        server = self._servers.get(address)
        if server is None:
            server = _Server()
            if len(self._servers) < _MOST_SERVERS:
                self._servers[address] = server
        return server

    def _query(self, key: _Key, frame: int, now: int) -> None:
        self._queries += 1
        name, kind = key[3]
        self._types.add(kind)
        self._names.add(name)
        self._server(key[1] >> 16).queries += 1
        waiting = self._open.get(key)
        if waiting is not None:
            waiting.attempts += 1
            waiting.last, waiting.frame = now, frame
            self._repeated += 1
            return
        self._done.pop(key, None)
        self._opened(_Asked(key, (key[0] >> 16, key[1] >> 16, key[3]), now, now, frame))
        if len(self._open) > _MOST_OPEN:
            forgotten = self._closed(next(iter(self._open)))
            self._given_up_total += 1
            self._given_up_by[forgotten.who[1]] += 1
            if len(self._given_up) < _MOST_LISTED:
                self._given_up.append(forgotten)

    def _opened(self, asked: _Asked) -> None:
        key = asked.key
        self._open[key] = asked
        if self._by_number is not None:
            self._by_number.setdefault(key[:3], []).append(key)
        same = self._by_name.get(asked.who)
        if same is None:
            self._by_name[asked.who] = asked
        elif isinstance(same, list):
            same.append(asked)
        else:
            self._by_name[asked.who] = [same, asked]

    def _closed(self, key: _Key) -> _Asked:
        asked = self._open.pop(key)
        if self._by_number is not None:
            numbered = self._by_number[key[:3]]
            numbered.remove(key)
            if not numbered:
                del self._by_number[key[:3]]
        same = self._by_name[asked.who]
        if isinstance(same, list):
            same.remove(asked)
        if same is asked or not same:
            del self._by_name[asked.who]
        return asked

    def _numbered(self, number: tuple[int, int, int]) -> _Key | None:
        """The first open question with these ends and this id."""
        if self._by_number is None:
            self._by_number = {}
            for key in self._open:
                self._by_number.setdefault(key[:3], []).append(key)
        return next(iter(self._by_number.get(number, ())), None)

    def _response(self, key: _Key, message: bytes, now: int) -> None:
        rcode = rcode_text(message[3] & 15)
        self._responses += 1
        self._rcodes.add(rcode)
        self._truncated += message[2] >> 1 & 1
        server = self._server(key[1] >> 16)
        server.responses += 1
        server.rcodes[rcode] += 1
        if key not in self._open:
            # An error without its question (RFC 1035 allows FORMERR and the like to drop it).
            found = None if key[3][0] else self._numbered(key[:3])
            if found is None:
                self._unmatched += key not in self._done
                return
            key = found
        asked = self._closed(key)
        self._recovered -= asked.recovered
        asked.recovered = False
        self._done[key] = None
        if len(self._done) > _MOST_DONE:
            self._done.popitem(last=False)
        asked.latency, asked.rcode = max(now - asked.last, 0), rcode
        server.latencies.add(asked.latency)
        if asked.latency >= SLOW_NS:
            self._slow.append(asked)
            if len(self._slow) > 4 * _MOST_LISTED:
                keep_least(self._slow, _MOST_LISTED, _slowest)
        if rcode == "NOERROR":
            self._recover(asked, message[6] << 8 | message[7], now)
        elif rcode == "NXDOMAIN":
            self._fail("nxdomain", asked)
            self._remember_trial(asked)
        elif rcode in ("SERVFAIL", "REFUSED"):
            self._fail("servfail", asked)

    def _fail(self, kind: str, asked: _Asked) -> None:
        self._failures[kind] += 1
        failed = self._failed[kind]
        if len(failed) < _MOST_LISTED:
            failed.setdefault(asked.who, asked)

    def _remember_trial(self, asked: _Asked) -> None:
        both = asked.who[:2]
        trials = self._trials.setdefault(both, [])
        trials.append(asked)
        del trials[:-_MOST_TRIALS]
        if len(self._trials) > _MOST_CLIENTS:
            self._trials.popitem(last=False)

    def _recover(self, asked: _Asked, answers: int, now: int) -> None:
        """What this success made up for: the same question unanswered, the same name with a search suffix."""
        same = self._by_name.get(asked.who, ())
        for other in (same,) if isinstance(same, _Asked) else same:
            if not other.recovered and other.first <= asked.first and now - other.last <= RECOVERY_NS:
                other.recovered = True
                self._recovered += 1
        both = asked.who[:2]
        if not answers or both not in self._trials:
            return
        left = []
        for trial in self._trials[both]:
            pause = asked.first - trial.last - (trial.latency or 0)
            if 0 <= pause <= TRIAL_NS and is_trial_of(trial.key[3][0], asked.key[3][0]):
                trial.recovered = True
                self._recovered += 1
            else:
                left.append(trial)
        if left:
            self._trials[both] = left
        else:
            del self._trials[both]

    # -------------------------------------------------------------------------------------------------- results

    def section(self, address: Callable[[int], str]) -> DnsSection | None:
        if not (self._queries or self._responses or self._mdns or self._llmnr or self._malformed):
            return None

        def query(asked: _Asked) -> DnsQuery:
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
            )

        unanswered_by = self._given_up_by + Counter(key[1] >> 16 for key in self._open)
        unanswered = sorted([*self._given_up, *self._open.values()], key=_earliest)
        keep_least(self._slow, _MOST_LISTED, _slowest)
        servers = [
            DnsServer(
                address=address(number),
                queries=server.queries,
                responses=server.responses,
                unanswered=unanswered_by[number],
                latency_ms=server.latencies.statistics(),
                rcodes=dict(sorted(server.rcodes.items(), key=lambda item: (-item[1], item[0]))),
            )
            for number, server in self._servers.items()
        ]
        nxdomain, servfail = (
            tuple(query(asked) for asked in sorted(self._failed[kind].values(), key=_earliest))
            for kind in ("nxdomain", "servfail")
        )
        return DnsSection(
            queries_total=self._queries,
            responses_total=self._responses,
            unanswered_total=self._given_up_total + len(self._open),
            repeated_queries=self._repeated,
            responses_unmatched=self._unmatched,
            query_types=self._types.most(),
            rcodes=self._rcodes.most(),
            latency_ms=merged_times(server.latencies for server in self._servers.values()).statistics(),
            servers=tuple(sorted(servers, key=lambda server: (-server.queries, server.address))),
            top_domains=tuple(self._names.most(_MOST_TOP).items()),
            unanswered=tuple(map(query, unanswered[:_MOST_LISTED])),
            slow=tuple(map(query, self._slow)),
            nxdomain=nxdomain,
            servfail=servfail,
            nxdomain_total=self._failures["nxdomain"],
            servfail_total=self._failures["servfail"],
            distinct_names=len(self._names),
            truncated_responses=self._truncated,
            malformed=self._malformed,
            mdns_packets=self._mdns,
            llmnr_packets=self._llmnr,
            recovered_total=self._recovered,
        )


def _earliest(asked: _Asked) -> tuple[int, _Key]:
    return asked.frame, asked.key


def _slowest(asked: _Asked) -> tuple[int, int]:
    return -(asked.latency or 0), asked.frame
