"""Neighbours that answer no more, by ARP and by neighbour discovery; and those that are only late, or strangers."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from . import messages
from .faults.usual import other_port
from .network import ICMP6_PROTOCOL, Packet
from .office import Office
from .scene import Scenes

SCENES = Scenes()
_HERE = ("client",)
_REQUEST, _REPLY = 128, 129
_SOLICITATION, _ADVERTISEMENT = 135, 136


# ----------------------------------------------------------------------------------------------------------- ARP


def _asks(office: Office, asker: str, target: str, begin: float, times: int = 1, pause: float = 1.0) -> None:
    mac = office.client.mac if asker == office.client.address else b"\2\1\1\1\1" + asker[-1:].encode()
    for n in range(times):
        asked = messages.arp(1, mac, asker, bytes(6), target)
        office.world.later(begin + pause * n, lambda asked=asked: office.world.write(asked))  # type: ignore[misc]


def _answers(office: Office, target: str, asker: str, begin: float) -> None:
    mac = bytes([2, 9, 9, 9, 9, office.world.seed & 255])
    told = messages.arp(2, mac, target, office.client.mac, asker)
    office.world.later(begin, lambda: office.world.write(told))


def _known(office: Office, target: str, askers: Sequence[str]) -> None:
    for n, asker in enumerate(askers):
        _asks(office, asker, target, 1.0 + 0.2 * n)
        _answers(office, target, asker, 1.0004 + 0.2 * n)


def _segment(office: Office, number: int) -> list[str]:
    net = office.gateway.rsplit(".", 1)[0]
    return [office.client.address, *(f"{net}.{251 + n}" for n in range(number - 1))]


def _is_heard(office: Office) -> None:
    """The client goes on to speak with somebody else."""
    for n in range(int(office.world.seconds)):
        office.ping(office.client, office.others[0], 0.5 + n, 500 + n)


@SCENES.add("host_down", "server_host", points=_HERE, seconds=60.0, severity="MEDIUM")
def gateway_of_many_dies(office: Office) -> None:
    office.background(server_port=other_port(office))
    askers = _segment(office, office.dice.randrange(3, 5))
    _known(office, office.gateway, askers)
    for n, asker in enumerate(askers):
        _asks(office, asker, office.gateway, 25.0 + 0.13 * n, office.dice.randrange(10, 30))


@SCENES.add("host_down", "server_host", points=_HERE, seconds=70.0, severity="MEDIUM")
def gateway_of_one_dies(office: Office) -> None:
    """Of the others' requests a switch shows none that matter: the client asks, and says nothing else any more."""
    office.background(server_port=other_port(office))
    _known(office, office.gateway, [office.client.address])
    _asks(office, office.client.address, office.gateway, 35.0, 30, pause=1.02)


@SCENES.add("none", "none", points=_HERE, seconds=40.0)
def a_laptop_that_leaves(office: Office) -> None:
    """Two ask for it, who need nothing of it to go on."""
    office.background(server_port=other_port(office))
    askers = _segment(office, 2)
    laptop = f"{office.gateway.rsplit('.', 1)[0]}.3"
    _known(office, laptop, askers)
    _is_heard(office)
    for asker in askers:
        _asks(office, asker, laptop, 12.0, 20)


@SCENES.add("none", "none", points=_HERE, seconds=60.0)
def a_gateway_that_restarts(office: Office) -> None:
    """It answers all of them again after a while."""
    office.background(server_port=other_port(office))
    askers = _segment(office, 4)
    _known(office, office.gateway, askers)
    for n, asker in enumerate(askers):
        _asks(office, asker, office.gateway, 25.0 + 0.13 * n, 12)
        _asks(office, asker, office.gateway, 45.0 + 0.13 * n)
        _answers(office, office.gateway, asker, 45.001 + 0.13 * n)


@SCENES.add("none", "none", points=_HERE, seconds=40.0)
def a_neighbour_that_speaks_late(office: Office) -> None:
    """Nobody answers for it while it boots, and then it announces itself."""
    office.background(server_port=other_port(office))
    booting = f"{office.gateway.rsplit('.', 1)[0]}.3"
    _asks(office, office.client.address, booting, 2.0, 9)
    for n in range(2):
        _answers(office, booting, booting, 18.0 + 2 * n)


# ------------------------------------------------------------------------------------------------ neighbour discovery


