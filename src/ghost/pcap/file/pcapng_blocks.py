"""Blocks of pcapng that hold no packet: what an interface is, and what it dropped (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ghost.pcap.kernels.capture_records import LATEST_SECOND


def interface(body: bytes, order: str) -> tuple[int, int, int, int]:
    """Link type, timestamp units per second, offset in seconds, snap length."""
    link, _, snap = struct.unpack_from(f"{order}HHI", body)
    units, shift = 1_000_000, 0
    for code, value in _options(body[8:], order):
        if code == 9 and len(value) >= 1:
            resolution = value[0]
            units = 1 << min(resolution & 0x7F, 62) if resolution & 0x80 else 10 ** min(resolution, 18)
        elif code == 14 and len(value) == 8:
            (shift,) = struct.unpack(f"{order}q", value)
            shift = max(-LATEST_SECOND, min(shift, LATEST_SECOND))
    return link, units, shift, snap if snap < 0x7FFFFFFF else 0


def dropped(body: bytes, order: str) -> int | None:
    """Return the drops of the kernel (ifdrop, 5) and the capturer (osdrop, 7) in interface statistics."""
    counts = [
        struct.unpack_from(f"{order}Q", value)[0]
        for code, value in _options(body[12:], order)
        if code in (5, 7) and len(value) == 8
    ]
    return sum(counts) if counts else None


def _options(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + ((size + 3) & ~3)
