"""What packets meet on their way: filters that let some pass, routers that answer in another's name, longer ways, and
captures of one direction."""

from __future__ import annotations

from ..wire import ACK, RST
from . import messages
from .faults.usual import other_port
from .network import TCP_PROTOCOL, Host, Link, Packet, Segment
from .office import Office, attempt, chatter, talk
from .scene import Scenes
from .vanished_hosts import beside

SCENES = Scenes()
_BEFORE = ("client", "between")
"""Where what is dropped further on is seen."""


def _tries(office: Office, target: Host, port: int, *, number: int = 4, begin: float = 2.0) -> None:
    for n in range(number):
        attempt(office.client, target.address, port, begin + 1.3 * n)


def _drops_tcp(office: Office, target: Host) -> None:
    path = office.world.paths[office.client.address, target.address]
    path.link_at = 0.7
    path.there.blocks = lambda packet: packet.protocol == TCP_PROTOCOL


@SCENES.add("syn_unanswered", "policy", points=_BEFORE)
def names_by_udp_alone(office: Office) -> None:
    """Long answers are cut, and asked for by TCP in vain."""
    office.background(server_port=office.port)
    office.lookups["big." + office.zone] = lambda asked: (0.003, _cut(messages.reply(asked)))
    for n in range(4):
        office.lookup(f"t{n}.big.{office.zone}", 1.9 + 1.3 * n)
    _drops_tcp(office, office.resolver)
    _tries(office, office.resolver, 53)


def _cut(reply: bytes) -> bytes:
    return reply[:2] + bytes([reply[2] | 2]) + reply[3:]


@SCENES.add("syn_unanswered", "policy", points=_BEFORE)
def answers_pings_and_no_syn(office: Office) -> None:
    office.background(to_server=False)
    _drops_tcp(office, office.server)
    for n in range(14):
        office.ping(office.client, office.server, 1.0 + n, 100 + n)
    _tries(office, office.server, office.port)


@SCENES.add("syn_unanswered", "network", points=_BEFORE)
def answered_by_udp_until_it_was_cut_off(office: Office) -> None:
    """Names were answered at first; then nothing is, by whatever protocol."""
    office.background(server_port=office.port, lookups=False)
    for n in range(6):
        office.lookup(office.name(f"h{n}"), 0.2 + 0.1 * n)
    path = office.world.paths[office.client.address, office.resolver.address]
    path.link_at, path.there = 0.7, Link(outages=((1.5, 99.0),))
    _tries(office, office.resolver, 53)


# -------------------------------------------------------------------------------------- resets in another's name


