"""Scenes in which a program answers late or never, told apart from what looks like an answer."""

from __future__ import annotations

from .. import messages
from ..office import Office
from ..scene import FAULTS
from ..tickets import with_tickets
from .usual import other_port


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
