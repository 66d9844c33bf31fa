"""Retries with exponential back-off and full jitter, within the time of the whole call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from random import Random
from typing import TypeVar

from ghost.errors import ProviderError
from ghost.records import Clock

T = TypeVar("T")

ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 8.0
LONGEST_WISH_SECONDS = 86_400.0
"""Maximum wait that a server may request, in seconds."""

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


def retried(ask: Callable[[float], T], *, seconds: float, clock: Clock, random: Random) -> T:
    """Return `ask(seconds left)`, called at most `ATTEMPTS` times while its `ProviderError` is transient.

    A wait is a random part of 0.5, 1, 2 ... seconds and at least the server's; if it would exceed `seconds`, the error
    is raised at once, with the server's wait.
    """
    end = clock.monotonic() + seconds
    for attempt in range(ATTEMPTS):
        try:
            return ask(end - clock.monotonic())
        except ProviderError as error:
            bound = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**attempt)
            wait = max(random.uniform(0, bound), error.retry_after_seconds or 0.0)
            if not error.transient or attempt + 1 == ATTEMPTS or wait >= end - clock.monotonic():
                raise
        clock.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def retry_after_seconds(value: str | None, clock: Clock) -> float | None:
    """Parse `Retry-After` (RFC 9110, 10.2.3): seconds or a date, at most a day. `None` for anything else."""
    if value is None:
        return None
    text = value.strip()[:64]
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, IndexError, TypeError, OverflowError):
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - clock.now()).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WISH_SECONDS) if isfinite(seconds) else None
