"""HTTP/1 exchanges (RFC 9112), from the heads that begin a segment: who asked, how it was answered, and how soon.

Requests and answers of a connection are paired in order. Of a head only the method, Host, status, Content-Length, what
says that no length counts or that a body waits, Retry-After of a 429, and of a path a digest are read; a query and
every other field are passed over. Bodies are never handed over: whether one is complete is told from sequence numbers.
An upload may hold what looks like a request; it is none inside a body, nor where something else than its body or
another head lies behind it in the segment.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from ghost.pcap import layout as L
from ghost.pcap.model import HttpExchange, HttpPath, HttpSection, Side
from ghost.pcap.protocols.bounded_counts import Tally, Times, keep_smallest
from ghost.pcap.protocols.host_names import http_host
from ghost.pcap.protocols.http_errors import ErrorAnswers
from ghost.pcap.protocols.http_paths import Asked, Paths
from ghost.pcap.tcp.stream_endings import Ending, Endings, beyond

SLOW_NS = 1_000_000_000
WAIT_NS = 3_000_000_000
"""A request on an open connection that the capture did not follow for so long is not called unanswered."""
_MOST_STREAMS = 200_000
_MOST_WAITING = 100
"""Pipelined requests of one connection."""
_MOST_LISTED = 50
_MOST_SLOW = 20
_MOST_HOSTS = 20
_MOST_HEADS = 64
"""Read from one segment."""
_SHORT_HEAD = 1_024
"""Bytes; of longer heads none is remembered."""
_AT_ONCE = 10 * 1_460
"""Bytes of a body that go out with its head, in the initial window (RFC 6928)."""
_MODULO = 1 << 32

_METHODS = {
    name.encode(): name
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH", "TRACE", "PROPFIND",
                 "PROPPATCH", "SEARCH")
}  # fmt: skip
_REQUEST = re.compile(rb"(" + b"|".join(_METHODS) + rb") ([^\s]+)(?: HTTP/1\.[0-9]\r?\n|\Z)")
_STATUS = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9]{2})[ \r\n]")
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r?(?:\n|\Z)", re.IGNORECASE)
_EVENTS = re.compile(rb"\ncontent-type:[ \t]*text/event-stream", re.IGNORECASE)
_ENCODED = re.compile(rb"\ntransfer-encoding:[ \t]*[a-z]", re.IGNORECASE)
_GATEWAY = re.compile(rb"\r\n(?:server:[ \t]*Microsoft-Azure-Application-Gateway|x-azure-ref:)", re.IGNORECASE)
"""Application Gateway, and Front Door."""
_FORBIDDEN = 403
_RETRY_AFTER = re.compile(rb"\nretry-after:[ \t]*([0-9]{1,9})[ \t]*\r?(?:\n|\Z)", re.IGNORECASE)
_TOO_MANY = 429
_EXPECT = re.compile(rb"\nexpect:", re.IGNORECASE)


class Head(NamedTuple):
    """Head of a request or an answer."""

    method: str | None
    """None in an answer."""
    status: int
    """0 in a request."""
    host: str | None
    promised: int | None
    """Content-Length; None where the head has none, or where it does not count."""
    encoded: bool
    """The body is chunked or the like: its end is told inside it."""
    end: int
    """Bytes of the head; all there are where its end is missing."""
    streams: bool = False
    """The body is a stream of events, which has no end."""
    target: int = 0
    """A digest of a request's path, without its query."""
    waits: bool = False
    """The client may send its body only when it is told to (Expect)."""
    retry_after_s: int | None = None
    by_gateway: bool = False


def read_head(octets: bytes) -> Head | None:
    """Return the head at the beginning of `octets`; None if there is none."""
    blank = octets.find(b"\r\n\r\n")
    if blank < 0:
        return _read_head(octets, len(octets))
    whole = octets[: blank + 4]
    return _repeated_head(whole) if blank < _SHORT_HEAD else _read_head(whole, blank + 2)


@lru_cache(maxsize=2_048)
def _repeated_head(whole: bytes) -> Head | None:
    """Cached, since the same heads recur."""
    return _read_head(whole, len(whole) - 2)


