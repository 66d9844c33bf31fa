"""The ordinary traffic that every scene has: clients, servers, name lookups, pings, idle connections."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from . import messages
from .network import ICMP_PROTOCOL, Host, Packet, Path, Point, World
from .stack import Connection, Options


@dataclass(frozen=True)
class Exchange:
    """A request, and the answer in pieces: how long after the piece before (after the request), and what."""

    request: bytes
    pieces: tuple[tuple[float, bytes], ...]
    pause: float = 0.05
    """Before the request."""


@dataclass
class Talk:
    """A connection on which a client asks and a server answers."""

    client: Connection
    server: Connection
    exchanges: Sequence[Exchange]
    ends: str = "client"
    """Who closes when all is said: client, server, reset (the client's), or open."""
    asked: int = 0
    answered: int = 0
    _answering: int = 0
    finished: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Bytes of requests and of answers up to and with each exchange."""
        self._request_ends = list(accumulate(len(exchange.request) for exchange in self.exchanges))
        self._answer_ends = list(accumulate(sum(len(p) for _, p in exchange.pieces) for exchange in self.exchanges))

    def ask(self) -> None:
        if self.asked < len(self.exchanges) and self.client.state == "open":
            exchange = self.exchanges[self.asked]
            self.asked += 1
            self.client.world.later(exchange.pause, lambda: self.client.write(exchange.request))

    def client_got(self, received: int) -> None:
        if self.client.reading is False:
            return
        due = self._answer_ends[self.asked - 1] if self.asked else 0
        if received >= due and self.asked > len(self.finished):
            self.finished.append(self.client.world.now)
            if self.asked < len(self.exchanges):
                self.ask()
            elif self.ends == "client":
                self.client.close()
            elif self.ends == "reset":
                self.client.world.later(0.05, self.client.abort)

    def server_got(self, received: int) -> None:
        while self._answering < len(self.exchanges):
            if received < self._request_ends[self._answering]:
                return
            exchange = self.exchanges[self._answering]
            self._answering += 1
            wait = 0.0
            for after, piece in exchange.pieces:
                wait += after
                self.server.world.later(wait, lambda piece=piece: self.server.write(piece))  # type: ignore[misc]
            if self._answering == len(self.exchanges) and self.ends == "server":
                self.server.world.later(wait + 0.01, self.server.close)


def talk(
    client: Host, server: Host, port: int, exchanges: Sequence[Exchange], *, begin: float = 0.0, ends: str = "client",
    client_options: Options | None = None, server_options: Options | None = None, source_port: int | None = None,
) -> Talk:  # fmt: skip
    source = source_port if source_port is not None else client.free_port()
    one = Connection(client, source, server.address, port, client_options)
    other = Connection(server, port, client.address, source, server_options)
    both = Talk(one, other, exchanges, ends)
    one.on_open, one.on_data = both.ask, both.client_got
    other.on_data = both.server_got
    one.on_close = lambda: one.close()
    other.on_close = lambda: other.close()
    client.world.later(begin, one.open)
    return both


def attempt(client: Host, server: str, port: int, begin: float, source_port: int | None = None) -> Connection:
    """A connection attempt at a port where this simulation runs no program."""
    source = source_port if source_port is not None else client.free_port()
    one = Connection(client, source, server, port)
    client.world.later(begin, one.open)
    return one


def web(
    dice: random.Random, host: str, sizes: Sequence[int], *, think: float = 0.02, pause: float = 0.3
) -> list[Exchange]:
    return [
        Exchange(messages.get(host, f"/{n}"), ((dice.uniform(0.5, 1.5) * think, messages.answer(size)),), pause)
        for n, size in enumerate(sizes)
    ]


def tls(
    dice: random.Random, name: str, sizes: Sequence[int], *, version: int = messages.TLS_1_3, think: float = 0.02,
    pause: float = 0.3,
) -> list[Exchange]:  # fmt: skip
    """A TLS session: the handshake, then requests."""
    hello = Exchange(
        messages.client_hello(name, version, dice), ((0.002, messages.server_flight(version, dice)),), 0.001
    )
    key = Exchange(messages.client_flight(version, dice), ((0.001, messages.server_finish(version, dice)),), 0.001)
    asked = [
        Exchange(
            messages.encrypted(dice.randrange(150, 900), dice),
            ((dice.uniform(0.5, 1.5) * think, messages.encrypted(size, dice)),), pause,
        )
        for size in sizes
    ]  # fmt: skip
    return [hello, key, *asked]


def chatter(dice: random.Random, count: int, *, pause: float = 0.4) -> list[Exchange]:
    """A database session: short questions and short answers."""
    asked = [dice.randbytes(dice.randrange(40, 300)) for _ in range(count)]
    told = [(dice.uniform(0.001, 0.01), dice.randbytes(dice.randrange(30, 1200))) for _ in range(count)]
    return [Exchange(question, (answer,), pause) for question, answer in zip(asked, told, strict=True)]


WORDS = "alder birch cedar elm fir hazel larch maple oak pine rowan spruce willow yew aspen".split()  # noqa: SIM905


class Office:
    """One client of interest, one server of interest, and everybody else."""

    def __init__(self, seed: int, point: Point, *, seconds: float = 20.0) -> None:
        self.world = World(seed, point, seconds=seconds)
        dice = self.dice = self.world.dice
        self.zone = f"{dice.choice(WORDS)}.{dice.choice(['example', 'test', 'internal'])}"
        self._used: set[str] = set()
        here, there = self._net(), self._net()
        self.client = self._host(here, ttl=dice.choice([64, 64, 128]))
        self.server = self._host(there)
        self.neighbours = [self._host(here) for _ in range(2)]
        self.others = [self._host(self._net(), ttl=dice.choice([64, 64, 128, 255])) for _ in range(2)]
        self.resolver = self._host(self._net())
        self.gateway = f"{here}.1"
        self.port = dice.choice([443, 5432, 6379, 8080, 8443, 3306, 1433, 9092, 25, dice.randrange(2000, 30000)])
        self.world.client_address, self.world.server_address = self.client.address, self.server.address
        self.path = self._path(self.client, self.server)
        for other in (*self.others, self.resolver):
            self._path(self.client, other)
        for neighbour in self.neighbours:
            self._path(neighbour, self.server)
            self._path(neighbour, self.others[0])
        self.options = Options(timestamps=dice.random() < 0.7, offload=False)
        self.lookups: dict[str, Callable[[bytes], tuple[float, bytes] | None]] = {}
        self._resolve()

    # ------------------------------------------------------------------------------------------------ who is there

    def _net(self) -> str:
        while True:
            first = self.dice.choice(["10.{}.{}", "172.{}.{}", "192.168.{}", "100.{}.{}"])
            low, high = (16, 31) if first.startswith("172") else (64, 127) if first.startswith("100") else (0, 250)
            net = first.format(self.dice.randrange(low, high), self.dice.randrange(1, 250))
            if first.startswith("192"):
                net = f"192.168.{self.dice.randrange(1, 250)}"
            if net not in self._used:
                self._used.add(net)
                return net

    def _host(self, net: str, ttl: int = 64) -> Host:
        while True:
            address = f"{net}.{self.dice.randrange(4, 250)}"
            if address not in self._used:
                self._used.add(address)
                return Host(self.world, address, ttl=ttl)

    def new_host(self, net: str | None = None, ttl: int = 64) -> Host:
        return self._host(net or self._net(), ttl)

    def _path(self, a: Host, b: Host) -> Path:
        dice = self.dice
        return self.world.connect(
            Path(
                a.address,
                b.address,
                dice.uniform(0.004, 0.03),
                hops=dice.randrange(2, 9),
                link_at=dice.choice([0.3, 0.7]),
            )
        )

    def new_path(self, a: Host, b: Host) -> Path:
        return self._path(a, b)

    def opts(self, **changes: object) -> Options:
        return replace(self.options, **changes)  # type: ignore[arg-type]

    def name(self, *labels: str) -> str:
        return ".".join((*labels, self.zone))

    # --------------------------------------------------------------------------------------------------------- DNS

    def _resolve(self) -> None:
        def take(packet: Packet) -> None:
            source_port = int.from_bytes(packet.body[:2], "big")
            asked = packet.body[8:]
            said = self.answer_of(asked)
            if said is not None:
                wait, reply = said
                back = messages.datagram(self.resolver.address, 53, packet.source, source_port, reply)
                self.world.later(wait, lambda: self.resolver.send(back))

        self.resolver.datagrams[53] = take

    def answer_of(self, asked: bytes) -> tuple[float, bytes] | None:
        import dns.message

        name = dns.message.from_wire(asked).question[0].name.to_text(omit_final_dot=True).lower()
        for suffix, rule in self.lookups.items():
            if name == suffix or name.endswith("." + suffix) or suffix == "*":
                return rule(asked)
        return self.dice.uniform(0.0005, 0.004), messages.reply(asked, addresses=[self.server.address])

    def lookup(self, name: str, begin: float, *, kind: str = "A", repeats: int = 0, source: Host | None = None) -> None:
        """A query, sent again (same id and port) every two seconds."""
        host = source or self.client
        asked = messages.query(name, self.dice.randrange(1, 65536), kind)
        port = host.free_port()
        packet = messages.datagram(host.address, port, self.resolver.address, 53, asked)
        host.datagrams[port] = lambda _: None
        for n in range(repeats + 1):
            self.world.later(begin + 2.0 * n, lambda: host.send(packet))

    # ------------------------------------------------------------------------------------------------- background

    def background(self, *, to_server: bool = True, lookups: bool = True, server_port: int | None = None) -> None:
        """Healthy traffic of everybody; `server_port` is a port of the server of interest that works."""
        dice, world = self.dice, self.world
        end = min(world.seconds, 20.0)

        def when() -> float:
            return dice.uniform(0.05, end * 0.4)

        for n, other in enumerate(self.others):
            host_name = self.name("www", dice.choice(WORDS))
            talk(
                self.client,
                other,
                80,
                web(dice, host_name, [dice.randrange(300, 40_000) for _ in range(4)]),
                begin=when(),
                client_options=self.opts(),
                server_options=self.opts(),
            )
            talk(
                self.client,
                other,
                443,
                tls(dice, self.name("api", WORDS[n]), [dice.randrange(300, 9000) for _ in range(3)]),
                begin=when(),
            )
        idle = talk(self.client, self.others[1], 5222, chatter(dice, 3), begin=when(), ends="open")
        for n in range(1, 3):
            world.later(end * 0.5 + n * end * 0.15, idle.client.keep_alive)
        if to_server and server_port is not None:
            for neighbour in self.neighbours:
                talk(neighbour, self.server, server_port, chatter(dice, 5), begin=when())
                talk(neighbour, self.others[0], 443, tls(dice, self.name("cdn"), [4000]), begin=when())
            talk(self.client, self.server, server_port, chatter(dice, 6), begin=when())
        if lookups:
            for label in dice.sample(WORDS, 5):
                self.lookup(self.name(label), when())
        for n in range(3):
            self.ping(self.client, self.others[0], when() + n, n)
        self.arp_exchange(when())

    def ping(self, source: Host, target: Host, begin: float, number: int, size: int = 56) -> None:
        body = b"\x08\0\0\0" + (self.world.seed & 0xFFFF).to_bytes(2, "big") + number.to_bytes(2, "big") + b"p" * size
        self.world.later(begin, lambda: source.send(Packet(source.address, target.address, ICMP_PROTOCOL, body=body)))

    def arp_exchange(self, begin: float) -> None:
        if self.world.point != "client":
            return
        gateway = bytes([2, 9, 9, 9, 9, self.world.seed & 255])
        ask = messages.arp(1, self.client.mac, self.client.address, bytes(6), self.gateway)
        told = messages.arp(2, gateway, self.gateway, self.client.mac, self.client.address)
        self.world.later(begin, lambda: self.world.write(ask))
        self.world.later(begin + 0.0004, lambda: self.world.write(told))
