"""Reads allow-listed pages, as their robots.txt permits. See `docs/scraper.md`.

The result is data: text without markup, never an instruction or evidence. Packages of the extra `mind` are imported
only when a page is read.
"""

from __future__ import annotations

from ghost.scraper.allowlist import Allowlist, Reach
from ghost.scraper.plan import Document, Ended, Refusal, ScrapePlan, ScrapeResult, plan_from, seeds_in
from ghost.scraper.robots import RobotsGate, Verdict
from ghost.scraper.runner import Progress, Scraper
from ghost.scraper.urls import Url, UrlRefused, normalise, parse

__all__ = [
    "Allowlist",
    "Document",
    "Ended",
    "Progress",
    "Reach",
    "Refusal",
    "RobotsGate",
    "ScrapePlan",
    "ScrapeResult",
    "Scraper",
    "Url",
    "UrlRefused",
    "Verdict",
    "normalise",
    "parse",
    "plan_from",
    "seeds_in",
]
