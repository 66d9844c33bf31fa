"""Damage to captures: steps that know pcap, pcapng, IP, TCP and the application protocols, and blind ones.

A step is one number; the same numbers over the same seed always give the same file, so that whoever draws them can
leave steps out of a failure.
"""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..wire import Record, block, ethernet, ip, udp

Dice = random.Random
_SHORT = (0, 1, 2, 3, 4, 7, 8, 12, 20, 31, 63, 64, 127, 128, 191, 192, 255)
_NUMBERS = (0, 1, 2, 4, 5, 8, 19, 20, 40, 255, 256, 1500, 0x7FFF, 0x8000, 0xC00C, 0xFFFE, 0xFFFF)
_LONG = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF00, 262_144, 1 << 24, 65_535)
_PORTS = (0, 21, 22, 25, 53, 67, 68, 80, 123, 443, 546, 547, 1900, 4789, 5353, 5355, 6081, 8080, 8443, 47808, 65535)
_LINKS = (0, 1, 9, 12, 14, 101, 105, 108, 113, 127, 228, 229, 276, 65535)
_NAMES = (
    "\x1b]0;owned\x07", "<script>alert(1)</script>", "|`$(reboot)`", "=cmd|' /C calc'!A0", "[x](javascript:1)",
    "..", "a" * 63 + "." + "b" * 63, "xn--\u202e", "\0", "%s%n", "*.*", "-", "\ud7ff", "a." * 127,
)  # fmt: skip
_LONGEST_FRAME = 66_000
_LONGEST_DATAGRAM = 65_535


@dataclass
class Packet:
    when: int
    frame: bytearray
    captured: int | None = None
    wire: int | None = None
    """What the record claims, where it lies."""


@dataclass
class Capture:
    """A capture before it is written down."""

    packets: list[Packet]
    link: int = 1
    ng: bool = False
    big: bool = False
    nanoseconds: bool = False
    snap: int = 262_144
    interfaces: list[tuple[int, bytes]] = field(default_factory=list)
    blocks: list[tuple[int, bytes]] = field(default_factory=list)
    """Other blocks of pcapng: before which packet."""
    damage: list[Callable[[bytes], bytes]] = field(default_factory=list)
    """Done to the file once it is written."""

    def octets(self) -> bytes:
        data = self._pcapng() if self.ng else self._pcap()
        for each in self.damage:
            data = each(data)
        return data

    def _pcap(self) -> bytes:
        order, magic = ">" if self.big else "<", 0xA1B23C4D if self.nanoseconds else 0xA1B2C3D4
        parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, self.snap & 0xFFFFFFFF, self.link)]
        for each in self.packets:
            seconds, rest = divmod(each.when, 10**9)
            stamp = seconds & 0xFFFFFFFF, rest if self.nanoseconds else rest // 1000
            parts += [struct.pack(f"{order}IIII", *stamp, *_sizes(each)), each.frame]
        return b"".join(parts)

    def _pcapng(self) -> bytes:
        order = ">" if self.big else "<"
        links = self.interfaces or [(self.link, b"")]
        parts = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)]
        parts += [block(1, struct.pack(f"{order}HHI", link, 0, self.snap & 0xFFFFFFFF) + o, order) for link, o in links]
        others: dict[int, list[bytes]] = {}
        for before, other in self.blocks:
            others.setdefault(before % (len(self.packets) + 1), []).append(other)
        for n, each in enumerate(self.packets):
            parts += others.get(n, [])
            ticks = each.when // 1000 & 0xFFFFFFFFFFFFFFFF
            head = struct.pack(f"{order}IIIII", n % len(links), ticks >> 32, ticks & 0xFFFFFFFF, *_sizes(each))
            parts.append(block(6, head + each.frame, order))
        return b"".join([*parts, *others.get(len(self.packets), [])])


def _sizes(packet: Packet) -> tuple[int, int]:
    size = len(packet.frame)
    return (size if packet.captured is None else packet.captured, size if packet.wire is None else packet.wire)


