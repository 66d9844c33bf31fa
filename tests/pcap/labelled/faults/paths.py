"""Scenes with a fault of the way between two hosts, or of an end that holds a transfer back."""

from __future__ import annotations

from ..network import Link, Packet
from ..office import Exchange, Office, chatter, talk, tls, web
from ..scene import FAULTS
from ..stack import Connection
from .usual import bulk, other_port


@FAULTS.add("loss", "network")
def lossy_down(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.path.back.loss = office.dice.uniform(0.02, 0.06)
    for n in range(3):
        bulk(office, 500_000, begin=1.0 + n)


@FAULTS.add("loss", "network")
def lossy_up(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.path.there.loss = office.dice.uniform(0.02, 0.06)
    for n in range(3):
        bulk(office, 500_000, up=True, begin=1.0 + n)


@FAULTS.add("rto_loss", "network")
def link_fails_for_moments(office: Office) -> None:
    """Whole flights vanish, so only the timer repairs."""
    office.background(server_port=other_port(office))
    outages = tuple((2.0 + n * 1.3, 2.0 + n * 1.3 + 0.25) for n in range(8))
    office.path.back.outages = office.path.there.outages = outages
    for n in range(4):
        talk(office.client, office.server, office.port, chatter(office.dice, 60, pause=0.05), begin=1.0 + n * 0.1)


@FAULTS.add("rto_loss", "network", points=("client", "between"))
def one_connection_cut_off(office: Office) -> None:
    """A device forgets a connection in use and drops what belongs to it; others between the two go on."""
    office.background(server_port=other_port(office))
    cut = talk(office.client, office.server, office.port, chatter(office.dice, 40, pause=0.2), begin=1.0)
    talk(office.client, office.server, office.port, chatter(office.dice, 40, pause=0.3), begin=1.0)
    office.path.link_at = 0.9
    port = cut.client.port

    def forgotten(packet: Packet) -> bool:
        return office.world.now > 4 and packet.segment is not None and packet.segment.source_port == port

    office.path.there.blocks = forgotten


@FAULTS.add("rto_loss", "network", points=("client", "between"))
def hello_lost_on_the_way(office: Office) -> None:
    """The connection opens, and nothing that follows gets through: TLS does not fail, the way does."""
    office.background(server_port=other_port(office))
    office.path.link_at = 0.9

    def data(packet: Packet) -> bool:
        return packet.segment is not None and packet.segment.destination_port == 8443 and bool(packet.segment.data)

    office.path.there.blocks = data
    for n in range(office.dice.randrange(1, 4)):
        talk(office.client, office.server, 8443, tls(office.dice, office.name("api"), [900]), begin=1.0 + n)


@FAULTS.add("reordering", "network")
def paths_of_two_lengths(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.path.back.reorder = 0.06
    office.path.back.reorder_by = 0.0025
    for n in range(3):
        bulk(office, 400_000, begin=1.0 + n)


@FAULTS.add("duplicate_packets", "network")
def switch_copies(office: Office) -> None:
    """The network delivers some packets twice."""
    office.background(server_port=other_port(office))
    office.path.back.duplicate = office.path.there.duplicate = 0.15
    office.path.link_at = {"client": 0.7, "server": 0.3, "between": 0.2}[office.world.point]
    for n in range(3):
        bulk(office, 300_000, begin=1.0 + n, up=office.world.point == "server")


@FAULTS.add("delay", "network")
def far_away(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.2, 0.35)
    office.background(server_port=other_port(office))
    for n in range(5):
        talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=0.5 + n)


@FAULTS.add("bufferbloat", "network", points=("client", "server"))
def queue_too_deep(office: Office) -> None:
    office.path.back = Link(rate=4e6, queue_bytes=600_000)
    office.path.there = Link(rate=4e6, queue_bytes=600_000)
    office.path.delay = office.dice.uniform(0.005, 0.02)
    office.background(server_port=other_port(office))
    up = office.world.point == "client"
    bulk(office, 4_000_000, up=up, begin=2.0, receive_buffer=2_000_000)
    for n in range(10):
        office.ping(office.client, office.server, 0.5 + 1.2 * n, 100 + n)
    for n in range(6):
        talk(office.client, office.server, other_port(office), chatter(office.dice, 2), begin=1 + 1.7 * n)


@FAULTS.add("throughput_limited", "network")
def policed(office: Office) -> None:
    """A policer drops what exceeds a rate: the sender saws up and down below it."""
    rate = office.dice.choice([2e6, 4e6, 5e6])
    office.path.back = Link(policed=(rate, 15_000))
    office.background(server_port=other_port(office))
    bulk(office, 5_000_000, begin=1.0)


@FAULTS.add("throughput_limited", "client")
def small_receive_buffer(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.02, 0.04)
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
    for n in range(4):
        slow = [Exchange(b"select " * 20, ((office.dice.uniform(1.5, 4.0), bytes(2000)),), 0.2) for _ in range(3)]
        talk(office.client, office.server, office.port, slow, begin=0.5 + n)


@FAULTS.add("slow_application", "server_application", seconds=40.0)
def answers_late_at_a_high_port(office: Office) -> None:
    """The capture begins with the server's answers in mid-stream; the port that several ends talk to tells who asks."""
    office.background(server_port=other_port(office))
    office.world.starts_at = 5.0
    for n in range(4):
        asks = [Exchange(b"select " * 20, ((office.dice.uniform(1.5, 4.0), bytes(2000)),), 0.1) for _ in range(8)]
        talk(office.client, office.server, 50_051, asks, begin=2.0 + 0.3 * n, ends="open")


@FAULTS.add("slow_application", "server_application", seconds=40.0)
def looks_up_in_vain(office: Office) -> None:
    """Each answer waits five seconds for a resolver that is gone: as regular as a poll, but not for nothing."""
    office.background(server_port=other_port(office))
    for n in range(3):
        late = [Exchange(b"select " * 20, ((5.01, bytes(700)),), 0.3) for _ in range(4)]
        talk(office.client, office.server, office.port, late, begin=1.0 + n)


@FAULTS.add("slow_application", "server_application", seconds=150.0)
def polls_that_end_never(office: Office) -> None:
    """A poll that waits far beyond the agreed time hangs."""
    office.background(server_port=other_port(office))
    office.ping(office.client, office.server, 140.0, 9)
    for n in range(3):
        polls = [Exchange(bytes(200), ((wait, bytes(300)),), 0.01) for wait in (20, 20, 20, 300)]
        talk(office.client, office.server, office.port, polls, begin=1.0 + n, ends="open")


@FAULTS.add("slow_application", "server_application", seconds=40.0)
def never_greets(office: Office) -> None:
    """The server would speak first, and does not, or after the client's patience with all before it."""
    office.background(server_port=other_port(office))
    port = office.dice.choice([22, 25, 3306])
    late = office.dice.random() < 0.5
    for n in range(3):
        one = talk(office.client, office.server, port, [], begin=1.0 + n, ends="open")
        if late:
            office.world.later(12.0 + n, lambda one=one: one.server.write(b"220 ready\r\n"))  # type: ignore[misc]
        office.world.later(25.0 + n, one.client.close)


@FAULTS.add("slow_application", "server_application")
def never_answers(office: Office) -> None:
    """The request is acknowledged, and then nothing."""
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
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
    office.background(server_port=other_port(office))
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
def replies_bypass_capture(office: Office) -> None:
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
    office.background(server_port=other_port(office))
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
def keep_alive_reset(office: Office) -> None:
    """Nothing is owed: a keep-alive finds out that the connection is forgotten."""
    office.background(server_port=other_port(office))
    for n in range(2):
        one = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        for k in range(1, 6):
            office.world.later(k * 75.0 + n, one.client.keep_alive)
        office.world.later(200, one.server._forget)


@FAULTS.add("idle_timeout", "network", seconds=420.0)
def keep_alives_in_vain_until_given_up(office: Office) -> None:
    """A device forgets what is idle and drops what comes later; the host that probes resets the connection itself."""
    office.background(server_port=other_port(office))
    number, every = office.dice.choice([(3, 20.0), (5, 5.0), (8, 1.0), (5, 15.0)])
    forgotten: set[int] = set()
    for n in range(3):
        one = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        prober = one.server if office.world.point == "server" else one.client
        answered = n  # by then the device still knew it
        for k in range(answered):
            office.world.later(70.0 * (k + 1), prober.keep_alive)
        begin = 70.0 * (answered + 1)
        for k in range(number):
            office.world.later(begin + k * every, prober.keep_alive)
        office.world.later(begin + number * every, prober.abort)
        office.world.later(begin - 30.0, lambda port=one.client.port: forgotten.add(port))  # type: ignore[misc]

    def drops(packet: Packet) -> bool:
        segment = packet.segment
        return segment is not None and not forgotten.isdisjoint((segment.source_port, segment.destination_port))

    office.path.link_at = 0.1 if office.world.point == "server" else 0.9
    office.path.there.blocks = office.path.back.blocks = drops


@FAULTS.add("idle_timeout", "network", points=("client", "between"), seconds=420.0)
def reset_after_idling(office: Office) -> None:
    """A load balancer forgets the connection and resets what comes later."""
    office.background(server_port=other_port(office))
    idle = office.dice.uniform(240, 320)
    one = talk(
        office.client,
        office.server,
        office.port,
        [*chatter(office.dice, 3), *chatter(office.dice, 2, pause=idle)],
        begin=1.0,
    )
    office.world.later(200, one.server._forget)