def _says(office: Office, source: str, target: str, body: bytes, begin: float) -> None:
    packet = Packet(source, target, ICMP6_PROTOCOL, body=body, ttl=255)
    office.world.later(begin, lambda: office.world.capture(packet, 0))


def _solicits(office: Office, asker: str, target: str, begin: float, times: int = 1, pause: float = 1.0) -> None:
    """Who has `target`? Asked by nobody (`::`) it looks whether the address is free, and names no card."""
    address = ipaddress.IPv6Address(target).packed
    group = str(ipaddress.IPv6Address(ipaddress.IPv6Address("ff02::1:ff00:0").packed[:13] + address[13:]))
    card = b"" if asker == "::" else b"\1\1\2\0\0\0\0" + asker[-1:].encode()
    for n in range(times):
        _says(office, asker, group, bytes([_SOLICITATION]) + bytes(7) + address + card, begin + pause * n)


def _advertises(office: Office, target: str, to: str, begin: float) -> None:
    body = bytes([_ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]) + ipaddress.IPv6Address(target).packed
    _says(office, target, to, body + b"\2\1\2\0\0\0\0\x66", begin)


def _pings(office: Office, source: str, target: str, begin: float, times: int) -> None:
    for n in range(times):
        rest = b"\0\0\0\x21\x07" + n.to_bytes(2, "big") + b"p" * 32
        _says(office, source, target, bytes([_REQUEST]) + rest, begin + 2 * n)
        _says(office, target, source, bytes([_REPLY]) + rest, begin + 2 * n + 0.01)


def _net(office: Office) -> str:
    return (
        f"fd{office.dice.randrange(256):02x}:{office.dice.randrange(1, 65536):x}:{office.dice.randrange(1, 65536):x}:"
    )


def _begin(office: Office, number: int) -> tuple[str, list[str]]:
    """A network of IPv6 beside the other, and hosts of it that are heard."""
    office.background(server_port=other_port(office))
    net = _net(office)
    hosts = [f"{net}:{n + 0x2A:x}" for n in range(number)]
    for host in hosts:
        _pings(office, host, "2001:db8:9::53", 0.5, 9)
    return net, hosts


@SCENES.add("host_down", "server_host", points=_HERE, seconds=30.0, severity="MEDIUM")
def a_neighbour_by_ipv6_is_gone(office: Office) -> None:
    net, hosts = _begin(office, office.dice.choice([1, 2]))
    for n, host in enumerate(hosts):
        _solicits(office, host, f"{net}:77", 2.0 + 0.3 * n, office.dice.randrange(8, 20))
        _solicits(office, host, f"{net}:90", 2.5 + n)
        _advertises(office, f"{net}:90", host, 2.501 + n)


@SCENES.add("host_down", "server_host", points=_HERE, seconds=60.0, severity="MEDIUM")
def gateway_by_ipv6_dies(office: Office) -> None:
    _, hosts = _begin(office, 3)
    for n, host in enumerate(hosts):
        _solicits(office, host, "fe80::1", 1.0 + 0.1 * n)
        _advertises(office, "fe80::1", host, 1.0005 + 0.1 * n)
        _solicits(office, host, "fe80::1", 22.0 + 0.1 * n, 20)


@SCENES.add("none", "none", points=_HERE, seconds=30.0)
def addresses_that_are_free(office: Office) -> None:
    """Hosts that come look whether somebody has the addresses they chose (RFC 4862)."""
    net, _ = _begin(office, 2)
    for n in range(6):
        _solicits(office, "::", f"{net}:{n + 0x100:x}", 1.0 + 3 * n, 3, pause=0.7)


@SCENES.add("none", "none", points=_HERE, seconds=40.0)
def a_neighbour_by_ipv6_that_answers_late(office: Office) -> None:
    net, (host, *_) = _begin(office, 1)
    _solicits(office, host, f"{net}:77", 2.0, 4)
    _advertises(office, f"{net}:77", host, 12.5)
    for n in range(5):
        _solicits(office, host, f"{net}:78", 14.0 + 3 * n)
        _advertises(office, f"{net}:78", host, 14.9 + 3 * n)


@SCENES.add("none", "none", points=_HERE, seconds=40.0)
def solicitations_of_strangers(office: Office) -> None:
    """Multicast comes here as well; what answers it goes to those who asked."""
    net, _ = _begin(office, 1)
    for n in range(4):
        _solicits(office, "fe80::1", f"{net}:{0x200 + n:x}", 1.0 + n, 12)
