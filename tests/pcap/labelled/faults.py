"""Scenes with one fault each. What is broken is said once, in the decorator: the kind, and whose it is."""

from __future__ import annotations

import datetime
from dataclasses import replace

from ..wire import ACK, RST, SYN
from . import messages
from .network import TCP_PROTOCOL, Host, Link, Packet, Segment, unreachable
from .office import WORDS, Exchange, Office, attempt, chatter, talk, tls, web
from .scene import Scenes
from .stack import Connection

FAULTS = Scenes()


def _other_port(office: Office) -> int:
    return office.port + 1 if office.port != 442 else 9000


def _bulk(
    office: Office, size: int, *, up: bool = False, begin: float = 1.0, port: int | None = None, **options: object
):  # type: ignore[no-untyped-def]
    """One long transfer between the two of interest."""
    request, reply = (office.dice.randbytes(size), b"done" * 5) if up else (b"get " * 20, office.dice.randbytes(size))
    setup = office.opts(**options)
    return talk(
        office.client, office.server, port or office.port, [Exchange(request, ((0.003, reply),))], begin=begin,
        client_options=setup, server_options=setup,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- no connection


@FAULTS.add("syn_unanswered", "policy")
def port_filtered(office: Office) -> None:
    office.background(server_port=_other_port(office))
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


@FAULTS.add("refused", "server_application")
def service_stopped(office: Office) -> None:
    office.background(server_port=_other_port(office))
    for n in range(office.dice.randrange(1, 5)):
        attempt(office.client, office.server.address, office.port, 1.0 + n)


@FAULTS.add("third_party_reset", "policy")
def firewall_resets_hello(office: Office) -> None:
    """A filter sees the name in the hello and resets both ends in the other's name."""
    office.background(server_port=_other_port(office))
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
    office.background(server_port=_other_port(office))
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
    office.background(server_port=_other_port(office))
    for n in range(3):
        one = talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 3, pause=0.1), Exchange(b"q" * 200, ((9.0, b"never"),), 0.1)],
            begin=1.0 + 0.2 * n,
        )
        office.world.later(3.5, one.server.abort)


@FAULTS.add("mid_session_reset", "client")
def client_aborts(office: Office) -> None:
    """The client resets while the answer is on its way."""
    office.background(server_port=_other_port(office))
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
    office.background(server_port=_other_port(office))
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
def closed_without_answer(office: Office) -> None:
    """The server takes the request and closes without a word."""
    office.background(server_port=_other_port(office))
    for n in range(3):
        one = talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 2, pause=0.05), Exchange(b"r" * 150, ((99.0, b"x"),), 0.05)],
            begin=1.0 + n,
        )
        office.world.later(1.8 + n, one.server.close)


# ------------------------------------------------------------------------------------------------------ the path


