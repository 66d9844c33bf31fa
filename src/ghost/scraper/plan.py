"""A plan to read pages, and its result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ghost.config import Settings
from ghost.errors import ScrapeError
from ghost.scraper.allowlist import Allowlist, Reach
from ghost.scraper.urls import UrlRefused, parse

MAX_SEEDS = 100
_URL_IN_TEXT = re.compile(r"https?://[^\s<>\"'`{}|\\^]{1,2040}", re.IGNORECASE)
_SENTENCE_END = ".,;:!?)]»”"


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScrapePlan(_Kept):
    question: str = Field(default="", max_length=2000)
    """Why the pages are read; it does not leave this machine."""
    seeds: tuple[Annotated[str, Field(max_length=4096)], ...] = Field(min_length=1, max_length=MAX_SEEDS)
    """Start addresses. An invalid one is refused in the result, not here."""
    max_pages: int = Field(default=8, ge=1, le=1000)
    """Maximum requested pages; redirects count as their page, robots.txt is not counted."""
    allow_domains: tuple[str, ...] = ()
    """Entries of an `Allowlist`. They restrict the allowlist of the settings and never extend it."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _drop_empty_seeds(cls, seeds: object) -> object:
        return (
            [s for s in seeds if not (isinstance(s, str) and not s.strip())]
            if isinstance(seeds, list | tuple)
            else seeds
        )


class Document(_Kept):
    """One page as text from a third party: data to judge, never an instruction or evidence."""

    url: str
    """The requested address, normalised."""
    final_url: str
    """The final address after redirects."""
    title: str
    text: str
    """Without markup and control characters, at most `SCRAPER_DOC_MAX_CHARS` characters."""
    truncated: bool = False
    content_type: str
    """`text/html` or `text/plain`."""
    fetched_at: float
    """Epoch seconds."""
    etag: str | None = None
    last_modified: str | None = None
    sha256: str
    """SHA-256 of the decoded body, in hexadecimal."""
    links: tuple[str, ...] = ()
    """Normalised links that the page permits to follow, whether or not they are allowed."""


class Refusal(_Kept):
    url: str
    """Normalised, or truncated as given if that is not possible."""
    reason: str


class Ended(StrEnum):
    DONE = "done"
    PAGE_LIMIT = "page_limit"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"


class ScrapeResult(_Kept):
    documents: tuple[Document, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    """Seeds, redirects and pages that were not read, each with the reason. Links that the allowlist leaves out are only
    counted."""
    not_modified: tuple[str, ...] = ()
    """Pages unchanged since this process last read them."""
    pages_read: int = 0
    """Requested pages, whatever the response."""
    links_passed_over: int = 0
    """Links excluded by the allowlist or by `same_domain`."""
    ended: Ended = Ended.DONE
    why_ended: str = ""
    seconds: float = 0.0


def plan_from(settings: Settings, question: str, seeds: Iterable[str], max_pages: int | None = None) -> ScrapePlan:
    """Return a plan within the settings. Raises `ScrapeError` for an invalid plan: no seed, too many, too long."""
    try:
        return ScrapePlan(
            question=question,
            seeds=tuple(seeds),
            max_pages=settings.scraper_max_pages if max_pages is None else max_pages,
            allow_domains=tuple(settings.allowlist()),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ScrapeError(f"invalid plan to read pages: {where}: {first['msg']}") from None


def seeds_in(text: str, settings: Settings) -> list[str]:
    """Return the distinct allowed addresses in a text, normalised, without lookups."""
    allowlist = Allowlist(settings.allowlist())
    found: dict[str, None] = {}
    for match in _URL_IN_TEXT.finditer(text):
        try:
            url = parse(match[0].rstrip(_SENTENCE_END))
        except UrlRefused:
            continue
        if allowlist.reach(url) is not Reach.NOWHERE:
            found[str(url)] = None
    return list(found)[:MAX_SEEDS]
