"""Application data accepted by protocol analysers: TLS, HTTP, Redis, PostgreSQL.

A dialogue is a list of turns. Each begins when its receiver has read the previous one. Sizes are approximate because of
headers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

Side = Literal["client", "server"]

TLS_RECORD = 16_000
TEXT = b"abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class Turn:
    side: Side
    octets: bytes
    pause: float
    """Seconds between the end of the turn before and this one: what the application thinks."""


@dataclass(frozen=True)
class Sizes:
    request: int
    response: int


def dialogue(port: int, sizes: Sizes, server_name: str, random: Random) -> list[Turn]:
    """Return the dialogue of a client and a server on `port`; TLS for unknown ports."""
    return PROTOCOLS.get(port, tls)(sizes, server_name, random)


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


def http(sizes: Sizes, server_name: str, random: Random) -> list[Turn]:
    head = f"GET /status HTTP/1.1\r\nHost: {server_name}\r\nUser-Agent: probe/1.0\r\nAccept: */*\r\n"
    padding = max(sizes.request - len(head) - 20, 8)
    request = f"{head}X-Request: {_text(padding, random).decode()}\r\n\r\n".encode()
    body = _text(sizes.response, random)
    answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return [Turn("client", request, 0.0003), Turn("server", answer + body, _thinking(random))]


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
    suites = struct.pack(">HHH", 4, 0x1301, 0x1302)
    body = b"\x03\x03" + random.randbytes(32) + bytes([len(session)]) + session + suites + b"\x01\x00"
    return _handshake(1, body + struct.pack(">H", len(extensions)) + extensions)


def _server_hello(session: bytes, random: Random) -> bytes:
    extensions = _extension(43, b"\x03\x04") + _extension(51, struct.pack(">HH", 0x001D, 32) + random.randbytes(32))
    body = b"\x03\x03" + random.randbytes(32) + bytes([len(session)]) + session + b"\x13\x01\x00"
    return _handshake(2, body + struct.pack(">H", len(extensions)) + extensions)
