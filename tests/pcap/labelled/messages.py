"""What programs say: HTTP, TLS, DNS, ARP and UDP, as bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset

from ..wire import udp
from .network import UDP_PROTOCOL, Packet

TLS_1_0, TLS_1_2, TLS_1_3 = 0x0301, 0x0303, 0x0304
ALERTS = {
    "handshake_failure": 40, "bad_certificate": 42, "certificate_expired": 45, "unknown_ca": 48,
    "protocol_version": 70, "unrecognized_name": 112, "certificate_required": 116,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- HTTP


def get(host: str, path: str = "/", method: str = "GET", body: bytes = b"") -> bytes:
    more = f"Content-Length: {len(body)}\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: probe/1.0\r\nAccept: */*\r\n{more}\r\n"
    return head.encode() + body


def answer(size: int, status: str = "200 OK", *, kind: str = "application/octet-stream") -> bytes:
    head = f"HTTP/1.1 {status}\r\nServer: web\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + b"b" * size


def event_stream() -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(text: str) -> bytes:
    body = f"data: {text}\n\n".encode()
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


# ----------------------------------------------------------------------------------------------------------- TLS


def record(kind: int, body: bytes, version: int = TLS_1_2) -> bytes:
    return struct.pack(">BHH", kind, version, len(body)) + body


def _handshake(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def _extension(kind: int, body: bytes) -> bytes:
    return struct.pack(">HH", kind, len(body)) + body


def client_hello(name: str, highest: int, dice: random.Random) -> bytes:
    host = name.encode()
    extensions = _extension(0, struct.pack(">HBH", len(host) + 3, 0, len(host)) + host)
    extensions += _extension(10, bytes.fromhex("0004001d0017")) + _extension(13, bytes.fromhex("000404030804"))
    if highest >= TLS_1_3:
        extensions += _extension(43, bytes.fromhex("0403040303"))
        extensions += _extension(51, struct.pack(">HHH", 36, 29, 32) + dice.randbytes(32))
    body = struct.pack(">H", min(highest, TLS_1_2)) + dice.randbytes(32) + b"\x20" + dice.randbytes(32)
    body += bytes.fromhex("0006c02f1301002f") + b"\1\0" + struct.pack(">H", len(extensions)) + extensions
    return record(22, _handshake(1, body), TLS_1_0)


def server_hello(version: int, dice: random.Random) -> bytes:
    extensions = b""
    if version >= TLS_1_3:
        extensions = _extension(43, b"\3\4") + _extension(51, struct.pack(">HH", 29, 32) + dice.randbytes(32))
    body = struct.pack(">H", min(version, TLS_1_2)) + dice.randbytes(32) + b"\x20" + dice.randbytes(32)
    body += b"\x13\x01\0" if version >= TLS_1_3 else b"\xc0\x2f\0"
    return record(22, _handshake(2, body + struct.pack(">H", len(extensions)) + extensions))


def server_flight(
    version: int, dice: random.Random, chain: Iterable[bytes] = (), *, asks_client: bool = False
) -> bytes:
    """The server's first flight; TLS 1.3 encrypts all of it but the hello."""
    if version >= TLS_1_3:
        return server_hello(version, dice) + record(20, b"\1") + encrypted(2400, dice)
    sent = b"".join(len(each).to_bytes(3, "big") + each for each in chain or [dice.randbytes(900)])
    flight = server_hello(version, dice) + record(22, _handshake(11, len(sent).to_bytes(3, "big") + sent))
    flight += record(22, _handshake(12, b"\3\0\x1d\x20" + dice.randbytes(100)))
    if asks_client:
        flight += record(22, _handshake(13, b"\1\1\0\2\4\3\0\0"))
    return flight + record(22, _handshake(14, b""))


def client_flight(version: int, dice: random.Random, certificate: bytes | None = None) -> bytes:
    """The client's second flight, up to the first encrypted record."""
    if version >= TLS_1_3:
        return record(20, b"\1") + encrypted(53, dice)
    flight = b""
    if certificate is not None:
        sent = len(certificate).to_bytes(3, "big") + certificate
        flight = record(22, _handshake(11, len(sent).to_bytes(3, "big") + sent))
    flight += record(22, _handshake(16, b"\x20" + dice.randbytes(32)))
    return flight + record(20, b"\1") + record(22, dice.randbytes(40))


def server_finish(version: int, dice: random.Random) -> bytes:
    if version >= TLS_1_3:
        return encrypted(250, dice)
    return record(20, b"\1") + record(22, dice.randbytes(40))


def alert(name: str, level: int = 2) -> bytes:
    return record(21, bytes([level, ALERTS[name]]))


def encrypted(size: int, dice: random.Random) -> bytes:
    parts = b""
    while size > 0:
        part = min(size, 16000)
        parts += record(23, dice.randbytes(part))
        size -= part
    return parts


# ----------------------------------------------------------------------------------------------------------- DNS


def query(name: str, number: int, kind: str = "A") -> bytes:
    return bytes(dns.message.make_query(name, kind, id=number).to_wire())


def reply(
    asked: bytes, *, code: str = "NOERROR", addresses: Iterable[str] = (), text: str | None = None,
    aliases: Iterable[str] = (),
) -> bytes:  # fmt: skip
    message = dns.message.from_wire(asked)
    said = dns.message.make_response(message)
    said.flags |= dns.flags.RA
    said.set_rcode(dns.rcode.from_text(code))
    name = message.question[0].name
    for alias in aliases:
        said.answer.append(dns.rrset.from_text(name, 60, "IN", "CNAME", f"{alias}."))
        name = dns.name.from_text(alias)
    for address in addresses:
        said.answer.append(dns.rrset.from_text(name, 60, "IN", "AAAA" if ":" in address else "A", address))
    if text is not None:
        said.answer.append(dns.rrset.from_text(name, 5, "IN", "TXT", f'"{text}"'))
    return bytes(said.to_wire())


def datagram(source: str, source_port: int, destination: str, destination_port: int, payload: bytes) -> Packet:
    return Packet(source, destination, UDP_PROTOCOL, body=udp(source_port, destination_port, payload))


# ----------------------------------------------------------------------------------------------------------- ARP


def arp(operation: int, mac: bytes, address: str, target_mac: bytes, target: str) -> bytes:
    """An Ethernet frame: 1 asks who has `target`, 2 tells `target` that `address` is at `mac`."""
    body = b"\0\1\x08\0\6\4" + operation.to_bytes(2, "big") + mac + bytes(map(int, address.split(".")))
    body += target_mac + bytes(map(int, target.split(".")))
    to = b"\xff" * 6 if operation == 1 else target_mac
    return to + mac + b"\x08\x06" + body
