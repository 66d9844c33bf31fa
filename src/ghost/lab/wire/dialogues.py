"""Application data accepted by protocol analysers: TLS, HTTP, Redis, PostgreSQL.

A dialogue is a list of turns. Each begins when its receiver has read the previous one. Sizes are approximate because of
headers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from random import Random
from typing import Literal

from ghost.lab.wire.certificates import certificate
from ghost.lab.wire.conditions import ServiceFault
from ghost.lab.wire.refusals import Refusal

Side = Literal["client", "server"]

TLS_RECORD = 16_000
OK = b"HTTP/1.1 200 OK"
HEAD = 300
"""Bytes around what a refusal says."""
CERTIFICATE_EXPIRED, CERTIFICATE_UNKNOWN, PROTOCOL_VERSION = 45, 46, 70
TEXT = b"abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class Turn:
    side: Side
    octets: bytes
    pause: float
    """Seconds between the end of the turn before and this one: what the application thinks."""
    ends: Literal["", "close", "reset"] = ""
    """What the side does in place of speaking."""


@dataclass(frozen=True)
class Sizes:
    request: int
    response: int


def dialogue(
    port: int,
    sizes: Sizes,
    server_name: str,
    random: Random,
    *,
    service: ServiceFault | None = None,
    refusal: Refusal | None = None,
    idle_seconds: float = 0.0,
) -> list[Turn]:
    """Return the dialogue of a client and a server on `port`; TLS for unknown ports.

    `service`: how the service behaves. `refusal`: with what it refuses before it closes. `idle_seconds`: pause before
    the request.
    """
    if service is not None and service.tls:
        return failing_handshake(service.tls, server_name, random)
    if refusal is not None:
        return refused(port, sizes, server_name, random, refusal)
    turns = PROTOCOLS.get(port, tls)(sizes, server_name, random)
    answer = max(number for number, turn in enumerate(turns) if turn.side == "server")
    asked = turns[answer - 1]
    turns[answer - 1] = replace(asked, pause=asked.pause + idle_seconds)
    if service is not None:
        late = replace(turns[answer], pause=turns[answer].pause + service.answers_after_ms / 1000)
        turns[answer] = replace(_with_status(late, service.http_status), ends=service.ends)
    return turns


def refused(port: int, sizes: Sizes, server_name: str, random: Random, refusal: Refusal) -> list[Turn]:
    """Return the dialogue up to the service's refusal, or to its first word where it says nothing; then it closes."""
    turns = PROTOCOLS.get(port, tls)(Sizes(sizes.request, len(refusal.body) + HEAD), server_name, random)
    answers = [number for number, turn in enumerate(turns) if turn.side == "server"]
    last = answers[-1] + 1 if refusal.body else answers[0]
    said = [_with_status(turn, refusal.http_status) for turn in turns[:last]]
    return [*said, Turn("server", b"", 0.0002, "close")]


def _with_status(turn: Turn, status: int | None) -> Turn:
    if status is None or not turn.octets.startswith(OK):
        return turn
    return replace(turn, octets=f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode() + turn.octets[len(OK) :])


def tls(sizes: Sizes, server_name: str, random: Random) -> list[Turn]:
    """Return TLS 1.3 (RFC 8446): hellos in the clear, the rest as application data records."""
    session = random.randbytes(32)
    return [
        Turn("client", _client_hello(server_name, session, random), 0.0004),
        Turn("server", _server_hello(session, random) + _records(b"\x14", b"\x01") + _sealed(2400, random), 0.0019),
        Turn("client", _records(b"\x14", b"\x01") + _sealed(74, random), 0.0011),
        Turn("client", _sealed(sizes.request, random), 0.0003),
        Turn("server", _sealed(sizes.response, random), _thinking(random)),
    ]


def failing_handshake(why: str, server_name: str, random: Random) -> list[Turn]:
    """Return a handshake that ends with an alert: the server's about the version (RFC 8446, 6.2), or the client's about
    the certificate, which TLS 1.2 (RFC 5246) shows in the clear.
    """
    session = random.randbytes(32)
    hello = Turn("client", _client_hello(server_name, session, random), 0.0004)
    if why == "version":
        return [hello, Turn("server", _alert(PROTOCOL_VERSION), 0.0012)]
    expired = why == "expired"
    shown = certificate(server_name if expired else f"other.{server_name}", random, expired=expired)
    chain = struct.pack(">I", len(shown))[1:] + shown
    flight = (
        _handshake(2, b"\x03\x03" + random.randbytes(32) + bytes([len(session)]) + session + b"\xc0\x2b\x00\0\0"),
        _handshake(11, struct.pack(">I", len(chain))[1:] + chain),
        _handshake(
            12, b"\x03\x00\x17\x41" + b"\x04" + random.randbytes(64) + b"\x04\x03\x00\x40" + random.randbytes(64)
        ),
        _handshake(14, b""),
    )
    alert = _alert(CERTIFICATE_EXPIRED if expired else CERTIFICATE_UNKNOWN)
    return [hello, Turn("server", b"".join(flight), 0.0021), Turn("client", alert, 0.0015)]


