"""Packets and captures made by hand, and a small TCP sender over a lossy path whose every drop is known."""

from __future__ import annotations

import heapq
import ipaddress
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, SERVER = "10.0.1.4", "10.0.2.4"
MS = 1_000_000
Record = tuple[int, bytes]
"""Nanoseconds and frame."""


def ethernet(packet: bytes, kind: int | None = None) -> bytes:
    if kind is None:
        kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01" + kind.to_bytes(2, "big") + packet


@cache
def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def ip(
    source: str, destination: str, protocol: int, body: bytes, *, number: int = 0, ttl: int = 64, fragment: int = 0
) -> bytes:
    ends = _packed(source) + _packed(destination)
    if len(ends) == 32:
        return struct.pack(">IHBB", 6 << 28, len(body), protocol, ttl) + ends + body
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), number, fragment, ttl, protocol, 0) + ends + body


def tcp(
    source_port: int, destination_port: int, seq: int, ack: int, flags: int, payload: bytes = b"", *,
    window: int = 500, options: bytes = b"",
) -> bytes:  # fmt: skip
    options += b"\1" * (-len(options) % 4)
    offset = (20 + len(options)) // 4 << 4
    seq, ack = seq & 0xFFFFFFFF, ack & 0xFFFFFFFF
    head = struct.pack(">HHIIBBHHH", source_port, destination_port, seq, ack, offset, flags, window, 0, 0)
    return head + options + payload


def udp(source_port: int, destination_port: int, payload: bytes = b"") -> bytes:
    return struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload


