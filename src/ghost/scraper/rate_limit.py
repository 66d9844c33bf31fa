"""Rate limit per host: at most one request per interval, and none before its Retry-After."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ghost.records import Clock

MAX_HOLD_SECONDS = 86_400.0
_MAX_HOSTS = 4096


class RateLimit:
    """The turns of the hosts, shared by several runs. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_at: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_until_free(self, host: str) -> float:
        with self._lock:
            return max(0.0, self._free_at.get(host, 0.0) - self._clock.monotonic())

    def take_turn(self, host: str, interval_seconds: float) -> float:
        """Return 0 if the turn was taken, else the seconds to wait."""
        with self._lock:
            now = self._clock.monotonic()
            wait = self._free_at.get(host, now) - now
            if wait > 0:
                return wait
            self._set(host, now + interval_seconds)
            return 0.0

    def hold(self, host: str, seconds: float) -> None:
        """Block requests to this host for the given seconds."""
        with self._lock:
            until = self._clock.monotonic() + min(max(seconds, 0.0), MAX_HOLD_SECONDS)
            self._set(host, max(until, self._free_at.get(host, until)))

    def _set(self, host: str, free_at: float) -> None:
        self._free_at[host] = free_at
        self._free_at.move_to_end(host)
        while len(self._free_at) > _MAX_HOSTS:
            self._free_at.popitem(last=False)


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Parse Retry-After (RFC 9110, section 10.2.3): seconds or a date. None if it is neither."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:10]), MAX_HOLD_SECONDS)
    try:
        moment = parsedate_to_datetime(value[:64])
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), MAX_HOLD_SECONDS)
