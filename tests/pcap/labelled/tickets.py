"""Connections of TLS 1.3 as OpenSSL serves them: two session tickets behind the handshake, whatever the client asks."""

from __future__ import annotations

from collections.abc import Sequence

from . import messages
from .office import Exchange, Office, Talk, talk

_PORT = 8443


def with_tickets(
    office: Office, pieces: Sequence[tuple[float, bytes]], *, begin: float, size: int = 250, asks: bool = True,
    together: bool = False, ends: str = "client", more: Sequence[Exchange] = (),
) -> Talk:  # fmt: skip
    """The client asks behind the handshake without waiting for the tickets, or asks nothing; the server's answer comes
    in pieces behind them. `together`: end of the handshake and request in one segment, and the tickets in another."""
    dice, version = office.dice, messages.TLS_1_3
    hello = messages.client_hello(office.name("api"), version, dice)
    finished, request = messages.client_flight(version, dice), messages.encrypted(dice.randrange(80, 700), dice)
    one, other = messages.encrypted(size, dice), messages.encrypted(size, dice)
    tickets = [(0.001, one + other)] if together else [(0.001, one), (0.0002, other)]
    opening = Exchange(hello, ((0.002, messages.server_flight(version, dice)),), 0.001)
    if not asks:
        return talk(
            office.client, office.server, _PORT, [opening, Exchange(finished, tuple(tickets), 0.001)], begin=begin,
            ends=ends,
        )  # fmt: skip
    if together:
        exchanges = [opening, Exchange(finished + request, (*tickets, *pieces), 0.001), *more]
        return talk(office.client, office.server, _PORT, exchanges, begin=begin, ends=ends)
    exchanges = [opening, Exchange(finished, (), 0.001), Exchange(request, (*tickets, *pieces), 0.0001), *more]
    both = talk(office.client, office.server, _PORT, exchanges, begin=begin, ends=ends)
    got = both.client_got

    def ask_behind(received: int) -> None:
        got(received)
        if both.asked == 2:
            # Nothing answers the end of the handshake: the request follows it at once.
            both.finished.append(office.world.now)
            office.world.later(0.001, both.ask)

    both.client.on_data = ask_behind
    return both
