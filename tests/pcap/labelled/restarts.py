"""Services that are restarted under their clients' eyes, and their twins, which refuse more than that."""

from __future__ import annotations

from collections.abc import Iterable

from .faults.usual import other_port
from .network import Host
from .office import Office, attempt, chatter, talk
from .scene import Scenes

SCENES = Scenes()


def _checked(office: Office, backend: Host, refusals: Iterable[int], *, checks: int, every: float = 0.5) -> None:
    """A health check every so many seconds, of which some are refused."""
    for n in range(checks):
        begin = 1.0 + n * every
        if n in refusals:
            attempt(office.client, backend.address, office.port, begin)
        else:
            talk(office.client, backend, office.port, chatter(office.dice, 1, pause=0.01), begin=begin)


def _backends(office: Office, number: int) -> list[Host]:
    office.background(server_port=other_port(office))
    net = office._net()
    backends = [office.new_host(net) for _ in range(number)]
    for backend in backends:
        office.new_path(office.client, backend)
    return backends


@SCENES.add("none", "none", seconds=40.0, points=("client",))
def one_backend_after_the_other(office: Office) -> None:
    """Each is away for a moment, and one or two checks meet it."""
    for n, backend in enumerate(_backends(office, 4)):
        at = 15 + 10 * n
        _checked(office, backend, range(at, at + office.dice.choice([1, 2])), checks=72)


@SCENES.add("none", "none", seconds=40.0)
def one_restart_among_many_connections(office: Office) -> None:
    office.background(server_port=other_port(office))
    _checked(office, office.server, (20,), checks=50)


@SCENES.add("refused", "server_application", seconds=40.0, severity="MEDIUM")
def a_share_is_refused(office: Office) -> None:
    office.background(server_port=other_port(office))
    _checked(office, office.server, office.dice.sample(range(12, 58), 6), checks=70)


@SCENES.add("refused", "server_application", seconds=40.0, severity="MEDIUM")
def stopped_at_last(office: Office) -> None:
    """Nobody knows whether it comes back."""
    office.background(server_port=other_port(office))
    _checked(office, office.server, (48, 49), checks=50)


@SCENES.add("refused", "server_application", seconds=40.0, severity="MEDIUM")
def away_for_longer(office: Office) -> None:
    """Its clients are refused for seconds."""
    office.background(server_port=other_port(office))
    _checked(office, office.server, range(20, 28), checks=60)


@SCENES.add("refused", "server_application", seconds=40.0, severity="MEDIUM")
def one_of_few_is_refused(office: Office) -> None:
    office.background(server_port=other_port(office))
    _checked(office, office.server, (3,), checks=8)
