"""Permission to read a page: the allowlist first, then the site's robots.txt (RFC 9309).

4xx                                   everything is permitted
5xx, no answer, a refused address     nothing is permitted
a redirect                            followed five times, each within the allowlist; the sixth: nothing is permitted
"""

from __future__ import annotations

import functools
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghost.errors import ScrapeError
from ghost.scraper.allowlist import Allowlist, Reach
from ghost.scraper.fetcher import Fetcher
from ghost.scraper.http_response import REDIRECTS, OutOfTimeError, Response, Stop, StoppedError, redirect_target
from ghost.scraper.rate_limit import RateLimit, retry_after_seconds
from ghost.scraper.robots_text import MAX_BYTES, for_agent
from ghost.scraper.urls import Url, UrlRefused, parse

if TYPE_CHECKING:
    from protego import Protego

KEPT_SECONDS = 86_400.0
"""RFC 9309, section 2.4: not longer than 24 hours."""
FAILURE_KEPT_SECONDS = 600.0
MAX_REDIRECTS = 5
_MAX_SITES = 512
_MAX_CHARS = 4 * 1024 * 1024  # of all files together; parsed, one takes some twenty times its size


@dataclass(frozen=True)
class Verdict:
    allowed: bool
    reason: str
    """The deciding rule, for people."""
    delay_seconds: float = 0.0
    """Seconds between requests: the longer of Crawl-delay and Request-rate."""
    reach: Reach = Reach.NOWHERE
    """The addresses that a connection for this URL may use."""

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True)
class _Site:
    """The robots.txt of one origin; `rules` is None if `reason` applies to every path."""

    permits: bool
    reason: str
    rules: Protego | None = None
    kept_seconds: float = KEPT_SECONDS
    chars: int = 0


class RobotsGate:
    """Robots rules of sites, cached for at most 24 hours in this process. Thread-safe."""

    def __init__(
        self, fetcher: Fetcher, allowlist: Allowlist, agent: str, pace: RateLimit, timeout_seconds: float
    ) -> None:
        """Create the cache. `agent`: the program's name for robots.txt, without version."""
        self._fetcher = fetcher
        self._allowlist = allowlist
        self._agent = agent
        self._pace = pace
        self._timeout_seconds = timeout_seconds
        self._sites: OrderedDict[tuple[str, tuple[str, ...]], tuple[float, _Site]] = OrderedDict()
        self._lock = threading.Lock()

    def reach(self, url: Url, narrower: Allowlist | None = None) -> Reach:
        """Return what the allowlist and a plan's narrower one permit, without lookups."""
        reach = self._allowlist.reach(url)
        return reach if narrower is None else min(reach, narrower.reach(url))

    def allowed(
        self,
        url: str | Url,
        *,
        narrower: Allowlist | None = None,
        within: float | None = None,
        stop: Stop = lambda: False,
    ) -> Verdict:
        """Return the verdict, requesting the site's robots.txt if needed.

        Raises `StoppedError`, and `OutOfTimeError` after `within` seconds.
        """
        try:
            url = parse(url) if isinstance(url, str) else url
        except UrlRefused as error:
            return Verdict(False, str(error))
        reach = self.reach(url, narrower)
        if reach is Reach.NOWHERE:
            return Verdict(False, "not on the allowlist")
        if url.path == "/robots.txt":
            return Verdict(True, "robots.txt itself may be read", reach=reach)
        site = self._site(url, narrower, within, stop)
        if site.rules is None:
            return Verdict(site.permits, site.reason, reach=reach)
        allowed = site.rules.can_fetch(str(url), self._agent)
        reason = "robots.txt permits it" if allowed else f"robots.txt of {url.authority} disallows it"
        return Verdict(allowed, reason, self._delay(site.rules), reach)

    def _delay(self, rules: Protego) -> float:
        rate = rules.request_rate(self._agent)
        try:
            interval = rate.seconds / rate.requests if rate else 0.0
        except OverflowError:  # a site may write more digits than a number of seconds can have
            interval = math.inf
        return max(rules.crawl_delay(self._agent) or 0.0, interval)

    def _site(self, url: Url, narrower: Allowlist | None, within: float | None, stop: Stop) -> _Site:
        key = (url.origin, () if narrower is None else narrower.key)
        now = self._fetcher.clock.monotonic()
        with self._lock:
            until, site = self._sites.get(key, (now, None))
        if site is not None and now < until:
            return site
        site = self._ask(url, narrower, within, stop)
        with self._lock:
            self._keep(key, site)
        return site

    def _keep(self, key: tuple[str, tuple[str, ...]], site: _Site) -> None:
        self._sites[key] = (self._fetcher.clock.monotonic() + site.kept_seconds, site)
        self._sites.move_to_end(key)
        chars = sum(cache_seconds.chars for _, cache_seconds in self._sites.values())
        while len(self._sites) > 1 and (len(self._sites) > _MAX_SITES or chars > _MAX_CHARS):
            _, (_, oldest) = self._sites.popitem(last=False)
            chars -= oldest.chars

    def _ask(self, url: Url, narrower: Allowlist | None, within: float | None, stop: Stop) -> _Site:
        patience = min(within, self._timeout_seconds) if within is not None else self._timeout_seconds
        deadline = self._fetcher.clock.monotonic() + patience
        at = Url(url.scheme, url.host, url.port, "/robots.txt")
        refused = functools.partial(_Site, False, kept_seconds=FAILURE_KEPT_SECONDS)
        try:
            for _ in range(MAX_REDIRECTS + 1):
                seconds_left = deadline - self._fetcher.clock.monotonic()
                reach = self.reach(at, narrower)
                answer = self._fetcher.get(at, reach, within=seconds_left, stop=stop, limit=MAX_BYTES, may_cut=True)
                if answer.status not in REDIRECTS:
                    return self._read(at, answer)
                at = redirect_target(at, answer)
        except StoppedError:
            raise
        except OutOfTimeError:
            if within is not None and within < self._timeout_seconds:
                raise  # the run's end, not the site's fault: nothing is known of it
            return refused(f"robots.txt of {url.authority} was not read in {self._timeout_seconds:.0f} s")
        except ScrapeError as error:
            return refused(f"robots.txt of {url.authority} was not read: {error}")
        return refused(f"robots.txt of {url.authority} redirects more than {MAX_REDIRECTS} times")

    def _read(self, at: Url, answer: Response) -> _Site:
        wait = retry_after_seconds(answer.header("retry-after"), self._fetcher.clock.now())
        if wait is not None and answer.status in {429, 503}:
            self._pace.hold(at.host, wait)
        if answer.status == 200:
            return self._parsed(at, answer)
        if answer.status == 204 or 400 <= answer.status < 500:
            return _Site(True, f"robots.txt of {at.authority} answers {answer.status}: everything is permitted")
        cache_seconds = max(FAILURE_KEPT_SECONDS, min(wait or 0.0, KEPT_SECONDS))
        return _Site(False, f"robots.txt of {at.authority} answers {answer.status}", kept_seconds=cache_seconds)

    def _parsed(self, at: Url, answer: Response) -> _Site:
        from protego import Protego

        body = answer.body
        if answer.cut:  # the last line may be half a rule
            body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
            if not body:
                return _Site(False, f"robots.txt of {at.authority} is a single overlong line")
        text = for_agent(body, self._agent)
        return _Site(True, f"robots.txt of {at.authority}", Protego.parse(text), chars=len(text))
