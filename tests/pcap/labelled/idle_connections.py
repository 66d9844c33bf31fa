"""Connections that are kept: closed just when they are used again, forgotten meanwhile, or held until there is news."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import messages
from .faults.usual import other_port
from .network import Host
from .office import Exchange, Office, Talk, chatter, talk, tls, web
from .scene import Scenes

SCENES = Scenes()
_Asked = Callable[[Office], bytes]


def _get(office: Office) -> bytes:
    return messages.get(office.name("orders"), "/list")


def _sealed(office: Office) -> bytes:
    return messages.encrypted(office.dice.randrange(250, 700), office.dice)


def _closes(both: Talk, at: float) -> None:
    """The server's program closes, and its kernel knows the connection no more."""

    def close() -> None:
        both.server.close()
        both.server._forget()

    both.client.world.later(at, close)


def _crossing(
    office: Office, client: Host, exchanges: Sequence[Exchange], asked: _Asked | None, *, begin: float, idle: float
) -> None:
    """A dialogue, a pause, and the server's FIN, which the next request crosses; the client asks again elsewhere."""
    path = office.world.paths[client.address, office.server.address]
    both = talk(client, office.server, office.port, exchanges, begin=begin, ends="open")
    at = begin + 1.0 + idle
    _closes(both, at)
    if asked is not None:
        request = asked(office)
        office.world.later(at + office.dice.uniform(-0.6, 0.6) * path.delay, lambda: both.client.write(request))
        again = [Exchange(request, ((0.01, messages.answer(300)),))]
        talk(client, office.server, office.port, again, begin=at + 4 * path.delay)


def _http(office: Office) -> Sequence[Exchange]:
    return web(office.dice, office.name("orders"), [400, 900], pause=0.2)


def _tls(office: Office) -> Sequence[Exchange]:
    return tls(office.dice, office.name("orders"), [500, 700], pause=0.2)


@SCENES.add("early_close", "server_application", seconds=30.0, severity="MEDIUM")
def requests_that_cross_the_close(office: Office) -> None:
    office.background(server_port=other_port(office))
    idle = office.dice.choice([2.0, 5.0])
    for n in range(6):
        _crossing(office, office.client, _http(office), _get, begin=0.5 + 3.1 * n, idle=idle)


@SCENES.add("early_close", "server_application", seconds=30.0, severity="MEDIUM")
def sealed_requests_that_cross_the_close(office: Office) -> None:
    """Several clients, and nobody reads what they ask."""
    office.background(server_port=other_port(office))
    clients = [office.client, office.neighbours[0]]
    for n in range(6):
        _crossing(office, clients[n % 2], _tls(office), _sealed, begin=0.5 + 3.1 * n, idle=4.0)


@SCENES.add("none", "none", seconds=30.0, low=(("early_close", "server_application"),))
def one_request_that_crosses_the_close(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(6):
        _crossing(office, office.client, _http(office), _get if n == 3 else None, begin=0.5 + 3.1 * n, idle=5.0)


@SCENES.add("none", "none", seconds=30.0, low=())
def goodbyes_that_cross_the_close(office: Office) -> None:
    """Who is told that it is over says so as well (close_notify), and is reset for it."""
    office.background(server_port=other_port(office))

    def goodbye(_: Office) -> bytes:
        return messages.record(23, office.dice.randbytes(19))

    for n in range(6):
        exchanges = _tls(office)
        _crossing(office, office.client, exchanges, goodbye, begin=0.5 + 3.1 * n, idle=4.0)


# ------------------------------------------------------------------------------------------------ forgotten meanwhile


def _forgets(office: Office, since: float, ports: set[int]) -> None:
    """A device on the way drops what belongs to connections that were idle; new ones pass."""
    office.path.link_at = 0.7

    def forgotten(packet: object) -> bool:
        segment = getattr(packet, "segment", None)
        return segment is not None and segment.source_port in ports and office.world.now >= since

    office.path.there.blocks = forgotten


def _used_again(office: Office, both: Talk, at: float, patience: float) -> None:
    office.world.later(at, lambda: both.client.write(office.dice.randbytes(150)))
    office.world.later(at + patience, both.client.abort)


@SCENES.add("idle_timeout", "network", seconds=460.0, points=("client", "between"), severity="MEDIUM")
def given_up_after_repeats_in_vain(office: Office) -> None:
    """The program waits for a while, resets the connection, and opens another."""
    office.background(server_port=other_port(office))
    idle, patience = office.dice.uniform(200, 280), office.dice.uniform(12, 70)
    ports: set[int] = set()
    for n in range(3):
        both = talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=1.0 + n, ends="open")
        ports.add(both.client.port)
        _used_again(office, both, 4.0 + n + idle, patience)
        talk(office.client, office.server, office.port, chatter(office.dice, 3), begin=5.0 + n + idle + patience)
    _forgets(office, 60.0, ports)


