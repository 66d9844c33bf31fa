"""`POST /scrape`: reads pages that the allowlist names."""

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
    final_url: str = Field(description="Where its redirects ended.")
    title: str
    characters: int
    truncated: bool


class PageRefused(BaseModel):
    url: str
    reason: str


class Scraped(BaseModel):
    documents: list[PageRead] = Field(description="Pages that are memories now; GET /ltm/search finds them.")
    refusals: list[PageRefused] = Field(description="Seeds and redirects that were not read, with the reason.")
    not_modified: list[str]
    pages_read: int
    ended: Ended
    why_ended: str
    seconds: float


@router.post("/scrape", summary="Read pages", responses=errors(403, 502, 503))
async def scrape(
    request: Request,
    question: Annotated[str, Query(min_length=1, max_length=QUERY_CHARACTERS, description="Why they are read.")],
    seeds_csv: Annotated[
        str | None, Query(max_length=SEEDS_CHARACTERS, description="Addresses to begin with, comma between.")
    ] = None,
    seeds: Annotated[
        list[Annotated[str, Field(max_length=SEED_CHARACTERS)]] | None,
        Query(max_length=SEEDS, description="The same, one for each `seeds=`; for addresses that hold a comma."),
    ] = None,
    max_pages: Annotated[int | None, Query(ge=1, le=1000, description="SCRAPER_MAX_PAGES at most.")] = None,
) -> Scraped:
    """Begins at the seeds, or at allow-listed addresses in the question, and follows links as the settings permit.

    A seed outside ALLOWLIST_DOMAINS is refused before its name is looked up.
    """
    to = services(request)
    wanted = [seed.strip() for seed in [*(seeds_csv or "").split(","), *(seeds or ())] if seed.strip()]
    wanted = list(dict.fromkeys(wanted)) or seeds_in(question, to.settings)
    if not wanted or len(wanted) > SEEDS:
        raise Refused(422, f"Name 1 to {SEEDS} addresses in seeds_csv or seeds, or allow-listed ones in the question.")
    _check_seeds(to, wanted)
    most = min(max_pages or to.settings.scraper_max_pages, to.settings.scraper_max_pages)
    plan = plan_from(to.settings, question, wanted, most)
    read = partial(to.engine.scrape, plan, stop=to.stopping.is_set)
    return _shown(await detached(to.scrapes, "Pages are read", read))


def _check_seeds(to: Services, wanted: list[str]) -> None:
    allowlist = Allowlist(to.settings.allowlist())
    refused: list[dict[str, str]] = []
    hosts: dict[str, None] = {}
    for seed in wanted:
        try:
            url = parse(seed)
        except UrlRefused as error:
            raise Refused(422, f"The seed {seed[:200]!r} is no address of a page: {error}.") from error
        if allowlist.reach(url) is Reach.NOWHERE:
            refused.append({"url": str(url), "reason": f"{url.authority} is not on the allowlist"})
            hosts[url.authority] = None
    if refused:
        raise Refused(
            403,
            f"The allowlist does not name {', '.join(hosts)}, so nothing was looked up. To allow it, add it to "
            f"ALLOWLIST_DOMAINS (now: {', '.join(to.settings.allowlist()) or 'empty'}) and start ghost serve again.",
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