def pcap(records: Iterable[Record], *, link: int = 1, big: bool = False, nanoseconds: bool = False) -> bytes:
    order, magic = ">" if big else "<", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link)]
    for when, frame in records:
        part = when % 1_000_000_000
        stamp = when // 1_000_000_000, part if nanoseconds else part // 1000
        parts.append(struct.pack(f"{order}IIII", *stamp, len(frame), len(frame)) + frame)
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(records: Iterable[tuple[int, int, bytes]], links: Iterable[tuple[int, bytes]], order: str = "<") -> bytes:
    """Records are interface, ticks of that interface's clock, frame; links are link type and options."""
    parts = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)]
    parts += [block(1, struct.pack(f"{order}HHI", link, 0, 262144) + options, order) for link, options in links]
    for interface, ticks, frame in records:
        head = struct.pack(f"{order}IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        parts.append(block(6, head + frame, order))
    return b"".join(parts)


@dataclass
class Talk:
    """One connection written down packet by packet, as the capture saw it."""

    client: str = CLIENT
    server: str = SERVER
    client_port: int = 40_000
    server_port: int = 5432
    now: int = 1_700_000_000 * 1_000_000_000
    records: list[Record] = field(default_factory=list)
    numbers: dict[bool, int] = field(default_factory=lambda: {True: 1, False: 1})
    """The next IP id of the client (True) and the server."""

    def packet(
        self, from_client: bool, seq: int, ack: int, flags: int = ACK, size: int = 0, *, after_ms: float = 1,
        window: int = 500, number: int | None = None, ttl: int = 64, options: bytes = b"",
    ) -> Talk:  # fmt: skip
        self.now += int(after_ms * MS)
        if number is None:
            number = self.numbers[from_client]
            self.numbers[from_client] += 1
        ends = (self.client, self.server) if from_client else (self.server, self.client)
        ports = (self.client_port, self.server_port) if from_client else (self.server_port, self.client_port)
        segment = tcp(*ports, seq, ack, flags, b"x" * size, window=window, options=options)
        self.records.append((self.now, ethernet(ip(*ends, 6, segment, number=number, ttl=ttl))))
        return self

    def c(self, seq: int, ack: int, flags: int = ACK, size: int = 0, **more: float) -> Talk:
        """A packet of the client; sequence numbers count from its SYN as 0."""
        return self.packet(True, seq, ack, flags, size, **more)  # type: ignore[arg-type]

    def s(self, seq: int, ack: int, flags: int = ACK, size: int = 0, **more: float) -> Talk:
        return self.packet(False, seq, ack, flags, size, **more)  # type: ignore[arg-type]

    def opened(self, there_ms: float = 20, back_ms: float = 20) -> Talk:
        """After a handshake."""
        return self.c(0, 0, SYN).s(0, 1, SYN | ACK, after_ms=there_ms).c(1, 1, after_ms=back_ms)

    def save(self, path: Path) -> Path:
        path.write_bytes(pcap(self.records))
        return path


@dataclass
class Drops:
    """What the path lost of one transfer, data segments and ACKs, before and after the capture point."""

    upstream: int = 0
    downstream: int = 0
    acks_upstream: int = 0
    acks_downstream: int = 0


def transfer(
    seed: int, *, segments: int = 400, size: int = 1000, upstream: float = 0.0, downstream: float = 0.0,
    ack_loss: float = 0.0, from_client: bool = True, near_ms: float = 10.0, far_ms: float = 15.0, window: int = 16,
    talk: Talk | None = None,
) -> tuple[Talk, Drops]:  # fmt: skip
    """A sender with fast retransmit, NewReno recovery and timeouts; the capture lies `near_ms` from it.

    `upstream` is the loss between sender and capture, `downstream` between capture and receiver, `ack_loss` that of
    ACKs on each part of the way back.
    """
    talk, drops, dice = talk or Talk(), Drops(), random.Random(seed)
    talk.opened(2 * far_ms, 2 * near_ms) if from_client else talk.opened(2 * near_ms, 2 * far_ms)
    queue: list[tuple[float, int, str, tuple[int, ...]]] = []
    seen: list[tuple[float, int, bool, int, int, int]] = []
    tick = 0
    clock = 0.0
    number = 100
    departed = 0.0

    def later(when: float, what: str, *values: int) -> None:
        nonlocal tick
        tick += 1
        heapq.heappush(queue, (when, tick, what, values))

    def send(segment: int) -> None:
        nonlocal number, departed
        number = (number + 1) & 0xFFFF
        departed = max(clock, departed + 0.01)
        later(departed + near_ms, "passing", segment, number)

    una = following = duplicates = 0
    recover = -1
    got: set[int] = set()
    expected = 0
    timer = 0
    rto = 300.0
    later(0.0, "open")
    while queue and una < segments:
        clock, _, what, values = heapq.heappop(queue)
        if what == "passing":  # the capture point, if nothing was lost before it
            if dice.random() < upstream:
                drops.upstream += 1
                continue
            seen.append((clock, tick, True, values[0], values[1], 0))
            if dice.random() < downstream:
                drops.downstream += 1
                continue
            later(clock + far_ms, "arrives", values[0])
        elif what == "arrives":
            got.add(values[0])
            while expected in got:
                got.discard(expected)
                expected += 1
            later(clock + far_ms, "ack", expected)
        elif what == "ack":
            if dice.random() < ack_loss:
                drops.acks_upstream += 1
                continue
            seen.append((clock, tick, False, values[0], 0, 0))
            if dice.random() < ack_loss:
                drops.acks_downstream += 1
                continue
            later(clock + near_ms, "acked", values[0])
        elif what == "acked":
            if values[0] > una:
                una, duplicates, rto = values[0], 0, 300.0
                following = max(following, una)
                if una <= recover:
                    send(una)
                timer += 1
                later(clock + rto, "timeout", timer)
            elif following > una:
                duplicates += 1
                if duplicates == 3 and una > recover:
                    recover = following - 1
                    send(una)
        elif what == "timeout" and values[0] == timer:
            recover, duplicates = following - 1, 0
            send(una)
            rto = min(rto * 2, 5000.0)
            timer += 1
            later(clock + rto, "timeout", timer)
        if what in ("open", "acked"):
            while following < min(una + window, segments):
                send(following)
                following += 1
            if what == "open":
                timer += 1
                later(clock + rto, "timeout", timer)
    start = talk.now + MS
    for when, _, data, value, ip_number, _ in sorted(seen):
        talk.now = start + int(when * MS)
        if data:
            talk.packet(from_client, 1 + value * size, 1, ACK | PSH, size, after_ms=0, number=ip_number)
        else:
            talk.packet(not from_client, 1, 1 + value * size, after_ms=0)
    return talk, drops
