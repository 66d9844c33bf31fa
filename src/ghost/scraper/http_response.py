"""What an exchange with a server is given, gives back and fails with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ghost.errors import ScrapeError
from ghost.records import Clock
from ghost.scraper.urls import Url, UrlRefused, join

Stop = Callable[[], bool]
"""Whether to end; asked several times a second."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class StoppedError(ScrapeError):
    pass


class OutOfTimeError(ScrapeError):
    pass


class UnreachableError(ScrapeError):
    """No usable answer came: no connection, no TLS, no HTTP, a damaged body."""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, tuple[str, ...]]
    """By name in lower case."""
    body: bytes = b""
    """Only of a 200 whose type was wanted."""
    cut: bool = False
    """Whether the body was longer than the limit, where that was permitted."""

    def header(self, name: str) -> str | None:
        """The first of that name, without surrounding space."""
        values = self.headers.get(name)
        return values[0].strip() if values else None


@dataclass(frozen=True)
class Patience:
    """Until when an exchange may last, and what ends it earlier."""

    clock: Clock
    deadline: float
    """By the clock's `monotonic`."""
    stop: Stop

    def left(self) -> float:
        """Seconds. Raises `StoppedError`, `OutOfTimeError`."""
        if self.stop():
            raise StoppedError("stopped")
        left = self.deadline - self.clock.monotonic()
        if left <= 0:
            raise OutOfTimeError("no complete answer in time")
        return left


def redirect_target(url: Url, response: Response) -> Url:
    """Where a redirect points. Raises `UrlRefused`."""
    location = response.header("location")
    if not location:
        raise UrlRefused("it redirects and does not say where to")
    with suppress(UnicodeDecodeError):
        location = location.encode("latin-1").decode("utf-8")  # what servers send that do not escape it
    return join(url, location)


def media_type(response: Response) -> str:
    """`text/html`, without parameters; empty where the server does not say."""
    return (response.header("content-type") or "").partition(";")[0].strip().lower()[:80]
