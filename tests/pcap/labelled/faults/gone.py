"""Scenes in which a host dies after it has spoken."""

from __future__ import annotations

from ..gone import ask, beside, chat, tell
from ..network import Packet
from ..office import Office, attempt, chatter, talk
from ..scene import FAULTS
from .segments import answers_with


@FAULTS.add("host_down", "server_host", points=("client", "between"), seconds=30.0)
def powered_off_behind_a_router(office: Office) -> None:
    """The server dies in the middle of conversations; its last router asks for it in vain, and says so."""
    office.background(to_server=False)
    for n in range(3):
        talk(office.client, office.server, office.port, chatter(office.dice, 40), begin=0.5 + n, ends="open")

    def die() -> None:
        def silence(_: Packet) -> bool:
            return True

        office.path.back.blocks = silence
        answers_with(office, office.path, office.server, 1, delay=3.0)

    office.world.later(6.0, die)
    attempt(office.client, office.server.address, office.port, 12.0)


@FAULTS.add("host_down", "server_host", points=("client",))
def neighbour_dies(office: Office) -> None:
    """It answered, by ARP as well; later requests for it have no reply."""
    office.background(to_server=False)
    host = beside(office)
    ask(office, office.client, host, 0.5, 1)
    tell(office, office.client, host, 0.501)
    chat(office, office.client, host, 0.6)
    ask(office, office.client, host, 8.0, 7)
