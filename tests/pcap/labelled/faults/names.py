"""Scenes with a fault of name resolution."""

from __future__ import annotations

from .. import messages
from ..contradicting_answers import private_zone_not_linked
from ..office import WORDS, Office
from ..scene import FAULTS
from .usual import other_port


@FAULTS.add("dns_nxdomain", "dns", points=("client",))
def name_missing(office: Office) -> None:
    office.background(server_port=other_port(office))
    missing = office.name("rediss", office.dice.choice(WORDS), "db")
    office.lookups[missing] = lambda asked: (0.002, messages.reply(asked, code="NXDOMAIN"))
    for n in range(3):
        office.lookup(missing, 1.0 + 2 * n)
        office.lookup(missing, 1.01 + 2 * n, kind="AAAA")


@FAULTS.add("dns_servfail", "dns", points=("client",))
def resolver_fails(office: Office) -> None:
    office.background(server_port=other_port(office))
    broken = office.name("signed")
    code = office.dice.choice(["SERVFAIL", "SERVFAIL", "REFUSED"])
    office.lookups[broken] = lambda asked: (0.5 if code == "SERVFAIL" else 0.002, messages.reply(asked, code=code))
    for n in range(4):
        office.lookup(f"{office.dice.choice(WORDS)}{n}.{broken}", 1.0 + n)


@FAULTS.add("dns_timeout", "dns", points=("client",))
def resolver_silent(office: Office) -> None:
    office.background(server_port=other_port(office), lookups=False)
    office.lookups["*"] = lambda asked: None
    for n, word in enumerate(office.dice.sample(WORDS, 4)):
        office.lookup(office.name(word), 1.0 + n, repeats=2)


@FAULTS.add("dns_slow", "dns", points=("client",))
def resolver_slow(office: Office) -> None:
    office.background(server_port=other_port(office), lookups=False)
    office.lookups["*"] = lambda asked: (
        office.dice.uniform(0.7, 1.8), messages.reply(asked, addresses=[office.server.address]),
    )  # fmt: skip
    for n, word in enumerate(WORDS):
        office.lookup(office.name(word), 1.0 + 0.5 * n)


@FAULTS.add("dns_suspicious", "client", points=("client",))
def names_made_by_an_algorithm(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.lookups["biz"] = office.lookups["info"] = lambda asked: (0.03, messages.reply(asked, code="NXDOMAIN"))
    letters = "abcdefghijklmnopqrstuvwxyz"
    for n in range(40):
        label = "".join(office.dice.choices(letters, k=office.dice.randrange(11, 20)))
        office.lookup(f"{label}.{office.dice.choice(['biz', 'info'])}", 1.0 + 0.3 * n)


@FAULTS.add("dns_suspicious", "client", points=("client",))
def tunnel_in_names(office: Office) -> None:
    office.background(server_port=other_port(office))
    tunnel = f"t.{office.dice.choice(WORDS)}cdn.net"
    office.lookups[tunnel] = lambda asked: (0.03, messages.reply(asked, text=office.dice.randbytes(60).hex()))
    for n in range(120):
        labels = ".".join(office.dice.randbytes(28).hex() for _ in range(2))
        office.lookup(f"{labels}.{tunnel}", 1.0 + 0.1 * n, kind="TXT")


@FAULTS.add("dns_contradiction", "dns", points=("client",))
def public_address_of_a_private_endpoint(office: Office) -> None:
    private_zone_not_linked(office)