# ------------------------------------------------------------------------------------------------ where things lie


def _network(frame: bytes) -> int:
    """Where IP begins."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8") and at < len(frame):
        at += 4
    return at + 2


def _transport(frame: bytes) -> int:
    at = _network(frame)
    if at >= len(frame):
        return len(frame)
    return at + (40 if frame[at] >> 4 == 6 else (frame[at] & 15) * 4)


def _payload(frame: bytes) -> int:
    ip_at, at = _network(frame), _transport(frame)
    if at + 13 > len(frame):
        return len(frame)
    protocol = frame[ip_at + (6 if frame[ip_at] >> 4 == 6 else 9)]
    return at + ((frame[at + 12] >> 4) * 4 if protocol == 6 else 8)


def _put(frame: bytearray, at: int, value: int, size: int) -> None:
    if 0 <= at <= len(frame) - size:
        frame[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "big")


def _interesting(dice: Dice, frame: bytearray, begin: int) -> None:
    """A length or count somewhere behind `begin` says something else."""
    if begin >= len(frame):
        return
    at = begin + min(int(dice.expovariate(1 / 24)), len(frame) - begin - 1)
    size = dice.choice((1, 1, 2, 2, 4))
    values = {1: _SHORT, 2: (*_NUMBERS, len(frame) - at, len(frame) - at - 2), 4: _LONG}[size]
    _put(frame, at, dice.choice(values), size)


# ------------------------------------------------------------------------------------------------ steps on a packet

Step = Callable[[Dice, Packet, Capture], None]


def other_ports(dice: Dice, packet: Packet, _: Capture) -> None:
    _put(packet.frame, _transport(packet.frame) + dice.choice((0, 2)), dice.choice(_PORTS), 2)


def network_header(dice: Dice, packet: Packet, _: Capture) -> None:
    at = _network(packet.frame)
    _put(packet.frame, at + dice.randrange(0, 24), dice.choice((*_SHORT, dice.randrange(256))), 1)


def network_length(dice: Dice, packet: Packet, _: Capture) -> None:
    at = _network(packet.frame)
    _put(packet.frame, at + dice.choice((2, 4, 6)), dice.choice(_NUMBERS), 2)


def transport_header(dice: Dice, packet: Packet, _: Capture) -> None:
    at = _transport(packet.frame)
    _put(packet.frame, at + dice.randrange(0, 24), dice.choice((*_SHORT, dice.randrange(256))), 1)


def transport_length(dice: Dice, packet: Packet, _: Capture) -> None:
    _put(packet.frame, _transport(packet.frame) + dice.choice((4, 12)), dice.choice(_NUMBERS), 2)


def sequence(dice: Dice, packet: Packet, capture: Capture) -> None:
    """One packet's numbers jump, or all of them wrap around."""
    at = _transport(packet.frame)
    if dice.random() < 0.5:
        _put(packet.frame, at + dice.choice((4, 8)), dice.choice((*_LONG, dice.randrange(1 << 32))), 4)
        return
    shift = dice.choice((0xFFFFFFFF - 2000, 0x7FFFFFFF - 2000, 0xFFFFFFF0))
    for each in capture.packets:
        begin = _transport(each.frame)
        for where in (begin + 4, begin + 8):
            if where + 4 <= len(each.frame):
                _put(each.frame, where, int.from_bytes(each.frame[where : where + 4], "big") + shift, 4)


def tcp_flags(dice: Dice, packet: Packet, _: Capture) -> None:
    at = _transport(packet.frame)
    _put(packet.frame, at + 13, dice.randrange(256), 1)
    _put(packet.frame, at + 14, dice.choice((0, 1, 65_535, dice.randrange(65_536))), 2)


