"""Scenes in which nothing is broken, each with something that looks as if it were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..wire import ACK, SYN
from . import messages
from .network import Link, Packet, unreachable
from .office import WORDS, Exchange, Office, chatter, talk, tls, web
from .scene import Scenes
from .tickets import with_tickets
from .vanished_hosts import ask, beside, chat, tell

HEALTHY = Scenes()


def _ordinary(office: Office, port: int | None = None) -> None:
    office.background(server_port=port or office.port)


@HEALTHY.add("none", "none")
def ordinary_day(office: Office) -> None:
    _ordinary(office)
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [60_000, 900, 200_000]),
            begin=1.0 + n,
        )


@HEALTHY.add("none", "none")
def segmentation_offload(office: Office) -> None:
    """At the sender, segments are captured before the card cuts them."""
    _ordinary(office)
    for n in range(3):
        big = office.opts(offload=True)
        talk(
            office.client,
            office.server,
            office.port,
            [Exchange(bytes(400_000), ((0.01, bytes(700_000)),))],
            begin=1.0 + n,
            client_options=big,
            server_options=big,
        )


@HEALTHY.add("none", "none")
def begins_in_mid_stream(office: Office) -> None:
    _ordinary(office)
    office.world.starts_at = office.dice.uniform(3.0, 6.0)
    for n in range(4):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [90_000] * 12, pause=0.6),
            begin=0.5 + n,
        )


@HEALTHY.add("none", "none", seconds=40.0)
def begins_in_mid_stream_at_a_high_port(office: Office) -> None:
    """Which end serves is told by the port that several ends talk to, although servers speak first in the capture."""
    talk(office.client, office.others[0], 80, web(office.dice, office.name("www"), [9000, 900]), begin=8.0)
    office.world.starts_at = 5.0
    for n in range(4):
        asks = [*chatter(office.dice, 1, pause=0.1), *chatter(office.dice, 10, pause=2.5)]
        one = talk(office.client, office.server, 50_051, asks, begin=1.0 + 0.1 * n, ends="open")
        office.world.later(5.05 + 0.01 * n, lambda one=one: one.server.write(b"notice" * 9))  # type: ignore[misc]


@HEALTHY.add("none", "none", seconds=200.0)
def kept_alive(office: Office) -> None:
    _ordinary(office)
    for n in range(3):
        one = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=0.5 + n, ends="open")
        for k in range(1, 12):
            office.world.later(5 + k * 15, one.client.keep_alive)
            office.world.later(6 + k * 15, one.server.keep_alive)


@HEALTHY.add("none", "none")
def delayed_acknowledgements(office: Office) -> None:
    """A terminal session: single segments, acknowledged late."""
    _ordinary(office)
    for n in range(3):
        keys = [
            Exchange(office.dice.randbytes(36), ((0.002, office.dice.randbytes(36)),), office.dice.uniform(0.1, 0.5))
            for _ in range(30)
        ]
        talk(office.client, office.server, 22, keys, begin=0.5 + n, ends="open")
    talk(
        office.client,
        office.server,
        office.port,
        [Exchange(bytes(1000), ((0.35, b"k" * 90),), 0.3) for _ in range(10)],
        begin=1.0,
    )


@HEALTHY.add("none", "none", seconds=60.0)
def event_stream(office: Office) -> None:
    """The client asks once; the server tells whenever something happens."""
    _ordinary(office)
    events = [(office.dice.uniform(1, 6), messages.event(f"n{n}")) for n in range(12)]
    first = (0.02, messages.event_stream())
    talk(
        office.client,
        office.server,
        8080,
        [Exchange(messages.get(office.name("live"), "/events"), (first, *events))],
        ends="open",
    )
    socket = [*tls(office.dice, office.name("push"), [300])]
    late = tuple((office.dice.uniform(2, 8), messages.encrypted(120, office.dice)) for _ in range(7))
    talk(
        office.client,
        office.server,
        8443,
        [*socket, Exchange(messages.encrypted(90, office.dice), late)],
        begin=1.0,
        ends="open",
    )


@HEALTHY.add("none", "none", seconds=120.0)
def long_poll(office: Office) -> None:
    """The answer comes when there is news; meanwhile the connection waits on purpose, and nothing says it is urgent."""
    _ordinary(office)
    hello = tls(office.dice, office.name("push"), [300, 500])
    waits = [
        Exchange(messages.encrypted(200, office.dice), ((25.0, messages.encrypted(150, office.dice)),), 0.01)
        for _ in range(3)
    ]
    talk(office.client, office.server, 8443, [*hello, *waits], begin=1.0, ends="open")


@HEALTHY.add("none", "none", seconds=120.0)
def long_poll_in_clear(office: Office) -> None:
    _ordinary(office)
    host = office.name("push")
    asks = [Exchange(messages.get(host, "/poll"), ((25.0, messages.answer(40)),), 0.01) for _ in range(4)]
    talk(office.client, office.server, 8080, asks, begin=1.0)


@HEALTHY.add("none", "none", seconds=150.0)
def polls_with_jitter_or_news(office: Office) -> None:
    """Held for thirty seconds and up to a sixteenth more; for twenty, unless there is news; and an empty queue."""
    _ordinary(office)
    dice = office.dice
    jitter = [messages.get(office.name("kv"), "/wait") for _ in range(4)]
    asks = [Exchange(ask, ((30 + dice.uniform(0, 1.8), messages.answer(40)),), 0.01) for ask in jitter]
    talk(office.client, office.server, 8500, asks, begin=1.0, ends="open")
    news = [Exchange(bytes(200), ((wait, bytes(300)),), 0.01) for wait in (20, 20, 7.3, 20, 13.1, 20, 20)]
    talk(office.client, office.server, 5671, news, begin=1.0, ends="open")
    for n in range(3):
        pops = [Exchange(b"*3\r\n$5\r\nBRPOP\r\n", ((5.03, b"*-1\r\n"),), 0.01) for _ in range(30)]
        talk(office.client, office.server, 6379, pops, begin=1.0 + n, ends="open")


@HEALTHY.add("none", "none")
def path_mtu_is_found(office: Office) -> None:
    _ordinary(office)
    office.path.there.mtu = office.path.back.mtu = 1400
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            [Exchange(bytes(60_000), ((0.01, bytes(90_000)),))],
            begin=1.0 + n,
        )


@HEALTHY.add("none", "none")
def reset_when_all_is_said(office: Office) -> None:
    """Clients that close with a reset after the answer, as pools and probes do."""
    _ordinary(office)
    for n in range(6):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [3000, 500]),
            begin=0.5 + n,
            ends="reset",
        )


@HEALTHY.add("none", "none", points=("client",))
def search_list(office: Office) -> None:
    """Names are tried with every suffix before they are found."""
    _ordinary(office)
    suffixes = ["svc.cluster.local", "cluster.local", office.name("corp")]
    for suffix in suffixes:
        office.lookups[suffix] = lambda asked: (0.001, messages.reply(asked, code="NXDOMAIN"))
    for n, word in enumerate(office.dice.sample(WORDS, 5)):
        target = f"{word}.{office.zone}"
        for k, suffix in enumerate(suffixes):
            office.lookup(f"{target}.{suffix}", 1.0 + n + 0.15 * k)
        office.lookup(target, 1.0 + n + 0.5)


@HEALTHY.add("none", "none")
def jitter(office: Office) -> None:
    office.path.there = Link(jitter=0.004)
    office.path.back = Link(jitter=0.004)
    _ordinary(office)
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [80_000, 900, 30_000]),
            begin=1.0 + n,
        )


@HEALTHY.add("none", "none")
def every_interface_at_once(office: Office) -> None:
    """A router captures on all its interfaces: each packet is seen coming and going."""
    office.world.seen_as = lambda frame: [(0, frame), (office.dice.randrange(1000, 40_000), frame)]
    _ordinary(office)
    for n in range(3):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [60_000, 900]),
            begin=1.0 + n,
        )


@HEALTHY.add("none", "none")
def ends_in_mid_stream(office: Office) -> None:
    _ordinary(office)
    for n in range(4):
        talk(
            office.client,
            office.server,
            office.port,
            web(office.dice, office.name("www"), [200_000] * 30, pause=0.5),
            begin=10.0 + n,
        )


@HEALTHY.add("none", "none")
def a_little_loss(office: Office) -> None:
    """Loss that recovers unnoticed."""
    _ordinary(office)
    office.path.back.loss = 0.001
    for n in range(3):
        talk(office.client, office.server, office.port, [Exchange(b"get", ((0.01, bytes(900_000)),))], begin=1.0 + n)


@HEALTHY.add("none", "none")
def goodbyes_before_a_reset(office: Office) -> None:
    """Either end says goodbye, and resets without waiting for an answer to it."""
    _ordinary(office)
    word = messages.encrypted(19, office.dice)
    for n in range(4):
        asks = tls(office.dice, office.name("shop"), [3000])
        one = talk(office.client, office.server, 8443, asks, begin=1.0 + n, ends="open")
        leaver = one.server if n % 2 else one.client
        office.world.later(4.0 + n, lambda leaver=leaver: leaver.write(word))  # type: ignore[misc]
        office.world.later(4.00005 + n, leaver.abort)
        shell = talk(office.client, office.server, 22, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        office.world.later(4.0 + n, lambda shell=shell: shell.client.write(bytes(60)))  # type: ignore[misc]
        office.world.later(4.0 + n + office.path.delay * 1.1, shell.server.abort)


@HEALTHY.add("none", "none", seconds=60.0)
def nobody_answers_reports(office: Office) -> None:
    """Logs, by their port or because they go on and on; and frames of HTTP/2 that only say that something came."""
    _ordinary(office)
    lines = [office.dice.randbytes(90) for _ in range(3)]
    for n, port in enumerate((514, 24224, 5999, 1883)):
        greeted = chatter(office.dice, 1) if port == 1883 else []
        one = talk(office.client, office.server, port, greeted, begin=1.0 + n, ends="open")
        for k, line in enumerate(lines[: 2 if port == 514 else 3]):
            office.world.later(3.0 + n + k, lambda one=one, line=line: one.client.write(line))  # type: ignore[misc]
        office.world.later(30.0 + n, one.server.close if n % 2 else one.client.close)
        asks = [*tls(office.dice, office.name("web"), [4000]), Exchange(messages.encrypted(30, office.dice), (), 0.001)]
        two = talk(office.client, office.server, 8443, asks, begin=2.0 + n, ends="open")
        office.world.later(40.0 + n, two.server.close)


@HEALTHY.add("none", "none", seconds=40.0)
def greeted_after_a_pause(office: Office) -> None:
    """A mail server that makes strangers wait; monitors that only connect; connections kept in reserve."""
    _ordinary(office)
    for n in range(3):
        one = talk(office.client, office.server, 25, [], begin=1.0 + n, ends="open")
        office.world.later(7.0 + n, lambda one=one: one.server.write(b"220 mail ESMTP\r\n"))  # type: ignore[misc]
        office.world.later(8.0 + n, one.client.close)
        probe = talk(office.client, office.server, 22, [], begin=1.0 + n, ends="open")
        office.world.later(1.3 + n, probe.client.close)
        talk(office.client, office.server, 8443, [], begin=1.0 + n, ends="open")


@HEALTHY.add("none", "none", seconds=420.0)
def reset_in_idleness(office: Office) -> None:
    """Keep-alives are answered, and one day the server clears up."""
    _ordinary(office)
    for n in range(3):
        one = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        for k in range(1, 4):
            office.world.later(k * 75.0 + n, one.client.keep_alive)
        office.world.later(280.0 + n, one.server.abort)


@HEALTHY.add("none", "none", seconds=420.0)
def reset_after_keep_alives_that_were_answered(office: Office) -> None:
    """A pool drops what it kept alive: the other side was there to the last."""
    _ordinary(office)
    for n in range(3):
        one = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        for k in range(1, 6):
            office.world.later(62.0 * k + n, one.client.keep_alive)
        office.world.later(62.0 * 5 + n + 0.5, one.client.abort)


@HEALTHY.add("none", "none")
def load_balancer_probes(office: Office) -> None:
    """Connections that open and are reset or closed at once, without a byte."""
    _ordinary(office)
    for n in range(8):
        one = talk(office.client, office.server, office.port, [], begin=0.5 + n, ends="open")
        office.world.later(0.7 + n, one.client.abort if n % 2 else one.client.close)


@HEALTHY.add("none", "none")
def ends_in_an_outage(office: Office) -> None:
    """Something is repeated as the capture ends; who knows whether the next repeat gets through."""
    _ordinary(office)
    end = office.world.seconds
    office.path.there.outages = office.path.back.outages = ((end - 0.7, end),)
    talk(office.client, office.server, office.port, chatter(office.dice, 90, pause=0.3), begin=1.0)


@HEALTHY.add("none", "none", points=("server",))
def clients_that_went_away(office: Office) -> None:
    """Phones out of range: the server repeats its last answer to one, and its FIN to the other."""
    _ordinary(office)
    for n in range(2):
        phone = office.new_host()
        office.new_path(phone, office.server)
        one = talk(phone, office.server, office.port, chatter(office.dice, 3, pause=0.2), begin=1.0, ends="open")
        office.world.later(4.0, lambda phone=phone: setattr(phone, "silent", True))  # type: ignore[misc]
        office.world.later(4.1, one.server.close if n else lambda one=one: one.server.write(bytes(200)))  # type: ignore[misc]


@HEALTHY.add("none", "none", points=("server", "between"))
def an_answer_to_a_syn_lost_once(office: Office) -> None:
    """The SYN-ACK is lost, both ends repeat, and the connection comes to be; another one begins as the capture ends."""
    _ordinary(office)
    office.path.link_at = 0.2
    seen: list[int] = []

    def first_of_two(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or not segment.flags & SYN or len(seen) >= 2:
            return False
        seen.append(segment.destination_port)
        return True

    office.path.back.blocks = first_of_two
    for begin in (1.0, 1.5, office.world.seconds - 0.01):
        talk(office.client, office.server, office.port, chatter(office.dice, 4), begin=begin)


@HEALTHY.add("none", "none")
def half_open_probes(office: Office) -> None:
    """A monitor that resets as soon as its SYN is answered."""
    _ordinary(office)
    for n in range(12):
        one = talk(office.client, office.server, office.port, [], begin=0.5 + n, ends="open")
        one.client.on_open = one.client.abort
        send = office.client.send

        def without_ack(packet: Packet, port: int = one.client.port, pass_on: Callable[[Packet], None] = send) -> None:
            segment = packet.segment
            if segment is None or segment.source_port != port or segment.flags != ACK:
                pass_on(packet)

        office.client.send = without_ack  # type: ignore[method-assign]


@HEALTHY.add("none", "none", points=("client", "between"))
def ping_and_traceroute(office: Office) -> None:
    _ordinary(office)
    for n in range(10):
        office.ping(office.client, office.server, 1.0 + n, n, size=1200)
    for hop in range(1, 6):
        for n in range(3):
            probe = messages.datagram(
                office.client.address, 45_000, office.server.address, 33434 + hop * 3 + n, bytes(32)
            )
            sent = replace(probe, ttl=hop)
            said = unreachable(f"10.254.{hop}.1", sent, 0, kind=11)
            office.world.later(2 + hop * 0.2 + n * 0.01, lambda sent=sent: office.world.capture(sent, 0))  # type: ignore[misc]
            office.world.later(2 + hop * 0.2 + n * 0.01 + 0.005, lambda said=said: office.world.capture(said, 0))  # type: ignore[misc]


@HEALTHY.add("none", "none", seconds=40.0)
def quick_behind_tickets(office: Office) -> None:
    """Session tickets, and answers at once; then nothing that anybody waits for: news that come when they come, idle
    connections, and some that were opened in advance."""
    _ordinary(office)
    dice = office.dice
    for n in range(3):
        news = [(dice.uniform(2.5, 5.0), messages.encrypted(dice.randrange(60, 400), dice)) for _ in range(4)]
        answer = (0.02, messages.encrypted(dice.randrange(140, 600), dice))
        with_tickets(office, [answer, *news], begin=1.0 + n, together=n == 1, ends="open")
        with_tickets(office, [answer], begin=1.5 + n, ends="open")
        idle = with_tickets(office, [], begin=2.0 + n, asks=False, ends="open", together=n == 2)
        office.world.later(20.0 + n, lambda idle=idle: idle.client.write(messages.encrypted(19, dice)))  # type: ignore[misc]
        office.world.later(20.0 + n, idle.client.close)


@HEALTHY.add("none", "none", points=("client",))
def gone_for_a_moment(office: Office) -> None:
    """A neighbour that is started anew: requests for it have no reply, and then it is there again."""
    _ordinary(office)
    host = beside(office)
    chat(office, office.client, host, 0.6)
    ask(office, office.client, host, 5.0, 5)
    tell(office, office.client, host, 9.001)
    chat(office, office.client, host, 9.1)
    other = beside(office)
    chat(office, office.client, other, 0.8)
    ask(office, office.client, other, 5.5, 4)
    chat(office, other, office.client, 12.0)


@HEALTHY.add("none", "none", points=("client",))
def asked_for_by_a_stranger(office: Office) -> None:
    """A neighbour spoke to this host once; that others ask for it later is seen, and its replies to them are not."""
    _ordinary(office)
    host, stranger = beside(office), beside(office)
    chat(office, office.client, host, 0.6)
    chat(office, office.client, stranger, 1.0)
    ask(office, stranger, host, 6.0, 9)


@HEALTHY.add("none", "none", seconds=40.0)
def websocket_in_clear(office: Office) -> None:
    """The client says something once, and the server when there is something to say."""
    _ordinary(office)
    upgrade = messages.get(office.name("live"), "/ws").replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\n\r\n")
    agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    for n in range(3):
        news = tuple((office.dice.uniform(2.5, 7.0), b"\x81\x10" + office.dice.randbytes(16)) for _ in range(4))
        said = [
            Exchange(upgrade, ((0.01, agreed),), 0.01),
            Exchange(b"\x81\x85" + office.dice.randbytes(9), news, 0.01),
        ]
        talk(office.client, office.server, 8080, said, begin=0.5 + n, ends="open")
