"""Clients that hold many connections to one service through something that lets only so many pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..wire import FIN, RST, SYN
from .faults.usual import other_port
from .network import Packet
from .office import Exchange, Office, Talk, chatter, talk
from .scene import Scenes

SCENES = Scenes()
_BEFORE = ("client", "between")
"""Where what a SCENES drops is seen."""


def _drop(office: Office, what: Callable[[Packet], bool]) -> None:
    """Behind every place where a capture may be taken before the server."""
    office.path.link_at = 0.7
    office.path.there.blocks = what


def _few_ports(office: Office, ports: int, *, kept: float = 0.1) -> None:
    """A SCENES on the way has so many ports for the service, and keeps each for a while after its connection closed."""
    taken: set[int] = set()

    def full(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != office.port:
            return False
        port = segment.source_port
        if segment.flags & SYN and port not in taken:
            if len(taken) >= ports:
                return True
            taken.add(port)
        if segment.flags & (RST | FIN):
            office.world.later(kept, lambda: taken.discard(port))
        return False

    _drop(office, full)


def _lost_syns(office: Office, share: float) -> None:
    """Of the SYNs of the service a share is lost, whatever else passes."""

    def lost(packet: Packet) -> bool:
        segment = packet.segment
        opens = segment is not None and segment.destination_port == office.port and bool(segment.flags & SYN)
        return opens and office.dice.random() < share

    _drop(office, lost)


def _session(office: Office, seconds: float, *, think: float = 0.005) -> list[Exchange]:
    """Questions at the beginning and at the end of a connection that is held for so long."""
    dice = office.dice
    asked = [(0.01, dice.randbytes(90)), (seconds, dice.randbytes(120))]
    return [Exchange(question, ((think, dice.randbytes(300)),), pause) for pause, question in asked]


def _steady(office: Office, number: int, every: float, seconds: Callable[[], float], *, think: float = 0.005) -> None:
    """New connections come at one rate, whatever becomes of the others."""
    for n in range(number):
        begin = 1.0 + every * (n + office.dice.uniform(-0.3, 0.3))
        talk(office.client, office.server, office.port, _session(office, seconds(), think=think), begin=begin)


def _pool(office: Office, size: int, seconds: Callable[[], float]) -> None:
    """So many workers, each of which opens a connection when its last one is done."""

    def work() -> None:
        both = talk(office.client, office.server, office.port, _session(office, seconds()))
        closed = both.client.on_close

        def again() -> None:
            if closed:
                closed()
            office.world.later(office.dice.uniform(0.01, 0.4), work)

        both.client.on_close = again

    for _ in range(size):
        office.world.later(office.dice.uniform(0.5, 3.0), work)


def _queue(office: Office, workers: int, backlog: int) -> None:
    """A server whose workers serve one connection each; a few more wait in its queue, and the rest is not let in."""
    dice, world = office.dice, office.world
    busy = [0]
    waiting: list[tuple[int, Callable[[], None]]] = []
    inside: set[int] = set()

    def full(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != office.port:
            return False
        if segment.flags & SYN and segment.source_port not in inside:
            if len(inside) >= workers + backlog:
                return True
            inside.add(segment.source_port)
        return False

    def serve(port: int, answer: Callable[[], None]) -> None:
        busy[0] += 1

        def done() -> None:
            answer()
            inside.discard(port)
            busy[0] -= 1
            if waiting:
                serve(*waiting.pop(0))

        world.later(dice.uniform(1.0, 2.5), done)

    def take(both: Talk, received: int) -> None:
        asked = (both.client.port, lambda: both.server_got(received))
        if busy[0] < workers:
            serve(*asked)
        else:
            waiting.append(asked)

    _drop(office, full)
    for n in range(200):
        both = talk(office.client, office.server, office.port, chatter(dice, 1, pause=0.01), begin=1.0 + 0.18 * n)
        both.server.on_data = partial(take, both)


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


@SCENES.add("snat_exhaustion", "network", points=_BEFORE, seconds=60.0)
def each_freed_port_taken_at_once(office: Office) -> None:
    """More connections are wanted than there are ports, for most of the capture."""
    _ordinary(office)
    ports = office.dice.choice([16, 32, 64])
    _few_ports(office, ports, kept=0.2)
    _steady(office, 3 * ports, 40 / (3 * ports), lambda: office.dice.uniform(12, 22))


@SCENES.add("snat_exhaustion", "network", points=_BEFORE, seconds=240.0)
def ports_kept_for_a_minute(office: Office) -> None:
    _ordinary(office)
    _few_ports(office, 64, kept=60.0)
    _steady(office, 200, 0.8, lambda: office.dice.uniform(5, 8))


@SCENES.add("snat_exhaustion", "network", points=_BEFORE, seconds=90.0)
def recorded_while_ports_are_short(office: Office) -> None:
    """Connections were open, and SYNs were being repeated, before the capture begins."""
    _ordinary(office)
    _few_ports(office, 32, kept=0.2)
    _steady(office, 160, 0.5, lambda: office.dice.uniform(15, 25))
    office.world.starts_at = 32.0


@SCENES.add(
    "snat_exhaustion", "network", points=_BEFORE, seconds=70.0, others=("MEDIUM slow_application server_application",)
)
def slow_service_behind_few_ports(office: Office) -> None:
    """Every answer takes seconds, however many connections there are: that is why they hold their ports."""
    _ordinary(office)
    _few_ports(office, 24, kept=0.2)
    _steady(office, 110, 0.45, lambda: office.dice.uniform(12, 18), think=1.5)


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=60.0)
def pool_whose_syns_are_lost(office: Office) -> None:
    """It holds as many connections as it may, nearly all the time, and fails to open some."""
    _ordinary(office)
    _lost_syns(office, 0.3)
    _pool(office, office.dice.choice([16, 32, 64]), lambda: office.dice.uniform(3, 9))


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=60.0, severity="MEDIUM")
def syns_lost_at_any_number(office: Office) -> None:
    _ordinary(office)
    _lost_syns(office, 0.15)
    _steady(office, 200, 0.25, lambda: office.dice.uniform(8, 14))


@SCENES.add("syn_unanswered", "server_application", points=_BEFORE, seconds=36.0)
def more_than_workers_and_queue_hold(office: Office) -> None:
    """A server holds as many connections as a SCENES would let pass, of which most wait."""
    _ordinary(office)
    _queue(office, 4, office.dice.choice([24, 32]))


@SCENES.add("none", "none", seconds=60.0)
def full_pool(office: Office) -> None:
    _ordinary(office)
    _lost_syns(office, 0.01)
    _pool(office, office.dice.choice([16, 32, 64]), lambda: office.dice.uniform(3, 9))