def tcp_options(dice: Dice, packet: Packet, _: Capture) -> None:
    """Options of any kind and length, sound or not, in front of the payload."""
    at = _transport(packet.frame)
    if at + 20 > len(packet.frame):
        return
    options = b""
    while len(options) < 36 and dice.random() < 0.8:
        size = dice.choice((2, 3, 4, 10, 18, 34, 0, 1, 255))
        options += bytes((dice.choice((0, 1, 2, 3, 4, 5, 8, 253)), size)) + dice.randbytes(max(min(size, 36) - 2, 0))
    options = options[:40] + b"\1" * (-len(options[:40]) % 4)
    packet.frame[at + 20 : at + 20] = options
    packet.frame[at + 12] = (20 + len(options)) // 4 << 4
    begin = _network(packet.frame)
    _put(packet.frame, begin + 2, len(packet.frame) - begin, 2)


def payload_lengths(dice: Dice, packet: Packet, _: Capture) -> None:
    for _n in range(dice.randrange(1, 4)):
        _interesting(dice, packet.frame, _payload(packet.frame))


def payload_noise(dice: Dice, packet: Packet, _: Capture) -> None:
    begin = _payload(packet.frame)
    for _n in range(dice.randrange(1, 12)):
        if begin < len(packet.frame):
            packet.frame[dice.randrange(begin, len(packet.frame))] = dice.randrange(256)


def digits(dice: Dice, packet: Packet, _: Capture) -> None:
    """A number in text becomes another: status, length, chunk size."""
    begin = _payload(packet.frame)
    places = [n for n in range(begin, len(packet.frame)) if 48 <= packet.frame[n] <= 57]
    if places:
        place = dice.choice(places)
        packet.frame[place : place + 1] = dice.choice((b"", b"-1", b"9" * 18, b"9" * 400, b"\xb2", b"0x1", b"000"))
        _lengthened(packet)


def name(dice: Dice, packet: Packet, _: Capture) -> None:
    """A label, or what follows `Host:`, becomes something that acts where it is shown, or 65,535 bytes long."""
    text = dice.choice(_NAMES).encode("utf-8", "surrogatepass") * dice.choice((1, 1, 1, 30))
    if dice.random() < 0.1:
        text = b"n" * 65_535
    begin = _payload(packet.frame)
    host = packet.frame.find(b"Host: ", begin)
    if host >= 0:
        packet.frame[host + 6 : host + 6] = text[: _LONGEST_FRAME - len(packet.frame)]
    else:
        label = packet.frame.find(b"example", begin)
        if label > 0:
            packet.frame[label - 1 : label + 7] = bytes([len(text[:63])]) + text[:63]
    _lengthened(packet)


def _lengthened(packet: Packet) -> None:
    """The headers say how long the packet has become, as far as they can."""
    begin, at = _network(packet.frame), _transport(packet.frame)
    size = min(len(packet.frame) - begin, 0xFFFF)
    _put(packet.frame, begin + 2, size, 2)
    if begin + 9 < len(packet.frame) and packet.frame[begin + 9] == 17:
        _put(packet.frame, at + 4, size - 20, 2)


def foreign_payload(dice: Dice, packet: Packet, capture: Capture) -> None:
    """What another packet carries, whole or from its middle."""
    other = dice.choice(capture.packets).frame
    begin = _payload(other)
    packet.frame[_payload(packet.frame) :] = other[begin + dice.choice((0, 0, dice.randrange(0, 40))) :]
    _lengthened(packet)


def cut_frame(dice: Dice, packet: Packet, _: Capture) -> None:
    packet.wire = len(packet.frame)
    del packet.frame[dice.randrange(0, len(packet.frame) + 1) :]


def padded(dice: Dice, packet: Packet, _: Capture) -> None:
    packet.frame += bytes(dice.choice((1, 4, 60, 1500)))


def lying_record(dice: Dice, packet: Packet, _: Capture) -> None:
    values = (*_LONG, len(packet.frame) - 1, len(packet.frame) + 1)
    packet.wire = max(dice.choice(values), 0)
    if dice.random() < 0.3:
        packet.captured = max(dice.choice(values), 0)


