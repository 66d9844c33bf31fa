"""Input, result and errors of an exchange with a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ghost.errors import ScrapeError
from ghost.records import Clock
from ghost.scraper.urls import Url, UrlRefused, join

Stop = Callable[[], bool]
"""Returns whether to stop; called several times a second."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class StoppedError(ScrapeError):
    pass


class OutOfTimeError(ScrapeError):
    pass


class UnreachableError(ScrapeError):
    """No usable response: no connection, TLS failure, invalid HTTP, or a damaged body."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, tuple[str, ...]]
    """Headers by name in lower case."""
    body: bytes = b""
    """Empty unless the status is 200 and the type is accepted."""
    cut: bool = False
    """True if a body over the limit was truncated."""

    def header(self, name: str) -> str | None:
        """Return the first header of that name, without surrounding space."""
        values = self.headers.get(name)
        return values[0].strip() if values else None


@dataclass(frozen=True)
class Deadline:
    """The deadline of an exchange, and a function that ends it earlier."""

    clock: Clock
    deadline: float
    """Time of the clock's `monotonic`."""
    stop: Stop

    def seconds_left(self) -> float:
        """Return the remaining seconds. Raises `StoppedError`, `OutOfTimeError`."""
        if self.stop():
            raise StoppedError("stopped")
        seconds_left = self.deadline - self.clock.monotonic()
        if seconds_left <= 0:
            raise OutOfTimeError("no complete response in time")
        return seconds_left


def redirect_target(url: Url, response: Response) -> Url:
    """Return the target of a redirect. Raises `UrlRefused`."""
    location = response.header("location")
    if not location:
        raise UrlRefused("redirect without a target")
    with suppress(UnicodeDecodeError):
        location = location.encode("latin-1").decode("utf-8")  # what servers send that do not escape it
    return join(url, location)


def media_type(response: Response) -> str:
    """Return `text/html` without parameters; empty if not stated."""
    return (response.header("content-type") or "").partition(";")[0].strip().lower()[:80]