def _read_head(octets: bytes, stop: int) -> Head | None:
    """Return the head; `stop`: where its last line ends."""
    answer = _STATUS.match(octets) if octets.startswith(b"HTTP/") else None
    request = None if answer else _REQUEST.match(octets)
    if request is None and answer is None:
        return None
    head, end = octets[:stop], len(octets)
    length, encoded = _LENGTH.search(head), _ENCODED.search(head) is not None
    promised = int(length[1]) if length and not encoded else None
    if request:
        path = zlib.crc32(request[2].partition(b"?")[0])
        waits = promised is not None and _EXPECT.search(head) is not None
        return Head(_METHODS[request[1]], 0, http_host(head), promised, encoded, end, target=path, waits=waits)
    assert answer is not None
    status = int(answer[1])
    streams = encoded and _EVENTS.search(head) is not None
    again = _RETRY_AFTER.search(head) if status == _TOO_MANY else None
    wait = int(again[1]) if again else None
    by_gateway = status == _FORBIDDEN and _GATEWAY.search(head) is not None
    return Head(None, status, None, promised, encoded, end, streams, retry_after_s=wait, by_gateway=by_gateway)


class _Request(NamedTuple):
    method: str
    host: str | None
    now: int
    frame: int
    whole: bool
    """It has no body, or all of it came with its head or right behind it."""
    acknowledged: int
    """What the client had of the server's bytes."""
    target: int


class _Answer(NamedTuple):
    request: _Request
    status: int
    frame: int
    promised: int | None
    """None where the body tells its end itself, in chunks."""
    body_from: int
    """Sequence number at which the body begins."""


class _Slow(NamedTuple):
    before: int
    """What took longer comes first: minus nanoseconds."""
    frame: int
    status: int
    stream: int
    client: int
    server: int
    request: _Request
    empty: bool
    path: int


@dataclass(slots=True, eq=False)
class _Connection:
    client: int
    server: int
    """Endpoints."""
    waiting: list[_Request] | None = None
    """Made when a request waits: most connections are over when their capture is."""
    asked_to: int = -1
    """Sequence number behind the client's last head; the same for the server: what lies before is a repeat."""
    answered_to: int = -1
    last: _Answer | None = None
    """The last answer whose body was to go on in later segments."""
    tunnel: bool = False
    body_to: int = -1
    """Sequence number behind the body of the client's last request; -1 where there is none, or nobody knows."""
    encoded: bool = False
    """The last request's body tells its end itself, which is not read."""
    interim: bool = False
    """The server has said 100 Continue or the like to it, which is no answer yet."""

    def may_begin(self, sequence: int, acknowledged: int) -> bool:
        """Return whether a request may begin at this place, by earlier requests and answers."""
        if self.body_to >= 0 and beyond(sequence, self.body_to) < 0:
            # Refused before its body was sent, a request may go without it (RFC 9110, 10.1.1).
            return sequence == self.asked_to and not self.waiting
        if self.encoded and self.waiting:
            return not self.interim and beyond(acknowledged, self.waiting[-1].acknowledged) > 0
        return True


