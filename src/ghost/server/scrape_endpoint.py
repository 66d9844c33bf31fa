"""`POST /scrape`: reads allow-listed pages."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from ghost.scraper import Allowlist, Ended, Reach, ScrapeResult, UrlRefused, parse, plan_from, seeds_in
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import QUERY_CHARACTERS, SEED_CHARACTERS, SEEDS, SEEDS_CHARACTERS
from ghost.server.worker_threads import detached

router = APIRouter(tags=["scraper"])


class PageRead(BaseModel):
    url: str
    final_url: str = Field(description="The final URL after redirects.")
    title: str
    characters: int
    truncated: bool


class PageRefused(BaseModel):
    url: str
    reason: str


class Scraped(BaseModel):
    documents: list[PageRead] = Field(description="Pages stored as memories; GET /ltm/search finds them.")
    refusals: list[PageRefused] = Field(description="Seeds and redirects not read, with reasons.")
    not_modified: list[str]
    pages_read: int
    ended: Ended
    why_ended: str
    seconds: float


@router.post("/scrape", summary="Read pages", responses=errors(403, 502, 503))
async def scrape(
    request: Request,
    question: Annotated[str, Query(min_length=1, max_length=QUERY_CHARACTERS, description="Why the pages are read.")],
    seeds_csv: Annotated[
        str | None, Query(max_length=SEEDS_CHARACTERS, description="Start URLs, separated by commas.")
    ] = None,
    seeds: Annotated[
        list[Annotated[str, Field(max_length=SEED_CHARACTERS)]] | None,
        Query(max_length=SEEDS, description="The same, one per `seeds=`; for URLs that contain a comma."),
    ] = None,
    max_pages: Annotated[
        int | None, Query(ge=1, le=1000, description=("Maximum pages, at most SCRAPER_MAX_PAGES."))
    ] = None,
) -> Scraped:
    """Read from the seeds, or from allow-listed URLs in the question, and follow links within the settings.

    A seed outside ALLOWLIST_DOMAINS is refused before any name lookup.
    """
    to = services(request)
    seed_texts = [seed.strip() for seed in [*(seeds_csv or "").split(","), *(seeds or ())] if seed.strip()]
    seed_texts = list(dict.fromkeys(seed_texts)) or seeds_in(question, to.settings)
    if not seed_texts or len(seed_texts) > SEEDS:
        raise Refused(422, f"Give 1 to {SEEDS} URLs in seeds_csv or seeds, or allow-listed ones in the question.")
    _check_seeds(to, seed_texts)
    page_limit = min(max_pages or to.settings.scraper_max_pages, to.settings.scraper_max_pages)
    plan = plan_from(to.settings, question, seed_texts, page_limit)
    read = partial(to.engine.scrape, plan, stop=to.stopping.is_set)
    return _shown(await detached(to.scrapes, "Page reads are running", read))


def _check_seeds(to: Services, seed_texts: list[str]) -> None:
    allowlist = Allowlist(to.settings.allowlist())
    refused: list[dict[str, str]] = []
    hosts: dict[str, None] = {}
    for seed in seed_texts:
        try:
            url = parse(seed)
        except UrlRefused as error:
            raise Refused(422, f"The seed {seed[:200]!r} is not a page URL: {error}.") from error
        if allowlist.reach(url) is Reach.NOWHERE:
            refused.append({"url": str(url), "reason": f"{url.authority} is not on the allowlist"})
            hosts[url.authority] = None
    if refused:
        raise Refused(
            403,
            f"The allowlist does not name {', '.join(hosts)}, so nothing was looked up. To allow it, add it to "
            f"ALLOWLIST_DOMAINS (now: {', '.join(to.settings.allowlist()) or 'empty'}) and restart ghost serve.",
            kind="urn:ghost:problem:not-on-the-allowlist",
            extension={"seeds": refused},
        )


def _shown(result: ScrapeResult) -> Scraped:
    return Scraped(
        documents=[
            PageRead(
                url=page.url,
                final_url=page.final_url,
                title=page.title,
                characters=len(page.text),
                truncated=page.truncated,
            )
            for page in result.documents
        ],
        refusals=[PageRefused(url=each.url, reason=each.reason) for each in result.refusals],
        not_modified=list(result.not_modified),
        pages_read=result.pages_read,
        ended=result.ended,
        why_ended=result.why_ended,
        seconds=result.seconds,
    )
