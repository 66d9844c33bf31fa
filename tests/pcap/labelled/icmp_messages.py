"""Scenes in which routers, filters and hosts say something by ICMP, or nobody answers by ARP, and much of it."""

from __future__ import annotations

from dataclasses import replace

from ..wire import SYN
from . import messages
from .faults.usual import other_port
from .fragments import Fragment
from .network import ICMP_PROTOCOL, TCP_PROTOCOL, Packet, Segment, unreachable
from .office import Exchange, Office, talk
from .scene import Scenes
from .takeovers import Segment as Wire

SCENES = Scenes()
_EXCEEDED = 11
_PORT, _PROHIBITED, _HOST = 3, 13, 1


def _sees(office: Office, packet: Packet, at: float) -> None:
    office.world.later(at, lambda: office.world.capture(packet, 0))


def _is_told(
    office: Office, packet: Packet, at: float, by: str, code: int, *, kind: int = 3, after: float = 0.004
) -> None:
    """A packet, and what somebody says about it."""
    _sees(office, packet, at)
    _sees(office, replace(unreachable(by, replace(packet, ttl=1), code, kind=kind), number=7), at + after)


def _syn(office: Office, source: str, target: str, port: int, own: int = 0) -> Packet:
    dice = office.dice
    segment = Segment(
        own or dice.randrange(32768, 60999), port, dice.randrange(1 << 32), 0, SYN, b"", 64240, b"\2\4\5\xb4"
    )
    return Packet(source, target, TCP_PROTOCOL, segment, number=dice.randrange(65536))


def _datagram(source: str, target: str, port: int, own: int) -> Packet:
    return messages.datagram(source, own, target, port, b"x" * 32)


def _ping(source: str, target: str, number: int, ttl: int) -> Packet:
    body = b"\x08\0\0\0\x11\x22" + number.to_bytes(2, "big") + b"p" * 36
    return Packet(source, target, ICMP_PROTOCOL, body=body, ttl=ttl, number=number)


# ------------------------------------------------------------------------------------------- traceroutes and loops


def _mtr(office: Office, target: str, *, answering: int, last: int, reached: bool, rounds: int = 12) -> None:
    """Pings with climbing hop limits, round after round; the first routers answer, further ones do not."""
    for n in range(rounds):
        for hop in range(1, last + 1):
            at = 1.0 + 1.2 * n + 0.08 * hop
            probe = _ping(office.client.address, target, 100 * n + hop, hop)
            if hop <= answering:
                _is_told(office, probe, at, f"10.254.{hop}.1", 0, kind=_EXCEEDED)
            else:
                _sees(office, probe, at)
                if reached and hop == last:
                    back = Packet(target, probe.source, ICMP_PROTOCOL, body=b"\0" + probe.body[1:])
                    _sees(office, back, at + 0.02)


@SCENES.add("none", "none", points=("client",))
def mtr_of_which_two_routers_answer(office: Office) -> None:
    office.background(server_port=office.port)
    _mtr(office, office.server.address, answering=2, last=office.dice.randrange(4, 9), reached=True)


@SCENES.add("none", "none", points=("client",))
def mtr_that_ends_nowhere(office: Office) -> None:
    office.background(server_port=office.port)
    _mtr(office, office.new_host().address, answering=office.dice.choice([1, 2]), last=7, reached=False)


@SCENES.add("routing_loop", "network", points=("client",))
def mtr_into_a_loop(office: Office) -> None:
    office.background(server_port=office.port)
    lost, enters = office.new_host().address, office.dice.randrange(2, 5)
    for n in range(4):
        for hop in range(1, 31):
            router = f"10.254.{hop if hop <= enters else 100 + hop % 2}.1"
            probe = _ping(office.client.address, lost, 100 * n + hop, hop)
            _is_told(office, probe, 1.0 + 4 * n + 0.1 * hop, router, 0, kind=_EXCEEDED)


@SCENES.add("none", "none", points=("client",))
def mtr_by_udp(office: Office) -> None:
    office.background(server_port=office.port)
    for n in range(12):
        for hop in range(1, 8):
            probe = _datagram(office.client.address, office.server.address, 40_000 + 10 * n + hop, 33_000)
            at = 1.0 + n + 0.1 * hop
            if hop < 3:
                _is_told(office, probe, at, f"10.254.{hop}.1", 0, kind=_EXCEEDED)
            else:
                _sees(office, probe, at)


