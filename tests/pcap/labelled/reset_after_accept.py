"""Services that accept and reset at once, and their twins: clients that reset themselves, strangers, idle ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..wire import ACK, RST
from .faults.usual import other_port
from .network import TCP_PROTOCOL, Host, Packet, Segment
from .office import Exchange, Office, chatter, talk
from .scene import Scenes
from .stack import Connection

SCENES = Scenes()
_Opens = Callable[[Connection], None]


def _open(
    office: Office, client: Host, server: Host, begin: float, taken: _Opens, port: int | None = None
) -> Connection:
    """A connection on which nothing is said; the server's program is given its end once it is there."""
    port = office.port if port is None else port
    source = client.free_port()
    one = Connection(client, source, server.address, port)
    other = Connection(server, port, client.address, source)

    def receive(packet: Packet) -> None:
        before = other.state
        other.receive(packet)
        if before != "open" and other.state == "open":
            taken(other)

    server.sockets[port, client.address, source] = receive
    client.world.later(begin, one.open)
    return one


def _after(seconds: float) -> _Opens:
    return lambda other: other.world.later(seconds, other.abort)


def _keep(_: Connection) -> None:
    """Nobody speaks."""


def _clients(office: Office) -> list[Host]:
    return [office.client, *office.neighbours]


@SCENES.add("mid_session_reset", "server_application")
def every_client_is_turned_away(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(9):
        _open(office, _clients(office)[n % 3], office.server, 1.0 + 1.1 * n, _after(0.002))


@SCENES.add("mid_session_reset", "server_application")
def one_client_may_not_come(office: Office) -> None:
    """The others are served by the same port."""
    office.background(server_port=office.port)
    denied = office.new_host()
    office.new_path(denied, office.server)
    client = office.client if office.world.point == "client" else denied
    port = other_port(office) if client is office.client else office.port
    for n in range(3):
        _open(office, client, office.server, 1.0 + 2.1 * n, _after(0.03), port)


@SCENES.add("mid_session_reset", "server_application")
def a_proxy_looks_for_a_backend_first(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(5):
        _open(office, _clients(office)[n % 2], office.server, 1.0 + 1.7 * n, _after(1.0))


@SCENES.add("mid_session_reset", "server_application", severity="MEDIUM")
def a_limit_turns_a_share_away(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(24):
        talk(office.client, office.server, office.port, chatter(office.dice, 2, pause=0.02), begin=1.0 + 0.6 * n)
        if n % 4 == 1:
            _open(office, office.client, office.server, 1.3 + 0.6 * n, _after(0.001))


@SCENES.add("none", "none", low=(("mid_session_reset", "server_application"),))
def two_of_many_are_turned_away(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(20):
        talk(office.client, office.server, office.port, chatter(office.dice, 2, pause=0.02), begin=1.0 + 0.6 * n)
        if n in (6, 13):
            _open(office, office.client, office.server, 1.3 + 0.6 * n, _after(0.001))


@SCENES.add("none", "none", low=())
def health_checks_that_reset(office: Office) -> None:
    """A load balancer's: it opens, knows enough, and resets."""
    office.background(server_port=office.port)
    for n in range(12):
        one = _open(office, office.client, office.server, 1.0 + 1.3 * n, _keep)
        one.on_open = lambda one=one: one.world.later(0.0005, one.abort)  # type: ignore[misc]


@SCENES.add("none", "none")
def a_scan_that_opens_by_half(office: Office) -> None:
    """SYN, SYN-ACK, and the reset of a kernel that knows of no connection."""
    office.background(server_port=office.port)
    for n in range(6):
        source = office.client.free_port()
        other = Connection(office.server, office.port, office.client.address, source)
        one = Connection(office.client, source, office.server.address, office.port)
        office.world.later(1.0 + n, one.open)
        office.world.later(1.0 + n, one._forget)
        del other


@SCENES.add("none", "none", seconds=60.0, low=())
def opened_in_advance_and_left_idle(office: Office) -> None:
    """A browser's, for what it may ask; the server tires of them."""
    office.background(server_port=other_port(office))
    for n in range(4):
        _open(office, office.client, office.server, 1.0 + n, _after(30.0))


@SCENES.add("third_party_reset", "policy", points=("client",))
def a_stranger_resets_behind_the_handshake(office: Office) -> None:
    """In the server's name, by another TTL."""
    office.background(server_port=other_port(office))
    office.path.link_at = 0.5
    ttl = 255 if office.server.ttl == 64 else 64

    def drop(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != office.port or segment.flags != ACK:
            return False
        numbers = segment.destination_port, segment.source_port, segment.ack, segment.seq
        forged = Packet(
            office.server.address, packet.source, TCP_PROTOCOL, Segment(*numbers, RST | ACK, b"", 0, b""), ttl=ttl
        )
        office.world.later(0.002, lambda: office.world.capture(forged, 1, 1.0))
        office.world.later(0.002, lambda: office.client.receive(forged))
        return True

    office.path.there.blocks = drop
    for n in range(4):
        _open(office, office.client, office.server, 1.0 + 1.3 * n, _keep)


# ------------------------------------------------------------------------------------- resets that one end never hears


def _cuts_large_answers(office: Office, limit: int) -> None:
    """A filter resets the client in the server's name once an answer is that long, and drops what the client says of
    the connection then: the server repeats what nobody knows any more."""
    path, world, carried = office.path, office.world, Counter[int]()
    path.link_at, ttl = 0.9, 255 if office.server.ttl == 64 else 64

    def cut(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.source_port != office.port:
            return False
        before = carried[segment.destination_port]
        carried[segment.destination_port] += len(segment.data)
        if before < limit <= carried[segment.destination_port]:
            numbers = segment.source_port, segment.destination_port, segment.seq + len(segment.data) & 0xFFFFFFFF, 0
            reset = Segment(*numbers, RST, b"", 0, b"")
            forged = Packet(packet.source, packet.destination, TCP_PROTOCOL, reset, ttl=ttl)
            place = world.place(path) or 0.0
            world.later(path.delay * (path.link_at - place) + 1e-5, lambda: world.capture(forged, 1, 1.0))
            world.later(path.delay * path.link_at + 1e-5, lambda: world.hosts[packet.destination].receive(forged))
        return False

    def swallow(packet: Packet) -> bool:
        segment = packet.segment
        return segment is not None and carried[segment.source_port] >= limit

    path.back.blocks, path.there.blocks = cut, swallow


def _long_answers(office: Office, number: int) -> None:
    for n in range(number):
        answers = [Exchange(b"get " * 20, ((0.003, office.dice.randbytes(9000)),), 0.1) for _ in range(6)]
        talk(office.client, office.server, office.port, answers, begin=0.8 + 1.1 * n)


@SCENES.add("third_party_reset", "policy", points=("client", "between"), seconds=30.0)
def answers_are_cut_and_the_server_never_learns(office: Office) -> None:
    office.background(server_port=other_port(office))
    _cuts_large_answers(office, office.dice.randrange(20_000, 40_000))
    _long_answers(office, 5)


@SCENES.add("loss", "network", points=("client", "between"), seconds=30.0, others=("HIGH third_party_reset policy",))
def answers_are_cut_on_a_path_that_loses(office: Office) -> None:
    """The other connections of the same hosts lose packets as well."""
    office.background(server_port=other_port(office))
    _cuts_large_answers(office, 30_000)
    _long_answers(office, 2)
    office.path.back.loss = 0.06
    for n in range(4):
        answer = Exchange(b"get " * 20, ((0.003, office.dice.randbytes(400_000)),))
        talk(office.client, office.server, other_port(office), [answer], begin=0.9 + 0.7 * n)
