"""Simulated time: a queue of events. No real clock, no threads."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True)
class Event:
    """A future event; cancelled ones stay in the queue and do nothing."""

    moment: float
    order: int
    action: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class Simulation:
    """Runs events by time, in order of creation for equal times."""

    def __init__(self, start: float = 0.0) -> None:
        self.now = start
        self._queue: list[Event] = []
        self._made = 0

    def after(self, delay: float, action: Callable[[], None]) -> Event:
        self._made += 1
        event = Event(self.now + max(delay, 0.0), self._made, action)
        heapq.heappush(self._queue, event)
        return event

    def run(self, until: float) -> None:
        while self._queue and self._queue[0].moment <= until:
            event = heapq.heappop(self._queue)
            if not event.cancelled:
                self.now = event.moment
                event.action()
