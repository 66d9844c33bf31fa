"""Scenes in which connections do not come to be, or break."""

from __future__ import annotations

from ...wire import ACK, RST
from .. import messages
from ..network import TCP_PROTOCOL, Host, Packet, Segment
from ..office import Exchange, Office, attempt, chatter, talk, tls
from ..scene import FAULTS
from ..stack import Connection
from .usual import other_port


@FAULTS.add("syn_unanswered", "policy")
def port_filtered(office: Office) -> None:
    office.background(server_port=other_port(office))
    closed = office.port

    def drops(packet: Packet) -> bool:
        return packet.segment is not None and packet.segment.destination_port == closed

    office.path.there.blocks = drops
    office.path.link_at = 0.8
    if office.world.point == "server":  # seen arriving, never answered: the host's own filter
        office.path.there.blocks = None
        office.server.listeners[closed] = lambda packet: None
    for n in range(office.dice.randrange(1, 4)):
        attempt(office.client, office.server.address, closed, 1.0 + n)


@FAULTS.add("syn_unanswered", "network", points=("client", "between"))
def host_black_holed(office: Office) -> None:
    office.background(to_server=False)
    gone = office.new_host()
    gone.silent = True
    office.new_path(office.client, gone)
    for n in range(2):
        attempt(office.client, gone.address, office.port, 1.0 + 2 * n)


@FAULTS.add("syn_unanswered", "network", points=("server", "between"))
def answers_lost_on_the_way_back(office: Office) -> None:
    """SYNs arrive and are answered; nothing comes back to the client, whose neighbours are served."""
    office.background(server_port=other_port(office))
    office.path.link_at = 0.2
    lost = office.port
    office.path.back.blocks = lambda packet: packet.segment is not None and packet.segment.source_port == lost
    for n in range(office.dice.randrange(1, 4)):
        talk(office.client, office.server, lost, chatter(office.dice, 2), begin=1.0 + n)
    for neighbour in office.neighbours:
        talk(neighbour, office.server, lost, chatter(office.dice, 2), begin=2.0)


@FAULTS.add("refused", "server_application")
def service_stopped(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(office.dice.randrange(1, 5)):
        attempt(office.client, office.server.address, office.port, 1.0 + n)


@FAULTS.add("third_party_reset", "policy")
def firewall_resets_hello(office: Office) -> None:
    """A filter sees the name in the hello and resets both ends in the other's name."""
    office.background(server_port=other_port(office))
    for n in range(2):
        one = talk(
            office.client,
            office.server,
            office.port,
            tls(office.dice, office.name("blocked"), [3000]),
            begin=1.0 + 3 * n,
        )
        _reset_between(office, one.client, one.server, 1.0 + 3 * n)


def _reset_between(office: Office, one: Connection, other: Connection, after: float) -> None:
    """A device in the middle watches for the first data and resets both sides."""
    path, world = office.path, office.world
    device = Host(world, office._net() + ".3", ttl=255 if office.client.ttl != 255 else 64)
    foreign_ttl = office.dice.choice([200, 255, 37])

    def forge(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.source_port != one.port or not segment.data:
            return False
        to_client = Segment(other.port, one.port, segment.ack, 0, RST, b"", 0, b"")
        to_server = Segment(one.port, other.port, segment.seq, 0, RST, b"", 0, b"")
        for source, target, reset in ((other.host, one.host, to_client), (one.host, other.host, to_server)):
            forged = Packet(source.address, target.address, TCP_PROTOCOL, reset, ttl=foreign_ttl, number=0)
            place = world.place(path)
            towards_client = target is one.host
            link_at = path.link_at
            if place is not None and (
                (towards_client and place <= link_at) or (not towards_client and place >= link_at)
            ):
                seen = path.delay * abs(link_at - place)
                world.later(seen, lambda forged=forged: world.capture(forged, 2, 0.5))  # type: ignore[misc]
            way = path.delay * (link_at if towards_client else 1 - link_at)
            world.later(way, lambda target=target, forged=forged: target.receive(forged))  # type: ignore[misc]
        return True

    del device, after
    path.there.blocks = forge


@FAULTS.add("third_party_reset", "policy", points=("client", "between"))
def firewall_refuses(office: Office) -> None:
    """A filter answers the SYN with a reset of its own; the host's other port is open."""
    office.background(server_port=other_port(office))
    office.path.link_at = 0.8
    ttl, closed = 255 if office.server.ttl == 64 else 64, office.port
    world, path = office.world, office.path

    def refuse(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != closed:
            return False
        reset = Segment(closed, segment.source_port, 0, (segment.seq + 1) & 0xFFFFFFFF, RST | ACK, b"", 0, b"")
        forged = Packet(office.server.address, office.client.address, TCP_PROTOCOL, reset, ttl=ttl)
        place = world.place(path) or 0.0
        world.later(path.delay * (path.link_at - place), lambda: world.capture(forged, 1, 1.0))
        world.later(path.delay * path.link_at, lambda: office.client.receive(forged))
        return True

    path.there.blocks = refuse
    for n in range(2):
        attempt(office.client, office.server.address, closed, 1.0 + n)


@FAULTS.add("mid_session_reset", "server_application")
def server_crashes(office: Office) -> None:
    """The process dies while it answers: its kernel resets the connections."""
    office.background(server_port=other_port(office))
    for n in range(3):
        one = talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 3, pause=0.1), Exchange(b"q" * 200, ((9.0, b"never"),), 0.1)],
            begin=1.0 + 0.2 * n,
        )
        office.world.later(3.5, one.server.abort)


