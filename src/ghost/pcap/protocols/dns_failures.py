"""Failed queries, each name once per client, so that many of one kind hide no other.

Names of a search list fail by the thousand and are found in the end: recovered failures make room for others. The rest
is bounded for each server and registered name.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from ghost.pcap.protocols.dns_open_questions import Asked, Who
from ghost.pcap.protocols.dns_question import registered

_MOST = 16_384
_MOST_OF_SERVER = 4_096
_MOST_BELOW = 256
"""Of one server, below one registered name."""
_MOST_MADE_UP = 1_024


class Failures:
    def __init__(self) -> None:
        self.total = 0
        """All of them, those made up for as well."""
        self.unlisted: Counter[int] = Counter()
        """By server: those for whose names there is no room."""
        self._kept: dict[Who, Asked] = {}
        self._recovered: OrderedDict[Who, Asked] = OrderedDict()
        """A name that once was a trial on the way to another is one whenever it is asked for."""
        self._of_server: Counter[int] = Counter()
        self._below: Counter[tuple[int, str]] = Counter()

    def __iter__(self) -> Iterator[Asked]:
        yield from self._kept.values()
        yield from self._recovered.values()

    def add(self, asked: Asked) -> None:
        self.total += 1
        known = self._kept.get(asked.who) or self._recovered.get(asked.who)
        if known is not None:
            known.count += 1
            return
        below = _group(asked)
        if len(self._kept) < _MOST and self._of_server[below[0]] < _MOST_OF_SERVER and self._below[below] < _MOST_BELOW:
            self._kept[asked.who] = asked
            self._of_server[below[0]] += 1
            self._below[below] += 1
        else:
            self.unlisted[below[0]] += 1

    def recovered(self, asked: Asked) -> None:
        """Mark a failure as recovered by a later success."""
        kept = self._kept.pop(asked.who, None)
        if kept is None:
            return
        kept.recovered = True
        below = _group(kept)
        self._of_server[below[0]] -= 1
        self._below[below] -= 1
        if not self._below[below]:
            del self._below[below]
        self._recovered[kept.who] = kept
        if len(self._recovered) > _MOST_MADE_UP:
            self._recovered.popitem(last=False)


def _group(asked: Asked) -> tuple[int, str]:
    return asked.who[1], registered(asked.who[2][0])