@SCENES.add("none", "none", points=("client",))
def a_traceroute_that_a_filter_ends(office: Office) -> None:
    office.background(server_port=office.port)
    for n in range(3):
        probe = _datagram(office.client.address, office.server.address, 33_440 + n, 45_000)
        _is_told(office, replace(probe, ttl=5), 2.0 + n, "10.254.5.1", _PROHIBITED)
        _is_told(office, _ping(office.client.address, office.server.address, n, 5), 6.0 + n, "10.254.5.1", _PROHIBITED)


@SCENES.add("admin_prohibited", "policy", points=("client",))
def a_traceroute_and_the_reason_for_it(office: Office) -> None:
    office.background(server_port=other_port(office))
    client, server = office.client.address, office.server.address
    for n in range(3):
        _is_told(office, _syn(office, client, server, office.port), 1.0 + n, "10.254.5.1", _PROHIBITED)
        probe = _datagram(client, server, 33_440 + n, 45_000)
        _is_told(office, replace(probe, ttl=5), 9.0 + n, "10.254.5.1", _PROHIBITED)


# --------------------------------------------------------------------------------------------------------- fragments


def _torn(office: Office, source: str, target: str, own: int, port: int, begin: float, *, told: bool = True) -> None:
    """A datagram of which the first fragment alone gets through, and what its receiver says half a minute later."""
    number = office.dice.randrange(65536)
    part = Fragment(source, target, messages.datagram(source, own, target, port, bytes(2400)).body[:1480], number)
    office.world.later(begin, lambda: office.world.write(part.frame()))
    if told:
        _sees(office, replace(part.given_up(), number=office.dice.randrange(65536)), begin + 30.0)


@SCENES.add("mtu_black_hole", "network", seconds=60.0, severity="MEDIUM")
def a_filter_that_drops_later_fragments(office: Office) -> None:
    """Of the invitations of one telephone, between the hosts of an ordinary day."""
    office.background(server_port=office.port)
    for n in range(office.dice.randrange(4, 9)):
        _torn(office, office.client.address, office.server.address, 5080, 5060, 2.0 + 2.5 * n)


@SCENES.add("mtu_black_hole", "network", seconds=60.0, severity="MEDIUM")
def fragments_that_no_receiver_gets(office: Office) -> None:
    """Of one sender to several, by IPv6."""
    office.background(server_port=office.port)
    for n in range(9):
        target = f"2001:db8:{office.world.seed:x}::{n % 3 + 5:x}"
        _torn(office, f"2001:db8:{office.world.seed + 1:x}::9", target, 40_000, 1813, 1.0 + 2.5 * n)


@SCENES.add("none", "none", seconds=60.0)
def a_fragment_that_is_lost_now_and_then(office: Office) -> None:
    office.background(server_port=office.port)
    for n in range(12):
        client, server = office.client.address, office.server.address
        _torn(office, client, server, 5080, 5060, 1.0 + 2 * n, told=n in (3, 8))


@SCENES.add("loss", "network", points=("client",), seconds=60.0)
def fragments_lost_like_everything_else(office: Office) -> None:
    """What loses one in seven packets on the way to the client loses parts of datagrams as well."""
    office.background(server_port=other_port(office))
    office.path.back.loss = 0.14
    for n in range(3):
        answers = [Exchange(b"get" * 30, ((0.01, bytes(60_000)),)) for _ in range(2)]
        talk(office.client, office.server, office.port, answers, begin=1.0 + 4 * n)
    for n in range(4):
        _torn(office, office.server.address, office.client.address, 5080, 5060, 2.0 + 3 * n)


# ------------------------------------------------------------------------------------- much of one kind is one finding


@SCENES.add("port_scan", "client", points=("client", "between"))
def a_scan_that_a_filter_answers(office: Office) -> None:
    office.background(to_server=False)
    for n, port in enumerate(office.dice.sample(range(1, 9000), 150)):
        probe = _syn(office, "203.0.113.66", office.server.address, port, 40_000)
        _is_told(office, probe, 2.0 + 0.02 * n, "10.254.5.1", _PROHIBITED)


@SCENES.add("admin_prohibited", "policy", points=("client", "between"))
def a_filter_that_forbids_many_ports(office: Office) -> None:
    """A program with a dozen connections, which it tries again and again."""
    office.background(server_port=other_port(office))
    client, server = office.client.address, office.server.address
    for n in range(12):
        for again in range(3):
            _is_told(office, _syn(office, client, server, 7000 + n), 1 + 0.1 * n + 5 * again, "10.254.5.1", _PROHIBITED)


