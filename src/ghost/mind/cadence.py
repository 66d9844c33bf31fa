"""Time of the next thought: the cadence, slower while nothing is new or the model fails, up to a limit."""

from __future__ import annotations

from collections import deque
from random import Random

JITTER = 0.1
SLOWEST_SECONDS = 300.0
"""Maximum seconds between thoughts while nothing is new, and between attempts while the model fails."""
_MINUTE = 60.0


class Cadence:
    """Times are seconds of one monotonic clock that the caller reads."""

    def __init__(self, seconds: float, per_minute: int, random: Random) -> None:
        self.seconds = seconds
        self._per_minute = per_minute
        self._random = random
        self._started_at: deque[float] = deque(maxlen=per_minute)
        self._not_before = 0.0
        self.failures = 0
        """Consecutive failures."""
        self.idle = 0
        """Consecutive cycles without anything new."""

    def begins(self, now: float) -> None:
        self._started_at.append(now)

    def succeeded(self, now: float, *, is_idle: bool) -> float:
        """Return the time of the next cycle: one cadence, doubled after each cycle without anything new."""
        self.failures = 0
        self.idle = self.idle + 1 if is_idle else 0
        self._not_before = 0.0
        return self._limited(now + self._jittered(self._slowed(self.idle)))

    def failed(self, now: float, retry_after_seconds: float | None = None) -> float:
        """Return the time after a failure: doubled after each, and not before the provider's stated wait."""
        self.failures += 1
        wait = self._jittered(self._slowed(self.failures))
        if retry_after_seconds is not None:
            wait = max(wait, retry_after_seconds)
        self._not_before = now + wait
        return self._limited(self._not_before)

    def soonest(self, now: float) -> float:
        """Return the earliest time of a cycle for new input."""
        return self._limited(max(now, self._not_before))

    def _slowed(self, doublings: int) -> float:
        return min(self.seconds * 2.0 ** min(doublings, 30), max(self.seconds, SLOWEST_SECONDS))

    def _jittered(self, seconds: float) -> float:
        return seconds * self._random.uniform(1 - JITTER, 1 + JITTER)

    def _limited(self, due: float) -> float:
        if len(self._started_at) < self._per_minute:
            return due
        return max(due, self._started_at[0] + _MINUTE)
