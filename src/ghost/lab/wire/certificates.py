"""A certificate as a handshake shows it (RFC 5280), with random octets for key and signature: nobody checks these."""

from __future__ import annotations

from random import Random

COMMON_NAME, ALTERNATIVE_NAMES = b"\x55\x04\x03", b"\x55\x1d\x11"
ECDSA_SHA256 = bytes.fromhex("06082a8648ce3d040302")
EC_KEY = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
VALID = {False: (b"200101000000Z", b"491231235959Z"), True: (b"190101000000Z", b"200101000000Z")}
"""By whether it has expired."""


def certificate(name: str, random: Random, *, expired: bool) -> bytes:
    """Return the DER of a certificate for a host name."""
    signed_with = _tagged(0x30, ECDSA_SHA256)
    begins, ends = VALID[expired]
    names = _tagged(0x30, _tagged(0x82, name.encode("ascii")))
    extension = _tagged(0x30, _tagged(0x06, ALTERNATIVE_NAMES), _tagged(0x04, names))
    body = _tagged(
        0x30,
        _tagged(0xA0, b"\x02\x01\x02"),
        _tagged(0x02, b"\x01", random.randbytes(15)),
        signed_with,
        _called("Simulated Issuing CA"),
        _tagged(0x30, _tagged(0x17, begins), _tagged(0x17, ends)),
        _called(name),
        _tagged(0x30, EC_KEY, _tagged(0x03, b"\0\x04", random.randbytes(64))),
        _tagged(0xA3, _tagged(0x30, extension)),
    )
    halves = (_tagged(0x02, b"\x01", random.randbytes(31)) for _ in range(2))
    return _tagged(0x30, body, signed_with, _tagged(0x03, b"\0", _tagged(0x30, *halves)))


def _called(name: str) -> bytes:
    attribute = _tagged(0x30, _tagged(0x06, COMMON_NAME), _tagged(0x0C, name.encode("ascii")))
    return _tagged(0x30, _tagged(0x31, attribute))


def _tagged(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    length = bytes([len(body)]) if len(body) < 128 else b"\x82" + len(body).to_bytes(2, "big")
    return bytes([tag]) + length + body
