"""A deep queue near a receiver, through which everything comes that is sent to it; and the same with real loss."""

from __future__ import annotations

from .faults.usual import other_port
from .network import Link
from .office import Exchange, Office, chatter, talk
from .scene import Scenes

QUEUES = Scenes()
LOST = 0.12


def _shared(office: Office, *, lost: float = 0.0, timestamps: bool = True) -> None:
    """The client loads something big; what other servers answer meanwhile waits in the same queue, for longer than the
    timers of both ends run. `lost`: of what the client sends to the others."""
    office.background(server_port=other_port(office))
    queue = Link(rate=8e6, queue_bytes=1_200_000)
    backends = [office.new_host() for _ in range(3)]
    office.path.back, office.path.link_at = queue, 0.1
    setup, small = office.opts(receive_buffer=3_000_000), office.opts(timestamps=timestamps)
    talk(
        office.client, office.server, office.port,
        [Exchange(b"get " * 20, ((0.003, office.dice.randbytes(8_000_000)),))],
        begin=3.0, client_options=setup, server_options=setup,
    )  # fmt: skip
    for n in range(12):
        talk(office.client, office.server, other_port(office), chatter(office.dice, 2), begin=1.0 + n)
    for k, backend in enumerate(backends):
        path = office.new_path(office.client, backend)
        path.back, path.there, path.link_at = queue, Link(loss=lost), 0.1
        for n in range(24):
            talk(
                office.client, backend, 7000 + k, chatter(office.dice, 3, pause=0.2), begin=0.5 + k / 7 + n / 2,
                client_options=small, server_options=small,
            )  # fmt: skip


@QUEUES.add("bufferbloat", "network", points=("client",), seconds=40.0)
def a_queue_that_answers_wait_in(office: Office) -> None:
    _shared(office)


@QUEUES.add("rto_loss", "network", points=("client",), seconds=40.0)
def a_queue_and_loss_the_other_way(office: Office) -> None:
    _shared(office, lost=LOST)


@QUEUES.add("rto_loss", "network", points=("client",), seconds=40.0)
def a_queue_and_loss_without_timestamps(office: Office) -> None:
    """Duplicates that the receivers report tell the needless repeats then."""
    _shared(office, lost=LOST, timestamps=False)
