"""Scenes in which many clients meet one fault; and their twins, in which many clients meet one each, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .faults.usual import other_port
from .network import Host, Packet, Point
from .office import Exchange, Office, Talk, attempt, chatter, talk
from .scene import Scenes

SCENES = Scenes()


def _fault(
    kind: str,
    blame: str,
    severity: str,
    *others: str,
    points: tuple[Point, ...],
    seconds: float = 30.0,
    **measured: int,
) -> Callable[[Callable[[Office], None]], Callable[[Office], None]]:
    return SCENES.add(kind, blame, severity=severity, others=others, measured=measured, points=points, seconds=seconds)


def _crowd(office: Office, number: int, server: Host | None = None) -> list[Host]:
    """Clients of a server, of any network; a link near them can fail."""
    clients = [office.new_host(ttl=office.dice.choice([64, 128])) for _ in range(number)]
    for client in clients:
        office.new_path(client, server or office.server).link_at = 0.2
    return clients


def _download(office: Office, client: Host, begin: float, *, seconds: float, port: int | None = None) -> Talk:
    """Answers that come one after another for so long, a hundred each second at the most."""
    pieces = tuple((0.05, office.dice.randbytes(4000)) for _ in range(int(seconds * 20)))
    return talk(client, office.server, port or office.port, [Exchange(b"get" * 30, pieces)], begin=begin)


def _drop(_: Packet) -> bool:
    return True


def _cut(office: Office, clients: Sequence[Host], at: float, server: Host | None = None) -> None:
    def cut() -> None:
        for client in clients:
            path = office.world.paths[client.address, (server or office.server).address]
            path.there.blocks = path.back.blocks = _drop

    office.world.later(at, cut)


# -------------------------------------------------------------------------------------------- at the same moment


@_fault("rto_loss", "network", "HIGH", points=("server", "between"), connections=6, hosts=6)
def the_path_dies_under_downloads(office: Office) -> None:
    office.background(to_server=False)
    clients = _crowd(office, 6)
    for client in clients:
        _download(office, client, office.dice.uniform(0.5, 4.0), seconds=12)
    _cut(office, clients, 8.0)


@_fault("rto_loss", "network", "HIGH", points=("server", "between"), connections=2, hosts=2)
def the_path_dies_under_two_downloads(office: Office) -> None:
    office.background(to_server=False)
    clients = _crowd(office, 2)
    for client in clients:
        _download(office, client, office.dice.uniform(0.5, 4.0), seconds=12)
    _cut(office, clients, 8.0)


@_fault("rto_loss", "network", "HIGH", points=("server", "between"), connections=6, hosts=6)
def the_path_to_one_site_of_many_dies(office: Office) -> None:
    """Most clients go on."""
    office.background(to_server=False)
    clients = _crowd(office, 15)
    for client in clients:
        _download(office, client, office.dice.uniform(0.5, 4.0), seconds=20)
    _cut(office, clients[:6], 8.0)


@_fault("rto_loss", "network", "HIGH", points=("client",), hosts=4)
def the_own_uplink_dies(office: Office) -> None:
    """Of connections to many servers, each used at its own pace."""
    servers = [office.new_host() for _ in range(4)]
    for n, server in enumerate(servers):
        office.new_path(office.client, server)
        talk(office.client, server, 5432, chatter(office.dice, 60, pause=0.3 * (n + 1)), begin=0.5 + 0.1 * n)
        _cut(office, [office.client], 9.0, server)


@_fault("rto_loss", "server_host", "HIGH", points=("between",), clients=6)
def one_server_of_a_rack_dies(office: Office) -> None:
    office.background(to_server=False)
    clients = _crowd(office, 6)
    neighbour = office.new_host(office.server.address.rpartition(".")[0])
    for n, client in enumerate(clients):
        talk(client, office.server, office.port, chatter(office.dice, 60, pause=0.3), begin=0.5 + 0.2 * n)
        office.new_path(client, neighbour)
        talk(client, neighbour, office.port, chatter(office.dice, 60, pause=0.3), begin=0.6 + 0.2 * n)

    def die() -> None:
        office.server.silent = True
        office.server.send = lambda _: None  # type: ignore[method-assign]

    office.world.later(7.0, die)


@_fault("rto_loss", "server_host", "HIGH", points=("between",), seconds=40.0, clients=4)
def a_server_dies_and_more_clients_come(office: Office) -> None:
    """These are no sources that a filter keeps out, though the port answered others before."""
    office.background(to_server=False)
    neighbour = office.new_host(office.server.address.rpartition(".")[0])
    clients = _crowd(office, 7)
    for n, client in enumerate(clients):
        office.new_path(client, neighbour)
        talk(client, neighbour, office.port, chatter(office.dice, 60, pause=0.3), begin=0.6 + 0.2 * n)
        if n < 4:
            talk(client, office.server, office.port, chatter(office.dice, 60, pause=0.3), begin=0.5 + 0.2 * n)
        else:
            attempt(client, office.server.address, office.port, 9.0 + n)

    def die() -> None:
        office.server.silent = True
        office.server.send = lambda _: None  # type: ignore[method-assign]

    office.world.later(7.0, die)


@_fault("rto_loss", "network", "HIGH", "HIGH rto_loss network", points=("server", "between"), seconds=40.0, hosts=4)
def two_paths_die_one_after_another(office: Office) -> None:
    office.background(to_server=False)
    clients = _crowd(office, 8)
    for n, client in enumerate(clients):
        _download(office, client, (0.5 if n < 4 else 12.0) + office.dice.uniform(0, 2), seconds=12)
    _cut(office, clients[:4], 7.0)
    _cut(office, clients[4:], 18.0)


@SCENES.add("none", "none", points=("server", "between"), seconds=130.0)
def phones_come_and_go(office: Office) -> None:
    """One leaves each second or two, in the middle of something; others stay."""
    office.background(to_server=False)
    for client in _crowd(office, 20):
        talk(client, office.server, office.port, chatter(office.dice, 60, pause=2.0), begin=office.dice.uniform(0.5, 3))
    leaves = 5.0
    for client in _crowd(office, 70):
        leaves += office.dice.expovariate(0.7)
        _download(office, client, leaves - 2, seconds=4)
        _cut(office, [client], leaves)


@SCENES.add("none", "none", points=("server", "between"), seconds=900.0)
def laptops_leave_one_after_another(office: Office) -> None:
    """Each in the middle of a download, some with several connections."""
    office.background(to_server=False)
    clients = _crowd(office, 12)
    for n, client in enumerate(clients):
        leaves = 20.0 + 55.0 * n + office.dice.uniform(0, 40)
        for k in range(1 + n % 3):
            _download(office, client, leaves - 9 + k, seconds=15)
        _cut(office, [client], leaves)
    for client in _crowd(office, 6):  # they stay
        talk(client, office.server, office.port, chatter(office.dice, 170, pause=5.0), begin=1.0)


@SCENES.add("none", "none", points=("server", "between"), seconds=30.0)
def one_client_of_many_goes_away(office: Office) -> None:
    """With all of its connections."""
    office.background(to_server=False)
    clients = _crowd(office, 9)
    for client in clients:
        for _ in range(2):
            _download(office, client, office.dice.uniform(0.5, 4.0), seconds=12)
    _cut(office, clients[:1], 8.0)


@SCENES.add("none", "none", points=("server", "between"), seconds=9.0)
def the_capture_ends_under_downloads(office: Office) -> None:
    office.background(to_server=False)
    for client in _crowd(office, 6):
        _download(office, client, office.dice.uniform(0.5, 4.0), seconds=20)


@SCENES.add("none", "none", points=("server", "between"))
def the_capturer_loses_one_direction(office: Office) -> None:
    """From one moment on, of all clients; the transfers go on."""
    office.background(to_server=False)
    clients = _crowd(office, 6)
    for client in clients:
        _download(office, client, office.dice.uniform(0.5, 4.0), seconds=16)

    def lose() -> None:
        for client in clients:
            office.world.paths[client.address, office.server.address].captured = (False, True)

    office.world.later(8.0, lose)


# ------------------------------------------------------------------------------------------- one service, many clients


def _crashes(office: Office, clients: Sequence[Host], server: Host, begin: float) -> None:
    for n, client in enumerate(clients):
        asked = [*chatter(office.dice, 2, pause=0.1), Exchange(b"q" * 200, ((9.0, b"never"),), 0.1)]
        one = talk(client, server, office.port, asked, begin=begin + 0.7 * n)
        office.world.later(begin + 0.7 * n + 1.2, one.server.abort)


@_fault("mid_session_reset", "server_application", "HIGH", points=("server", "between"), resets=8, clients=8)
def a_service_resets_every_client(office: Office) -> None:
    office.background(server_port=other_port(office))
    _crashes(office, _crowd(office, 8), office.server, 1.0)


@_fault(
    "mid_session_reset", "server_application", "HIGH", "HIGH mid_session_reset server_application",
    points=("between",), resets=4, clients=4,
)  # fmt: skip
def two_services_reset_their_clients(office: Office) -> None:
    office.background(server_port=other_port(office))
    other = office.new_host()
    _crashes(office, _crowd(office, 4), office.server, 1.0)
    _crashes(office, _crowd(office, 3, other), other, 1.5)


@SCENES.add("none", "none", points=("server", "between"))
def people_abort_downloads(office: Office) -> None:
    """Once each."""
    office.background(server_port=other_port(office))
    for n, client in enumerate(_crowd(office, 8)):
        one = _download(office, client, 1.0 + n, seconds=5)
        office.world.later(2.0 + n + office.dice.uniform(0, 1), one.client.abort)


@_fault("early_close", "server_application", "HIGH", points=("server", "between"), connections=8, clients=8)
def a_service_closes_without_an_answer(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.port = 8080
    for n, client in enumerate(_crowd(office, 8)):
        one = talk(client, office.server, office.port, [Exchange(b"q" * 300, ((99.0, b"never"),))], begin=1.0 + 0.7 * n)
        office.world.later(1.6 + 0.7 * n, one.server.close)


@_fault("idle_timeout", "network", "MEDIUM", points=("server", "between"), seconds=340.0, connections=7, clients=7)
def connections_of_many_are_forgotten(office: Office) -> None:
    """By a device before the service, which drops what it does not know any more."""
    office.background(to_server=False)
    clients = _crowd(office, 7)
    for n, client in enumerate(clients):
        path = office.world.paths[client.address, office.server.address]
        path.link_at = 0.95 if office.world.point == "between" else 0.2
        asked = [*chatter(office.dice, 3), Exchange(b"again" * 9, ((0.01, b"never"),), 250.0)]
        one = talk(client, office.server, 5432, asked, begin=1.0 + n, ends="open")
        if office.world.point == "server":
            office.world.later(260.0 + n, lambda one=one: one.server.write(b"news" * 20))  # type: ignore[misc]
    _cut(office, clients, 200.0)


@_fault("idle_timeout", "network", "MEDIUM", points=("client",), seconds=340.0, connections=4, services=4)
def connections_to_many_are_forgotten(office: Office) -> None:
    """By a device before the client."""
    office.background(to_server=False)
    for n in range(4):
        server = office.new_host()
        office.new_path(office.client, server)
        asked = [*chatter(office.dice, 3), Exchange(b"again" * 9, ((0.01, b"never"),), 230.0 + 20 * n)]
        talk(office.client, server, 5432, asked, begin=1.0 + n, ends="open")
        _cut(office, [office.client], 200.0, server)


def _lossy(office: Office, clients: Sequence[Host], loss: float, size: int = 700_000) -> None:
    for n, client in enumerate(clients):
        office.world.paths[client.address, office.server.address].back.loss = loss
        answer = Exchange(b"get " * 20, ((0.003, office.dice.randbytes(size)),))
        talk(client, office.server, office.port, [answer], begin=1.0 + 0.4 * n)


@_fault("loss", "network", "HIGH", points=("server", "between"), seconds=60.0, paths=8)
def everybody_loses_packets(office: Office) -> None:
    office.background(to_server=False)
    _lossy(office, _crowd(office, 8), 0.06)


@_fault("loss", "network", "HIGH", "MEDIUM loss network", points=("server", "between"), seconds=90.0)
def one_client_loses_much_more_than_the_others(office: Office) -> None:
    office.background(to_server=False)
    clients = _crowd(office, 5)
    _lossy(office, clients[1:], 0.015, 1_500_000)
    _lossy(office, clients[:1], 0.12, 900_000)


@_fault("mtu_black_hole", "network", "HIGH", points=("server",), paths=4)
def full_segments_to_many_vanish(office: Office) -> None:
    """In a tunnel before the clients, of which nobody is told."""
    office.background(server_port=other_port(office))
    for n, client in enumerate(_crowd(office, 4)):
        path = office.world.paths[client.address, office.server.address]
        path.back.mtu, path.back.tells_mtu = 1400, False
        answers = [Exchange(b"get " * 20, ((0.003, office.dice.randbytes(size)),)) for size in (300, 90_000)]
        talk(client, office.server, office.port, answers, begin=1.0 + 0.6 * n)


@_fault("zero_window", "server_application", "MEDIUM", points=("server", "between"), clients=4)
def a_service_reads_from_nobody(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n, client in enumerate(_crowd(office, 4)):
        one = talk(client, office.server, office.port, [Exchange(office.dice.randbytes(900_000), ((0.01, b"ok" * 9),))],
                   begin=1.0 + 0.6 * n)  # fmt: skip
        one.server.stop_reading()


@_fault("reordering", "network", "MEDIUM", points=("client",), paths=5)
def what_many_send_is_overtaken(office: Office) -> None:
    office.background(to_server=False)
    for n in range(5):
        server = office.new_host()
        path = office.new_path(office.client, server)
        path.back.reorder, path.link_at = 0.15, 0.5
        answer = Exchange(b"get " * 20, ((0.003, office.dice.randbytes(400_000)),))
        talk(office.client, server, 443, [answer], begin=1.0 + 0.6 * n)
