"""Open DNS queries, found by the answer's content and by client.

Every operation takes constant time, however many are open: a client in an outage repeats one name thousands of times,
and a broken one with one id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

RECOVERY_NS = 10_000_000_000
"""An answer to the same question that comes later than this made up for nothing."""

Asking = tuple[str, str]
"""Name and type."""
Key = tuple[int, int, int, Asking]
"""Endpoints of client and server (address id << 16 | port), message id, name and type."""
Who = tuple[int, int, Asking]
"""Client, server, name and type."""
_Number = tuple[int, int, int]
"""Endpoints and message id."""


@dataclass(slots=True, eq=False)
class Asked:
    """A query and its outcome."""

    key: Key
    who: Who
    first: int
    last: int
    frame: int
    attempts: int = 1
    latency: int | None = None
    rcode: str | None = None
    recovered: bool = False
    count: int = 1
    """How often the same client got the same failure for the same name and type; this is the first."""


class OpenQuestions:
    def __init__(self) -> None:
        self._open: OrderedDict[Key, Asked] = OrderedDict()
        self._by_number: dict[_Number, OrderedDict[Key, None]] | None = None
        """Made when the first answer without its question asks for it."""
        self._lost: dict[Who, Asked | OrderedDict[Key, Asked]] = {}
        """Those that a later answer may still make up for: one, or where there were several all in their order. Each
        leaves it when an answer decides about it, so that none is looked at twice."""

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, key: Key) -> bool:
        return key in self._open

    def __iter__(self) -> Iterator[Asked]:
        return iter(self._open.values())

    def get(self, key: Key) -> Asked | None:
        return self._open.get(key)

    def add(self, asked: Asked) -> None:
        self._open[asked.key] = asked
        if self._by_number is not None:
            self._number(asked.key)
        if self._lost.setdefault(asked.who, asked) is not asked:
            self._may_recover(asked)

    def again(self, asked: Asked, frame: int, now: int) -> None:
        """The client repeated an open query unchanged."""
        asked.attempts += 1
        asked.last, asked.frame = now, frame
        if not asked.recovered:
            self._may_recover(asked)

    def close(self, key: Key) -> Asked:
        asked = self._open.pop(key)
        if self._by_number is not None:
            numbered = self._by_number[key[:3]]
            del numbered[key]
            if not numbered:
                del self._by_number[key[:3]]
        same = self._lost.get(asked.who)
        if isinstance(same, OrderedDict):
            same.pop(key, None)
        if same is asked or not same:
            self._lost.pop(asked.who, None)
        return asked

    def close_oldest(self) -> Asked:
        return self.close(next(iter(self._open)))

    def numbered(self, number: _Number) -> Key | None:
        """Return the first open query with these endpoints and this id."""
        if self._by_number is None:
            self._by_number = {}
            for key in self._open:
                self._number(key)
        return next(iter(self._by_number.get(number, ())), None)

    def recover(self, answered: Asked, now: int) -> int:
        """Mark open queries that this answer to the same question recovers; return their number."""
        same = self._lost.get(answered.who)
        if same is None:
            return 0
        if isinstance(same, Asked):
            if same.first > answered.first:
                return 0
            del self._lost[answered.who]
            return _mark_recovered(same, now)
        recovered = 0
        while same:
            key, oldest = next(iter(same.items()))
            if oldest.first > answered.first:
                return recovered
            del same[key]
            recovered += _mark_recovered(oldest, now)
        del self._lost[answered.who]
        return recovered

    def _number(self, key: Key) -> None:
        assert self._by_number is not None
        self._by_number.setdefault(key[:3], OrderedDict())[key] = None

    def _may_recover(self, asked: Asked) -> None:
        same = self._lost.get(asked.who)
        if same is None:
            self._lost[asked.who] = asked
        elif isinstance(same, OrderedDict):
            same[asked.key] = asked
        elif same is not asked:
            self._lost[asked.who] = OrderedDict(((same.key, same), (asked.key, asked)))


def _mark_recovered(asked: Asked, now: int) -> bool:
    asked.recovered = now - asked.last <= RECOVERY_NS
    return asked.recovered
