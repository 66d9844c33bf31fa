"""Answers of a server to each client, by host and method, and the errors among them.

Paths are identified by a digest that stays internal; only their number leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from ghost.pcap.model import HttpErrors
from ghost.pcap.protocols.bounded_counts import EventCounter

_MOST = 20_000
_MOST_PATHS = 20
_ANYONE = -1

Asker: TypeAlias = tuple[int, int, str, str]
"""A client's address id, the server's endpoint, host and method; both empty where the request was not captured."""


class _Errors(EventCounter):
    __slots__ = ("by_gateway", "paths", "retry_after_s")

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[int] = set()
        self.retry_after_s: int | None = None
        self.by_gateway = False


class _Answers:
    __slots__ = ("errors", "total")

    def __init__(self) -> None:
        self.total = 0
        self.errors: dict[int, _Errors] = {}
        """By status."""


class ErrorAnswers:
    """Counts for at most some thousands of askers; beyond, further ones of a server are counted as one."""

    def __init__(self) -> None:
        self._answers: dict[Asker, _Answers] = {}
        self._kept = 0

    def add(
        self, asker: Asker, status: int, path: int, frame: int, retry_after_s: int | None, *, by_gateway: bool = False
    ) -> None:
        answers = self._answers.get(asker)
        if answers is None:
            if len(self._answers) >= _MOST:
                asker = (_ANYONE, asker[1], "", "")
            answers = self._answers.setdefault(asker, _Answers())
        answers.total += 1
        if status < 400:
            return
        errors = answers.errors.get(status)
        if errors is None:
            errors = _Errors()
            if self._kept < 2 * _MOST:
                self._kept += 1
                answers.errors[status] = errors
        errors.add(frame)
        errors.by_gateway |= by_gateway
        if len(errors.paths) < _MOST_PATHS:
            errors.paths.add(path)
        if retry_after_s is not None:
            errors.retry_after_s = max(retry_after_s, errors.retry_after_s or 0)

    def listed(self, address: Callable[[int], str]) -> tuple[HttpErrors, ...]:
        """Return the errors, most frequent first."""
        served: Counter[tuple[int, str | None]] = Counter()
        for (_, server, host, _), answers in self._answers.items():
            well = answers.total - sum(errors.count for errors in answers.errors.values())
            served[server, host] += well
            served[server, None] += well
        found = [
            HttpErrors(
                address(server >> 16), server & 0xFFFF, host or None, status, errors.count,
                tuple(sorted(errors.frames)),
                client=address(client) if client != _ANYONE else None,
                method=method or None,
                answers=answers.total,
                served=served[server, host],
                served_there=served[server, None],
                paths=len(errors.paths),
                retry_after_s=errors.retry_after_s,
                by_gateway=errors.by_gateway,
                last_frame=errors.last,
            )
            for (client, server, host, method), answers in self._answers.items()
            for status, errors in answers.errors.items()
        ]  # fmt: skip
        return tuple(sorted(found, key=lambda each: (-each.count, each.frames)))
