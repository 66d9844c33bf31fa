"""What a capture holds that is not decoded: how many packets, and why. Nothing about them is known, not even health.

A kernel counts, for the few packets that decoding gave up, the reason as one number: a class and a value in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, PacketRows, PacketTotals
from ghost.pcap.model import Unread
from ghost.pcap.protocols.udp_conversations import U_FRAME, U_HIGH, U_LOW, U_PACKETS

REASONS = 32
"""Different reasons that are counted by themselves; further ones together."""
REASON_ROW = 3  # key + 1, packets, first frame

_SHIFT = 20
_LINK, _ETHERTYPE, _PROTOCOL, _INSIDE, _CUT, _DAMAGED, _OTHER = (n << _SHIFT for n in range(1, 8))


def reason_unread(rows: PacketRows, p: int) -> int:
    """Return the reason why the packet at `p` was not decoded to a known transport."""
    link = rows[p + L.LINK]
    if rows[p + L.NETWORK] >= 4 and rows[p + L.PROTOCOL] != 0:
        return _PROTOCOL | rows[p + L.PROTOCOL]
    if rows[p + L.ETHERTYPE] != 0:
        return _ETHERTYPE | rows[p + L.ETHERTYPE]
    if (
        link not in (L.LINK_ETHERNET, L.LINK_RAW, L.LINK_IPV4, L.LINK_IPV6, L.LINK_NULL, L.LINK_LOOP)
        and link not in (L.LINK_SLL, L.LINK_SLL2, L.LINK_PPP)
    ):  # fmt: skip
        return _LINK | (link & 0xFFFF)
    if rows[p + L.WIRE] > rows[p + L.CAPTURED]:
        return _CUT
    if rows[p + L.ENCAPSULATION]:
        return _INSIDE | rows[p + L.ENCAPSULATION]
    return _DAMAGED


def note_unread(rows: PacketRows, p: int, totals: PacketTotals, table: int) -> None:
    """Count a packet that was not decoded, in the rows that begin at `table`."""
    key = reason_unread(rows, p) + 1
    for n in range(REASONS):
        at = table + n * REASON_ROW
        if n == REASONS - 1 and totals[at] != key:
            key = _OTHER + 1
        if totals[at] == 0:
            totals[at] = key
            totals[at + 2] = rows[p + L.FRAME]
        if totals[at] == key:
            totals[at + 1] = totals[at + 1] + 1
            return


KERNELS = (reason_unread, note_unread)

# --------------------------------------------------------------------------------------------------------- in words

_LINKS = {
    105: "802.11", 127: "802.11 with radiotap", 163: "802.11 with AVS", 192: "802.11 with PPI", 50: "PPP in HDLC",
    104: "Cisco HDLC", 107: "Frame Relay", 109: "OpenBSD enc", 117: "OpenBSD pflog", 119: "802.11 with Prism",
    143: "DOCSIS", 187: "Bluetooth", 189: "USB of Linux", 195: "802.15.4", 197: "ERF", 201: "Bluetooth",
    220: "USB of Linux", 227: "CAN", 239: "NFLOG", 247: "InfiniBand", 249: "USBPcap", 251: "Bluetooth LE",
    253: "netlink",
}  # fmt: skip
_CONTROL_ETHERTYPES = {
    0x42: "STP", 0xFE: "IS-IS", 0x2000: "CDP", 0x2003: "VTP", 0x2004: "DTP", 0x010B: "PVST", 0x0842: "wake on LAN",
    0x8809: "LACP", 0x8863: "PPPoE discovery", 0x888E: "802.1X", 0x88CC: "LLDP", 0x88E3: "MRP", 0x88F5: "MVRP",
    0x88F7: "PTP", 0x8902: "CFM", 0x9000: "loopback", 0x8899: "loop detection", 0x88E1: "HomePlug",
    0x893A: "IEEE 1905", 0xAA: "SNAP", 0x8808: "pause", 0x88B8: "GOOSE", 0x88A4: "EtherCAT", 0x8892: "PROFINET",
    0x2C021: "LCP", 0x28021: "IPCP", 0x28057: "IPv6CP", 0x2C023: "PAP", 0x2C223: "CHAP",
}  # fmt: skip
"""Between neighbours on a link, or of machines: no traffic of users that this report could judge."""
_ETHERTYPES = {0x88E5: "MACsec (encrypted)", 0xE0: "IPX", 0xF0: "NetBEUI", 0x8906: "FCoE", 0x894F: "NSH"}
_CONTROL_PROTOCOLS = {
    2: "IGMP", 9: "IGRP", 46: "RSVP", 59: "no next header", 88: "EIGRP", 89: "OSPF", 103: "PIM", 112: "VRRP",
}  # fmt: skip
_PROTOCOLS = {
    33: "DCCP", 47: "GRE", 50: "ESP (encrypted)", 51: "AH", 94: "IP in IP (94)", 97: "EtherIP", 98: "ENCAP",
    108: "IPComp", 115: "L2TPv3", 132: "SCTP", 136: "UDP-Lite", 137: "MPLS in IP",
}  # fmt: skip
_SEALED_PORTS: Mapping[int, tuple[str, Literal["encrypted", "tunnel"]]] = {
    500: ("IKE", "encrypted"), 4500: ("IPsec in UDP (encrypted)", "encrypted"),
    51820: ("WireGuard (encrypted)", "encrypted"), 1194: ("OpenVPN (encrypted)", "encrypted"),
    1701: ("L2TP", "tunnel"), 2152: ("GTP-U without an IP packet", "tunnel"), 3544: ("Teredo", "tunnel"),
    4341: ("LISP", "tunnel"), 4754: ("GRE in UDP", "tunnel"), 4789: ("VXLAN", "tunnel"),
    4790: ("VXLAN-GPE", "tunnel"), 6081: ("Geneve", "tunnel"), 6635: ("MPLS in UDP", "tunnel"),
    8472: ("VXLAN", "tunnel"),
}  # fmt: skip
"""UDP ports whose datagrams carry packets of others."""
_LEAST_OTHER_PORT = 1024
"""The other port of such a conversation. A query to a service may come from any of these ports by chance."""


def unread(reasons: Array, conversations: Array, unparsed: int) -> tuple[Unread, ...]:
    """Return the undecoded packets by reason, most first: decoding failures, unknown UDP tunnels and `unparsed`
    messages."""
    found: dict[str, Unread] = {}
    parts = [*_reset_after_keepalives(reasons), *_carried(conversations)]
    if unparsed:
        parts.append(Unread("malformed messages", "damaged", unparsed))
    for part in parts:
        known = found.get(part.what)
        if known is not None:
            frame = min(part.first_frame, known.first_frame)
            part = Unread(part.what, part.why, known.packets + part.packets, frame)
        found[part.what] = part
    return tuple(sorted(found.values(), key=lambda each: (-each.packets, each.what)))


def _reset_after_keepalives(reasons: Array) -> Iterator[Unread]:
    for key, packets, frame in reasons.reshape(REASONS, REASON_ROW).tolist():
        if key:
            kind, value = (key - 1) >> _SHIFT << _SHIFT, (key - 1) & ((1 << _SHIFT) - 1)
            yield _named(kind, value, packets, frame)


def _named(kind: int, value: int, packets: int, frame: int) -> Unread:
    if kind == _LINK:
        name = f" ({_LINKS[value]})" if value in _LINKS else ""
        return Unread(f"link type {value}{name}", "link_type", packets, frame)
    if kind == _ETHERTYPE and value in _CONTROL_ETHERTYPES:
        return Unread(_CONTROL_ETHERTYPES[value], "control", packets, frame)
    if kind == _ETHERTYPE:
        plain = f"LLC 0x{value:02x}" if value < 0x600 else f"EtherType 0x{value:04x}"
        name = _ETHERTYPES.get(value, f"PPP 0x{value & 0xFFFF:04x}" if value > 0xFFFF else plain)
        return Unread(name, "encrypted" if value == 0x88E5 else "protocol", packets, frame)
    if kind == _PROTOCOL and value in _CONTROL_PROTOCOLS:
        return Unread(_CONTROL_PROTOCOLS[value], "control", packets, frame)
    if kind == _PROTOCOL:
        name = _PROTOCOLS.get(value, f"IP protocol {value}")
        return Unread(name, "encrypted" if value == 50 else "protocol", packets, frame)
    if kind == _INSIDE:
        names = [name for bit, name in enumerate(L.ENCAPSULATIONS) if value >> bit & 1]
        return Unread(f"inside {' in '.join(reversed(names))}", "tunnel", packets, frame)
    if kind == _CUT:
        return Unread("headers cut by the snap length", "cut", packets, frame)
    if kind == _DAMAGED:
        return Unread("damaged headers", "damaged", packets, frame)
    return Unread("others", "protocol", packets, frame)


def _carried(conversations: Array) -> Iterator[Unread]:
    if not len(conversations):
        return
    low, high = conversations[:, U_LOW] & 0xFFFF, conversations[:, U_HIGH] & 0xFFFF
    packets = conversations[:, U_PACKETS] + conversations[:, U_PACKETS + 1]
    for port, (name, why) in _SEALED_PORTS.items():
        mine = ((low == port) & ((high >= _LEAST_OTHER_PORT) | (high == port))) | (
            (high == port) & (low >= _LEAST_OTHER_PORT)
        )
        if mine.any():
            yield Unread(name, why, int(packets[mine].sum()), int(np.min(conversations[mine, U_FRAME])))
