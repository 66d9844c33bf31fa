"""What the scenes have in common."""

from __future__ import annotations

from ..office import Exchange, Office, Talk, talk


def other_port(office: Office) -> int:
    return office.port + 1 if office.port != 442 else 9000


def bulk(
    office: Office, size: int, *, up: bool = False, begin: float = 1.0, port: int | None = None, **options: object
) -> Talk:
    """One long transfer between the two of interest."""
    request, reply = (office.dice.randbytes(size), b"done" * 5) if up else (b"get " * 20, office.dice.randbytes(size))
    setup = office.opts(**options)
    return talk(
        office.client, office.server, port or office.port, [Exchange(request, ((0.003, reply),))], begin=begin,
        client_options=setup, server_options=setup,
    )  # fmt: skip
