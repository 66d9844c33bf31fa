"""QUIC that nobody answers, beside TCP that works or without it; and QUIC that is answered, sooner or later."""

from __future__ import annotations

from . import messages
from .faults.usual import other_port
from .network import Packet
from .office import Office, tls
from .office import talk as speak
from .scene import Scenes

SCENES = Scenes()
_HERE = ("client", "between")
_HTTPS = 443
_CLIENT, _SERVER = 0xC3, 0xC1
_ROOM = 1200


def _initial(office: Office, first: int) -> bytes:
    """An Initial packet (RFC 9000, 17.2.2): what is sealed in it nobody here can open."""
    head = bytes([first, 0, 0, 0, 1, 8, *office.dice.randbytes(8), 0, 0, 0x44, 0xA0])
    return head + office.dice.randbytes(_ROOM - len(head))


def _sees(office: Office, packet: Packet, begin: float) -> None:
    office.world.later(begin, lambda: office.world.capture(packet, 0))


def _tries(office: Office, server: str, begin: float, *, repeats: int = 3, answered_after: float | None = None) -> None:
    """A connection attempt from a port of its own, repeated as RFC 9002 says."""
    client, port = office.client.address, office.client.free_port()
    body = _initial(office, _CLIENT)
    for n in range(repeats):
        _sees(office, messages.datagram(client, port, server, _HTTPS, body), begin + 0.3 * (2**n - 1))
    if answered_after is not None:
        answer = messages.datagram(server, _HTTPS, client, port, _initial(office, _SERVER))
        _sees(office, answer, begin + answered_after)


def _by_tcp(office: Office, begin: float) -> None:
    exchanges = tls(office.dice, office.name("www"), [office.dice.randrange(2000, 9000)])
    speak(office.client, office.server, _HTTPS, exchanges, begin=begin)


@SCENES.add("no_answer", "policy", points=_HERE, severity="LOW")
def quic_that_is_dropped(office: Office) -> None:
    office.background(server_port=_HTTPS)
    for n in range(office.dice.randrange(3, 7)):
        _tries(office, office.server.address, 0.5 + 1.9 * n)
        _by_tcp(office, 0.8 + 1.9 * n)


@SCENES.add("no_answer", "undecided", points=_HERE, severity="MEDIUM")
def a_server_of_quic_alone_that_is_gone(office: Office) -> None:
    office.background(server_port=other_port(office))
    gone = office.new_host().address
    for n in range(5):
        _tries(office, gone, 0.5 + 2.1 * n)


@SCENES.add("none", "none", points=_HERE)
def quic_that_is_answered_late(office: Office) -> None:
    office.background(server_port=_HTTPS)
    for n in range(5):
        _tries(office, office.server.address, 0.5 + 2.1 * n, answered_after=1.0)


@SCENES.add("none", "none", points=_HERE)
def quic_that_loses_the_race_at_times(office: Office) -> None:
    """Some first packets are lost, and TCP was quicker; others are answered."""
    office.background(server_port=_HTTPS)
    for n in range(8):
        _tries(office, office.server.address, 0.5 + 1.5 * n, repeats=1, answered_after=None if n % 2 else 0.03)
        _by_tcp(office, 0.8 + 1.5 * n)