@SCENES.add("rto_loss", "network", seconds=200.0, points=("client", "between"))
def given_up_in_the_middle_of_work(office: Office) -> None:
    """Nothing was idle: the same repeats, and the same reset, a second after the server was heard."""
    office.background(server_port=other_port(office))
    ports: set[int] = set()
    for n in range(3):
        both = talk(
            office.client, office.server, office.port, chatter(office.dice, 60, pause=1.0), begin=1.0 + n, ends="open"
        )
        ports.add(both.client.port)
        _used_again(office, both, 42.0, 70.0)
    _forgets(office, 40.0, ports)


# ---------------------------------------------------------------------------------------------------- held on purpose


def _asks(office: Office, path: str, wait: float, answer: bytes, *, times: int, begin: float = 0.5) -> None:
    host = office.name("feed")
    asked = [Exchange(messages.get(host, path), ((wait, answer),), 0.02) for _ in range(times)]
    talk(office.client, office.server, 8000, asked, begin=begin)


def _others(office: Office, number: int = 20) -> None:
    """Quick answers of the same server."""
    for n in range(number):
        talk(office.client, office.server, 8000, web(office.dice, office.name("feed"), [600]), begin=0.7 + 0.6 * n)


_NOTHING = b"HTTP/1.1 204 No Content\r\nServer: web\r\n\r\n"


@SCENES.add("none", "none", seconds=40.0, low=())
def polls_held_for_a_few_seconds(office: Office) -> None:
    """Nothing came, each time after the same while; another one is under way at the end."""
    office.background(server_port=other_port(office))
    held = office.dice.choice([3.0, 5.0, 8.0])
    _asks(office, "/poll?wait=1", held, _NOTHING, times=14)
    _others(office, 3)


@SCENES.add("none", "none", seconds=40.0, low=())
def polls_of_which_some_bring_news(office: Office) -> None:
    office.background(server_port=other_port(office))
    host, dice = office.name("feed"), office.dice
    waits = [(6.0, _NOTHING), (dice.uniform(1.2, 5), messages.answer(500)), (6.0, _NOTHING), (2.5, messages.answer(90))]
    talk(
        office.client, office.server, 8000,
        [Exchange(messages.get(host, "/events"), (piece,), 0.02) for piece in waits * 2], begin=0.5,
    )  # fmt: skip
    _others(office, 3)


@SCENES.add("http_slow", "server_application", seconds=40.0, severity="MEDIUM")
def as_late_but_with_something_to_say(office: Office) -> None:
    """A time-out behind the server, after which it answers all the same."""
    office.background(server_port=other_port(office))
    _asks(office, "/poll?wait=1", 8.0, messages.answer(2000), times=4)
    _others(office, 3)


@SCENES.add("none", "none", seconds=40.0, low=(("http_slow", "server_application"),))
def one_path_that_is_always_late(office: Office) -> None:
    """A report takes seconds, and is a few of many answers: worth knowing, no more."""
    office.background(server_port=other_port(office))
    _asks(office, "/report", office.dice.uniform(2, 4), messages.answer(4000), times=3)
    _others(office, 40)


@SCENES.add("none", "none", seconds=40.0, low=())
def a_path_that_is_late_at_times(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(12):
        _asks(office, "/report", 2.5 if n in (3, 7) else 0.05, messages.answer(4000), times=1, begin=0.5 + n)
    _others(office, 40)
