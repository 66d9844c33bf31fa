"""Inside TLS 1.2: servers that end a connection instead of an answer, and connections that owe nobody anything."""

from __future__ import annotations

from collections.abc import Sequence

from . import messages
from .faults.usual import other_port
from .office import Exchange, Office, Talk, talk
from .scene import Scenes
from .server_push import closes

SCENES = Scenes()
_PORT = 9443
_V = messages.TLS_1_2


def _goodbye(office: Office) -> bytes:
    """A close_notify, sealed: what it is stands in clear before it."""
    return messages.record(21, office.dice.randbytes(26))


def _finish(office: Office, *, ticket: bool) -> bytes:
    """The server's last flight; in this version its ticket comes before it, in clear."""
    sent = messages.record(22, b"\4\0\0\x9e" + office.dice.randbytes(158)) if ticket else b""
    return sent + messages.server_finish(_V, office.dice)


def _opening(office: Office, *, ticket: bool = False, resumed: bool = False, begins: bytes = b"") -> list[Exchange]:
    """`begins`: what the client says in the segment in which it finishes."""
    dice = office.dice
    hello, finished = messages.client_hello(office.name("api"), _V, dice), messages.server_finish(_V, dice)
    if resumed:
        answered = Exchange(hello, ((0.002, messages.server_hello(_V, dice) + finished),), 0.001)
        return [answered, Exchange(messages.server_finish(_V, dice) + begins, (), 0.001)]
    keys = messages.client_flight(_V, dice) + begins
    answered = Exchange(hello, ((0.002, messages.server_flight(_V, dice)),), 0.001)
    return [answered, Exchange(keys, ((0.001, _finish(office, ticket=ticket)),), 0.001)]


def _request(office: Office, *pieces: tuple[float, bytes], pause: float = 0.002) -> Exchange:
    return Exchange(messages.encrypted(office.dice.randrange(150, 900), office.dice), pieces, pause)


def _session(office: Office, exchanges: Sequence[Exchange], begin: float, ends: str = "open") -> Talk:
    return talk(office.client, office.server, _PORT, exchanges, begin=begin, ends=ends)


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


@SCENES.add("early_close", "server_application")
def says_goodbye_instead_of_an_answer(office: Office) -> None:
    _ordinary(office)
    for n in range(5):
        asked = [*_opening(office, ticket=n % 2 == 0), _request(office)]
        closes(office, _session(office, asked, 1.0 + n), office.dice.choice([0.03, 0.2, 6.0]), _goodbye)


@SCENES.add("early_close", "server_application")
def closes_instead_of_an_answer(office: Office) -> None:
    _ordinary(office)
    for n in range(5):
        asked = [*_opening(office, ticket=n % 2 == 1), _request(office)]
        closes(office, _session(office, asked, 1.0 + n), office.dice.uniform(0.02, 0.25), None)


@SCENES.add("early_close", "server_application")
def closes_behind_a_resumed_session(office: Office) -> None:
    """The client finishes last, and asks at once or in the same segment."""
    _ordinary(office)
    for n in range(6):
        request = _request(office)
        asked = _opening(office, resumed=True, begins=request.request if n % 2 else b"")
        both = _session(office, asked if n % 2 else [*asked, request], 1.0 + n)
        _ask_behind(office, both)
        closes(office, both, office.dice.uniform(0.02, 4.0), _goodbye if n % 3 > 0 else None)


@SCENES.add("early_close", "server_application")
def closes_on_a_false_start(office: Office) -> None:
    """The client asks before the server has finished (RFC 7918)."""
    _ordinary(office)
    for n in range(5):
        asked = _opening(office, ticket=n % 2 == 1, begins=_request(office).request)
        closes(
            office, _session(office, asked, 1.0 + n), office.dice.uniform(0.02, 4.0), _goodbye if n % 2 == 0 else None
        )


@SCENES.add("early_close", "server_application")
def answers_the_first_request_alone(office: Office) -> None:
    _ordinary(office)
    for n in range(5):
        answer = (0.02, messages.encrypted(office.dice.randrange(300, 4000), office.dice))
        asked = [*_opening(office, ticket=True), _request(office, answer), _request(office, pause=0.3)]
        closes(
            office, _session(office, asked, 1.0 + n), office.dice.uniform(0.6, 5.0), _goodbye if n % 2 == 0 else None
        )


@SCENES.add("slow_application", "server_application", seconds=30.0)
def answers_nothing_inside(office: Office) -> None:
    _ordinary(office)
    for n in range(5):
        _session(office, [*_opening(office, ticket=n % 2 == 0), _request(office)], 1.0 + n)


def _ask_behind(office: Office, both: Talk) -> None:
    """Nothing answers the end of a resumed handshake: the request follows it at once."""
    got = both.client_got

    def on_data(received: int) -> None:
        got(received)
        if both.asked == 2 and len(both.exchanges) > 2:
            both.finished.append(office.world.now)
            office.world.later(0.002, both.ask)

    both.client.on_data = on_data


@SCENES.add("none", "none")
def answered_and_ended_by_the_server(office: Office) -> None:
    _ordinary(office)
    dice = office.dice
    for n in range(6):
        answer = messages.encrypted(dice.randrange(50, 5000), dice)
        goodbye = _goodbye(office)
        pieces = ((0.01, answer + goodbye),) if n % 2 else ((0.01, answer), (dice.uniform(0.0, 2.0), goodbye))
        _session(office, [*_opening(office, ticket=n % 3 > 0), _request(office, *pieces)], 1.0 + n, "server")


@SCENES.add("none", "none")
def answered_behind_a_false_start(office: Office) -> None:
    """The answer comes in the segment in which the server finishes, or in the next."""
    _ordinary(office)
    dice = office.dice
    for n in range(6):
        hello, keys = _opening(office, ticket=n % 2 == 0, begins=_request(office).request)
        answer = messages.encrypted(dice.randrange(200, 5000), dice)
        finish = keys.pieces[0][1]
        pieces = ((0.003, finish + answer),) if n % 3 else ((0.001, finish), (0.01, answer))
        _session(office, [hello, Exchange(keys.request, pieces, 0.001)], 1.0 + n, "server")


@SCENES.add("none", "none")
def client_says_goodbye_first(office: Office) -> None:
    _ordinary(office)
    dice = office.dice
    for n in range(6):
        answer = (0.01, messages.encrypted(dice.randrange(50, 5000), dice))
        last = Exchange(_goodbye(office), ((dice.uniform(0.001, 1.0), _goodbye(office)),), dice.uniform(0.1, 2.0))
        _session(office, [*_opening(office, ticket=True), _request(office, answer), last], 1.0 + n, "server")


@SCENES.add("none", "none")
def asks_nothing_and_is_closed(office: Office) -> None:
    """Opened in advance, resumed or not; the server waits a while and closes."""
    _ordinary(office)
    for n in range(8):
        both = _session(office, _opening(office, ticket=n % 4 == 0, resumed=n % 2 == 1), 1.0 + n)
        closes(office, both, office.dice.uniform(0.1, 6.0), _goodbye if n % 4 > 1 else None)
