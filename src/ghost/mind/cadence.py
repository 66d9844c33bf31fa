"""When the stream thinks next: its cadence, slower while nothing is new or the model fails, never over the limit."""

from __future__ import annotations

from collections import deque
from random import Random

JITTER = 0.1
SLOWEST_SECONDS = 300.0
"""Between two thoughts while nothing is new, and between two tries while the model fails; the cadence, where slower."""
_MINUTE = 60.0


class Cadence:
    """Times are seconds of one monotonic clock; who waits says what it is."""

    def __init__(self, seconds: float, per_minute: int, random: Random) -> None:
        self.seconds = seconds
        self._per_minute = per_minute
        self._random = random
        self._begun: deque[float] = deque(maxlen=per_minute)
        self._not_before = 0.0
        self.failures = 0
        """In a row."""
        self.idle = 0
        """Cycles in a row that had nothing new."""

    def begins(self, now: float) -> None:
        self._begun.append(now)

    def went_well(self, now: float, *, is_idle: bool) -> float:
        """When the next cycle is due: in one cadence, twice as long after each cycle that had nothing new."""
        self.failures = 0
        self.idle = self.idle + 1 if is_idle else 0
        self._not_before = 0.0
        return self._limited(now + self._jittered(self._slowed(self.idle)))

    def failed(self, now: float, retry_after_seconds: float | None = None) -> float:
        """The same after a failure: twice as long after each, and never before the provider said."""
        self.failures += 1
        wait = self._jittered(self._slowed(self.failures))
        if retry_after_seconds is not None:
            wait = max(wait, retry_after_seconds)
        self._not_before = now + wait
        return self._limited(self._not_before)

    def soonest(self, now: float) -> float:
        """When a cycle may begin at the earliest, because something new came in."""
        return self._limited(max(now, self._not_before))

    def _slowed(self, doublings: int) -> float:
        return min(self.seconds * 2.0 ** min(doublings, 30), max(self.seconds, SLOWEST_SECONDS))

    def _jittered(self, seconds: float) -> float:
        return seconds * self._random.uniform(1 - JITTER, 1 + JITTER)

    def _limited(self, due: float) -> float:
        if len(self._begun) < self._per_minute:
            return due
        return max(due, self._begun[0] + _MINUTE)
