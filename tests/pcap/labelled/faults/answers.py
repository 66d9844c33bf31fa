"""Scenes in which a program answers late or never, told apart from what looks like an answer."""

from __future__ import annotations

from collections.abc import Callable

from ...wire import SYN
from .. import messages
from ..network import Packet
from ..office import Exchange, Office, Talk, talk
from ..scene import FAULTS
from ..tickets import with_tickets
from .usual import other_port

_PORT = 8443


@FAULTS.add("slow_application", "server_application")
def late_behind_tickets(office: Office) -> None:
    """Session tickets come at once, and the answer seconds after them."""
    office.background(server_port=other_port(office))
    size = office.dice.randrange(70, 300)
    for n in range(5):
        late = (office.dice.uniform(1.6, 3.0), messages.encrypted(office.dice.randrange(200, 5000), office.dice))
        with_tickets(office, [late], size=size, begin=1.0 + 2 * n, together=n % 2 == 1)


@FAULTS.add("slow_application", "server_application")
def tickets_and_no_answer(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(4):
        one = with_tickets(office, [], begin=1.0 + n, ends="open")
        if n % 2:
            office.world.later(8.0 + n, lambda one=one: one.client.write(messages.encrypted(19, office.dice)))  # type: ignore[misc]
            office.world.later(8.0 + n, one.client.close)


@FAULTS.add("syn_unanswered", "server_application")
def accepts_no_more(office: Office) -> None:
    """A few requests wait in the queue of a program that hangs. The kernel still answers SYNs, and takes nothing of
    what follows; at last the program is killed."""
    office.background(server_port=other_port(office))
    queued = [_asks(office, 0.5 + 0.2 * n) for n in range(3)]
    for n in range(office.dice.randrange(3, 6)):
        one = _asks(office, 2.0 + 0.3 * n)
        take = one.server.receive

        def only_syns(packet: Packet, take: Callable[[Packet], None] = take) -> None:
            if packet.segment is not None and packet.segment.flags & SYN:
                take(packet)

        office.server.sockets[one.server.port, one.server.peer, one.server.peer_port] = only_syns
    for one in queued:
        office.world.later(15.0, one.server.abort)


@FAULTS.add("syn_unanswered", "server_application")
def drops_syns_when_full(office: Office) -> None:
    """The same with a kernel that drops the SYNs."""
    office.background(server_port=other_port(office))
    queued = [_asks(office, 0.5 + 0.2 * n) for n in range(3)]

    def fill() -> None:
        for n in range(4):
            one = _asks(office, 0.3 * n)
            del office.server.sockets[one.server.port, one.server.peer, one.server.peer_port]
        # A SYN that finds no socket is for the listener, which drops it.
        office.server.listeners[_PORT] = lambda _: None

    office.world.later(2.0, fill)
    for one in queued:
        office.world.later(15.0, one.server.abort)


def _asks(office: Office, begin: float) -> Talk:
    """A request that is never answered."""
    request = messages.get(office.name("app"), "/wait")
    return talk(office.client, office.server, _PORT, [Exchange(request, ())], begin=begin, ends="open")
