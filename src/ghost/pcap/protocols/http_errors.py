"""Answers of a server to each client, by host and method, and the errors among them.

Paths are identified by a digest that stays internal; only their number leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ghost.pcap.model import HttpErrors
from ghost.pcap.protocols.bounded_counts import EventCounter

_MOST = 20_000
_MOST_PATHS = 20
_ANYONE = -1


class Asker(NamedTuple):
    client: int
    """Address id."""
    server: int
    """Endpoint."""
    host: str
    method: str
    """Both empty where the request was not captured."""


class _Errors(EventCounter):
    __slots__ = ("paths", "retry_after_s")

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[int] = set()
        self.retry_after_s: int | None = None


class ErrorAnswers:
    """Counts for at most some thousands of askers; beyond, further ones of a server are counted as one."""

    def __init__(self) -> None:
        self._answers: Counter[Asker] = Counter()
        self._errors: dict[tuple[Asker, int], _Errors] = {}

    def add(self, asker: Asker, status: int, path: int, frame: int, retry_after_s: int | None) -> None:
        if asker not in self._answers and len(self._answers) >= _MOST:
            asker = Asker(_ANYONE, asker.server, "", "")
        self._answers[asker] += 1
        if status < 400:
            return
        errors = self._errors.get((asker, status))
        if errors is None:
            errors = _Errors()
            if len(self._errors) < 2 * _MOST:
                self._errors[asker, status] = errors
        errors.add(frame)
        if len(errors.paths) < _MOST_PATHS:
            errors.paths.add(path)
        if retry_after_s is not None:
            errors.retry_after_s = max(retry_after_s, errors.retry_after_s or 0)

    def listed(self, address: Callable[[int], str]) -> tuple[HttpErrors, ...]:
        """Return the errors, most frequent first."""
        served: Counter[tuple[int, str]] = Counter()
        for asker, answers in self._answers.items():
            served[asker.server, asker.host] += answers
        for (asker, _), errors in self._errors.items():
            served[asker.server, asker.host] -= errors.count
        ranked = sorted(self._errors.items(), key=lambda item: (-item[1].count, sorted(item[1].frames)))
        return tuple(
            HttpErrors(
                address(asker.server >> 16), asker.server & 0xFFFF, asker.host or None, status, errors.count,
                tuple(sorted(errors.frames)),
                client=address(asker.client) if asker.client != _ANYONE else None,
                method=asker.method or None,
                answers=self._answers[asker],
                served=served[asker.server, asker.host],
                paths=len(errors.paths),
                retry_after_s=errors.retry_after_s,
            )
            for (asker, status), errors in ranked
        )  # fmt: skip
