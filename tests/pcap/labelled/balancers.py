"""A balancer that still sends connections to a dead backend, and what looks like it."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from ..wire import SYN
from .network import Host, Packet, Path
from .office import Office, attempt, chatter, talk
from .scene import Scenes

SCENES = Scenes()
_BEFORE = ("client", "between")


def _dropped(office: Office, what: Callable[[Packet], bool], paths: tuple[Path, ...] = ()) -> None:
    """SYNs of the service that are dropped behind every place of a capture before the server."""

    def blocks(packet: Packet) -> bool:
        segment = packet.segment
        return (
            segment is not None
            and segment.destination_port == office.port
            and bool(segment.flags & SYN)
            and what(packet)
        )

    for path in paths or (office.path,):
        path.link_at = 0.7
        path.there.blocks = blocks


def _hashed(office: Office, backends: int) -> Callable[[Packet], bool]:
    """Whether the five-tuple of a packet belongs to the dead one of so many backends."""
    salt = office.dice.randrange(1 << 30)

    def dead(packet: Packet) -> bool:
        assert packet.segment is not None
        return crc32(f"{packet.source} {packet.segment.source_port} {salt}".encode()) % backends == 0

    return dead


def _clients(office: Office, number: int) -> list[Host]:
    """The client and further ones."""
    others = [office.new_host() for _ in range(number - 1)]
    for host in others:
        office.new_path(host, office.server)
    return [office.client, *others]


def _connect(office: Office, number: int, every: float, clients: list[Host] | None = None) -> None:
    office.background()
    for n in range(number):
        begin = 1.0 + every * (n + office.dice.uniform(-0.3, 0.3))
        client = office.dice.choice(clients) if clients else office.client
        talk(client, office.server, office.port, chatter(office.dice, 2, pause=0.05), begin=begin)


@SCENES.add("backend_dead", "server_host", points=_BEFORE, seconds=40.0)
def one_of_four_backends(office: Office) -> None:
    _dropped(office, _hashed(office, 4))
    _connect(office, 80, 0.3)


@SCENES.add("backend_dead", "server_host", points=_BEFORE, seconds=60.0)
def one_of_ten_backends_and_some_loss(office: Office) -> None:
    dead = _hashed(office, 10)
    _dropped(office, lambda packet: dead(packet) or office.dice.random() < 0.01)
    _connect(office, 150, 0.25)


@SCENES.add("backend_dead", "server_host", points=("between",), seconds=60.0)
def many_clients_of_a_dead_backend(office: Office) -> None:
    """Each of them meets it a few times."""
    clients = _clients(office, 12)
    paths = tuple(office.world.paths[client.address, office.server.address] for client in clients)
    _dropped(office, _hashed(office, 3), paths)
    _connect(office, 120, 0.3, clients)


@SCENES.add("backend_dead", "server_host", points=_BEFORE, seconds=60.0)
def backend_that_dies(office: Office) -> None:
    dead = _hashed(office, 3)
    _dropped(office, lambda packet: office.world.now > 15 and dead(packet))
    _connect(office, 150, 0.3)


@SCENES.add("backend_dead", "server_application", points=_BEFORE, seconds=40.0, severity="MEDIUM")
def one_backend_refuses(office: Office) -> None:
    office.background()
    for n in range(100):
        begin = 1.0 + 0.3 * n
        if office.dice.random() < 0.25:
            attempt(office.client, office.server.address, office.port, begin)
        else:
            talk(office.client, office.server, office.port, chatter(office.dice, 1, pause=0.01), begin=begin)


@SCENES.add("refused", "server_application", points=_BEFORE, seconds=40.0, severity="MEDIUM")
def overload_that_refuses(office: Office) -> None:
    """A full queue refuses several connections in a row, five times."""
    office.background()
    for n in range(100):
        begin = 1.0 + 0.3 * n
        if n % 20 < 5:
            attempt(office.client, office.server.address, office.port, begin)
        else:
            talk(office.client, office.server, office.port, chatter(office.dice, 1, pause=0.01), begin=begin)


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=60.0, severity="MEDIUM")
def loss_of_every_fourth_syn(office: Office) -> None:
    _dropped(office, lambda packet: office.dice.random() < 0.25)
    _connect(office, 150, 0.3)


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=60.0, severity="MEDIUM")
def short_outages(office: Office) -> None:
    """For some seconds no SYN is answered, three times."""
    starts = [10.0, 25.0, 41.0]
    _dropped(office, lambda packet: any(start <= office.world.now < start + 5 for start in starts))
    _connect(office, 150, 0.3)


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=60.0)
def limit_on_new_connections(office: Office) -> None:
    """A device lets two new connections through each second."""
    passed: list[float] = []

    def over(packet: Packet) -> bool:
        now = office.world.now
        passed[:] = [when for when in passed if when > now - 1]
        if len(passed) >= 2:
            return True
        passed.append(now)
        return False

    _dropped(office, over)
    _connect(office, 100, 0.45)


@SCENES.add("syn_unanswered", "network", points=_BEFORE, seconds=40.0)
def two_five_tuples_that_a_firewall_remembers(office: Office) -> None:
    """Too few to tell a backend by."""
    office.background()
    blocked: set[int] = set()
    _dropped(office, lambda packet: packet.segment is not None and packet.segment.source_port in blocked)
    for n in range(40):
        both = talk(office.client, office.server, office.port, chatter(office.dice, 1, pause=0.01), begin=1.0 + 0.6 * n)
        if n in (10, 25):
            blocked.add(both.client.port)


@SCENES.add("syn_unanswered", "policy", points=("between",), seconds=40.0)
def one_client_is_filtered(office: Office) -> None:
    clients = _clients(office, 6)
    filtered = clients[3].address
    paths = tuple(office.world.paths[client.address, office.server.address] for client in clients)
    _dropped(office, lambda packet: packet.source == filtered, paths)
    _connect(office, 60, 0.4, clients)


@SCENES.add("none", "none", points=_BEFORE, seconds=40.0)
def some_syns_are_lost(office: Office) -> None:
    _dropped(office, lambda packet: office.dice.random() < 0.02)
    _connect(office, 100, 0.3)