@FAULTS.add("loss", "network")
def lossy_down(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.path.back.loss = office.dice.uniform(0.02, 0.06)
    for n in range(3):
        _bulk(office, 500_000, begin=1.0 + n)


@FAULTS.add("loss", "network")
def lossy_up(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.path.there.loss = office.dice.uniform(0.02, 0.06)
    for n in range(3):
        _bulk(office, 500_000, up=True, begin=1.0 + n)


@FAULTS.add("rto_loss", "network")
def link_fails_for_moments(office: Office) -> None:
    """Whole flights vanish, so only the timer repairs."""
    office.background(server_port=_other_port(office))
    outages = tuple((2.0 + n * 1.3, 2.0 + n * 1.3 + 0.25) for n in range(8))
    office.path.back.outages = office.path.there.outages = outages
    for n in range(4):
        talk(office.client, office.server, office.port, chatter(office.dice, 60, pause=0.05), begin=1.0 + n * 0.1)


@FAULTS.add("reordering", "network")
def paths_of_two_lengths(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.path.back.reorder = 0.06
    office.path.back.reorder_by = 0.0025
    for n in range(3):
        _bulk(office, 400_000, begin=1.0 + n)


@FAULTS.add("duplicate_packets", "network")
def switch_copies(office: Office) -> None:
    """The network delivers some packets twice."""
    office.background(server_port=_other_port(office))
    office.path.back.duplicate = office.path.there.duplicate = 0.15
    office.path.link_at = {"client": 0.7, "server": 0.3, "between": 0.2}[office.world.point]
    for n in range(3):
        _bulk(office, 300_000, begin=1.0 + n, up=office.world.point == "server")


@FAULTS.add("delay", "network")
def far_away(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.2, 0.35)
    office.background(server_port=_other_port(office))
    for n in range(5):
        talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=0.5 + n)


@FAULTS.add("bufferbloat", "network", points=("client", "server"))
def queue_too_deep(office: Office) -> None:
    office.path.back = Link(rate=4e6, queue_bytes=600_000)
    office.path.there = Link(rate=4e6, queue_bytes=600_000)
    office.path.delay = office.dice.uniform(0.005, 0.02)
    office.background(server_port=_other_port(office))
    up = office.world.point == "client"
    _bulk(office, 4_000_000, up=up, begin=2.0, receive_buffer=2_000_000)
    for n in range(10):
        office.ping(office.client, office.server, 0.5 + 1.2 * n, 100 + n)
    for n in range(6):
        talk(office.client, office.server, _other_port(office), chatter(office.dice, 2), begin=1 + 1.7 * n)


@FAULTS.add("throughput_limited", "network")
def policed(office: Office) -> None:
    """A policer drops what exceeds a rate: the sender saws up and down below it."""
    rate = office.dice.choice([2e6, 4e6, 5e6])
    office.path.back = Link(policed=(rate, 15_000))
    office.background(server_port=_other_port(office))
    _bulk(office, 5_000_000, begin=1.0)


@FAULTS.add("throughput_limited", "client")
def small_receive_buffer(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.02, 0.04)
    office.background(server_port=_other_port(office))
    talk(
        office.client,
        office.server,
        office.port,
        [Exchange(b"get " * 20, ((0.003, bytes(4_000_000)),))],
        begin=1.0,
        client_options=office.opts(receive_buffer=16_384, scale=0),
    )


@FAULTS.add("throughput_limited", "server_host")
def small_receive_buffer_of_the_server(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.02, 0.04)
    office.background(server_port=_other_port(office))
    talk(
        office.client,
        office.server,
        office.port,
        [Exchange(bytes(4_000_000), ((0.003, b"done"),))],
        begin=1.0,
        server_options=office.opts(receive_buffer=16_384, scale=0),
    )


@FAULTS.add("zero_window", "server_application")
def server_does_not_read(office: Office) -> None:
    office.background(server_port=_other_port(office))
    one = talk(
        office.client,
        office.server,
        office.port,
        [Exchange(bytes(800_000), ((0.01, b"done"),))],
        begin=1.0,
        server_options=office.opts(receive_buffer=65_536),
    )
    _reads_in_gulps(office, one.server)


@FAULTS.add("zero_window", "client")
def client_does_not_read(office: Office) -> None:
    office.background(server_port=_other_port(office))
    one = talk(
        office.client,
        office.server,
        office.port,
        [Exchange(b"get", ((0.01, bytes(800_000)),))],
        begin=1.0,
        client_options=office.opts(receive_buffer=65_536),
    )
    _reads_in_gulps(office, one.client)


def _reads_in_gulps(office: Office, end: Connection) -> None:
    end.stop_reading()
    for n in range(14):
        office.world.later(2.5 + n * office.dice.uniform(0.8, 1.2), lambda: end.read(50_000))


@FAULTS.add("slow_application", "server_application")
def answers_late(office: Office) -> None:
    office.background(server_port=_other_port(office))
    for n in range(4):
        slow = [Exchange(b"select " * 20, ((office.dice.uniform(1.5, 4.0), bytes(2000)),), 0.2) for _ in range(3)]
        talk(office.client, office.server, office.port, slow, begin=0.5 + n)


@FAULTS.add("slow_application", "server_application")
def never_answers(office: Office) -> None:
    """The request is acknowledged, and then nothing."""
    office.background(server_port=_other_port(office))
    office.ping(office.client, office.server, 18.0, 9)
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 2), Exchange(b"select " * 20, ((99.0, b"x"),), 0.2)],
            begin=0.5 + n,
        )


@FAULTS.add("mtu_black_hole", "network")
def large_packets_vanish(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.path.back.mtu, office.path.back.tells_mtu = office.dice.choice([1400, 1280, 1450]), False
    for n in range(2):
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 2), Exchange(b"get" * 30, ((0.01, bytes(60_000)),))],
            begin=0.5 + n,
        )