@FAULTS.add("mid_session_reset", "server_host", seconds=30.0)
def server_host_restarts(office: Office) -> None:
    """It is silent while it boots, and then resets the connections that it knew before."""
    office.background(server_port=None)
    clients = [office.client, *office.neighbours]
    for n, client in enumerate(clients):
        asks = [*chatter(office.dice, 3, pause=0.1), Exchange(b"q" * 200, ((0.01, b"answer"),), 4.0)]
        talk(client, office.server, office.port, asks, begin=0.5 + 0.1 * n, ends="open")

    def stop() -> None:
        office.server.silent = True
        office.server.sockets.clear()

    def start() -> None:
        office.server.silent = False

    office.world.later(3.5, stop)
    office.world.later(14.0, start)


@FAULTS.add("mid_session_reset", "client")
def client_aborts(office: Office) -> None:
    """The client resets while the answer is on its way."""
    office.background(server_port=other_port(office))
    page = messages.answer(800_000)
    parts = tuple((0.05, page[n : n + 20_000]) for n in range(0, len(page), 20_000))
    for n in range(3):
        one = talk(
            office.client, office.server, 8080, [Exchange(messages.get(office.name("files")), parts, 0.1)],
            begin=1.0 + n, ends="open",
        )  # fmt: skip
        office.world.later(1.9 + n, one.client.abort)


@FAULTS.add("early_close", "server_application")
def answer_cut_short(office: Office) -> None:
    """The server closes although it promised more bytes."""
    office.background(server_port=other_port(office))
    for n in range(3):
        whole = messages.answer(90_000)
        one = talk(
            office.client,
            office.server,
            8080,
            [Exchange(messages.get(office.name("files")), ((0.01, whole[: 20_000 + 7000 * n]),))],
            begin=1.0 + n,
            ends="open",
        )
        office.world.later(1.6 + n, one.server.close)


@FAULTS.add("early_close", "server_application")
def last_chunk_missing(office: Office) -> None:
    """The server closes in the middle of a chunked answer; those of another service are whole."""
    office.background(server_port=other_port(office))
    head = b"HTTP/1.1 200 OK\r\nServer: web\r\nTransfer-Encoding: chunked\r\n\r\n"
    for n in range(4):
        chunks = b"".join(
            b"400\r\n" + office.dice.randbytes(0x400) + b"\r\n" for _ in range(office.dice.randrange(2, 9))
        )
        ask = messages.get(office.name("report"), f"/{n}")
        cut = chunks[: -office.dice.randrange(2, 300)]
        talk(
            office.client, office.server, 8080, [Exchange(ask, ((0.02, head), (0.01, cut)))], begin=1.0 + n,
            ends="server",
        )  # fmt: skip
        whole = ((0.02, head), (0.01, chunks), (0.4, b"0\r\n\r\n"))
        talk(office.client, office.others[0], 8080, [Exchange(ask, whole)], begin=1.2 + n, ends="server")


@FAULTS.add("mid_session_reset", "server_application")
def reset_at_a_short_question(office: Office) -> None:
    """A short question is no goodbye: the process dies of it."""
    office.background(server_port=other_port(office))
    for n in range(3):
        one = talk(office.client, office.server, 6379, chatter(office.dice, 3, pause=0.1), begin=1.0 + n, ends="open")
        office.world.later(2.5 + n, lambda one=one: one.client.write(b"*1\r\n$5\r\nDEBUG\r\n"))  # type: ignore[misc]
        office.world.later(2.5 + n + office.path.delay * 1.1, one.server.abort)


@FAULTS.add("early_close", "server_application", seconds=60.0)
def short_question_closed_without_answer(office: Office) -> None:
    """A short question to a database is no control frame: it waits in vain until the server closes."""
    office.background(server_port=other_port(office))
    for n in range(3):
        one = talk(office.client, office.server, 5432, chatter(office.dice, 3, pause=0.1), begin=1.0 + n, ends="open")
        office.world.later(3.0 + n, lambda one=one: one.client.write(b"Q\0\0\0\rselect 1;\0"))  # type: ignore[misc]
        office.world.later(33.0 + n, one.server.close)


@FAULTS.add("early_close", "server_application")
def metrics_closed_without_answer(office: Office) -> None:
    """A request of HTTP wants an answer, also on a port where others only report."""
    office.background(server_port=other_port(office))
    for n in range(3):
        asks = [Exchange(messages.get(office.name("node"), "/metrics"), ((99.0, b"x"),), 0.05)]
        one = talk(office.client, office.server, 9100, asks, begin=1.0 + n)
        office.world.later(1.8 + n, one.server.close)


@FAULTS.add("early_close", "server_application")
def closed_without_answer(office: Office) -> None:
    """The server takes the request and closes without a word."""
    office.background(server_port=other_port(office))
    for n in range(3):
        one = talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 2, pause=0.05), Exchange(b"r" * 150, ((99.0, b"x"),), 0.05)],
            begin=1.0 + n,
        )
        office.world.later(1.8 + n, one.server.close)
