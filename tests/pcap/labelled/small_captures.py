"""Faults of which a capture holds little: one transaction, few handshakes, one moment; and what looks like them."""

from __future__ import annotations

from . import messages
from .faults.usual import bulk, other_port
from .network import Link, Packet
from .office import Exchange, Office, chatter, talk
from .scene import Scenes

SCENES = Scenes()


@SCENES.add("delay", "network", severity="MEDIUM")
def far_away_on_one_connection(office: Office) -> None:
    """One handshake; the ACKs of a session tell the rest."""
    office.path.delay = office.dice.uniform(0.28, 0.33)
    office.path.there.jitter = office.path.back.jitter = 0.06
    talk(office.client, office.server, office.port, chatter(office.dice, 12, pause=0.1), begin=0.5)


@SCENES.add("delay", "network", points=("client",), severity="MEDIUM")
def far_away_by_ping(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.28, 0.33)
    office.path.there.jitter = office.path.back.jitter = 0.06
    for n in range(12):
        office.ping(office.client, office.server, 0.5 + n, n)


@SCENES.add("slow_application", "server_application", severity="LOW", seconds=60.0)
def every_twelfth_answer_late(office: Office) -> None:
    def asked(n: int) -> Exchange:
        late = 1.6 if n % 12 == 11 else office.dice.uniform(0.003, 0.02)
        return Exchange(office.dice.randbytes(120), ((late, office.dice.randbytes(400)),), 0.2)

    for n in range(2):
        talk(office.client, office.server, 5432, [asked(n) for n in range(48)], begin=0.5 + n)


@SCENES.add("slow_application", "server_application", seconds=40.0)
def question_and_close_acknowledged(office: Office) -> None:
    """The client asks and closes its side; both are acknowledged, and the answer never comes."""
    one = talk(office.client, office.server, 5432, [Exchange(b"report " * 40, ((99.0, b"x"),))], begin=0.5, ends="open")
    office.world.later(1.0, one.client.close)
    one.server.on_close = None
    for n in range(30):
        office.ping(office.client, office.server, 0.5 + n, n)


@SCENES.add("slow_application", "server_application", seconds=30.0)
def one_question_unanswered(office: Office) -> None:
    """A single request is acknowledged, and nothing follows; the client gives up after fifteen seconds."""
    one = talk(
        office.client, office.server, 8080, [Exchange(messages.get(office.name("www")), ((99.0, b"x"),))], begin=0.5
    )
    office.world.later(16.0, one.client.close)


@SCENES.add("mid_session_reset", "client", severity="MEDIUM")
def every_transfer_reset_by_the_client(office: Office) -> None:
    office.path.back.rate = 20e6
    for n in range(3):
        one = bulk(office, 3_000_000, begin=1.0 + 3 * n)
        office.world.later(1.35 + 3 * n, one.client.abort)


@SCENES.add("loss", "network", severity="LOW", points=("client", "between"))
def one_burst_of_losses(office: Office) -> None:
    """A queue overflows once in ten thousand segments."""
    for n in range(4):
        bulk(office, 3_000_000, begin=1.0 + n)
    lost = [0]

    def burst(packet: Packet) -> bool:
        full = packet.segment is not None and len(packet.segment.data) > 1000
        lost[0] += full and office.world.now > 2.0
        return bool(full) and office.world.now > 2.0 and lost[0] <= 24 and lost[0] % 2 == 0

    office.path.back.blocks = burst


@SCENES.add("throughput_limited", "client", severity="MEDIUM")
def small_receive_buffer_in_one_download(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.03, 0.05)
    talk(
        office.client, office.server, office.port, [Exchange(b"get " * 20, ((0.003, bytes(180_000)),))], begin=1.0,
        client_options=office.opts(receive_buffer=8_192, scale=0),
    )  # fmt: skip


@SCENES.add("dns_slow", "dns", points=("client",), severity="LOW", seconds=40.0)
def one_lookup_late(office: Office) -> None:
    _late_lookup(office, 2.9)


@SCENES.add("dns_slow", "dns", points=("client",), severity="MEDIUM", seconds=40.0)
def one_lookup_given_up(office: Office) -> None:
    _late_lookup(office, 27.0)


def _late_lookup(office: Office, late: float) -> None:
    office.lookups["*"] = lambda asked: (late, messages.reply(asked, addresses=[office.server.address]))
    office.lookup(office.name("db"), 0.5)


@SCENES.add("rto_loss", "network", seconds=40.0, points=("between",))
def nine_seconds_without_a_way(office: Office) -> None:
    """A tunnel fails over: ten clients work before and after, and nothing passes between."""
    office.background(server_port=other_port(office))
    down = ((8.0, 17.0),)
    clients = [office.new_host() for _ in range(10)]
    for n, client in enumerate(clients):
        path = office.new_path(client, office.server)
        path.there, path.back = Link(outages=down), Link(outages=down)
        asked = [Exchange(office.dice.randbytes(200), ((0.01, office.dice.randbytes(900)),), 0.25) for _ in range(90)]
        talk(client, office.server, office.port, asked, begin=0.3 + 0.1 * n, ends="open")


# ---------------------------------------------------------------------------------------------- what looks like them


@SCENES.add("none", "none", low=(), seconds=60.0)
def one_heavy_request_among_quick_ones(office: Office) -> None:
    def asked(n: int) -> Exchange:
        late = 1.6 if n == 30 else office.dice.uniform(0.003, 0.02)
        return Exchange(office.dice.randbytes(120), ((late, office.dice.randbytes(400)),), 0.2)

    talk(office.client, office.server, 5432, [asked(n) for n in range(60)], begin=0.5)


@SCENES.add("none", "none", low=())
def a_single_connection_across_two_oceans(office: Office) -> None:
    office.path.delay = 0.17
    talk(office.client, office.server, office.port, chatter(office.dice, 12, pause=0.1), begin=0.5)


@SCENES.add("none", "none", low=(), seconds=40.0)
def nobody_says_a_word_for_nine_seconds(office: Office) -> None:
    """Ten clients pause at the same time, as at noon; nothing is lost."""
    clients = [office.new_host() for _ in range(10)]
    for n, client in enumerate(clients):
        office.new_path(client, office.server)
        asked = [
            Exchange(office.dice.randbytes(200), ((0.01, bytes(900)),), 9.0 if k == 20 else 0.2) for k in range(40)
        ]
        talk(client, office.server, office.port, asked, begin=0.3 + 0.1 * n, ends="open")


@SCENES.add("none", "none", low=(), points=("client",))
def a_cold_cache_once(office: Office) -> None:
    office.lookups["*"] = lambda asked: (1.2, messages.reply(asked, addresses=[office.server.address]))
    office.lookup(office.name("db"), 0.5)


@SCENES.add("none", "none", low=(), seconds=40.0)
def question_and_close_answered(office: Office) -> None:
    """The client asks and closes its side; the answer takes eight hundred milliseconds and comes."""
    one = talk(
        office.client, office.server, 5432, [Exchange(b"report " * 40, ((0.8, bytes(900)),))], begin=0.5, ends="server"
    )
    office.world.later(0.7, one.client.close)
    one.server.on_close = None
