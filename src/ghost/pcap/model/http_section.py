"""HTTP/1 exchanges: methods, hosts, status, times and Retry-After. Never a path, query, other header or body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ghost.pcap.model.shared_values import Side, Statistics


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """A request and its answer, if any."""

    stream_id: int
    client: str
    server: str
    port: int
    host: str | None
    method: str | None
    """None where the capture does not hold the request."""
    status: int | None
    response_ms: float | None
    """From the request's first packet to the answer's; for one without answer, how long it had waited."""
    frames: tuple[int, ...] = ()
    """The request's, then the answer's."""
    promised_bytes: int | None = None
    """Content-Length of the answer."""
    came_bytes: int | None = None
    """Of its body, up to where the connection or the capture ended."""
    ended_by: Side | None = None
    """Who closed or reset the connection first; None where nobody did."""
    reset: bool = False
    empty: bool = False
    """A slow answer that has no body."""
    path: int | None = None
    """Of a slow answer: which of the capture's paths was asked, by a number that says nothing of its text."""


@dataclass(frozen=True, slots=True)
class HttpPath:
    """A path of a server, asked with one method, some of whose answers took over a second."""

    answers: int
    slow: int
    waiting: int
    """Further requests that had waited for over a second when their connection or the capture ended."""
    exchanges: tuple[HttpExchange, ...]
    """The first slow ones, up to twenty."""


@dataclass(frozen=True, slots=True)
class HttpErrors:
    """Answers with the same status of 400 or above that a server gave a client, to one method for one host."""

    server: str
    port: int
    host: str | None
    status: int
    count: int
    frames: tuple[int, ...] = ()
    client: str | None = None
    """None for those of many thousands that are counted as one."""
    method: str | None = None
    """Host and method are None where the request was not captured."""
    answers: int = 0
    """To this client, host and method, with any status."""
    served: int = 0
    """Answers below 400 of this host, to whomever."""
    served_there: int = 0
    """Answers below 400 of this server, for any host."""
    paths: int = 0
    """Different ones that were asked, up to twenty."""
    retry_after_s: int | None = None
    """The longest that the server asked the client to wait, of a 429."""
    by_gateway: bool = False
    """Of a 403: the Server header names a gateway of Azure, which refused by itself what it did not forward."""
    last_frame: int = 0


@dataclass(frozen=True, slots=True)
class HttpSection:
    requests: int = 0
    responses: int = 0
    """Final ones; interim answers (1xx) are counted in `status_distribution` only."""
    methods: Mapping[str, int] = field(default_factory=dict)
    status_distribution: Mapping[str, int] = field(default_factory=dict)
    """By code, e.g. `{"200": 10, "503": 1}`."""
    hosts: Mapping[str, int] = field(default_factory=dict)
    """Requests by Host, most frequent first, up to twenty."""
    response_ms: Statistics | None = None
    slow: tuple[HttpExchange, ...] = ()
    """Slowest first, above one second, up to twenty; no event streams and no upgraded connections."""
    slow_paths: tuple[HttpPath, ...] = ()
    """Those with most slow answers first, up to fifty; no event streams and no upgraded connections."""
    errors: tuple[HttpErrors, ...] = ()
    """Most frequent first, some thousands at most."""
    unanswered: tuple[HttpExchange, ...] = ()
    """Up to fifty."""
    unanswered_total: int = 0
    incomplete: tuple[HttpExchange, ...] = ()
    """The connection ended before as many bytes came as Content-Length promised. Up to fifty."""
    incomplete_total: int = 0
    unpaired_responses: int = 0
    """Their request was not captured, or could not be told."""
    upgraded: int = 0
    """Connections that became tunnels or websockets."""
    proxies: frozenset[str] = frozenset()
    """Addresses that were asked to connect to others (CONNECT)."""
    switched_streams: tuple[int, ...] = ()
    """Those of them on which both ends agreed on another protocol (status 101)."""
