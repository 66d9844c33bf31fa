"""Scenes in which somebody is asked by datagrams again and again and never answers."""

from __future__ import annotations

import struct

from .. import messages
from ..network import Packet
from ..office import Office
from ..scene import FAULTS, Scenes
from .usual import other_port

WELL_ANSWERED = Scenes()
"""What looks like it, and is none."""


def _wire(office: Office, packet: Packet, begin: float) -> None:
    """A packet that everybody on the segment sees."""
    office.world.later(begin, lambda: office.world.capture(packet, 0))


def _dhcp(kind: int, hardware: bytes, transaction: int, *, reply: bool = False) -> bytes:
    head = struct.pack(">BBBBIHH", 2 if reply else 1, 1, 6, 0, transaction, 0, 0) + bytes(16)
    return head + hardware + bytes(10) + bytes(192) + b"\x63\x82\x53\x63" + bytes([53, 1, kind]) + b"\xff"


def _asks(office: Office, kind: int, hardware: bytes, transaction: int, begin: float) -> None:
    body = _dhcp(kind, hardware, transaction)
    _wire(office, messages.datagram("0.0.0.0", 68, "255.255.255.255", 67, body), begin)


def _told(office: Office, kind: int, hardware: bytes, transaction: int, begin: float) -> None:
    body = _dhcp(kind, hardware, transaction, reply=True)
    _wire(office, messages.datagram(office.gateway, 67, "255.255.255.255", 68, body), begin)


def _hardware(office: Office) -> bytes:
    return bytes([2, *office.dice.randbytes(5)])


def _asks_time(office: Office, server: str, begin: float, *, transmit: bytes | None = None) -> Packet:
    stamp = office.dice.randbytes(8) if transmit is None else transmit
    packet = messages.datagram(office.client.address, 123, server, 123, b"\x23" + bytes(39) + stamp)
    _wire(office, packet, begin)
    return packet


def _tells_time(office: Office, asked: Packet, begin: float) -> None:
    body = b"\x24\x02" + bytes(10) + b"GPS\0" + bytes(8) + asked.body[48:56] + bytes(16)
    _wire(office, messages.datagram(asked.destination, 123, asked.source, 123, body), begin)


@FAULTS.add("no_answer", "undecided", points=("client",))
def no_server_gives_addresses(office: Office) -> None:
    office.background(server_port=other_port(office))
    for client in range(3):
        hardware, transaction = _hardware(office), office.dice.getrandbits(32)
        for n, begin in enumerate((1.0, 4.5, 11.0, 16.0)):
            # Some clients count every attempt as a new transaction.
            _asks(office, 1, hardware, transaction + (n if client == 2 else 0), begin + 0.3 * client)


@FAULTS.add("no_answer", "undecided", points=("client",))
def clock_that_never_answers(office: Office) -> None:
    office.background(server_port=other_port(office))
    silent = office.new_host().address
    fixed = office.dice.choice([None, bytes(8)])
    for n in range(6):
        _asks_time(office, silent, 1.0 + 2.5 * n, transmit=fixed)


@FAULTS.add("no_answer", "undecided", points=("client",))
def monitored_host_is_gone(office: Office) -> None:
    office.background(server_port=other_port(office))
    gone = office.new_host()
    office.new_path(office.client, gone).there.loss = 1.0
    for n in range(15):
        office.ping(office.client, gone, 1.0 + n, 100 + n)


# ------------------------------------------------------------------------------------------------------- healthy


@WELL_ANSWERED.add("none", "none", points=("client",))
def addresses_given_unseen(office: Office) -> None:
    """A laptop that comes three times: its broadcasts pass here, and the switch keeps the answers to it for itself."""
    office.background(server_port=other_port(office))
    hardware = _hardware(office)
    for n in range(3):
        transaction = office.dice.getrandbits(32)
        _asks(office, 1, hardware, transaction, 1.0 + 4 * n)
        _asks(office, 3, hardware, transaction, 1.1 + 4 * n)


@WELL_ANSWERED.add("none", "none", points=("client",))
def address_given_at_the_third_try(office: Office) -> None:
    office.background(server_port=other_port(office))
    hardware, transaction = _hardware(office), office.dice.getrandbits(32)
    for begin in (1.0, 4.0, 9.0):
        _asks(office, 1, hardware, transaction, begin)
    for kind, begin in ((2, 9.3), (5, 9.5)):
        _told(office, kind, hardware, transaction, begin)
    _asks(office, 3, hardware, transaction, 9.4)


@WELL_ANSWERED.add("none", "none", points=("client",))
def clock_that_answers_at_times(office: Office) -> None:
    """A server that limits how often it answers, and one of a pool that is gone (worth knowing, no more)."""
    office.background(server_port=other_port(office))
    slow, gone = office.new_host().address, office.new_host().address
    for n in range(6):
        asked = _asks_time(office, slow, 1.0 + 2.5 * n)
        _asks_time(office, gone, 1.2 + 2.5 * n)
        if n in (0, 4):
            _tells_time(office, asked, 1.02 + 2.5 * n)


@WELL_ANSWERED.add("none", "none", points=("client",))
def host_that_filters_pings(office: Office) -> None:
    """It serves its port, and its firewall drops pings: worth knowing, no more."""
    office.background(server_port=office.port)
    office.path.there.blocks = lambda packet: packet.protocol == 1
    for n in range(15):
        office.ping(office.client, office.server, 1.0 + n, 100 + n)
