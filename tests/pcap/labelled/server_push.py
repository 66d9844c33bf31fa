"""Inside TLS 1.3: servers that end a connection instead of an answer, answers behind tickets, and news."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import messages
from .faults.usual import other_port
from .office import Exchange, Office, Talk, talk
from .scene import Scenes

SCENES = Scenes()
_PORT = 8443
_CLOSE_NOTIFY = 19
"""Bytes of an alert, sealed."""

Pieces = Sequence[tuple[float, bytes]]


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


def _tickets(office: Office, number: int, size: int = 0) -> list[tuple[float, bytes]]:
    """Each in a segment of its own, as soon as the client has finished."""
    size = size or office.dice.randrange(200, 300)
    return [(0.001 if n == 0 else 0.0003, messages.encrypted(size, office.dice)) for n in range(number)]


def _asks(
    office: Office, pieces: Pieces, *, begin: float, request: int = 0, more: Sequence[Exchange] = (), ends: str = "open"
) -> Talk:
    """The client asks in the segment in which it ends the handshake; `request` of no bytes is none."""
    dice, version = office.dice, messages.TLS_1_3
    hello = messages.client_hello(office.name("api"), version, dice)
    opening = Exchange(hello, ((0.002, messages.server_flight(version, dice)),), 0.001)
    asked = messages.client_flight(version, dice) + messages.encrypted(request, dice)
    exchanges = [opening, Exchange(asked, tuple(pieces), 0.001), *more]
    return talk(office.client, office.server, _PORT, exchanges, begin=begin, ends=ends)


def _goodbye(office: Office) -> bytes:
    return messages.encrypted(_CLOSE_NOTIFY, office.dice)


def closes(office: Office, both: Talk, after: float, goodbye: Callable[[Office], bytes] | None) -> None:
    """The server ends the connection so long after all that the client says has come, with a goodbye or without."""
    due, got = sum(len(exchange.request) for exchange in both.exchanges), both.server.on_data
    assert got is not None

    def close() -> None:
        if goodbye is not None:
            both.server.write(goodbye(office))
        both.server.close()

    def take(received: int) -> None:
        got(received)
        if received >= due:
            office.world.later(after, close)

    both.server.on_data = take


@SCENES.add("early_close", "server_application")
def closes_behind_its_tickets(office: Office) -> None:
    _ordinary(office)
    for n in range(4):
        after = office.dice.uniform(0.02, 0.25)
        both = _asks(office, _tickets(office, 2), begin=1.0 + 2 * n, request=office.dice.randrange(120, 700))
        closes(office, both, after, None)


@SCENES.add("early_close", "server_application")
def says_goodbye_behind_its_tickets(office: Office) -> None:
    _ordinary(office)
    for n in range(4):
        after, number = office.dice.uniform(0.02, 0.25), office.dice.choice([1, 2, 4])
        both = _asks(office, _tickets(office, number), begin=1.0 + 2 * n, request=office.dice.randrange(120, 700))
        closes(office, both, after, _goodbye)


@SCENES.add("slow_application", "server_application", severity="MEDIUM")
def answers_late_behind_four_tickets(office: Office) -> None:
    _ordinary(office)
    for n in range(4):
        late = (office.dice.uniform(1.8, 4.0), messages.encrypted(office.dice.randrange(400, 4000), office.dice))
        _asks(office, [*_tickets(office, 4), late], begin=1.0 + 2 * n, request=300, ends="client")


@SCENES.add("slow_application", "server_application")
def answers_nothing_behind_four_tickets(office: Office) -> None:
    _ordinary(office)
    for n in range(4):
        _asks(office, _tickets(office, 4), begin=1.0 + 1.5 * n, request=300)


@SCENES.add("slow_application", "server_application", seconds=40.0, severity="MEDIUM")
def answers_late_in_pieces(office: Office) -> None:
    """Pages that come one part after another, seconds apart, and once a short word in between."""
    _ordinary(office)
    dice = office.dice
    for n in range(3):
        page = [(dice.uniform(2.0, 3.5), messages.encrypted(dice.randrange(3000, 9000), dice)) for _ in range(3)]
        more = [Exchange(messages.encrypted(250, dice), (*page, (1.5, messages.encrypted(60, dice))), 0.2)]
        answered = (0.01, messages.encrypted(700, dice))
        _asks(office, [*_tickets(office, 2), answered], begin=1.0 + n, request=300, more=more)


@SCENES.add("none", "none", seconds=40.0)
def websocket_inside_tls(office: Office) -> None:
    """It is agreed at once; the client says what it wants to hear of, and the server speaks when there is news."""
    _ordinary(office)
    dice = office.dice
    for n in range(4):
        agreed = (0.01, messages.encrypted(dice.randrange(150, 260), dice))
        news = [(dice.uniform(1.5, 7.0), messages.encrypted(dice.randrange(40, 400), dice)) for _ in range(4)]
        more = [Exchange(messages.encrypted(dice.randrange(30, 120), dice), tuple(news), 0.05)]
        _asks(office, [*_tickets(office, 2), agreed], begin=0.5 + n, request=400, more=more)


@SCENES.add("none", "none", seconds=60.0)
def websocket_whose_client_speaks_at_times(office: Office) -> None:
    """What the client says in between is answered with what came up meanwhile, and not at once."""
    _ordinary(office)
    dice = office.dice
    for n in range(3):
        agreed = (0.01, messages.encrypted(dice.randrange(150, 260), dice))
        more = []
        for _ in range(2):
            news = [(dice.uniform(1.5, 4.0), messages.encrypted(dice.randrange(40, 300), dice)) for _ in range(4)]
            more.append(Exchange(messages.encrypted(dice.randrange(30, 90), dice), tuple(news), 1.0))
        _asks(office, [*_tickets(office, 2), agreed], begin=0.5 + n, request=400, more=more)


@SCENES.add("none", "none")
def opened_in_advance_and_closed(office: Office) -> None:
    """The client finishes and asks nothing; the server waits a while and closes."""
    _ordinary(office)
    for n in range(4):
        both = _asks(office, _tickets(office, 2), begin=1.0 + n)
        closes(office, both, office.dice.uniform(0.1, 5.0), _goodbye if n % 2 == 1 else None)


@SCENES.add("none", "none")
def answered_and_closed(office: Office) -> None:
    """By a server that closes behind each answer; some of these are as long as a ticket."""
    _ordinary(office)
    dice = office.dice
    for n in range(6):
        size = dice.randrange(200, 300)
        answer = (0.005, messages.encrypted(size if n % 2 else dice.randrange(50, 3000), dice))
        _asks(office, [*_tickets(office, 2, size + 20), answer], begin=1.0 + n, request=300, ends="server")
