"""The client hello inside QUIC Initial packets, whose keys are public (RFC 9001, 5.2; RFC 9369, 3.3).

The library for the ciphers is loaded with the first such packet; without it names are not read.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

_SALTS = {
    1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    0x6B3343CF: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}
_LONGEST_HELLO = 1 << 14


class LongHeader(NamedTuple):
    """Long header of the first packet in a datagram (RFC 8999, 5.1)."""

    first: int
    version: int
    destination: bytes
    """Connection id."""
    source: bytes
    end: int
    """Where what all versions share ends."""

    @property
    def kind(self) -> str:
        if self.version == 0:
            return "version_negotiation"
        number = self.first >> 4 & 3
        if self.version == 0x6B3343CF:
            number = (number + 3) % 4  # version 2 shifted the types by one
        return ("initial", "0rtt", "handshake", "retry")[number]


def read_long_header(datagram: bytes) -> LongHeader | None:
    if len(datagram) < 7 or not datagram[0] & 0x80:
        return None
    at = 6 + datagram[5]
    if at >= len(datagram):
        return None
    end = at + 1 + datagram[at]
    if end > len(datagram):
        return None
    version = int.from_bytes(datagram[1:5], "big")
    return LongHeader(datagram[0], version, datagram[6:at], datagram[at + 1 : end], end)


@cache
def available() -> bool:
    try:
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    except ImportError:
        return False
    return True


def crypto_frames(datagram: bytes, header: LongHeader, first_destination: bytes) -> list[tuple[int, bytes]]:
    """Return offset and bytes of the CRYPTO frames in a client's Initial packet; empty if it cannot be read.

    `first_destination`: the connection id the client first wrote to, from which the keys are derived.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if header.version not in _SALTS:
        return []
    token, at = _varint(datagram, header.end)
    size, number_at = _varint(datagram, at + token)
    end = number_at + size
    if end > len(datagram) or size < 20:
        return []
    key, vector, mask_key = _client_keys(header.version, first_destination)
    # Header protection (RFC 9001, 5.4) is defined by this mode; one block of a sample is encrypted with it.
    sample = datagram[number_at + 4 : number_at + 20]
    mask = Cipher(algorithms.AES(mask_key), modes.ECB()).encryptor().update(sample)  # noqa: S305
    first = header.first ^ (mask[0] & 0x0F)
    length = (first & 3) + 1
    number = bytes(octet ^ mask[1 + place] for place, octet in enumerate(datagram[number_at : number_at + length]))
    nonce = (int.from_bytes(vector, "big") ^ int.from_bytes(number, "big")).to_bytes(12, "big")
    associated = bytes([first]) + datagram[1:number_at] + number
    try:
        plain = AESGCM(key).decrypt(nonce, datagram[number_at + length : end], associated)
    except InvalidTag:
        return []
    return list(_crypto_frames(plain))


def joined(pieces: dict[int, bytes]) -> bytes | None:
    """Return the client hello once it is complete, else None."""
    whole = b""
    for at in sorted(pieces):
        if at > len(whole):
            return None
        whole += pieces[at][len(whole) - at :]
    if len(whole) > _LONGEST_HELLO:
        return None
    size = int.from_bytes(whole[1:4], "big")
    return whole[4 : 4 + size] if len(whole) >= 4 and whole[0] == 1 and len(whole) >= 4 + size else None


def _crypto_frames(plain: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(plain):
        kind = plain[at]
        at += 1
        if kind in (0, 1):
            continue  # padding, ping
        if kind == 6:
            offset, at = _varint(plain, at)
            size, at = _varint(plain, at)
            if size == 0 or at + size > len(plain):
                return
            yield offset, plain[at : at + size]
            at += size
        elif kind in (2, 3):
            # An acknowledgement: largest, delay, count, first range, then two numbers for each range.
            _, at = _varint(plain, at)
            _, at = _varint(plain, at)
            ranges, at = _varint(plain, at)
            if ranges > len(plain):
                return
            for _ in range(1 + 2 * ranges + (3 if kind == 3 else 0)):
                _, at = _varint(plain, at)
        else:
            return


@lru_cache(maxsize=64)
def _client_keys(version: int, destination: bytes) -> tuple[bytes, bytes, bytes]:
    """Return key, initialisation vector and header protection key."""
    secret = hmac.digest(_SALTS[version], destination, hashlib.sha256)
    client = _expand(secret, b"client in", 32)
    prefix = b"quic " if version == 1 else b"quicv2 "
    return (
        _expand(client, prefix + b"key", 16),
        _expand(client, prefix + b"iv", 12),
        _expand(client, prefix + b"hp", 16),
    )


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    """Return HKDF-Expand-Label with an empty context (RFC 8446, 7.1), for one block."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
    return hmac.digest(secret, info + b"\1", hashlib.sha256)[:size]


def _varint(octets: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer of 1, 2, 4 or 8 bytes (RFC 9000, 16) and where it ends; missing bytes count as
    zero."""
    if at >= len(octets):
        return 0, at
    size = 1 << (octets[at] >> 6)
    return int.from_bytes(octets[at : at + size], "big") & ((1 << (8 * size - 2)) - 1), at + size