def other_time(dice: Dice, packet: Packet, _: Capture) -> None:
    second = 10**9
    packet.when = dice.choice(
        (0, packet.when - 3600 * second, packet.when + 10 * second, 0xFFFFFFFF * second, packet.when + 10**6 * second)
    )


def fragments(dice: Dice, packet: Packet, capture: Capture) -> None:
    begin, at = _network(packet.frame), _transport(packet.frame)
    if begin + 20 > len(packet.frame) or packet.frame[begin] >> 4 != 4:
        return
    size = dice.choice((8, 16, 24, 64))
    where = capture.packets.index(packet)
    pieces: list[Packet] = []
    for offset in range(0, min(len(packet.frame) - at, 20 * size), size):
        piece = Packet(packet.when + offset, packet.frame[:at] + packet.frame[at + offset : at + offset + size])
        more = at + offset + size < len(packet.frame)
        _put(piece.frame, begin + 2, len(piece.frame) - begin, 2)
        _put(piece.frame, begin + 6, (offset + dice.choice((0, 0, 0, 8, -8))) // 8 & 0x1FFF | more << 13, 2)
        pieces.append(piece)
    if dice.random() < 0.3:
        dice.shuffle(pieces)
    capture.packets[where : where + 1] = pieces


def tunnel(dice: Dice, packet: Packet, _: Capture) -> None:
    """The packet inside of others, up to a hundred deep."""
    kind, depth = dice.randrange(7), dice.choice((1, 2, 8, 15, 16, 17, 100))
    for n in range(depth):
        frame = bytes(packet.frame)
        inner, ends = frame[_network(frame) :], (f"192.0.2.{n + 1}", "198.51.100.1")
        if len(frame) > _LONGEST_DATAGRAM - 100 or not inner:
            return
        made = (
            lambda f=frame: f[:12] + b"\x81\0\0\5" + f[12:],
            lambda e=ends, i=inner: ethernet(ip(*e, 4, i)),
            lambda e=ends, i=inner: ethernet(ip(*e, 47, b"\0\0\x08\0" + i)),
            lambda e=ends, f=frame: ethernet(ip(*e, 47, b"\0\0\x65\x58" + f)),
            lambda e=ends, f=frame: ethernet(ip(*e, 17, udp(9, 4789, b"\x08\0\0\0\0\0\1\0" + f))),
            lambda e=ends, f=frame: ethernet(ip(*e, 17, udp(9, 6081, b"\0\0\x65\x58\0\0\1\0" + f))),
            lambda i=inner: ethernet(b"\0\1\0\x40" * 50 + b"\0\1\1\x40" + i, 0x8847),
        )
        packet.frame = bytearray(made[kind]())


PACKET_STEPS: tuple[Step, ...] = (
    other_ports, network_header, network_length, transport_header, transport_length, sequence, tcp_flags, tcp_options,
    payload_lengths, payload_lengths, payload_lengths, payload_noise, digits, name, foreign_payload, cut_frame, padded,
    lying_record, other_time, fragments, tunnel,
)  # fmt: skip


# ------------------------------------------------------------------------------------------ steps on the whole file


def repeated(dice: Dice, capture: Capture) -> None:
    begin = dice.randrange(len(capture.packets))
    part = capture.packets[begin : begin + dice.randrange(1, 20)]
    again = [Packet(each.when, bytearray(each.frame), each.captured, each.wire) for each in part]
    capture.packets[begin:begin] = again


def dropped(dice: Dice, capture: Capture) -> None:
    begin = dice.randrange(len(capture.packets))
    del capture.packets[begin : begin + dice.randrange(1, 10)]


def shuffled(dice: Dice, capture: Capture) -> None:
    if dice.random() < 0.5:
        capture.packets.reverse()
    else:
        dice.shuffle(capture.packets)


def other_link(dice: Dice, capture: Capture) -> None:
    capture.link = dice.choice(_LINKS)


def other_form(dice: Dice, capture: Capture) -> None:
    capture.big, capture.nanoseconds = dice.random() < 0.5, dice.random() < 0.5
    capture.snap = dice.choice((0, 1, 64, 0x7FFFFFFF, 0xFFFFFFFF))


def blocks(dice: Dice, capture: Capture) -> None:
    """pcapng with interfaces whose clocks and options are anything, and blocks of any kind in between."""
    capture.ng, capture.big = True, dice.random() < 0.5
    order = ">" if capture.big else "<"
    for _n in range(dice.choice((1, 1, 2, 9))):
        options = b""
        for _m in range(dice.randrange(4)):
            code, size = dice.choice((0, 2, 9, 14, 9, 1, 0xFFFF)), dice.choice((0, 1, 1, 8, 8, 4, 65_535))
            value = dice.choice((b"\x80", b"\x09", b"\xff", b"\0", b"\x7f", b"\x12")) + dice.randbytes(7)
            options += struct.pack(f"{order}HH", code, size) + value[: (min(size, 8) + 3) & ~3]
        capture.interfaces.append((dice.choice((1, 1, 1, *_LINKS)), options))
    for _n in range(dice.randrange(4)):
        kind = dice.choice((1, 2, 3, 4, 5, 10, 0x0BAD, 0x0A0D0D0A))
        body = dice.randbytes(dice.choice((0, 1, 4, 8, 20, 64)))
        if kind in (3, 5):
            body = struct.pack(f"{order}I", dice.choice((0, 1, 60, 0xFFFFFFFF))) + bytes(80)
        if kind == 0x0A0D0D0A:
            body = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
        capture.blocks.append((dice.randrange(1000), block(kind, body, order)))


def blind(dice: Dice, capture: Capture) -> None:
    number = dice.randrange(1 << 32)
    capture.damage.append(lambda data: damaged(data, Dice(number)))


def squeezed(dice: Dice, capture: Capture) -> None:
    parts, number = dice.choice((1, 1, 2)), dice.randrange(1 << 32)

    def squeeze(data: bytes) -> bytes:
        middle = len(data) // 2
        pieces = [data] if parts == 1 else [data[:middle], data[middle:]]
        made = b"".join(gzip.compress(piece, 1, mtime=0) for piece in pieces)
        return made if number % 2 else damaged(made, Dice(number))

    capture.damage.append(squeeze)


FILE_STEPS = (repeated, dropped, shuffled, other_link, other_form, blocks, blind, blind, squeezed)


def damaged(data: bytes, dice: Dice) -> bytes:
    """Bits flipped, numbers overwritten, slices cut out or doubled, the end missing. Knows nothing."""
    made = bytearray(data)
    for _n in range(dice.choice((1, 1, 2, 5))):
        if not made:
            break
        at = dice.randrange(len(made)) if dice.random() < 0.7 else dice.randrange(min(len(made), 64))
        size = dice.choice((1, 2, 4, 16, 200))
        match dice.randrange(6):
            case 0:
                made[at] ^= 1 << dice.randrange(8)
            case 1:
                order = dice.choice(("big", "little"))
                made[at : at + 4] = dice.choice(_LONG).to_bytes(4, order)
            case 2:
                del made[at : at + size]
            case 3:
                made[at:at] = made[at : at + size]
            case 4:
                made[at : at + size] = dice.randbytes(size)
            case _:
                del made[at:]
    return bytes(made)


def mutated(records: Sequence[Record], steps: Sequence[int]) -> bytes:
    """The capture of these records after these steps."""
    capture = Capture([Packet(when, bytearray(frame)) for when, frame in records])
    for number in steps:
        dice = Dice(number)
        if capture.packets and dice.random() < 0.75:
            step = dice.choice(PACKET_STEPS)
            for _n in range(dice.choice((1, 1, 1, 4, 16))):
                step(dice, dice.choice(capture.packets), capture)
        else:
            change = dice.choice(FILE_STEPS)
            if capture.packets or change not in (repeated, dropped):
                change(dice, capture)
    for each in capture.packets:
        del each.frame[200_000:]
    return capture.octets()
