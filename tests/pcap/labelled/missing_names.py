"""Names that do not exist: those that somebody needs, and those that only were tried."""

from __future__ import annotations

from functools import partial

from . import messages
from .faults.usual import other_port
from .network import Host, Packet
from .office import WORDS, Office
from .scene import Scenes

SCENES = Scenes()
_HERE, _BETWEEN = ("client",), ("between",)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SERVICES = ["orders-db", "payments", "inventory", "sessions-cache", "mailrelay", "ledger", "search", "reports"]


def _no(asked: bytes) -> tuple[float, bytes]:
    return 0.001, messages.reply(asked, code="NXDOMAIN")


def _begin(office: Office) -> None:
    """Ordinary traffic; below its zone everything exists, and nothing else does."""
    office.background(server_port=other_port(office))
    zone, known = office.zone, office.server.address
    office.lookups[zone] = lambda asked: (0.001, messages.reply(asked, addresses=[known]))
    office.lookups["*"] = _no


def _both(office: Office, name: str, begin: float, source: Host | None = None) -> None:
    for kind in ("A", "AAAA"):
        office.lookup(name, begin, kind=kind, source=source)


def _probe(office: Office, begin: float, suffixes: tuple[str, ...], source: Host | None = None) -> None:
    """A browser starts."""
    for n in range(3):
        name = "".join(office.dice.choices(_LETTERS, k=office.dice.randrange(7, 16)))
        for k, suffix in enumerate((*suffixes, "")):
            _both(office, f"{name}.{suffix}" if suffix else name, begin + 0.001 * n + 0.02 * k, source)


def _others(office: Office, number: int) -> list[Host]:
    """Further clients of the resolver."""
    hosts = [office.new_host(office.gateway.rsplit(".", 1)[0]) for _ in range(number)]
    for host in hosts:
        office.new_path(host, office.resolver)
    return hosts


@SCENES.add("none", "none", points=_HERE)
def browser_starts(office: Office) -> None:
    _begin(office)
    suffixes = ("corp.example", "example")
    for n in range(office.dice.choice([1, 2, 3])):
        _probe(office, 2.0 + 5 * n, suffixes)


@SCENES.add("none", "none", points=_BETWEEN)
def browsers_of_a_morning(office: Office) -> None:
    _begin(office)
    for n, host in enumerate(_others(office, 8)):
        _probe(office, 1.0 + 1.5 * n, ("corp.example",), host)


@SCENES.add("none", "none", points=_HERE)
def name_mistyped_twice(office: Office) -> None:
    _begin(office)
    wrong = f"www.{office.dice.choice(WORDS)}s.exmaple"
    for begin in (3.0, 9.0):
        _both(office, wrong, begin)
        _both(office, f"{wrong}.corp.example", begin + 0.01)


@SCENES.add("none", "none", points=_BETWEEN)
def mistyped_name_that_is_passed_on(office: Office) -> None:
    """A server that forwards what it is asked asks the same."""
    _begin(office)
    forwarder, wrong = office.new_host(), "intranet.exmaple"
    office.new_path(office.client, forwarder)
    office.new_path(forwarder, office.resolver)
    asked_by: dict[bytes, tuple[str, int]] = {}

    def pass_on(packet: Packet) -> None:
        asked_by[packet.body[8:10]] = packet.source, int.from_bytes(packet.body[:2], "big")
        onward = messages.datagram(forwarder.address, 33_000, office.resolver.address, 53, packet.body[8:])
        office.world.later(0.0005, lambda: forwarder.send(onward))

    def pass_back(packet: Packet) -> None:
        back = messages.datagram(forwarder.address, 53, *asked_by[packet.body[8:10]], packet.body[8:])
        office.world.later(0.0005, lambda: forwarder.send(back))

    forwarder.datagrams |= {53: pass_on, 33_000: pass_back}
    for n, kind in enumerate(("A", "AAAA")):
        port, asked = office.client.free_port(), messages.query(wrong, office.dice.randrange(1, 65536), kind)
        packet = messages.datagram(office.client.address, port, forwarder.address, 53, asked)
        office.client.datagrams[port] = lambda _: None
        office.world.later(3.0 + 0.02 * n, partial(office.client.send, packet))


@SCENES.add("dns_nxdomain", "dns", points=_BETWEEN, severity="MEDIUM")
def asked_once_by_each_replica(office: Office) -> None:
    _begin(office)
    for n, host in enumerate(_others(office, 4)):
        _both(office, "orders-db.prod.example", 2.0 + 3 * n, host)


@SCENES.add("dns_nxdomain", "dns", points=_HERE, severity="MEDIUM")
def names_of_a_zone_that_is_gone(office: Office) -> None:
    _begin(office)
    for n, name in enumerate(office.dice.sample(_SERVICES, 6)):
        _both(office, f"{name}.old.example", 2.0 + 2 * n)


@SCENES.add("dns_nxdomain", "dns", points=_HERE, severity="MEDIUM")
def needed_name_behind_a_browsers(office: Office) -> None:
    _begin(office)
    _probe(office, 1.0, ("corp.example",))
    for n in range(4):
        _both(office, "orders-db.prod.example", 5.0 + 3 * n)