@SCENES.add("port_scan", "client", points=("client", "between"))
def a_scan_by_udp(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n, port in enumerate(office.dice.sample(range(1, 9000), 60)):
        probe = _datagram("203.0.113.66", office.server.address, port, 51_000 + n % 2)
        _is_told(office, probe, 2.0 + 0.05 * n, office.server.address, _PORT if n % 4 else _PROHIBITED)


@SCENES.add("port_unreachable", "server_application", points=("client", "between"), severity="MEDIUM")
def a_media_server_that_stops(office: Office) -> None:
    """Its calls go on for a while, each from a port of its own."""
    office.background(server_port=other_port(office))
    for call in range(20):
        for n in range(12):
            voice = _datagram(office.client.address, office.server.address, 20_000 + 2 * call, 30_000 + 2 * call)
            _is_told(office, voice, 2.0 + 0.013 * call + 0.5 * n, office.server.address, _PORT)


@SCENES.add("port_unreachable", "server_application", points=("client", "between"), severity="MEDIUM")
def a_poller_whose_agents_are_stopped(office: Office) -> None:
    office.background(server_port=other_port(office))
    net = office._net()
    for n in range(40):
        for again in range(2):
            asked = _datagram(office.client.address, f"{net}.{n + 3}", 161, 41_000)
            _is_told(office, asked, 1.0 + 0.1 * n + 6 * again, f"{net}.{n + 3}", _PORT)


@SCENES.add("admin_prohibited", "policy", points=("client",), others=("MEDIUM port_unreachable server_application",))
def a_filter_that_meets_one_among_a_thousand_messages(office: Office) -> None:
    """More of what ICMP says than is kept; what matters was said once."""
    office.background(server_port=other_port(office))
    for n in range(1200):
        probe = _datagram("203.0.113.66", office.server.address, 1024 + 7 * n, 40_000 + n)
        for again in range(2):
            _is_told(office, probe, 1.0 + 0.005 * n + 7 * again, office.server.address, _PORT)
    real = _syn(office, office.client.address, office.others[0].address, 5432)
    _is_told(office, real, 3.0, "10.254.5.1", _PROHIBITED)


# ------------------------------------------------------------------------------------------- hosts that are not there


@SCENES.add("host_down", "server_host", points=("client", "between"))
def a_router_that_misses_a_rack(office: Office) -> None:
    office.background(server_port=office.port)
    net = office._net()
    for n in range(12):
        for again in range(3):
            lost = _syn(office, office.client.address, f"{net}.{n + 10}", 443)
            _is_told(office, lost, 1.0 + 0.2 * n + 5 * again, "10.254.5.1", _HOST, after=3.0)


def _asks(office: Office, first: int, number: int, times: int, *, pause: float = 1.0) -> None:
    wire = Wire(office)
    for n in range(number):
        for again in range(times):
            wire.asks(office.client.mac, office.client.address, wire.address(first + n), 1 + 0.05 * n + pause * again)


@SCENES.add("host_down", "network", points=("client", "between"))
def a_router_that_has_lost_a_route(office: Office) -> None:
    """Each of several clients misses another host behind it."""
    office.background(to_server=False)
    net = office._net()
    for n in range(office.dice.choice([2, 4, 7])):
        for again in range(3):
            lost = _syn(office, (office.client, *office.neighbours)[n % 3].address, f"{net}.{n + 20}", 5432)
            _is_told(office, lost, 1.0 + 0.7 * n + 4 * again, "10.254.3.1", 0)


@SCENES.add("port_scan", "client", points=("client",), severity="MEDIUM")
def a_sweep_of_the_segment(office: Office) -> None:
    office.background(server_port=office.port)
    _asks(office, 60, 100, 3)


@SCENES.add("host_down", "server_host", points=("client",), severity="MEDIUM")
def many_neighbours_that_are_needed(office: Office) -> None:
    """As many as a sweep meets, but asked for on and on."""
    office.background(server_port=office.port)
    _asks(office, 60, 35, 12)


@SCENES.add("host_down", "server_host", points=("client",), severity="MEDIUM")
def a_dead_neighbour(office: Office) -> None:
    office.background(server_port=office.port)
    _asks(office, 77, 1, 9)


@SCENES.add("host_down", "server_host", points=("client",), severity="MEDIUM", others=("MEDIUM port_scan client",))
def a_dead_neighbour_among_those_that_are_swept(office: Office) -> None:
    office.background(server_port=office.port)
    _asks(office, 60, 100, 3)
    _asks(office, 200, 1, 9)
