"""Scenes of which a capture holds little: one transaction, few handshakes, one moment."""

from __future__ import annotations

from .. import messages
from ..network import Link, Packet
from ..office import Exchange, Office, chatter, talk
from ..scene import FAULTS
from .usual import bulk, other_port


@FAULTS.add("delay", "network", severity="MEDIUM")
def far_away_on_one_connection(office: Office) -> None:
    """One handshake; the ACKs of a session tell the rest."""
    office.path.delay = office.dice.uniform(0.28, 0.33)
    office.path.there.jitter = office.path.back.jitter = 0.06
    talk(office.client, office.server, office.port, chatter(office.dice, 12, pause=0.1), begin=0.5)


@FAULTS.add("delay", "network", points=("client",), severity="MEDIUM")
def far_away_by_ping(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.28, 0.33)
    office.path.there.jitter = office.path.back.jitter = 0.06
    for n in range(12):
        office.ping(office.client, office.server, 0.5 + n, n)


@FAULTS.add("slow_application", "server_application", severity="LOW", seconds=60.0)
def every_twelfth_answer_late(office: Office) -> None:
    def asked(n: int) -> Exchange:
        late = 1.6 if n % 12 == 11 else office.dice.uniform(0.003, 0.02)
        return Exchange(office.dice.randbytes(120), ((late, office.dice.randbytes(400)),), 0.2)

    for n in range(2):
        talk(office.client, office.server, 5432, [asked(n) for n in range(48)], begin=0.5 + n)


@FAULTS.add("slow_application", "server_application", seconds=40.0)
def question_and_close_acknowledged(office: Office) -> None:
    """The client asks and closes its side; both are acknowledged, and the answer never comes."""
    one = talk(
        office.client, office.server, office.port, [Exchange(b"report " * 40, ((99.0, b"x"),))], begin=0.5, ends="open"
    )
    office.world.later(1.0, one.client.close)
    one.server.on_close = None
    for n in range(30):
        office.ping(office.client, office.server, 0.5 + n, n)


@FAULTS.add("slow_application", "server_application", seconds=30.0)
def one_question_unanswered(office: Office) -> None:
    """A single request is acknowledged, and nothing follows; the client gives up after fifteen seconds."""
    one = talk(
        office.client, office.server, 8080, [Exchange(messages.get(office.name("www")), ((99.0, b"x"),))], begin=0.5
    )
    office.world.later(16.0, one.client.close)


@FAULTS.add("mid_session_reset", "client", severity="MEDIUM")
def every_transfer_reset_by_the_client(office: Office) -> None:
    office.path.back.rate = 20e6
    for n in range(3):
        one = bulk(office, 3_000_000, begin=1.0 + 3 * n)
        office.world.later(1.35 + 3 * n, one.client.abort)


@FAULTS.add("loss", "network", severity="LOW", points=("client", "between"))
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


@FAULTS.add("throughput_limited", "client", severity="MEDIUM")
def small_receive_buffer_in_one_download(office: Office) -> None:
    office.path.delay = office.dice.uniform(0.03, 0.05)
    talk(
        office.client, office.server, office.port, [Exchange(b"get " * 20, ((0.003, bytes(180_000)),))], begin=1.0,
        client_options=office.opts(receive_buffer=8_192, scale=0),
    )  # fmt: skip


@FAULTS.add("dns_slow", "dns", points=("client",), severity="MEDIUM", seconds=40.0)
def one_lookup_late(office: Office) -> None:
    late = office.dice.choice([2.9, 27.0])
    office.lookups["*"] = lambda asked: (late, messages.reply(asked, addresses=[office.server.address]))
    office.lookup(office.name("db"), 0.5)


@FAULTS.add("rto_loss", "network", seconds=40.0, points=("between",))
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
