"""Scenes in which a host dies after it has spoken."""

from __future__ import annotations

from ..network import Packet
from ..office import Exchange, Office, attempt, chatter, talk
from ..scene import FAULTS
from ..vanished_hosts import ask, beside, chat, tell
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


@FAULTS.add("rto_loss", "network", points=("client",), seconds=30.0)
def process_ends_during_an_outage(office: Office) -> None:
    """Nothing passes for a while, in which the server's process ends. What is heard first then is its goodbye, and
    after that its kernel knows nothing of the connection."""
    office.background(to_server=False)
    asked = Exchange(office.dice.randbytes(90), ((0.01, office.dice.randbytes(200)),), pause=4.5)
    talks = [
        talk(
            office.client, office.server, office.port, [*chatter(office.dice, 3, pause=0.2), asked], begin=0.5 + 0.3 * n
        )
        for n in range(3)
    ]
    for one in talks:
        one.client.on_close = None  # it does not read while it waits to get rid of its request

    def drop(_: Packet) -> bool:
        return True

    def cut() -> None:
        office.path.there.blocks = office.path.back.blocks = drop

    def end() -> None:
        for one in talks:
            one.server.close()
            del office.server.sockets[one.server.port, one.server.peer, one.server.peer_port]

    def mend() -> None:
        office.path.there.blocks = office.path.back.blocks = None
        for one in talks:
            one.server.resend()
            one.server.state = "closed"

    for seconds, what in ((4.0, cut), (9.0, end), (14.0, mend)):
        office.world.later(seconds, what)
