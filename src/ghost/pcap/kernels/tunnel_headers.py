"""Tunnel payloads that only their bytes identify."""

from __future__ import annotations

from ghost.pcap.array_types import FileBytes


def ethernet_in_mpls(buf: FileBytes, o: int, end: int) -> int:
    """Return where the Ethernet frame of a pseudowire begins whose labels end at `o`: after a control word, or at once;
    0 if there is no known EtherType."""
    for skipped in (4, 0):
        at = o + skipped
        if end - at >= 14 and (skipped == 0 or buf[o] >> 4 == 0):
            kind = (buf[at + 12] << 8) | buf[at + 13]
            if kind in (0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8, 0x8847, 0x8863, 0x8864):
                return at
    return 0


def plain_vxlan(buf: FileBytes, o: int) -> bool:
    """Return whether all reserved bits of a VXLAN header are zero, for ports that others use as well: 8472 (Linux),
    10800 and 10801 (inner and outer tunnel of an Azure gateway load balancer)."""
    return buf[o] == 0x08 and buf[o + 1] | buf[o + 2] | buf[o + 3] | buf[o + 7] == 0


def inside_gtp(buf: FileBytes, o: int, end: int) -> int:
    """Return where the IP packet inside a GTP-U message at `o` begins; 0 if there is none."""
    flags = buf[o]
    if flags >> 4 != 3 or buf[o + 1] != 255:
        return 0
    at = o + 8
    if flags & 7:
        at += 4
        following = buf[at - 1] if flags & 4 and at <= end else 0
        while following != 0 and end - at >= 4:
            size = buf[at] * 4
            if size == 0 or size > end - at:
                return 0
            at += size
            following = buf[at - 1]
    return at if end - at >= 20 and (buf[at] >> 4 == 4 or buf[at] >> 4 == 6) else 0


KERNELS = (
    ethernet_in_mpls,
    plain_vxlan,
    inside_gtp,
)
