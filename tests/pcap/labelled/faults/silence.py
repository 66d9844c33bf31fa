"""Scenes in which somebody is asked by datagrams again and again and never answers."""

from __future__ import annotations

import struct

from .. import messages
from ..network import Packet
from ..office import Office
from ..scene import FAULTS, Scenes
from .usual import other_port

_DISCOVER, _OFFER, _REQUEST, _ACK, _NAK = 1, 2, 3, 5, 6
WELL_ANSWERED = Scenes()
"""What looks like it, and is none."""


def _wire(office: Office, packet: Packet, begin: float) -> None:
    """A packet that everybody on the segment sees."""
    office.world.later(begin, lambda: office.world.capture(packet, 0))


def _dhcp(kind: int, hardware: bytes, transaction: int, *, reply: bool = False, server: str | None = None) -> bytes:
    chosen = bytes([54, 4, *map(int, server.split("."))]) if server else b""
    head = struct.pack(">BBBBIHH", 2 if reply else 1, 1, 6, 0, transaction, 0, 0) + bytes(16)
    return head + hardware + bytes(10) + bytes(192) + b"\x63\x82\x53\x63" + bytes([53, 1, kind]) + chosen + b"\xff"


def _asks(
    office: Office, kind: int, hardware: bytes, transaction: int, begin: float, *, server: str | None = None
) -> None:
    body = _dhcp(kind, hardware, transaction, server=server)
    _wire(office, messages.datagram("0.0.0.0", 68, "255.255.255.255", 67, body), begin)


def _told(office: Office, kind: int, hardware: bytes, transaction: int, begin: float) -> None:
    body = _dhcp(kind, hardware, transaction, reply=True, server=office.gateway)
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


def _refused(office: Office, hardware: bytes, begin: float, *, visible: bool = True) -> None:
    """A client that knows an address of another network asks for it and is refused; it is offered another."""
    known, fresh = (office.dice.getrandbits(32) for _ in range(2))
    _asks(office, _REQUEST, hardware, known, begin)
    _told(office, _NAK, hardware, known, begin + 0.01)
    _asks(office, _DISCOVER, hardware, fresh, begin + 0.3)
    if visible:
        _told(office, _OFFER, hardware, fresh, begin + 0.32)
    _asks(office, _REQUEST, hardware, fresh, begin + 0.35, server=office.gateway)


@FAULTS.add("dhcp_failure", "server_application", points=("client",), seconds=60.0)
def server_refuses_what_it_offers(office: Office) -> None:
    """Clients that never get further, whether offers pass here or go to them alone."""
    office.background(server_port=other_port(office))
    visible = office.dice.random() < 0.5
    for client in range(office.dice.randrange(1, 4)):
        hardware = _hardware(office)
        for n in range(4):
            fresh = office.dice.getrandbits(32)
            begin = 1.0 + 9 * n + 0.7 * client
            if visible:
                _told(office, _OFFER, hardware, fresh, begin + 0.02)
            _asks(office, _DISCOVER, hardware, fresh, begin)
            _asks(office, _REQUEST, hardware, fresh, begin + 0.05, server=office.gateway)
            _told(office, _NAK, hardware, fresh, begin + 0.06)


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


@WELL_ANSWERED.add("none", "none", points=("client",), seconds=60.0)
def laptops_that_change_networks(office: Office) -> None:
    """Each is refused its old address, by the one server or by two, and gets a new one; of one of them the answers to
    itself do not pass here, and it comes and goes."""
    office.background(server_port=other_port(office))
    for n in range(3):
        hardware = _hardware(office)
        _refused(office, hardware, 2.0 + 5 * n)
        for again in range(2):
            _told(office, _ACK, hardware, office.dice.getrandbits(32), 2.37 + 5 * n + 0.01 * again)
    hardware = _hardware(office)
    for n in range(5):
        _refused(office, hardware, 20.0 + 7 * n, visible=False)


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
