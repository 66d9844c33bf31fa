"""Hosts of which nothing is heard any more, though they spoke before; and those that only seem to be gone."""

from __future__ import annotations

from . import messages
from .network import Host
from .office import Office, chatter, talk


def beside(office: Office) -> Host:
    """A host on the client's own segment."""
    host = office.new_host(office.gateway.rsplit(".", 1)[0])
    path = office.new_path(office.client, host)
    path.delay, path.hops = 0.0002, 0
    return host


def ask(office: Office, asker: Host, target: Host, begin: float, times: int) -> None:
    """By ARP, once a second."""
    for n in range(times):
        asked = messages.arp(1, asker.mac, asker.address, bytes(6), target.address)
        office.world.later(begin + n, lambda asked=asked: office.world.write(asked))  # type: ignore[misc]


def tell(office: Office, asker: Host, target: Host, begin: float) -> None:
    told = messages.arp(2, target.mac, target.address, asker.mac, asker.address)
    office.world.later(begin, lambda: office.world.write(told))


def chat(office: Office, one: Host, other: Host, begin: float) -> None:
    talk(one, other, 5432, chatter(office.dice, 4, pause=0.2), begin=begin)