class HttpTracker:
    """Reads segments that begin with a head; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._connections: dict[int, _Connection] = {}
        self._names: dict[int, str] = {}
        self._requests = self._responses = self._unpaired = self._upgraded = 0
        self._switched: list[int] = []
        self._proxies: set[int] = set()
        self._methods, self._statuses, self._hosts = Tally(100), Tally(1_000), Tally(10_000)
        self._times = Times()
        self._slow: list[_Slow] = []
        self._paths: Paths[_Slow] = Paths()
        self._errors = ErrorAnswers()

    # -------------------------------------------------------------------------------------------------- packets

    def packet(
        self, stream: int, ends: tuple[int, int], sequence: int, acknowledged: int, payload: bytes, length: int,
        frame: int, now: int,
    ) -> None:  # fmt: skip
        """Read one segment; `ends`: source and destination, address id << 16 | port each."""
        head = read_head(payload)
        if head is None:
            return
        answers = head.method is None
        connection = self._connections.get(stream)
        if connection is None:
            if len(self._connections) >= _MOST_STREAMS:
                return
            connection = self._connections[stream] = _Connection(*(ends[::-1] if answers else ends))
        if connection.tunnel or ends[0] != (connection.server if answers else connection.client):
            return  # what is inside a tunnel, or a body that looks like a head
        done_to = connection.answered_to if answers else connection.asked_to
        if done_to >= 0 and beyond(sequence, done_to) < 0:
            return
        if not answers and not (connection.may_begin(sequence, acknowledged) and _plausible(head, payload, length)):
            return
        at = 0
        for _ in range(_MOST_HEADS):
            here = (sequence + at + head.end) % _MODULO
            if answers:
                body = self._answer(stream, connection, head, here, length - at - head.end, frame, now)
            else:
                body = self._request(stream, connection, head, length - at - head.end, acknowledged, frame, now)
            at += head.end
            if body is None or connection.tunnel or at + body >= len(payload):
                break
            # Pipelined: another head behind a body that lies in the same segment.
            following = read_head(payload[at + body :])
            if following is None or (following.method is None) != answers:
                break
            head, at = following, at + body
        if answers:
            connection.answered_to = (sequence + at) % _MODULO
        else:
            connection.asked_to = (sequence + at) % _MODULO
            more = body is not None and length - at < body < _MODULO // 2
            connection.body_to = (connection.asked_to + (body or 0)) % _MODULO if more else -1

    def _request(
        self, stream: int, connection: _Connection, head: Head, left: int, acknowledged: int, frame: int, now: int
    ) -> int | None:
        """Read a request: return the length of its body, None if unknown.

        `left`: bytes of the segment after the head.
        """
        assert head.method is not None
        self._requests += 1
        self._methods.add(head.method)
        if head.method == "CONNECT":
            self._proxies.add(connection.server >> 16)
        if head.host is not None:
            self._hosts.add(head.host.lower())
            self._names.setdefault(stream, head.host)
        missing = (head.promised or 0) - left
        whole = not head.encoded and (missing <= 0 or (missing <= _AT_ONCE and not head.waits))
        request = _Request(head.method, head.host, now, frame, whole, acknowledged, head.target)
        connection.encoded, connection.interim = head.encoded, False
        if not connection.waiting:
            connection.waiting = [request]
        elif len(connection.waiting) < _MOST_WAITING:
            connection.waiting.append(request)
        return None if head.encoded else head.promised or 0

    def _answer(
        self, stream: int, connection: _Connection, head: Head, body_from: int, left: int, frame: int, now: int
    ) -> int | None:
        status = head.status
        self._statuses.add(str(status))
        if 100 <= status < 200 and status != 101:
            connection.interim = True
            return 0
        self._responses += 1
        connection.last = None
        request = None
        if connection.waiting:
            request = connection.waiting.pop(0)
            if not connection.waiting:
                connection.waiting = None
        host, method, path = (request.host, request.method, request.target) if request is not None else (None, "", 0)
        asker = connection.client >> 16, connection.server, (host or "").lower(), method
        self._errors.add(asker, status, path, frame, head.retry_after_s, by_gateway=head.by_gateway)
        if request is None:
            self._unpaired += 1
            # Without its request it may be the answer to a HEAD: nobody knows whether a body follows.
            return head.promised if status not in (101, 204, 304) else 0
        if request.whole:
            self._times.add(now - request.now)
            asked = (connection.server, method, path)
            number = self._paths.answered(asked)
            if now - request.now >= SLOW_NS:
                empty = status in (204, 304) or (head.promised == 0 and not head.encoded)
                ends = connection.client, connection.server
                slow = _Slow(request.now - now, frame, status, stream, *ends, request, empty, number)
                self._keep_slow(slow)
                if not head.streams and status != 101:
                    self._paths.slowly(asked, slow)
        if status == 101 or (request.method == "CONNECT" and status < 300):
            self._upgraded += 1
            if status == 101:
                self._switched.append(stream)
            connection.tunnel = True
            return None
        if request.method == "HEAD" or status in (204, 304):
            return 0
        if head.promised is not None and head.promised > left:
            connection.last = _Answer(request, status, frame, head.promised, body_from)
        elif head.encoded and not head.streams:
            connection.last = _Answer(request, status, frame, None, body_from)
        return head.promised

    def _keep_slow(self, slow: _Slow) -> None:
        self._slow.append(slow)
        if len(self._slow) >= 10 * _MOST_SLOW:
            keep_smallest(self._slow, _MOST_SLOW, lambda each: each[:2])

    # -------------------------------------------------------------------------------------------------- results

    def server_names(self) -> dict[int, str]:
        """Return the Host of the first request of each stream."""
        return self._names

    def section(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> HttpSection | None:
        if not (self._requests or self._responses):
            return None
        unanswered: list[HttpExchange] = []
        incomplete: list[HttpExchange] = []
        hanging: Counter[Asked] = Counter()
        for stream in sorted(self._connections):
            connection = self._connections[stream]
            if connection.tunnel or not (connection.waiting or connection.last):
                continue
            end = ending(stream)
            if connection.waiting:
                last_ns = min(end.last_ns, capture_end_ns) if _closing(connection, end)[0] else capture_end_ns
                for request in connection.waiting:
                    hanging[connection.server, request.method, request.target] += last_ns - request.now >= SLOW_NS
                unanswered += _unanswered(stream, connection, end, capture_end_ns, address)
            elif connection.last is not None:
                incomplete += _incomplete(stream, connection, connection.last, end, address)
        keep_smallest(self._slow, _MOST_SLOW, lambda each: each[:2])
        return HttpSection(
            requests=self._requests,
            responses=self._responses,
            methods=self._methods.most(),
            status_distribution=self._statuses.most(),
            hosts=self._hosts.most(_MOST_HOSTS),
            response_ms=self._times.statistics(),
            slow=tuple(_late(each, address) for each in self._slow),
            slow_paths=tuple(
                HttpPath(answers, slow, hanging[asked], tuple(_late(each, address) for each in kept))
                for asked, answers, slow, kept in islice(self._paths.slow_ones(lambda each: each.frame), _MOST_LISTED)
            ),
            errors=self._errors.listed(address),
            unanswered=tuple(unanswered[:_MOST_LISTED]),
            unanswered_total=len(unanswered),
            incomplete=tuple(incomplete[:_MOST_LISTED]),
            incomplete_total=len(incomplete),
            unpaired_responses=self._unpaired,
            upgraded=self._upgraded,
            proxies=frozenset(map(address, self._proxies)),
            switched_streams=tuple(self._switched),
        )  # fmt: skip


def _plausible(head: Head, payload: bytes, length: int) -> bool:
    """Return whether the request fits the stream: after a request comes its body or the next request. (After CONNECT
    the client may send anything.)"""
    body = head.promised or 0
    if head.encoded or head.method == "CONNECT" or length - head.end <= body:
        return True
    following = payload[head.end + body :].lstrip(b"\r\n")  # some send an empty line behind a body
    return not following or any(following.startswith(method[: len(following)]) for method in _METHODS)


def _unanswered(
    stream: int, connection: _Connection, end: Ending, capture_end_ns: int, address: Callable[[int], str]
) -> list[HttpExchange]:
    server = end.of(connection.server)
    ended_by, reset, closing = _closing(connection, end)
    until = capture_end_ns if ended_by is None else end.last_ns
    return [
        _exchange(stream, connection.client, connection.server, request, address,
                  response_ms=max(until - request.now, 0) / 1e6, ended_by=ended_by, reset=reset,
                  frames=(request.frame, *closing))
        for request in connection.waiting or ()
        # Whatever the server sent since may be an answer that was not read; a server that was not captured at all
        # may have sent anything.
        if server.next_sequence >= 0
        and beyond(server.next_sequence, request.acknowledged) <= 0
        and (ended_by is not None or until - request.now >= WAIT_NS)
    ]  # fmt: skip


def _incomplete(
    stream: int, connection: _Connection, last: _Answer, end: Ending, address: Callable[[int], str]
) -> list[HttpExchange]:
    server = end.of(connection.server)
    came = beyond(server.next_sequence, last.body_from)
    if last.promised is None:
        # Its last chunk, and the trailers behind it, end in an empty line.
        complete = server.last_words != L.NO_BLANK
    else:
        complete = came >= last.promised or last.promised >= _MODULO // 2
    if came < 0 or complete:
        return []
    ended_by, reset, closing = _closing(connection, end)
    if ended_by is None:
        return []
    return [
        _exchange(stream, connection.client, connection.server, last.request, address, status=last.status,
                  promised_bytes=last.promised, came_bytes=came, ended_by=ended_by, reset=reset,
                  frames=(last.request.frame, last.frame, *closing))
    ]  # fmt: skip


def _closing(connection: _Connection, end: Ending) -> tuple[Side | None, bool, tuple[int, ...]]:
    """Return who closed the stream first, whether by a reset, and in which frame."""
    first = end.first_close(connection.client, connection.server)
    return (first.side, first.reset, (first.frame,)) if first is not None else (None, False, ())


def _late(slow: _Slow, address: Callable[[int], str]) -> HttpExchange:
    return _exchange(
        slow.stream, slow.client, slow.server, slow.request, address, status=slow.status,
        response_ms=-slow.before / 1e6, frames=(slow.request.frame, slow.frame), empty=slow.empty, path=slow.path,
    )  # fmt: skip


def _exchange(
    stream: int, client: int, server: int, request: _Request, address: Callable[[int], str], *,
    frames: tuple[int, ...], status: int | None = None, response_ms: float | None = None,
    promised_bytes: int | None = None, came_bytes: int | None = None, ended_by: Side | None = None,
    reset: bool = False, empty: bool = False, path: int = -1,
) -> HttpExchange:  # fmt: skip
    return HttpExchange(
        stream_id=stream,
        client=address(client >> 16),
        server=address(server >> 16),
        port=server & 0xFFFF,
        host=request.host,
        method=request.method,
        status=status,
        response_ms=response_ms if response_ms is None else round(response_ms, 3),
        frames=frames,
        promised_bytes=promised_bytes,
        came_bytes=came_bytes,
        ended_by=ended_by,
        reset=reset,
        empty=empty,
        path=path if path >= 0 else None,
    )