@FAULTS.add("mtu_black_hole", "network", points=("client", "between"))
def sender_does_not_listen(office: Office) -> None:
    """The router says that packets are too big; a filter at the sender keeps that from it."""
    office.background(server_port=_other_port(office))
    office.path.there.mtu = office.dice.choice([1400, 1300])
    office.path.link_at = 0.8
    office.client.hears_mtu = False
    for n in range(2):
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 2), Exchange(bytes(60_000), ((0.01, b"ok"),))],
            begin=0.5 + n,
        )


@FAULTS.add("asymmetric", "network", points=("client", "between"))
def answers_pass_elsewhere(office: Office) -> None:
    office.background(to_server=False)
    office.path.captured = office.dice.choice([(True, False), (False, True)])
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 4), *web(office.dice, "a", [30_000])],
            begin=0.5 + n,
        )


@FAULTS.add("idle_timeout", "network", seconds=420.0)
def forgotten_while_idle(office: Office) -> None:
    """A stateful device forgets the connection; what is sent later vanishes."""
    office.background(server_port=_other_port(office))
    idle = office.dice.uniform(240, 320)
    one = talk(
        office.client,
        office.server,
        office.port,
        [*chatter(office.dice, 3), *chatter(office.dice, 2, pause=idle)],
        begin=1.0,
    )
    port = one.client.port

    def forgotten(packet: Packet) -> bool:
        return (
            office.world.now > 200
            and packet.segment is not None
            and port in (packet.segment.source_port, packet.segment.destination_port)
        )

    at_server = office.world.point == "server"
    office.path.link_at = 0.9 if not at_server else 0.1
    office.path.there.blocks = office.path.back.blocks = forgotten
    if at_server:  # the server, too, wants to send: a notice after the silence
        office.world.later(idle + 5, lambda: one.server.write(b"notice" * 20))


@FAULTS.add("idle_timeout", "network", points=("client", "between"), seconds=420.0)
def reset_after_idling(office: Office) -> None:
    """A load balancer forgets the connection and resets what comes later."""
    office.background(server_port=_other_port(office))
    idle = office.dice.uniform(240, 320)
    one = talk(
        office.client,
        office.server,
        office.port,
        [*chatter(office.dice, 3), *chatter(office.dice, 2, pause=idle)],
        begin=1.0,
    )
    office.world.later(200, one.server._forget)


# --------------------------------------------------------------------------------------------------- the segment