def _rejects(office: Office, port: int, ttl: int) -> None:
    """The first router answers for a port of the server, whose other ports are some hops away."""
    path = office.path
    path.link_at, server = 0.0001, office.server

    def refuse(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != port:
            return False
        numbers = (segment.destination_port, segment.source_port, 0, (segment.seq + 1) & 0xFFFFFFFF)
        forged = Packet(server.address, packet.source, TCP_PROTOCOL, Segment(*numbers, RST | ACK, b"", 0, b""), ttl=ttl)
        office.world.later(0.0004, lambda: office.world.capture(forged, 0))
        office.world.later(0.0004, lambda: office.client.receive(forged))
        return True

    path.there.blocks = refuse


@SCENES.add("third_party_reset", "policy", points=("client",))
def the_first_router_refuses_one_port(office: Office) -> None:
    """A hop or two are less than what other paths of one host may differ by; no hop at all is the router itself."""
    office.path.hops = office.dice.choice([1, 2])
    office.background(server_port=office.port)
    _rejects(office, other_port(office), 64)
    _tries(office, office.server, other_port(office))


@SCENES.add("refused", "server_application", points=("client",))
def the_neighbour_itself_refuses_one_port(office: Office) -> None:
    office.background(server_port=office.port)
    target = beside(office)
    talk(office.client, target, office.port, chatter(office.dice, 4), begin=0.7)
    _tries(office, target, other_port(office))


@SCENES.add("refused", "server_application")
def the_server_itself_refuses_from_a_hop_away(office: Office) -> None:
    office.path.hops = office.dice.choice([1, 2])
    office.background(server_port=office.port)
    _tries(office, office.server, other_port(office))


# ------------------------------------------------------------------------------------------------- longer ways


def _calls(office: Office, client: Host, server: Host, moments: list[float]) -> None:
    for moment in moments:
        talk(client, server, office.port, chatter(office.dice, 1, pause=0.05), begin=moment)


def _slow_from(office: Office, client: Host, server: Host, begin: float, end: float, delay: float) -> None:
    path = office.world.paths[client.address, server.address]
    usual = path.delay
    office.world.later(begin, lambda: setattr(path, "delay", delay))
    office.world.later(end, lambda: setattr(path, "delay", usual))


def _every(first: float, number: int, pause: float) -> list[float]:
    return [first + pause * n for n in range(number)]


@SCENES.add("delay", "network", seconds=30.0, severity="MEDIUM")
def another_way_from_one_moment_on(office: Office) -> None:
    office.background(server_port=other_port(office))
    _calls(office, office.client, office.server, _every(0.5, 30, 0.5) + _every(16.5, 8, 1.2))
    _slow_from(office, office.client, office.server, 16.0, 99.0, office.dice.uniform(0.1, 0.25))


@SCENES.add("delay", "network", seconds=30.0, points=("server", "between"), severity="MEDIUM")
def another_way_for_several_clients(office: Office) -> None:
    """One finding, whoever calls."""
    office.background(server_port=other_port(office))
    for n, client in enumerate((office.client, *office.neighbours)):
        _calls(office, client, office.server, _every(0.5 + 0.1 * n, 25, 0.6) + _every(16.5 + 0.1 * n, 7, 1.2))
        _slow_from(office, client, office.server, 16.0, 99.0, 0.16)


@SCENES.add("none", "none", seconds=30.0, low=())
def two_slow_handshakes_at_the_end(office: Office) -> None:
    office.background(server_port=other_port(office))
    _calls(office, office.client, office.server, [*_every(0.5, 30, 0.6), 24.5, 25.5])
    _slow_from(office, office.client, office.server, 24.0, 99.0, 0.2)


@SCENES.add("none", "none", seconds=30.0, low=())
def slow_at_the_start_and_well_since(office: Office) -> None:
    office.background(server_port=other_port(office))
    _slow_from(office, office.client, office.server, 0.01, 6.0, 0.2)
    _calls(office, office.client, office.server, _every(0.5, 8, 0.6) + _every(8.0, 20, 0.9))


@SCENES.add("none", "none", seconds=30.0, low=())
def slow_for_a_while_in_the_middle(office: Office) -> None:
    office.background(server_port=other_port(office))
    _slow_from(office, office.client, office.server, 9.5, 15.0, 0.2)
    _calls(office, office.client, office.server, _every(0.5, 45, 0.6))


@SCENES.add("none", "none", seconds=60.0, low=())
def slower_and_slower_towards_noon(office: Office) -> None:
    """A load that grows: no moment at which anything changed."""
    office.background(server_port=other_port(office))
    for n in range(56):
        _slow_from(office, office.client, office.server, 1.0 * n, 99.0, 0.006 * 1.05**n)
    _calls(office, office.client, office.server, _every(0.5, 56, 1.0))


# ------------------------------------------------------------------------------------------------ one direction


def _only(office: Office, *, of_client: bool) -> None:
    """One fibre of a TAP, or a filter for one source."""
    office.background(server_port=office.port)
    for path in office.world.paths.values():
        client = office.client.address in (path.a, path.b)
        own = path.a == office.client.address if client else path.a in {host.address for host in office.neighbours}
        path.captured = (own == of_client, own != of_client)
    for n in range(4):
        talk(office.client, office.server, office.port, chatter(office.dice, 5), begin=1.0 + n)


@SCENES.add("none", "none", low=(("asymmetric", "none"),))
def one_fibre_towards_the_server(office: Office) -> None:
    _only(office, of_client=True)


@SCENES.add("none", "none", low=(("asymmetric", "none"),))
def one_fibre_towards_the_client(office: Office) -> None:
    _only(office, of_client=False)


@SCENES.add("asymmetric", "network", points=_BEFORE, severity="MEDIUM")
def one_host_of_many_heard_one_way(office: Office) -> None:
    """Others are heard both ways: its answers take another path."""
    office.background(server_port=office.port)
    far = office.new_host()
    office.new_path(office.client, far).captured = (True, False)
    for n in range(4):
        talk(office.client, far, office.port, chatter(office.dice, 4), begin=1.0 + n)
