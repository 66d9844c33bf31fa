"""Cleartext TLS handshake messages and alerts:

RFC 8446, 5246, 6066 and, for its hello, SSL 2. Pure functions of bytes. Whatever the bytes, they answer or say None; of
a message that was cut they read what is there.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from ghost.pcap.protocols.host_names import plausible

VERSIONS = {
    0x0002: "SSL 2.0", 0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", 0x0303: "TLS 1.2", 0x0304: "TLS 1.3",
    0xFEFF: "DTLS 1.0", 0xFEFD: "DTLS 1.2",
}  # fmt: skip
TLS13 = 0x0304
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a server hello that is a hello retry request (RFC 8446, 4.1.3)."""
_MOST_CERTIFICATES = 10
"""Read from one message."""

_extension = struct.Struct(">HH").unpack_from

ALERTS = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed", 22: "record_overflow",
    30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate", 42: "bad_certificate",
    43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error",
    60: "export_restriction", 70: "protocol_version", 71: "insufficient_security", 80: "internal_error",
    86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation", 109: "missing_extension",
    110: "unsupported_extension", 111: "certificate_unobtainable", 112: "unrecognized_name",
    113: "bad_certificate_status_response", 114: "bad_certificate_hash_value", 115: "unknown_psk_identity",
    116: "certificate_required", 120: "no_application_protocol",
}  # fmt: skip
CLOSURES = (0, 90)
HARMLESS = (100, 112)
"""Alerts that may be mere warnings."""


class ClientHello(NamedTuple):
    version: int
    """The highest offered."""
    server_name: str | None


class ServerHello(NamedTuple):
    version: int
    retry: bool
    """A hello retry request: another client hello follows."""


def version_name(version: int) -> str:
    if version >> 8 == 0x7F:
        return "TLS 1.3"  # a draft of it
    return VERSIONS.get(version) or f"0x{version:04x}"


def alert_name(description: int) -> str:
    return ALERTS.get(description, f"alert_{description}")


def read_client_hello(body: bytes) -> ClientHello | None:
    """`body` is the handshake message without its four bytes of header."""
    if len(body) < 34:
        return None
    version = body[0] << 8 | body[1]
    name: str | None = None
    try:
        at = 35 + body[34]  # session id
        at += 2 + (body[at] << 8 | body[at + 1])  # cipher suites
        at += 1 + body[at]  # compression methods
        stop = at + 2 + (body[at] << 8 | body[at + 1])
    except IndexError:
        return ClientHello(version, None)  # without extensions, or cut before them
    stop = min(stop, len(body))
    at += 6  # behind the head of an extension
    while at <= stop:
        kind, size = _extension(body, at - 4)
        if kind == 0:
            # List length 2, name type 1, name length 2.
            value = body[at : min(at + size, stop)]
            name = plausible(value[5 : 5 + (value[3] << 8 | value[4])]) if len(value) > 5 else None
        elif kind == 43:
            version = _highest(body[at : min(at + size, stop)]) or version
        at += 4 + size
    return ClientHello(version, name)


@lru_cache(maxsize=1_024)
def _highest(offered: bytes) -> int:
    """Return the highest known version in an extension of a client hello; 0 if none."""
    # RFC 8701: values like 0x?a?a only test that servers ignore them.
    versions = [_number(offered, place, 2) for place in range(1, len(offered) - 1, 2)]
    return max((each for each in versions if each in VERSIONS and each < 0xFE00), default=0)


def read_server_hello(body: bytes) -> ServerHello | None:
    if len(body) < 34:
        return None
    version = body[0] << 8 | body[1]
    at = 38 + (body[34] if len(body) > 34 else 0)  # session id; cipher suite and compression method
    stop = min(at + 2 + _number(body, at, 2), len(body))
    at += 6  # behind the head of an extension
    while at <= stop:
        kind, size = _extension(body, at - 4)
        if kind == 43 and min(size, stop - at) == 2:
            version = body[at] << 8 | body[at + 1]
        at += 4 + size
    return ServerHello(TLS13 if version >> 8 == 0x7F else version, body[2:34] == _RETRY)


def read_ssl2_hello(message: bytes) -> ClientHello | None:
    """Return a hello in the record format of SSL 2, with its two length bytes."""
    if len(message) < 11 or not message[0] & 0x80 or message[2] != 1:
        return None
    return ClientHello(_number(message, 3, 2), None)


def read_certificates(body: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a message of TLS 1.2 or older up to one that is cut, the sender's own first."""
    found: list[bytes] = []
    at = 3
    while len(found) < _MOST_CERTIFICATES and 0 < (size := _number(body, at, 3)) <= len(body) - at - 3:
        found.append(body[at + 3 : at + 3 + size])
        at += 3 + size
    return tuple(found)


def _number(octets: bytes, at: int, size: int) -> int:
    return int.from_bytes(octets[at : at + size], "big")