@FAULTS.add("arp_conflict", "server_host", points=("client",))
def address_taken_twice(office: Office) -> None:
    office.background(server_port=_other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    contested = f"{net}.{office.dice.randrange(4, 250)}"
    macs = [bytes([2, *office.dice.randbytes(5)]) for _ in range(2)]
    for n in range(8):
        said = messages.arp(2, macs[n % 2], contested, office.client.mac, office.client.address)
        office.world.later(1.0 + n * 1.5, lambda said=said: office.world.write(said))  # type: ignore[misc]


@FAULTS.add("host_down", "server_host", points=("client",))
def nobody_answers_arp(office: Office) -> None:
    office.background(server_port=_other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    gone = f"{net}.{office.dice.randrange(4, 250)}"
    for n in range(9):
        asked = messages.arp(1, office.client.mac, office.client.address, bytes(6), gone)
        office.world.later(1.0 + n, lambda asked=asked: office.world.write(asked))  # type: ignore[misc]


@FAULTS.add("host_down", "server_host", points=("client", "between"))
def router_finds_no_host(office: Office) -> None:
    """The last router asks in vain and says host unreachable."""
    office.background(to_server=False)
    gone = office.new_host()
    path = office.new_path(office.client, gone)
    _answers_with(office, path, gone, 1, delay=3.0)
    for n in range(3):
        attempt(office.client, gone.address, office.port, 1.0 + 3 * n)


def _answers_with(
    office: Office,
    path,
    target: Host,
    code: int,
    *,
    delay: float = 0.0,
    kind: int = 3,
    port: int | None = None,
    source: str | None = None,
) -> None:  # type: ignore[no-untyped-def]
    """Somebody on the way answers packets for `target` with an ICMP error."""
    router = source or office.world.router_of(path)
    world = office.world

    def reject(packet: Packet) -> bool:
        to = packet.segment.destination_port if packet.segment else int.from_bytes(packet.body[2:4], "big")
        if packet.destination != target.address or (port is not None and to != port):
            return False
        error = unreachable(router, replace(packet, ttl=packet.ttl - 2), code, kind=kind)
        place = world.place(path) or 0.0
        world.later(delay + path.delay * max(path.link_at - place, 0), lambda: world.capture(error, 2, 0.5))
        return True

    path.link_at = max(path.link_at, 0.7)
    path.there.blocks = reject


@FAULTS.add("routing_loop", "network", points=("client", "between"))
def routes_point_at_each_other(office: Office) -> None:
    office.background(to_server=False)
    lost = office.new_host()
    path = office.new_path(office.client, lost)
    _answers_with(office, path, lost, 0, kind=11, delay=0.02)
    for n in range(3):
        attempt(office.client, lost.address, office.port, 1.0 + 2 * n)


@FAULTS.add("admin_prohibited", "policy", points=("client", "between"))
def filter_says_so(office: Office) -> None:
    office.background(server_port=_other_port(office))
    _answers_with(office, office.path, office.server, office.dice.choice([9, 10, 13]), port=office.port)
    for n in range(3):
        attempt(office.client, office.server.address, office.port, 1.0 + 2 * n)


@FAULTS.add("port_unreachable", "server_application")
def nobody_listens_on_udp(office: Office) -> None:
    office.background(server_port=_other_port(office))
    port = office.dice.choice([514, 161, 1812, 4789, 8125])
    source = office.client.free_port()

    def say(packet: Packet) -> None:
        office.server.send(unreachable(office.server.address, packet, 3))

    office.server.datagrams[port] = say
    for n in range(6):
        packet = messages.datagram(office.client.address, source, office.server.address, port, b"<13>hello" * 5)
        office.world.later(1.0 + n, lambda packet=packet: office.client.send(packet))  # type: ignore[misc]


@FAULTS.add("icmp_redirect", "network", points=("client",))
def better_gateway(office: Office) -> None:
    office.background(server_port=_other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    for n in range(4):
        about = Packet(
            office.client.address,
            office.server.address,
            TCP_PROTOCOL,
            Segment(40000 + n, 443, 1, 1, ACK, b"", 500, b""),
        )
        told = unreachable(office.gateway, about, 1, kind=5)
        told = replace(told, body=told.body[:4] + bytes(map(int, f"{net}.2".split("."))) + told.body[8:])
        office.world.later(1.0 + n, lambda told=told: office.world.capture(told, 0))  # type: ignore[misc]


# ----------------------------------------------------------------------------------------------------------- DNS


@FAULTS.add("dns_nxdomain", "dns", points=("client",))
def name_missing(office: Office) -> None:
    office.background(server_port=_other_port(office))
    missing = office.name("rediss", office.dice.choice(WORDS), "db")
    office.lookups[missing] = lambda asked: (0.002, messages.reply(asked, code="NXDOMAIN"))
    for n in range(3):
        office.lookup(missing, 1.0 + 2 * n)
        office.lookup(missing, 1.01 + 2 * n, kind="AAAA")


@FAULTS.add("dns_servfail", "dns", points=("client",))
def resolver_fails(office: Office) -> None:
    office.background(server_port=_other_port(office))
    broken = office.name("signed")
    code = office.dice.choice(["SERVFAIL", "SERVFAIL", "REFUSED"])
    office.lookups[broken] = lambda asked: (0.5 if code == "SERVFAIL" else 0.002, messages.reply(asked, code=code))
    for n in range(4):
        office.lookup(f"{office.dice.choice(WORDS)}{n}.{broken}", 1.0 + n)


@FAULTS.add("dns_timeout", "dns", points=("client",))
def resolver_silent(office: Office) -> None:
    office.background(server_port=_other_port(office), lookups=False)
    office.lookups["*"] = lambda asked: None
    for n, word in enumerate(office.dice.sample(WORDS, 4)):
        office.lookup(office.name(word), 1.0 + n, repeats=2)


@FAULTS.add("dns_slow", "dns", points=("client",))
def resolver_slow(office: Office) -> None:
    office.background(server_port=_other_port(office), lookups=False)
    office.lookups["*"] = lambda asked: (
        office.dice.uniform(0.7, 1.8), messages.reply(asked, addresses=[office.server.address]),
    )  # fmt: skip
    for n, word in enumerate(WORDS):
        office.lookup(office.name(word), 1.0 + 0.5 * n)


@FAULTS.add("dns_suspicious", "client", points=("client",))
def names_made_by_an_algorithm(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.lookups["biz"] = office.lookups["info"] = lambda asked: (0.03, messages.reply(asked, code="NXDOMAIN"))
    letters = "abcdefghijklmnopqrstuvwxyz"
    for n in range(40):
        label = "".join(office.dice.choices(letters, k=office.dice.randrange(11, 20)))
        office.lookup(f"{label}.{office.dice.choice(['biz', 'info'])}", 1.0 + 0.3 * n)


@FAULTS.add("dns_suspicious", "client", points=("client",))
def tunnel_in_names(office: Office) -> None:
    office.background(server_port=_other_port(office))
    tunnel = f"t.{office.dice.choice(WORDS)}cdn.net"
    office.lookups[tunnel] = lambda asked: (0.03, messages.reply(asked, text=office.dice.randbytes(60).hex()))
    for n in range(120):
        labels = ".".join(office.dice.randbytes(28).hex() for _ in range(2))
        office.lookup(f"{labels}.{tunnel}", 1.0 + 0.1 * n, kind="TXT")


# --------------------------------------------------------------------------------------------------- TLS and HTTP


def _failed_tls(office: Office, exchanges: list[Exchange], n: int, by_server: bool = True) -> None:
    one = talk(office.client, office.server, 8443, exchanges, begin=1.0 + n, ends="open")
    # The side that alerts closes at once.
    office.world.later(1.5 + n, one.server.close if by_server else one.client.close)


@FAULTS.add("tls_failure", "server_application")
def version_refused(office: Office) -> None:
    """The server speaks nothing that the client offers."""
    office.background(server_port=_other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("old"), messages.TLS_1_2, office.dice)
        _failed_tls(office, [Exchange(hello, ((0.002, messages.alert("protocol_version")),), 0.001)], n)


@FAULTS.add("tls_failure", "server_application")
def certificate_expired(office: Office) -> None:
    office.background(server_port=_other_port(office))
    chain = certificate(office.name("shop"), office, days=-3)
    for n in range(3):
        hello = messages.client_hello(office.name("shop"), messages.TLS_1_2, office.dice)
        flight = messages.server_flight(messages.TLS_1_2, office.dice, chain)
        refusal = Exchange(messages.alert("certificate_expired"), ((9.0, b""),), 0.001)
        _failed_tls(office, [Exchange(hello, ((0.002, flight),), 0.001), refusal], n, by_server=False)


@FAULTS.add("tls_failure", "client")
def client_certificate_refused(office: Office) -> None:
    office.background(server_port=_other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("partner"), messages.TLS_1_2, office.dice)
        flight = messages.server_flight(messages.TLS_1_2, office.dice, asks_client=True)
        key = messages.client_flight(messages.TLS_1_2, office.dice, office.dice.randbytes(700))
        refusal = messages.alert(office.dice.choice(["bad_certificate", "unknown_ca"]))
        _failed_tls(office, [Exchange(hello, ((0.002, flight),), 0.001), Exchange(key, ((0.002, refusal),), 0.001)], n)


@FAULTS.add("tls_failure", "server_application")
def hello_never_answered(office: Office) -> None:
    """The hello is acknowledged and nothing follows."""
    office.background(server_port=_other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("hung"), messages.TLS_1_3, office.dice)
        one = talk(
            office.client, office.server, 8443, [Exchange(hello, ((99.0, b"x"),), 0.001)], begin=1.0 + n, ends="open"
        )
        office.world.later(11.0 + n, one.client.close)


def certificate(name: str, office: Office, days: float) -> bytes:
    """A self-signed certificate that expires `days` after the capture."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.fromtimestamp(1_700_000_000 + office.world.seed % 1000, datetime.UTC)
    built = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(1 + office.world.seed).not_valid_before(now - datetime.timedelta(days=400))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )  # fmt: skip
    return built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@FAULTS.add("http_5xx", "server_application")
def backend_broken(office: Office) -> None:
    office.background(server_port=_other_port(office))
    status = office.dice.choice(
        ["502 Bad Gateway", "503 Service Unavailable", "500 Internal Server Error", "504 Gateway Timeout"]
    )
    for n in range(4):
        failing = [
            Exchange(messages.get(office.name("shop")), ((0.02, messages.answer(300, status)),), 0.2) for _ in range(3)
        ]
        talk(office.client, office.server, 8080, failing, begin=1.0 + n)


@FAULTS.add("http_slow", "server_application")
def pages_late(office: Office) -> None:
    office.background(server_port=_other_port(office))
    for n in range(4):
        slow = [
            Exchange(messages.get(office.name("report")), ((office.dice.uniform(1.5, 4), messages.answer(5000)),), 0.2)
            for _ in range(2)
        ]
        talk(office.client, office.server, 8080, slow, begin=1.0 + n)


# ------------------------------------------------------------------------------------------------- too much of it


@FAULTS.add("snat_exhaustion", "network", points=("client",), seconds=40.0)
def nat_out_of_ports(office: Office) -> None:
    """A NAT has so many ports for one destination; while all are taken, new connections fail."""
    office.background(server_port=_other_port(office))
    ports = office.dice.choice([32, 64, 128])
    taken: set[int] = set()

    def full(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != office.port:
            return False
        if segment.flags & SYN and segment.source_port not in taken:
            if len(taken) >= ports:
                return True
            taken.add(segment.source_port)
        if segment.flags & RST or (segment.flags & 1):
            port = segment.source_port
            office.world.later(0.5, lambda: taken.discard(port))
        return False

    office.path.there.blocks = full
    for n in range(ports * 2):
        hold = office.dice.uniform(17, 24)
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 1, pause=0.01), *chatter(office.dice, 1, pause=hold)],
            begin=1.0 + n * 14 / ports,
        )


@FAULTS.add("syn_flood", "client", points=("server", "between"))
def flood(office: Office) -> None:
    office.background(server_port=_other_port(office))
    target, world, dice = office.server, office.world, office.dice
    answered = dice.random() < 0.5
    for n in range(500):
        source = f"{dice.randrange(11, 200)}.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(1, 255)}"
        port = dice.randrange(1024, 65000)
        syn = Segment(port, office.port, dice.randrange(1 << 32), 0, SYN, b"", 64240, b"\2\4\5\xb4")
        begin = 2.0 + n * 0.008
        world.later(
            begin,
            lambda syn=syn, source=source: world.capture(
                Packet(source, target.address, TCP_PROTOCOL, syn, ttl=dice.randrange(50, 120)), 4, 0.5
            ),
        )  # type: ignore[misc]
        if answered:
            back = Segment(
                office.port,
                port,
                dice.randrange(1 << 32),
                syn.seq + 1 & 0xFFFFFFFF,
                SYN | ACK,
                b"",
                64240,
                b"\2\4\5\xb4",
            )
            world.later(
                begin + 0.0002,
                lambda back=back, source=source: world.capture(Packet(target.address, source, TCP_PROTOCOL, back), 0),
            )  # type: ignore[misc]


@FAULTS.add("port_scan", "client")
def ports_tried_one_after_another(office: Office) -> None:
    office.background(server_port=_other_port(office))
    scanner = office.client
    for n, port in enumerate(office.dice.sample(range(1, 1024), 120)):
        attempt(scanner, office.server.address, port, 1.0 + n * 0.02)


@FAULTS.add("port_scan", "client", points=("client",))
def hosts_tried_one_after_another(office: Office) -> None:
    office.background(server_port=_other_port(office))
    net = office._net()
    for n in range(60):
        target = Host(office.world, f"{net}.{n + 4}")
        target.silent = n % 3 > 0
        office.new_path(office.client, target)
        attempt(office.client, target.address, 445, 1.0 + n * 0.05)


@FAULTS.add("capture_incomplete", "none")
def capturer_too_slow(office: Office) -> None:
    office.background(server_port=_other_port(office))
    office.world.capture_misses = 0.08
    for n in range(3):
        _bulk(office, 400_000, begin=1.0 + n)
