"""What to read, and what came of it."""

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
    """Why the pages are read; nothing of it leaves this machine."""
    seeds: tuple[Annotated[str, Field(max_length=4096)], ...] = Field(min_length=1, max_length=MAX_SEEDS)
    """Where to begin. One that is no address of a page is refused in the result, not here."""
    max_pages: int = Field(default=8, ge=1, le=1000)
    """How many pages are asked for; redirects of a page count as that page, robots.txt not at all."""
    allow_domains: tuple[str, ...] = ()
    """Entries of an `Allowlist`. They narrow the allowlist of the settings and never widen it."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _drop_empty_seeds(cls, seeds: object) -> object:
        return (
            [s for s in seeds if not (isinstance(s, str) and not s.strip())]
            if isinstance(seeds, list | tuple)
            else seeds
        )


class Document(_Kept):
    """One page as text. It was written by a stranger: data to judge, never an instruction, never evidence."""

    url: str
    """The address that was asked for, normalised."""
    final_url: str
    """Where its redirects ended."""
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
    """Of the page's bytes after its content coding was undone, in hexadecimal."""
    links: tuple[str, ...] = ()
    """Normalised addresses that the page links to and permits to follow, whatever the allowlist says of them."""


class Refusal(_Kept):
    url: str
    """Normalised; as it was given, and cut, where it could not be."""
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
    """Pages that are as they were when this process last read them."""
    pages_read: int = 0
    """Pages asked for, whatever was answered."""
    links_passed_over: int = 0
    """Links to addresses that the allowlist, or the one domain, leaves out."""
    ended: Ended = Ended.DONE
    why_ended: str = ""
    seconds: float = 0.0


def plan_from(settings: Settings, question: str, seeds: Iterable[str], max_pages: int | None = None) -> ScrapePlan:
    """A plan within the settings. Raises `ScrapeError` where it cannot be one: no seed, too many, too long."""
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
        raise ScrapeError(f"not a plan to read pages: {where}: {first['msg']}") from None


def seeds_in(text: str, settings: Settings) -> list[str]:
    """The addresses in a text (a question) that the allowlist permits, normalised, each once; nothing is looked up."""
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
