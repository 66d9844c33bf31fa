"""One crawl: a queue of addresses, read one at a time, until it is empty or a limit is reached."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ghost.config import Settings
from ghost.errors import ScrapeError
from ghost.records import Clock
from ghost.scraper.allowlist import Allowlist, Reach
from ghost.scraper.decoding import text_of
from ghost.scraper.fetcher import Fetcher
from ghost.scraper.http_response import (
    REDIRECTS,
    OutOfTimeError,
    Response,
    Stop,
    StoppedError,
    media_type,
    redirect_target,
)
from ghost.scraper.page_cache import KnownPage, KnownPages, validators
from ghost.scraper.pages import Page, clean, cut_at_word, header_directives, read_html, read_text
from ghost.scraper.plan import Document, Ended, Refusal, ScrapePlan, ScrapeResult
from ghost.scraper.rate_limit import RateLimit, retry_after_seconds
from ghost.scraper.robots import RobotsGate
from ghost.scraper.urls import Url, UrlRefused, join, parse

MAX_REDIRECTS = 5
READ_TYPES = frozenset({"text/html", "text/plain"})
BACK_OFF_SECONDS = 30.0
"""Seconds to wait after a 429 without Retry-After."""
_MAX_QUEUE = 5000
_SLICE_SECONDS = 0.1
_SHOWN_URL_CHARS = 200
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True)
class Progress:
    kind: str
    """`asking`, `waiting`, `read`, `not_modified` or `refused`."""
    url: str
    detail: str
    pages_read: int
    queued: int


@dataclass(frozen=True)
class _Visit:
    url: Url
    domain: str
    """The host of the seed it was reached from."""
    again: bool = False
    """True if it is a retry after the host asked to wait."""


@dataclass
class Crawl:
    plan: ScrapePlan
    settings: Settings
    gate: RobotsGate
    narrower: Allowlist | None
    fetcher: Fetcher
    pace: RateLimit
    pages: KnownPages
    agent: str
    stop: Stop
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        self._clock: Clock = self.fetcher.clock
        self._started_at = self._clock.monotonic()
        self._deadline = self._started_at + self.settings.scraper_max_runtime_seconds
        self._queue: deque[_Visit] = deque()
        self._seen: set[Url] = set()
        self._finished: set[Url] = set()
        self._documents: list[Document] = []
        self._refusals: list[Refusal] = []
        self._not_modified: list[str] = []
        self._passed_over: set[str] = set()
        self._pages_read = 0

    def run(self) -> ScrapeResult:
        ended, why = Ended.DONE, "all addresses were visited"
        try:
            self._take_in_seeds()
            while self._queue:
                if self._pages_read >= self.plan.max_pages:
                    ended, why = Ended.PAGE_LIMIT, f"{self.plan.max_pages} pages were requested"
                    break
                self._visit(self._next())
        except StoppedError:
            ended, why = Ended.STOPPED, "it was stopped"
        except OutOfTimeError as error:
            ended, why = Ended.TIME_LIMIT, str(error)
        if self._queue:
            why += f"; {len(self._queue)} known addresses were not visited"
        return ScrapeResult(
            documents=tuple(self._documents),
            refusals=tuple(self._refusals),
            not_modified=tuple(self._not_modified),
            pages_read=self._pages_read,
            links_passed_over=len(self._passed_over),
            ended=ended,
            why_ended=why,
            seconds=round(self._clock.monotonic() - self._started_at, 3),
        )

    def _take_in_seeds(self) -> None:
        for seed in self.plan.seeds:
            try:
                url = parse(seed)
            except UrlRefused as error:
                self._refuse(seed[:_SHOWN_URL_CHARS], str(error))
                continue
            if self.gate.reach(url, self.narrower) is Reach.NOWHERE:
                self._refuse(url, "not on the allowlist")
            elif url not in self._seen:
                self._seen.add(url)
                self._queue.append(_Visit(url, url.host))

    def _next(self) -> _Visit:
        """Return the first address whose host is free now, else the one whose host is free soonest."""
        waits: dict[str, float] = {}
        for visit in self._queue:
            if visit.url.host not in waits:
                waits[visit.url.host] = self.pace.seconds_until_free(visit.url.host)
                if waits[visit.url.host] == 0.0:
                    break
        soonest = min(waits, key=waits.__getitem__)
        visit = next(visit for visit in self._queue if visit.url.host == soonest)
        remaining = self._seconds_left()
        if waits[soonest] >= remaining:
            raise OutOfTimeError(
                f"{soonest} may be asked again in {waits[soonest]:.1f} s, and {remaining:.1f} s are left"
            )
        self._queue.remove(visit)
        return visit

    def _visit(self, visit: _Visit) -> None:
        if visit.url in self._finished:
            return  # a redirect led there in the meantime
        try:
            self._follow(visit)
        except (StoppedError, OutOfTimeError):
            raise
        except ScrapeError as error:
            self._refuse(visit.url, str(error))

    def _follow(self, visit: _Visit) -> None:
        """Request the page and its redirects, each checked like the first."""
        url, requested = visit.url, False
        chain: list[Url] = []
        for _ in range(MAX_REDIRECTS + 1):
            chain.append(url)
            verdict = self.gate.allowed(url, narrower=self.narrower, within=self._seconds_left(), stop=self.stop)
            if not verdict.allowed:
                raise ScrapeError(_through(chain, verdict.reason))
            if not self._wait_for_turn(url, verdict.delay_seconds, final=not requested):
                raise ScrapeError(_through(chain, f"{url.host} may not be requested again in the remaining time"))
            if not requested and not visit.again:
                self._pages_read += 1
            requested = True
            known = self.pages.get(url)
            response = self._get(url, verdict.reach, chain, known)
            if response.status not in REDIRECTS:
                self._seen.update(chain)
                if response.status in {429, 503}:
                    self._hold(visit, url, response)
                else:
                    self._finished.update(chain)
                    self._take(visit, url, response, known)
                return
            target = redirect_target(url, response)
            if target in chain:
                raise ScrapeError(_through(chain, f"redirects in a circle, to {_shown(target)}"))
            if target in self._finished:
                return  # that page was read
            if self.gate.reach(target, self.narrower) is Reach.NOWHERE:
                raise ScrapeError(_through(chain, f"redirects to {target.authority}, not on the allowlist"))
            if self.settings.scraper_same_domain_only and not same_domain(visit.domain, target.host):
                raise ScrapeError(_through(chain, f"redirects to another domain, {target.authority}"))
            url = target
        raise ScrapeError(f"redirects more than {MAX_REDIRECTS} times")

    def _get(self, url: Url, reach: Reach, chain: list[Url], known: KnownPage | None) -> Response:
        self._report("asking", url, "")
        within = min(self.settings.scraper_http_timeout_seconds, self._seconds_left())
        try:
            return self.fetcher.get(
                url,
                reach,
                within=within,
                stop=self.stop,
                limit=self.settings.scraper_max_bytes,
                types=READ_TYPES,
                headers={} if known is None else known.conditions(),
            )
        except StoppedError:
            raise
        except OutOfTimeError as error:
            self._seconds_left()  # ends the run where its time is over, not only the page's
            raise ScrapeError(_through(chain, f"{error} ({within:.1f} s)")) from error
        except ScrapeError as error:
            raise ScrapeError(_through(chain, str(error))) from error

    def _take(self, visit: _Visit, url: Url, response: Response, known: KnownPage | None) -> None:
        """Process a response that is neither a redirect nor a request to wait."""
        if response.status == 304 and known is not None:
            self._not_modified.append(str(visit.url))
            self._report("not_modified", url, "")
            self._take_in_links(visit, known.links)
        elif response.status != 200:
            self._refuse(visit.url, f"answered {response.status}")
        elif (content_type := media_type(response)) not in READ_TYPES:
            self._refuse(visit.url, f"is {content_type or 'of no stated type'}, not HTML or plain text")
        else:
            self._read(visit, url, response, content_type)

    def _read(self, visit: _Visit, url: Url, response: Response, content_type: str) -> None:
        html = content_type == "text/html"
        declared = _CHARSET.search(response.header("content-type") or "")
        characters = text_of(response.body, declared[1] if declared else None, html=html)
        try:
            page = read_html(characters, self.agent) if html else read_text(characters)
        except Exception as error:  # noqa: BLE001 - a stranger's page must not end the run, whatever it breaks
            self._refuse(visit.url, f"cannot be read: {type(error).__name__}")
            return
        asked_for = header_directives(response.headers.get("x-robots-tag", ()), self.agent)
        links = links_of(page, url) if page.follow and asked_for.follow else ()
        self._take_in_links(visit, links)
        if not (page.index and asked_for.index):
            self._refuse(visit.url, "requests not to be indexed (noindex)")
            return
        if not page.text:
            self._refuse(visit.url, "holds no text")
            return
        etag, last_modified = validators(response)
        self.pages.keep(KnownPage(etag, last_modified, url, links))
        text, truncated = cut_at_word(page.text, self.settings.scraper_doc_max_chars)
        self._documents.append(
            Document(
                url=str(visit.url),
                final_url=str(url),
                title=page.title,
                text=text,
                truncated=truncated,
                content_type=content_type,
                fetched_at=self._clock.now().timestamp(),
                etag=etag,
                last_modified=last_modified,
                sha256=hashlib.sha256(response.body).hexdigest(),
                links=links,
            )
        )
        self._report("read", url, page.title)

    def _hold(self, visit: _Visit, url: Url, response: Response) -> None:
        """Handle a host's request to wait: retry the page once, if the wait ends in time."""
        wait = retry_after_seconds(response.header("retry-after"), self._clock.now())
        if wait is None and response.status == 503:
            self._refuse(visit.url, "answered 503")
            return
        wait = BACK_OFF_SECONDS if wait is None else wait
        self.pace.hold(url.host, wait)
        if visit.again or wait >= self._seconds_left():
            self._refuse(visit.url, f"answered {response.status} and asks to wait {wait:.0f} s")
            return
        self._queue.append(_Visit(visit.url, visit.domain, again=True))

    def _take_in_links(self, visit: _Visit, links: Iterable[str]) -> None:
        for link in links:
            url = parse(link)
            if url in self._seen:
                continue
            one_domain = self.settings.scraper_same_domain_only
            if self.gate.reach(url, self.narrower) is Reach.NOWHERE or (
                one_domain and not same_domain(visit.domain, url.host)
            ):
                self._passed_over.add(link)
            elif len(self._queue) < _MAX_QUEUE:
                self._seen.add(url)
                self._queue.append(_Visit(url, visit.domain if one_domain else url.host))

    def _wait_for_turn(self, url: Url, delay_seconds: float, *, final: bool) -> bool:
        """Return whether the host may be requested now. With `final`, a wait that is too long ends the run."""
        interval = max(self.settings.scraper_interval_seconds, delay_seconds)
        reported = False
        while (wait := self.pace.take_turn(url.host, interval)) > 0:
            remaining = self._seconds_left()
            if wait >= remaining and not final:
                return False
            if wait >= remaining:
                raise OutOfTimeError(f"{url.host} may be asked again in {wait:.1f} s, and {remaining:.1f} s are left")
            if not reported:
                self._report("waiting", url, f"{wait:.1f} s")
                reported = True
            self._clock.sleep(min(wait, _SLICE_SECONDS))
        return True

    def _seconds_left(self) -> float:
        """Return the remaining seconds. Raises `StoppedError`, `OutOfTimeError`."""
        if self.stop():
            raise StoppedError("it was stopped")
        remaining = self._deadline - self._clock.monotonic()
        if remaining <= 0:
            raise OutOfTimeError(f"{self.settings.scraper_max_runtime_seconds:g} s are over")
        return remaining

    def _refuse(self, url: Url | str, reason: str) -> None:
        reported = Refusal(url=clean(str(url)), reason=clean(reason))  # both may quote a stranger
        self._refusals.append(reported)
        self._report("refused", reported.url, reported.reason)

    def _report(self, kind: str, url: Url | str, detail: str) -> None:
        if self.progress is not None:
            self.progress(Progress(kind, str(url), detail, self._pages_read, len(self._queue)))


def same_domain(seed_host: str, host: str) -> bool:
    """Return whether the host is the seed's, with or without `www.`, or below it."""
    domain = seed_host.removeprefix("www.")
    return host in {seed_host, domain} or host.endswith(f".{domain}")


def links_of(page: Page, url: Url) -> tuple[str, ...]:
    """Return the page's distinct links as normalised addresses; invalid ones are dropped."""
    base = url
    if page.base is not None:
        try:
            base = join(url, page.base)
        except UrlRefused:
            base = url
    found: dict[str, None] = {}
    for link in page.links:
        try:
            found[str(join(base, link))] = None
        except UrlRefused:
            continue
    return tuple(found)


def _through(chain: list[Url], reason: str) -> str:
    return reason if len(chain) == 1 else f"{reason} (redirected to {_shown(chain[-1])})"


def _shown(url: Url) -> str:
    return str(url)[:_SHOWN_URL_CHARS]
