"""Response times of each path of an HTTP server: one may always be slow while others are quick.

Paths are identified by a digest that stays internal; only a number leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

_MOST_PATHS = 4_096
_MOST_KEPT = 20

Asked: TypeAlias = tuple[int, str, int]
"""The server's endpoint, a method, and the digest of a path."""
Slow = TypeVar("Slow")


class _Path(Generic[Slow]):
    __slots__ = ("answers", "kept", "number", "slow")

    def __init__(self, number: int) -> None:
        self.number = number
        self.answers = self.slow = 0
        self.kept: list[Slow] = []
        """The first slow ones."""


class Paths(Generic[Slow]):
    """Answers by server, method and path, for at most a few thousand paths."""

    def __init__(self) -> None:
        self._paths: dict[Asked, _Path[Slow]] = {}

    def answered(self, asked: Asked) -> int:
        """Count an answer; return the number of its path, -1 if there is no room for another."""
        path = self._paths.get(asked)
        if path is None:
            if len(self._paths) >= _MOST_PATHS:
                return -1
            path = self._paths[asked] = _Path(len(self._paths))
        path.answers += 1
        return path.number

    def slowly(self, asked: Asked, slow: Slow) -> None:
        """Mark a counted answer as late."""
        path = self._paths.get(asked)
        if path is not None:
            path.slow += 1
            if len(path.kept) < _MOST_KEPT:
                path.kept.append(slow)

    def slow_ones(self, first: Callable[[Slow], int]) -> Iterator[tuple[Asked, int, int, list[Slow]]]:
        """Yield method, answers, slow answers and the first slow ones of every path that was ever slow, most slow
        answers first, then in order of `first`."""
        found = [(asked, path) for asked, path in self._paths.items() if path.kept]
        for asked, path in sorted(found, key=lambda each: (-each[1].slow, first(each[1].kept[0]))):
            yield asked, path.answers, path.slow, path.kept
