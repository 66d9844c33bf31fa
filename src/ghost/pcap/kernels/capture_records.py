"""Kernels that walk the records of pcap and the packet blocks of pcapng in a buffer. They decode nothing in a packet.

Formats: the pcap and pcapng drafts of the IETF opsawg (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).
"""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import FileBytes, IntVector, PacketRows

LARGEST_RECORD = 16 << 20
"""A record that claims more is damage, not a packet."""
LATEST_SECOND = 9_000_000_000
"""Seconds beyond this do not fit 64 bits of nanoseconds; a damaged clock is held here."""

# Why a walk stopped.
NEEDS_MORE, BATCH_FULL, OTHER_BLOCK, DAMAGED = 0, 1, 2, 3


def walk_pcap(
    buf: FileBytes, start: int, stop: int, big: int, unit: int, link: int, rows: PacketRows, frame: int, out: IntVector
) -> int:
    """Write rows of the whole records in `buf[start:stop]`; `out` gets where it stopped and why.

    Return the row count.
    """
    room = len(rows) // L.PACKET
    count = 0
    reason = NEEDS_MORE
    while stop - start >= 16:
        if count >= room:
            reason = BATCH_FULL
            break
        if big:
            seconds = (buf[start] << 24) | (buf[start + 1] << 16) | (buf[start + 2] << 8) | buf[start + 3]
            part = (buf[start + 4] << 24) | (buf[start + 5] << 16) | (buf[start + 6] << 8) | buf[start + 7]
            captured = (buf[start + 8] << 24) | (buf[start + 9] << 16) | (buf[start + 10] << 8) | buf[start + 11]
            wire = (buf[start + 12] << 24) | (buf[start + 13] << 16) | (buf[start + 14] << 8) | buf[start + 15]
        else:
            seconds = (buf[start + 3] << 24) | (buf[start + 2] << 16) | (buf[start + 1] << 8) | buf[start]
            part = (buf[start + 7] << 24) | (buf[start + 6] << 16) | (buf[start + 5] << 8) | buf[start + 4]
            captured = (buf[start + 11] << 24) | (buf[start + 10] << 16) | (buf[start + 9] << 8) | buf[start + 8]
            wire = (buf[start + 15] << 24) | (buf[start + 14] << 16) | (buf[start + 13] << 8) | buf[start + 12]
        if captured > LARGEST_RECORD:
            reason = DAMAGED
            break
        if stop - start - 16 < captured:
            break
        p = count * L.PACKET
        rows[p + L.OFFSET] = start + 16
        rows[p + L.CAPTURED] = captured
        rows[p + L.WIRE] = wire
        rows[p + L.TIME] = seconds * 1_000_000_000 + part * unit
        rows[p + L.LINK] = link
        rows[p + L.FRAME] = frame + count
        count += 1
        start += 16 + captured
    out[0] = start
    out[1] = reason
    return count


def walk_pcapng(
    buf: FileBytes,
    start: int,
    stop: int,
    big: int,
    interfaces: IntVector,
    known: int,
    rows: PacketRows,
    frame: int,
    out: IntVector,
) -> int:
    """Like `walk_pcap` for enhanced packet blocks; stops at any other block.

    `interfaces` holds link, units, offset, snap.
    """
    room = len(rows) // L.PACKET
    count = 0
    reason = NEEDS_MORE
    while stop - start >= 12:
        if big:
            kind = (buf[start] << 24) | (buf[start + 1] << 16) | (buf[start + 2] << 8) | buf[start + 3]
            size = (buf[start + 4] << 24) | (buf[start + 5] << 16) | (buf[start + 6] << 8) | buf[start + 7]
        else:
            kind = (buf[start + 3] << 24) | (buf[start + 2] << 16) | (buf[start + 1] << 8) | buf[start]
            size = (buf[start + 7] << 24) | (buf[start + 6] << 16) | (buf[start + 5] << 8) | buf[start + 4]
        if kind != 6:
            reason = OTHER_BLOCK
            break
        if size < 32 or size > LARGEST_RECORD:
            reason = DAMAGED
            break
        if stop - start < size:
            break
        if count >= room:
            reason = BATCH_FULL
            break
        o = start + 8
        if big:
            interface = (buf[o] << 24) | (buf[o + 1] << 16) | (buf[o + 2] << 8) | buf[o + 3]
            high = (buf[o + 4] << 24) | (buf[o + 5] << 16) | (buf[o + 6] << 8) | buf[o + 7]
            low = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
            captured = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
            wire = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
        else:
            interface = (buf[o + 3] << 24) | (buf[o + 2] << 16) | (buf[o + 1] << 8) | buf[o]
            high = (buf[o + 7] << 24) | (buf[o + 6] << 16) | (buf[o + 5] << 8) | buf[o + 4]
            low = (buf[o + 11] << 24) | (buf[o + 10] << 16) | (buf[o + 9] << 8) | buf[o + 8]
            captured = (buf[o + 15] << 24) | (buf[o + 14] << 16) | (buf[o + 13] << 8) | buf[o + 12]
            wire = (buf[o + 19] << 24) | (buf[o + 18] << 16) | (buf[o + 17] << 8) | buf[o + 16]
        if captured > size - 32 or interface >= known:
            reason = DAMAGED
            break
        ticks = ((high & 0x7FFFFFFF) << 32) | low
        units = interfaces[interface * 4 + 1]
        seconds = ticks // units
        rest = ticks - seconds * units
        # The product of a finer clock would not fit 64 bits.
        rest = rest // (units // 1_000_000_000) if units > 9_000_000_000 else rest * 1_000_000_000 // units
        seconds = min(max(min(seconds, LATEST_SECOND) + interfaces[interface * 4 + 2], 0), LATEST_SECOND)
        p = count * L.PACKET
        rows[p + L.OFFSET] = o + 20
        rows[p + L.CAPTURED] = captured
        rows[p + L.WIRE] = wire
        rows[p + L.TIME] = seconds * 1_000_000_000 + min(rest, 999_999_999)
        rows[p + L.LINK] = interfaces[interface * 4]
        rows[p + L.FRAME] = frame + count
        count += 1
        start += (size + 3) & 0x7FFFFFFC
    out[0] = start
    out[1] = reason
    return count


KERNELS = (walk_pcap, walk_pcapng)
