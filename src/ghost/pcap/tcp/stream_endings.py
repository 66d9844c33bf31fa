"""How a TCP stream ended, for the readers of application protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ghost.pcap.model import Side


class End(NamedTuple):
    """What one side of a stream sent last."""

    endpoint: int
    """Address id << 16 | port."""
    next_sequence: int
    """Behind the last payload byte seen, a FIN not counted; -1 where this side sent nothing."""
    fin_frame: int
    """Of the first FIN; 0 without one."""
    rst_frame: int
    last_ns: int
    payload_bytes: int
    last_words: int = 0
    """How what it sent ends, as `layout` numbers it."""


class Close(NamedTuple):
    """A FIN or a reset."""

    frame: int
    side: Side
    reset: bool


class Ending(NamedTuple):
    sides: tuple[End, End]
    last_ns: int

    def of(self, endpoint: int) -> End:
        return self.sides[0] if self.sides[0].endpoint == endpoint else self.sides[1]

    def first_close(self, client: int, server: int) -> Close | None:
        """Return the endpoint that closed the connection, or None."""
        ours, theirs = self.of(client), self.of(server)
        closes = (
            Close(ours.fin_frame, "client", False),
            Close(theirs.fin_frame, "server", False),
            Close(ours.rst_frame, "client", True),
            Close(theirs.rst_frame, "server", True),
        )
        return min((each for each in closes if each.frame), default=None)


Endings: TypeAlias = Callable[[int], Ending]
"""By stream number."""

_MODULO = 1 << 32


def beyond(sequence: int, other: int) -> int:
    """Return how far `sequence` is after `other`, across the wrap of sequence space."""
    return (sequence - other + _MODULO // 2) % _MODULO - _MODULO // 2
