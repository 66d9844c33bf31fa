"""A Linux guest in a network namespace of its own, and its neighbours: what the kernel does with one packet.

The guest has eth0 and net1. The neighbours are no hosts but the other ends of two cables: this process writes frames
to them and reads what comes out. Nothing has a route to the outside. Needs root.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

from ghost.net.guest import Packet
from tests.pcap.netns.space import Space

PROTOCOL = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58}
NAME = {number: name for name, number in PROTOCOL.items()}
SYN, RST, ACK, FIN = 2, 4, 16, 1
MARK = b"GHOST"
DEVICES = ("eth0", "net1")
LOCAL = {
    4: {"eth0": ("10.0.0.1", "10.0.0.2"), "net1": ("10.1.0.1",)},
    6: {"eth0": ("fd00::1",), "net1": ("fd01::1",)},
}
REMOTE = {
    4: {"eth0": [f"10.0.0.{n}" for n in range(10, 18)], "net1": [f"10.1.0.{n}" for n in range(10, 18)]},
    6: {"eth0": [f"fd00::{n}" for n in range(10, 18)], "net1": [f"fd01::{n}" for n in range(10, 18)]},
}
MAC = {"eth0": "02:00:00:00:00:01", "net1": "02:00:00:00:00:02"}
FAR_MAC = {"eth0": "02:00:00:00:01:01", "net1": "02:00:00:00:01:02"}
END = b"\x88\xb5"
"""An EtherType for experiments (IEEE 802): what follows the last packet through the same queues."""


@dataclass(frozen=True)
class Sent:
    """A packet of a test: `number` is found again in what comes of it."""

    packet: Packet
    number: int
    flags: int = SYN
    """Of TCP."""


@dataclass(frozen=True)
class Seen:
    verdict: str
    detail: str = ""
    packet: Packet | None = None


DROPPED = Seen("drop")


def checksum(raw: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(raw) + 1) // 2}H", raw + b"\0" * (len(raw) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def to_bytes(sent: Sent) -> bytes:
    packet, number = sent.packet, sent.number
    assert packet.source is not None
    assert packet.destination is not None
    sport, dport = packet.source_port or 0, packet.destination_port or 0
    body = MARK + number.to_bytes(3, "big")
    match packet.protocol:
        case "tcp":
            acknowledged = number << 12 if sent.flags & ACK else 0
            head = struct.pack("!HHIIBBHHH", sport, dport, number << 12, acknowledged, 0x50, sent.flags, 8192, 0, 0)
            at = 16
        case "udp":
            head, at = struct.pack("!HHHH", sport, dport, 8 + len(body), 0), 6
        case _:
            head, at = struct.pack("!BBHHH", packet.icmp_type, 0, 0, number & 0xFFFF, 1), 2
    ends, protocol = packet.source.packed + packet.destination.packed, PROTOCOL[packet.protocol]
    pseudo = ends + struct.pack("!II", len(head + body), protocol) if packet.protocol != "icmp" else b""
    payload = head[:at] + struct.pack("!H", checksum(pseudo + head + body)) + head[at + 2 :] + body
    if packet.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload
    fixed = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), number & 0xFFFF, 0, 64, protocol, 0)
    return fixed[:10] + struct.pack("!H", checksum(fixed + ends)) + ends + payload


def reversed_packet(packet: Packet) -> Packet:
    kind = packet.icmp_type
    if kind is not None:
        kind = {0: 8, 8: 0, 128: 129, 129: 128}[kind]
    return replace(
        packet,
        source=packet.destination,
        destination=packet.source,
        source_port=packet.destination_port,
        destination_port=packet.source_port,
        icmp_type=kind,
    )


def understood(raw: bytes) -> tuple[int, Seen] | None:
    """Which packet this is, or the answer to which; None: of no interest."""
    if raw[0] >> 4 == 4:
        protocol, ends, payload = raw[9], (raw[12:16], raw[16:20]), raw[(raw[0] & 15) * 4 :]
    else:
        protocol, ends, payload = raw[6], (raw[8:24], raw[24:40]), raw[40:]
    name = NAME.get(protocol)
    if name is None:
        return None
    icmp = payload[:2] if name.startswith("icmp") else b""
    if name == "tcp" and payload[13] & RST:
        sequence, acknowledged = struct.unpack("!II", payload[4:12])
        return (sequence or acknowledged) >> 12, Seen("reject", "tcp reset")
    place = payload.rfind(MARK)
    if place < 0:
        return None
    number = int.from_bytes(payload[place + 5 : place + 8], "big")
    if icmp and icmp[0] not in (0, 8, 128, 129):
        if icmp[0] != (3 if name == "icmp" else 1):  # a redirect
            return None
        return number, Seen("reject", f"{name} {icmp[0]}/{icmp[1]}")
    source, destination = map(ip_address, ends)
    ports = struct.unpack("!HH", payload[:4]) if not icmp else (None, None)
    return number, Seen("accept", "", Packet(name, source, destination, *ports, icmp_type=icmp[0] if icmp else None))


class Guest:
    def __init__(self) -> None:
        self.space, self._far = Space("guest"), Space("far")
        self.space.sysctl({"net.ipv6.conf.default.disable_ipv6": 0, "net.ipv6.conf.all.disable_ipv6": 0})
        self._wires: dict[str, socket.socket] = {}
        self._ends: dict[str, socket.socket] = {}
        for device in DEVICES:
            self.space.cable(device, MAC[device], self._far, f"far-{device}", FAR_MAC[device])
            v4, v6 = LOCAL[4][device], LOCAL[6][device]
            self.space.ip(
                f"link set {device} addrgenmode none",
                *(f"address add {address}/24 dev {device}" for address in v4),
                *(f"address add {address}/64 dev {device} nodad" for address in v6),
                *(
                    f"neighbour add {address} lladdr {FAR_MAC[device]} dev {device} nud permanent"
                    for address in (*REMOTE[4][device], *REMOTE[6][device])
                ),
            )
            with self._far.entered():
                self._wires[device] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                self._wires[device].bind((f"far-{device}", 3))
            with self.space.entered():
                self._ends[device] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
                self._ends[device].bind((device, 0x88B5))
        quiet = {
            f"net.ipv4.conf.{name}.{key}": 0 for name in ("all", *DEVICES) for key in ("rp_filter", "send_redirects")
        }
        self.space.sysctl(
            {
                **quiet,
                "net.ipv4.ip_forward": 1,
                "net.ipv6.conf.all.forwarding": 1,
                "net.ipv4.icmp_ratemask": 0,
                "net.ipv6.icmp.ratelimit": 0,
                "net.ipv6.icmp.ratemask": 255,
            }
        )
        self._raw = [self.space.socket(socket.SOCK_RAW, socket.AF_INET, PROTOCOL[p]) for p in ("tcp", "udp", "icmp")]
        self._raw6 = [
            self.space.socket(socket.SOCK_RAW, socket.AF_INET6, PROTOCOL[p]) for p in ("tcp", "udp", "icmpv6")
        ]
        for raw in self._raw6:
            raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        self._out = {
            4: self.space.socket(socket.SOCK_RAW, socket.AF_INET, socket.IPPROTO_RAW),
            6: self.space.socket(socket.SOCK_RAW, socket.AF_INET6, socket.IPPROTO_RAW),
        }
        for endpoint in (*self._raw, *self._raw6, *self._wires.values(), *self._ends.values()):
            endpoint.setblocking(False)
            endpoint.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        self._netlink = self.space.socket(socket.SOCK_RAW, socket.AF_NETLINK, 12)
        self.run("nft", "-f", "-", stdin=KEEP)
        self.space.sysctl({"net.netfilter.nf_conntrack_tcp_be_liberal": 1})

    def close(self) -> None:
        for endpoint in (*self._raw, *self._raw6, *self._wires.values(), *self._ends.values(), *self._out.values()):
            endpoint.close()
        self._netlink.close()
        for space in (self.space, self._far):
            os.close(space._file)

    def run(self, *command: str, stdin: str = "") -> str:
        return self.space.run(*command, stdin=stdin)

    def forget_connections(self) -> None:
        self._netlink.send(struct.pack("=IHHII4x", 20, (1 << 8) | 2, 5, 1, 0))
        assert struct.unpack_from("=i", self._netlink.recv(4096), 16) == (0,)

    def send(self, sent: Sent) -> None:
        raw, packet = to_bytes(sent), sent.packet
        if packet.in_interface:
            kind = b"\x08\x00" if packet.version == 4 else b"\x86\xdd"
            self._wires[packet.in_interface].send(
                _mac(MAC[packet.in_interface]) + _mac(FAR_MAC[packet.in_interface]) + kind + raw
            )
        else:
            try:
                self._out[packet.version].sendto(raw, (str(packet.destination), 0))
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNREFUSED):
                    raise

    def observe(self, packets: Sequence[Sent]) -> list[Seen]:
        """What the kernel made of each: arrived in the guest or on a cable, answered, or neither."""
        list(self._arrivals())
        for sent in packets:
            self.send(sent)
        seen: dict[int, Seen] = {}
        for number, result in self._arrivals():
            if number not in seen or (seen[number].verdict == "reject" and result.verdict == "accept"):
                seen[number] = result
        return [seen.get(sent.number, DROPPED) for sent in packets]

    def establish(self, packets: Sequence[Sent]) -> None:
        """Make a connection of each: it is the next packet of it, in one of the directions."""
        for sent in packets:
            first, answer = sent.packet, self._other_side(sent.packet)
            if sent.number % 2 and first.icmp_type not in (0, 129):
                first, answer = answer, first
            if first.icmp_type in (0, 129):
                first, answer = answer, first
            self.send(Sent(first, sent.number))
            self.send(Sent(answer, sent.number, SYN | ACK))
            if first.protocol == "tcp":
                self.send(Sent(first, sent.number, ACK))
        list(self._arrivals())

    def _other_side(self, packet: Packet) -> Packet:
        local = any(str(packet.destination) in addresses for addresses in LOCAL[packet.version].values())
        back = "" if local else device_of(packet.destination)
        return replace(reversed_packet(packet), in_interface=back, out_interface=packet.in_interface)

    def _arrivals(self) -> Iterator[tuple[int, Seen]]:
        """What arrived since the last call: first in the guest, then on the cables."""
        for device in DEVICES:  # nothing is under way behind what is last in each queue
            self._wires[device].send(_mac(MAC[device]) + _mac(FAR_MAC[device]) + END)
            self._ends[device].setblocking(True)
            self._ends[device].settimeout(5)
            self._ends[device].recv(64)
            self._ends[device].send(_mac(FAR_MAC[device]) + _mac(MAC[device]) + END)
        for raw in self._raw:
            for frame in _all(raw):
                if result := understood(frame[0]):
                    yield result
        for raw, protocol in zip(self._raw6, (6, 17, 58), strict=True):
            for payload, ancillary, _, source in _all(raw):
                destination = next(data[:16] for _, _, data in ancillary)
                ends = IPv6Address(source[0].partition("%")[0]).packed + destination
                if result := understood(struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload):
                    yield result
        for wire in self._wires.values():
            wire.settimeout(5)
            while True:
                frame, address = wire.recvfrom(4096)
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                if frame[12:14] == END:
                    break
                if frame[12:14] in (b"\x08\x00", b"\x86\xdd") and (result := understood(frame[14:])):
                    yield result


TRACK = """flush ruleset
table inet keep {
 chain before { type filter hook prerouting priority 500; ct state new counter; }
 chain made { type filter hook output priority 500; ct state new counter; }
 chain quiet { type filter hook output priority -500;
  icmpv6 type != { destination-unreachable, echo-request, echo-reply } drop
 }
}
"""
"""Connections are tracked all the time; nothing of the guest's own is among the packets."""
KEEP = (
    TRACK
    + """table inet silent {
 chain made { type filter hook output priority -400; tcp flags & rst == rst drop; }
}
"""
)
"""While connections are made, the guest's own stack resets none."""


def _all(endpoint: socket.socket) -> Iterator[tuple[bytes, list[tuple[int, int, bytes]], int, tuple[str, int]]]:
    with suppress(BlockingIOError):
        while True:
            yield endpoint.recvmsg(4096, 256)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def device_of(address: IPv4Address | IPv6Address | None) -> str:
    return "net1" if str(address).startswith(("10.1.", "fd01:")) else "eth0"


@contextmanager
def one_processor() -> Iterator[None]:
    """Packets stay in the order of one queue."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
