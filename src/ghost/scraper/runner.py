"""Execution of plans to read pages: breadth first, each page once, within the plan's limits and the settings."""

from __future__ import annotations

import importlib.util
import ssl
import threading
from collections.abc import Callable

from ghost import __version__
from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.records import Clock, SystemClock
from ghost.scraper.allowlist import Allowlist
from ghost.scraper.crawl import Crawl, Progress
from ghost.scraper.fetcher import Fetcher
from ghost.scraper.http_response import Stop
from ghost.scraper.network_io import Connect, Resolve, system_resolve, tcp_connect
from ghost.scraper.page_cache import KnownPages
from ghost.scraper.plan import ScrapePlan, ScrapeResult
from ghost.scraper.rate_limit import RateLimit
from ghost.scraper.robots import RobotsGate

__all__ = ["AGENT", "Progress", "Scraper"]

AGENT = "GhostBot"
"""What robots.txt files call this program: letters, `-` and `_` only (RFC 9309, section 2.2.1)."""

_NEEDED = ("httpcore2", "idna", "protego", "trafilatura")


class Scraper:
    """Reads pages. Keeps robots.txt, rate limits, Retry-After and validators between runs. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        *,
        resolve: Resolve = system_resolve,
        connect: Connect = tcp_connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create a scraper. Raises `ConfigurationError` for a missing package or an invalid allowlist entry.

        `resolve`, `connect` and `tls` replace network access; every address is still checked in between.
        """
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigurationError(f"reading pages needs {', '.join(missing)}: install ghost-investigator[mind]")
        self.settings = settings
        self.clock = SystemClock() if clock is None else clock
        contact = f" (+{settings.scraper_contact})" if settings.scraper_contact else ""
        self.user_agent = f"{AGENT}/{__version__}{contact}"
        self.allowlist = Allowlist(settings.allowlist())
        self.pace = RateLimit(self.clock)
        self.pages = KnownPages()
        self.fetcher = Fetcher(self.clock, self.user_agent, resolve=resolve, connect=connect, tls=tls)
        self.gate = RobotsGate(
            self.fetcher, self.allowlist, AGENT, self.pace, timeout_seconds=settings.scraper_http_timeout_seconds
        )

    def execute(
        self,
        plan: ScrapePlan,
        stop: threading.Event | Stop | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> ScrapeResult:
        """Return read and unread pages with reasons; a page never fails the run.

        `stop`, an event or a function, ends it within a fraction of a second, except during a name lookup or connect.
        `progress` is called from this thread. Raises `ConfigurationError` for an invalid entry in the plan's
        `allow_domains`.
        """
        return Crawl(
            plan,
            settings=self.settings,
            gate=self.gate,
            narrower=Allowlist(plan.allow_domains) if plan.allow_domains else None,
            fetcher=self.fetcher,
            pace=self.pace,
            pages=self.pages,
            agent=AGENT,
            stop=_asked(stop),
            progress=progress,
        ).run()


def _asked(stop: threading.Event | Stop | None) -> Stop:
    if stop is None:
        return lambda: False
    return stop.is_set if isinstance(stop, threading.Event) else stop
