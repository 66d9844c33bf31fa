"""A simulated network: hosts, paths with delay, links that do harm, and one point where everything is captured.

Time is simulated seconds. Every random choice comes from the world's seeded dice, so a seed is a capture.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ..wire import Record, ip, tcp

Point = Literal["client", "server", "between"]
EPOCH_NS = 1_700_000_000 * 1_000_000_000
TCP_PROTOCOL, UDP_PROTOCOL, ICMP_PROTOCOL, ICMP6_PROTOCOL = 6, 17, 1, 58


@dataclass(frozen=True)
class Segment:
    """The TCP part of a packet; sequence numbers are those on the wire."""

    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: int
    data: bytes
    window: int
    options: bytes

    def encoded(self) -> bytes:
        return tcp(
            self.source_port, self.destination_port, self.seq, self.ack, self.flags, self.data, window=self.window,
            options=self.options,
        )  # fmt: skip


@dataclass(frozen=True)
class Packet:
    source: str
    destination: str
    protocol: int
    segment: Segment | None = None
    body: bytes = b""
    ttl: int = 64
    number: int = 0

    @property
    def payload(self) -> bytes:
        return self.segment.encoded() if self.segment else self.body

    @property
    def size(self) -> int:
        """IP bytes."""
        head = 40 if ":" in self.source else 20
        return head + (20 + len(self.segment.options) + len(self.segment.data) if self.segment else len(self.body))


@dataclass
class Link:
    """What happens to packets of one direction at one place of the path."""

    loss: float = 0.0
    rate: float | None = None
    """Bits a second; packets wait in the queue."""
    queue_bytes: int = 1_000_000
    policed: tuple[float, int] | None = None
    """Bits a second and burst bytes; what exceeds them is dropped."""
    jitter: float = 0.0
    reorder: float = 0.0
    reorder_by: float = 0.003
    duplicate: float = 0.0
    mtu: int | None = None
    tells_mtu: bool = True
    outages: tuple[tuple[float, float], ...] = ()
    blocks: Callable[[Packet], bool] | None = None
    _free_at: float = 0.0
    _tokens: float | None = None
    _policed_at: float = 0.0
    _last_out: float = 0.0

    def carry(self, packet: Packet, now: float, dice: random.Random) -> Iterator[float]:
        """When copies of the packet leave it; nothing where it is lost."""
        if self.blocks is not None and self.blocks(packet):
            return
        if any(begin <= now < end for begin, end in self.outages) or (self.loss and dice.random() < self.loss):
            return
        bits = packet.size * 8
        if self.policed is not None:
            rate, burst = self.policed
            tokens = burst * 8 if self._tokens is None else self._tokens
            tokens = min(burst * 8, tokens + (now - self._policed_at) * rate)
            self._policed_at = now
            self._tokens = tokens
            if tokens < bits:
                return
            self._tokens = tokens - bits
        out = now
        if self.rate is not None:
            waiting = max(self._free_at - now, 0.0) * self.rate / 8
            if waiting + packet.size > self.queue_bytes:
                return
            self._free_at = out = max(self._free_at, now) + bits / self.rate
        if self.jitter:
            out += abs(dice.gauss(0, self.jitter))
            out = self._last_out = max(out, self._last_out + 1e-6)
        if self.reorder and dice.random() < self.reorder:
            out += self.reorder_by
        yield out
        if self.duplicate and dice.random() < self.duplicate:
            yield out + dice.uniform(20e-6, 200e-6)


@dataclass
class Path:
    """The way between two hosts. Links lie at `link_at` of it (0 at `a`, 1 at `b`)."""

    a: str
    b: str
    delay: float
    """One way, seconds."""
    hops: int = 3
    there: Link = field(default_factory=Link)
    back: Link = field(default_factory=Link)
    link_at: float = 0.6
    captured: tuple[bool, bool] = (True, True)
    """Whether packets of `a` and of `b` pass the capture point."""


class Host:
    """An address, and what listens there. Sockets register themselves."""

    def __init__(self, world: World, address: str, *, ttl: int = 64) -> None:
        self.world, self.address, self.ttl = world, address, ttl
        self.mac = bytes([2, *world.dice.randbytes(5)])
        self.sockets: dict[tuple[int, str, int], Callable[[Packet], None]] = {}
        self.listeners: dict[int, Callable[[Packet], None]] = {}
        self.datagrams: dict[int, Callable[[Packet], None]] = {}
        self.path_mtu: dict[str, int] = {}
        self.hears_mtu = True
        self.silent = False
        self._number = world.dice.randrange(65536)
        self._departed = 0.0
        self._port = world.dice.randrange(32768, 58000)
        world.hosts[address] = self

    def free_port(self) -> int:
        self._port += self.world.dice.randrange(1, 4)
        return self._port

    def send(self, packet: Packet) -> None:
        self._number = (self._number + 1) & 0xFFFF
        # A gigabit card puts one packet after another on the wire.
        self._departed = max(self.world.now, self._departed + packet.size * 8e-9)
        self.world.transmit(replace(packet, ttl=self.ttl, number=self._number), self._departed)

    def receive(self, packet: Packet) -> None:
        if self.silent:
            return
        if packet.protocol == TCP_PROTOCOL and packet.segment is not None:
            segment = packet.segment
            key = (segment.destination_port, packet.source, segment.source_port)
            take = self.sockets.get(key) or (
                self.listeners.get(segment.destination_port) if segment.flags & 2 else None
            )
            if take is not None:
                take(packet)
            elif not segment.flags & 4:
                self._refuse(packet, segment)
        elif packet.protocol == UDP_PROTOCOL:
            port = int.from_bytes(packet.body[2:4], "big")
            if port in self.datagrams:
                self.datagrams[port](packet)
        elif packet.protocol in (ICMP_PROTOCOL, ICMP6_PROTOCOL):
            self._control(packet)

    def _refuse(self, packet: Packet, segment: Segment) -> None:
        end = segment.seq + len(segment.data) + (1 if segment.flags & 3 else 0)
        numbers = (segment.ack, 0, 4) if segment.flags & 16 else (0, end & 0xFFFFFFFF, 20)
        reset = Segment(segment.destination_port, segment.source_port, *numbers, b"", 0, b"")
        self.send(Packet(self.address, packet.source, TCP_PROTOCOL, reset))

    def _control(self, packet: Packet) -> None:
        body = packet.body
        kind, code = body[0], body[1]
        if kind == 8:
            self.send(Packet(self.address, packet.source, ICMP_PROTOCOL, body=b"\0" + body[1:]))
        elif self.hears_mtu and kind == 3 and code == 4:
            self.path_mtu[".".join(map(str, body[24:28]))] = int.from_bytes(body[6:8], "big")


class World:
    def __init__(self, seed: int, point: Point, *, seconds: float = 20.0) -> None:
        self.dice = random.Random(seed)
        self.seed, self.point, self.seconds = seed, point, seconds
        self.now = 0.0
        self.records: list[Record] = []
        self.hosts: dict[str, Host] = {}
        self.paths: dict[tuple[str, str], Path] = {}
        self.client_address = self.server_address = ""
        self.offload = False
        """Frames of the host at the capture point are seen before the card cuts them, and after it joins them."""
        self.capture_misses = 0.0
        self.seen_as: Callable[[bytes], Iterable[tuple[int, bytes]]] = lambda frame: [(0, frame)]
        """Frames that are captured for one at the capture point, and how many nanoseconds later."""
        self.starts_at = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._tick = 0
        self._gateways = [bytes([2, *self.dice.randbytes(5)]) for _ in range(2)]
        self._between = self.dice.uniform(0.35, 0.65)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self._tick += 1
        heapq.heappush(self._queue, (self.now + seconds, self._tick, what))

    def run(self) -> None:
        while self._queue and self._queue[0][0] <= self.seconds:
            self.now, _, what = heapq.heappop(self._queue)
            what()

    def connect(self, path: Path) -> Path:
        self.paths[path.a, path.b] = self.paths[path.b, path.a] = path
        return path

    def place(self, path: Path) -> float | None:
        """Where on the path the capture is taken."""
        if self.point == "between":
            return self._between
        wanted = self.client_address if self.point == "client" else self.server_address
        return 0.0 if path.a == wanted else 1.0 if path.b == wanted else None

    # ------------------------------------------------------------------------------------------------- on the way

    def transmit(self, packet: Packet, departs: float) -> None:
        path = self.paths.get((packet.source, packet.destination))
        if path is None:
            return
        forward = packet.source == path.a
        place = self.place(path)
        at = None if place is None or not path.captured[0 if forward else 1] else place if forward else 1 - place
        if at is not None and at <= 0.0:
            self.later(departs - self.now, lambda: self.capture(packet, 0))
            for part in self._cut(packet):
                self._travel(path, part, departs, forward, None)
        else:
            for part in self._cut(packet):
                self._travel(path, part, departs, forward, at)

    def _cut(self, packet: Packet) -> list[Packet]:
        """What the card makes of a large segment."""
        segment, mss = packet.segment, self.hosts[packet.source].path_mtu.get(packet.destination, 1500) - 52
        if segment is None or len(segment.data) <= mss:
            return [packet]
        return [
            replace(
                packet,
                segment=replace(
                    segment, seq=(segment.seq + n) & 0xFFFFFFFF, data=segment.data[n : n + mss],
                    flags=segment.flags & ~9 if n + mss < len(segment.data) else segment.flags,
                ),
            )
            for n in range(0, len(segment.data), mss)
        ]  # fmt: skip

    def _travel(self, path: Path, packet: Packet, departs: float, forward: bool, at: float | None) -> None:
        link, link_at = (path.there, path.link_at) if forward else (path.back, 1 - path.link_at)
        if at is not None and at < link_at:
            self.later(departs + path.delay * at - self.now, lambda: self.capture(packet, path.hops, at))

        def pass_link() -> None:
            if link.mtu is not None and packet.size > link.mtu:
                if link.tells_mtu:
                    self._too_big(path, packet, link.mtu, departs, forward, link_at)
                return
            for out in link.carry(packet, self.now, self.dice):
                if at is not None and at >= link_at:
                    seen = out + path.delay * (at - link_at)
                    self.later(seen - self.now, lambda: self.capture(packet, path.hops, at))
                self.later(
                    out + path.delay * (1 - link_at) - self.now, lambda: self.hosts[packet.destination].receive(packet)
                )

        self.later(departs + path.delay * link_at - self.now, pass_link)

    def _too_big(self, path: Path, packet: Packet, mtu: int, departs: float, forward: bool, link_at: float) -> None:
        router = self.router_of(path)
        error = unreachable(router, packet, 4, mtu=mtu)
        back = path.delay * link_at
        place = self.place(path)
        at = None if place is None else place if forward else 1 - place
        if at is not None and at <= link_at:
            self.later(back * (1 - at / link_at if link_at else 1), lambda: self.capture(error, 1))
        self.later(back, lambda: self.hosts[packet.source].receive(error))

    def router_of(self, path: Path) -> str:
        """An address for the router in the middle of a path."""
        return f"10.255.{len(path.a) + path.hops}.{1 + sum(map(ord, path.b)) % 250}"

    # ---------------------------------------------------------------------------------------------- the capture

    def capture(self, packet: Packet, hops: int, at: float = 0.0) -> None:
        """Write a packet down that has `hops` hops to go in all, of which the share `at` lies behind it."""
        passed = round(hops * at)
        frame = ip(
            packet.source, packet.destination, packet.protocol, packet.payload, number=packet.number,
            ttl=packet.ttl - passed, fragment=0x4000,
        )  # fmt: skip
        self.write(self._ethernet(packet, frame))

    def _ethernet(self, packet: Packet, frame: bytes) -> bytes:
        near, far = self._gateways
        macs = {"client": (self.client_address, near), "server": (self.server_address, far)}
        if self.point in macs:
            own, gateway = macs[self.point]
            mine = self.hosts[own].mac
            source, destination = (mine, gateway) if packet.source == own else (gateway, mine)
        else:
            source, destination = (near, far) if packet.source < packet.destination else (far, near)
        return destination + source + (b"\x86\xdd" if frame[0] >> 4 == 6 else b"\x08\x00") + frame

    def write(self, frame: bytes) -> None:
        """One frame at the capture point, unless the capturer misses it or has not begun."""
        if self.now < self.starts_at or (self.capture_misses and self.dice.random() < self.capture_misses):
            return
        when = EPOCH_NS + self.seed % 1000 * 10**9 + int(self.now * 1e9)
        self.records.extend((when + after, seen) for after, seen in self.seen_as(frame))


def unreachable(router: str, packet: Packet, code: int, *, mtu: int = 0, kind: int = 3) -> Packet:
    """An ICMP error (RFC 792) about a packet, as a router sends it."""
    quoted = ip(packet.source, packet.destination, packet.protocol, packet.payload[:8], number=packet.number)
    body = bytes([kind, code, 0, 0, 0, 0]) + mtu.to_bytes(2, "big") + quoted
    return Packet(router, packet.source, ICMP_PROTOCOL, body=body, ttl=64)