def http(sizes: Sizes, server_name: str, random: Random) -> list[Turn]:
    head = f"GET /status HTTP/1.1\r\nHost: {server_name}\r\nUser-Agent: probe/1.0\r\nAccept: */*\r\n"
    padding = max(sizes.request - len(head) - 20, 8)
    request = f"{head}X-Request: {_text(padding, random).decode()}\r\n\r\n".encode()
    body = _text(sizes.response, random)
    head = f"\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return [Turn("client", request, 0.0003), Turn("server", OK + head.encode() + body, _thinking(random))]


def redis(sizes: Sizes, _server_name: str, random: Random) -> list[Turn]:
    def bulk(value: bytes) -> bytes:
        return b"$%d\r\n%s\r\n" % (len(value), value)

    key = b"session:" + _text(12, random)
    return [
        Turn("client", b"*1\r\n" + bulk(b"PING"), 0.0002),
        Turn("server", b"+PONG\r\n", 0.0001),
        Turn("client", b"*3\r\n" + bulk(b"SET") + bulk(key) + bulk(_text(sizes.request, random)), 0.0004),
        Turn("server", b"+OK\r\n", 0.0001),
        Turn("client", b"*2\r\n" + bulk(b"GET") + bulk(key), 0.0004),
        Turn("server", bulk(_text(sizes.response, random)), 0.0002),
    ]


def postgresql(sizes: Sizes, _server_name: str, random: Random) -> list[Turn]:
    """Return a PostgreSQL login and query: https://www.postgresql.org/docs/current/protocol-message-formats.html"""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack(">I", len(body) + 4) + body

    startup = struct.pack(">I", 196608) + b"user\0app\0database\0orders\0\0"
    ready = message(b"Z", b"I")
    column = struct.pack(">H", 1) + b"payload\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0)
    query = b"SELECT payload FROM orders WHERE note <> '" + _text(max(sizes.request - 60, 8), random) + b"'\0"
    payload = _text(sizes.response, random)
    row = struct.pack(">HI", 1, len(payload)) + payload
    answer = message(b"T", column) + message(b"D", row) + message(b"C", b"SELECT 1\0") + ready
    return [
        Turn("client", struct.pack(">I", len(startup) + 4) + startup, 0.0003),
        Turn("server", message(b"R", struct.pack(">I", 0)) + ready, 0.0021),
        Turn("client", message(b"Q", query), 0.0008),
        Turn("server", answer, _thinking(random)),
        Turn("client", message(b"X", b""), 0.0012),
    ]


PROTOCOLS: dict[int, Callable[[Sizes, str, Random], list[Turn]]] = {
    80: http,
    8000: http,
    8080: http,
    5432: postgresql,
    6379: redis,
}


def _thinking(random: Random) -> float:
    return random.uniform(0.002, 0.009)


def _text(size: int, random: Random) -> bytes:
    return bytes(random.choices(TEXT, k=max(size, 1)))


def _records(kind: bytes, body: bytes) -> bytes:
    cut = [body[at : at + TLS_RECORD] for at in range(0, len(body), TLS_RECORD)]
    return b"".join(kind + b"\x03\x03" + struct.pack(">H", len(piece)) + piece for piece in cut)


def _sealed(size: int, random: Random) -> bytes:
    """Return application data of about `size` bytes, with the tag and type of encryption."""
    return _records(b"\x17", random.randbytes(size + 17))


def _alert(description: int) -> bytes:
    return _records(b"\x15", bytes([2, description]))


def _handshake(kind: int, body: bytes) -> bytes:
    return _records(b"\x16", bytes([kind]) + struct.pack(">I", len(body))[1:] + body)


def _extension(kind: int, body: bytes) -> bytes:
    return struct.pack(">HH", kind, len(body)) + body


def _client_hello(server_name: str, session: bytes, random: Random) -> bytes:
    name = server_name.encode("ascii")
    extensions = b"".join(
        (
            _extension(0, struct.pack(">HBH", len(name) + 3, 0, len(name)) + name),
            _extension(10, struct.pack(">HH", 2, 0x001D)),
            _extension(13, struct.pack(">HHH", 4, 0x0403, 0x0804)),
            _extension(43, b"\x02\x03\x04"),
            _extension(51, struct.pack(">HHH", 36, 0x001D, 32) + random.randbytes(32)),
        )
    )
    suites = struct.pack(">HHHH", 6, 0x1301, 0x1302, 0xC02B)
    body = b"\x03\x03" + random.randbytes(32) + bytes([len(session)]) + session + suites + b"\x01\x00"
    return _handshake(1, body + struct.pack(">H", len(extensions)) + extensions)


def _server_hello(session: bytes, random: Random) -> bytes:
    extensions = _extension(43, b"\x03\x04") + _extension(51, struct.pack(">HH", 0x001D, 32) + random.randbytes(32))
    body = b"\x03\x03" + random.randbytes(32) + bytes([len(session)]) + session + b"\x13\x01\x00"
    return _handshake(2, body + struct.pack(">H", len(extensions)) + extensions)
