"""Encoding of frames and capture files: Ethernet, ARP, IPv4, UDP, TCP, DNS and classic pcap.

Sends nothing and does not know the world. Layouts: RFC 826 (ARP), 791 (IPv4), 792 (ICMP), 768 (UDP), 9293 (TCP), 1035
(DNS), and https://wiki.wireshark.org/Development/LibpcapFileFormat.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP = 1, 6, 17
UNREACHABLE = {
    "net-unreachable": 0, "host-unreachable": 1, "prot-unreachable": 2, "port-unreachable": 3,
    "fragmentation-needed": 4, "net-prohibited": 9, "host-prohibited": 10, "admin-prohibited": 13,
}  # fmt: skip
"""Codes of ICMP destination unreachable, as packet filters name them."""
QUOTED = 548
"""Octets of the packet that an ICMP error is about (RFC 1812, 4.3.2.3)."""

SNAPLEN = 65535
LINKTYPE_ETHERNET = 1


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", "").replace("-", ""))


def address_bytes(address: str) -> bytes:
    return IPv4Address(address).packed


def checksum(octets: bytes) -> int:
    """Return the Internet checksum of RFC 1071."""
    if len(octets) % 2:
        octets += b"\0"
    total: int = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(destination: bytes, source: bytes, ethertype: int, payload: bytes) -> bytes:
    return destination + source + struct.pack(">H", ethertype) + payload


def arp(operation: int, sender_mac: bytes, sender: str, target_mac: bytes, target: str) -> bytes:
    """Return an ARP request (1) or reply (2), without Ethernet header."""
    head = struct.pack(">HHBBH", 1, ETHERTYPE_IPV4, 6, 4, operation)
    return head + sender_mac + address_bytes(sender) + target_mac + address_bytes(target)


def ipv4(source: str, destination: str, protocol: int, payload: bytes, *, identification: int, ttl: int) -> bytes:
    """Return an unfragmented datagram with the don't-fragment bit, as for path MTU discovery."""
    length = 20 + len(payload)
    fields = (0x45, 0, length, identification & 0xFFFF, 0x4000, ttl, protocol)
    addresses = address_bytes(source) + address_bytes(destination)
    head = struct.pack(">BBHHHBBH", *fields, 0) + addresses
    return struct.pack(">BBHHHBBH", *fields, checksum(head)) + addresses + payload


def _with_pseudo_header(source: str, destination: str, protocol: int, segment: bytes) -> int:
    pseudo = address_bytes(source) + address_bytes(destination) + struct.pack(">BBH", 0, protocol, len(segment))
    return checksum(pseudo + segment)


def udp(source: str, destination: str, source_port: int, destination_port: int, payload: bytes) -> bytes:
    head = struct.pack(">HHH", source_port, destination_port, 8 + len(payload))
    # RFC 768: a checksum that computes to zero is sent as all ones; zero means "none".
    value = _with_pseudo_header(source, destination, PROTOCOL_UDP, head + b"\0\0" + payload) or 0xFFFF
    return head + struct.pack(">H", value) + payload


def unreachable(code: str, about: bytes, mtu: int = 0) -> bytes:
    """Return an ICMP destination unreachable (RFC 792, 1191) about a packet."""
    body = struct.pack(">HH", 0, mtu) + about[:QUOTED]
    head = bytes([3, UNREACHABLE[code]])
    return head + struct.pack(">H", checksum(head + b"\0\0" + body)) + body


@dataclass(frozen=True)
class TcpOptions:
    """The TCP options in common use; absent ones are not sent."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    timestamps: tuple[int, int] | None = None
    sack_blocks: tuple[tuple[int, int], ...] = ()

    def encode(self) -> bytes:
        octets = b""
        if self.mss is not None:
            octets += struct.pack(">BBH", 2, 4, self.mss)
        if self.sack_permitted:
            octets += b"\x04\x02"
        if self.timestamps is not None:
            # Two NOPs align the option where SACK-permitted does not already (RFC 7323, appendix A).
            octets += b"" if self.sack_permitted else b"\x01\x01"
            octets += struct.pack(">BBII", 8, 10, *(value & 0xFFFFFFFF for value in self.timestamps))
        if self.window_scale is not None:
            octets += struct.pack(">BBBB", 1, 3, 3, self.window_scale)
        if self.sack_blocks:
            octets += struct.pack(">BBBB", 1, 1, 5, 2 + 8 * len(self.sack_blocks))
            for left, right in self.sack_blocks:
                octets += struct.pack(">II", left & 0xFFFFFFFF, right & 0xFFFFFFFF)
        return octets + b"\x01" * (-len(octets) % 4)


def tcp(
    source: str,
    destination: str,
    source_port: int,
    destination_port: int,
    *,
    sequence: int,
    acknowledgement: int,
    flags: int,
    window: int,
    options: TcpOptions = TcpOptions(),
    payload: bytes = b"",
) -> bytes:
    encoded = options.encode()
    offset_and_flags = (5 + len(encoded) // 4) << 12 | flags

    def header(value: int) -> bytes:
        return struct.pack(
            ">HHIIHHHH",
            source_port,
            destination_port,
            sequence & 0xFFFFFFFF,
            acknowledgement & 0xFFFFFFFF,
            offset_and_flags,
            window,
            value,
            0,
        )

    value = _with_pseudo_header(source, destination, PROTOCOL_TCP, header(0) + encoded + payload)
    return header(value) + encoded + payload


DNS_TYPES = {"A": 1, "CNAME": 5, "SOA": 6, "AAAA": 28}
SERVFAIL, NXDOMAIN = 2, 3


def dns_name(name: str) -> bytes:
    labels = [label for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in labels) + b"\0"


def dns_query(identifier: int, name: str, record_type: str) -> bytes:
    head = struct.pack(">HHHHHH", identifier, 0x0100, 1, 0, 0, 0)
    return head + dns_name(name) + struct.pack(">HH", DNS_TYPES[record_type], 1)


def dns_answer(
    identifier: int, name: str, record_type: str, addresses: Sequence[str], ttl: int = 60, failure: int = NXDOMAIN
) -> bytes:
    """Return the answer to `dns_query`: A records, or the failure without any."""
    flags = 0x8180 if addresses else 0x8180 | failure
    head = struct.pack(">HHHHHH", identifier, flags, 1, len(addresses), 0, 0)
    question = dns_name(name) + struct.pack(">HH", DNS_TYPES[record_type], 1)
    records = b"".join(
        b"\xc0\x0c" + struct.pack(">HHIH", DNS_TYPES["A"], 1, ttl, 4) + address_bytes(address) for address in addresses
    )
    return head + question + records


def pcap(frames: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a classic capture file of (microseconds since the epoch, frame), in the given order."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPLEN, LINKTYPE_ETHERNET)]
    for microseconds, frame in frames:
        captured = frame[:SNAPLEN]
        parts.append(struct.pack("<IIII", *divmod(microseconds, 1_000_000), len(captured), len(frame)))
        parts.append(captured)
    return b"".join(parts)
