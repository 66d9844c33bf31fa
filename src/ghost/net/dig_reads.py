"""What public DNS answers for a name that Azure's configuration does not show: one command of `dig`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ghost.net.address_matching import is_address
from ghost.net.names.records import PublicName, dns_name
from ghost.net.network import Missing

MAX_ADDRESSES: Final = 8
"""Those that are walked; a name with more is a content network's, whose addresses fare alike."""
MAX_LINES: Final = 64
_COMMAND: Final = ("dig", "+short", "+time=3", "+tries=1", "A")


def dig_of(name: str) -> tuple[str, ...]:
    """Return the command that asks for the IPv4 addresses of a name, from where this process runs."""
    return (*_COMMAND, name)


def asked_by_dig(argv: Sequence[str]) -> Missing | None:
    """Return what a recorded command asked for; None if it is not such a command."""
    with suppress(ValueError):
        if len(argv) == len(_COMMAND) + 1 and tuple(argv[:-1]) == _COMMAND:
            return Missing(PublicName, dns_name(argv[-1]))
    return None


def public_name(name: str, text: str, reference: str) -> PublicName:
    """Return the answer that `dig +short` printed: a line a record, aliases among them.

    Raises `ValueError` if no server answered.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith(";") for line in lines):
        raise ValueError(next(line for line in lines if line.startswith(";")).lstrip("; ")[:120])
    addresses = tuple(line for line in lines[:MAX_LINES] if is_address(line))[:MAX_ADDRESSES]
    return PublicName(id=name, addresses=addresses, reference=reference)
