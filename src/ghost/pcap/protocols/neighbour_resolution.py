"""Unanswered address resolution: ARP (RFC 826) and neighbour solicitations (RFC 4861)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ghost.pcap import layout as L
from ghost.pcap.model import UnansweredArp

ANSWER_NS = 5_000_000_000
"""A reply later than this answers no open request."""
_MOST_TARGETS = 100_000
"""A scan of a whole network: further addresses are not followed."""

Asker = TypeVar("Asker", bytes, int)


@dataclass(slots=True)
class _Asked(Generic[Asker]):
    """Requests for one address.

    `open`: times of requests without a reply so far; `answered_last`: requester and time of the last answered request.
    """

    open: dict[Asker, list[int]] = field(default_factory=dict)
    answered_last: tuple[Asker, int] | None = None
    unanswered: int = 0
    askers: dict[Asker, None] = field(default_factory=dict)
    answered: dict[Asker, None] = field(default_factory=dict)
    last: int = 0
    at_the_end: int = 0
    """Since the address was last heard."""
    askers_at_the_end: dict[Asker, None] = field(default_factory=dict)
    frames_at_the_end: list[int] = field(default_factory=list)

    def add(self, asker: Asker, frame: int, now: int) -> None:
        self.open.setdefault(asker, []).append(now)
        self.last = now
        self.at_the_end += 1
        for askers in (self.askers, self.askers_at_the_end):
            if len(askers) < L.SAMPLE_FRAMES:
                askers[asker] = None
        if len(self.frames_at_the_end) < L.SAMPLE_FRAMES:
            self.frames_at_the_end.append(frame)

    def asked_at(self, asker: Asker) -> int | None:
        """Return when the requester last asked, answered or not."""
        times = self.open.get(asker)
        if times:
            return times[-1]
        return self.answered_last[1] if self.answered_last and self.answered_last[0] == asker else None

    def heard(self) -> None:
        """The address itself sent a packet."""
        self.at_the_end = 0
        self.askers_at_the_end.clear()
        self.frames_at_the_end.clear()

    def answer(self, asker: Asker, now: int) -> None:
        """Record a reply to `asker`: it answers the latest request and its repeats."""
        times = self.open.get(asker)
        if times and now - times[-1] <= ANSWER_NS:
            # Requests before the answered one in the same burst were repeats of it.
            late = [then for then in times if now - then > ANSWER_NS]
            self.unanswered += len(late)
            del self.open[asker]
            self.answered_last = (asker, times[-1])
            if len(self.answered) < L.SAMPLE_FRAMES:
                self.answered[asker] = None


class Requests(Generic[Asker]):
    """Requests for addresses of a segment, and their replies."""

    def __init__(self) -> None:
        self._asked: dict[bytes, _Asked[Asker]] = {}

    def ask(self, asker: Asker, target: bytes, frame: int, now: int) -> None:
        asked = self._asked.get(target)
        if asked is None:
            if len(self._asked) >= _MOST_TARGETS:
                return
            asked = self._asked[target] = _Asked()
        asked.add(asker, frame, now)

    def heard(self, address: bytes) -> None:
        """The address itself sent a packet, to any host."""
        asked = self._asked.get(address)
        if asked is not None:
            asked.heard()

    def answer(self, address: bytes, asker: Asker, now: int) -> None:
        asked = self._asked.get(address)
        if asked is not None:
            asked.answer(asker, now)

    def asked_at(self, address: bytes, asker: Asker) -> int | None:
        """Return when `asker` last requested it."""
        asked = self._asked.get(address)
        return None if asked is None else asked.asked_at(asker)

    def unanswered(self, name: Callable[[bytes], str], name_of_asker: Callable[[Asker], str]) -> list[UnansweredArp]:
        """Return addresses with unanswered requests, those with most first."""
        found = []
        replies = Counter(asker for asked in self._asked.values() for asker in asked.answered)
        for address, asked in self._asked.items():
            count = asked.unanswered + sum(len(times) for times in asked.open.values())
            if count:
                found.append(
                    UnansweredArp(
                        ip=name(address),
                        count=count,
                        asked_by=tuple(map(name_of_asker, asked.askers)),
                        sample_frames=tuple(asked.frames_at_the_end),
                        ever_answered=bool(asked.answered),
                        at_the_end=asked.at_the_end,
                        last_ns=asked.last,
                        answered=tuple(map(name_of_asker, asked.answered)),
                        asking=tuple(map(name_of_asker, asked.askers_at_the_end)),
                        replied_to=tuple(name_of_asker(asker) for asker in asked.askers if replies[asker] > 1),
                    )
                )
        return sorted(found, key=lambda one: (-one.count, one.ip))
