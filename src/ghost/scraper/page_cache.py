"""A cache of pages for conditional requests (RFC 9110, 13)."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass

from ghost.scraper.http_response import Response
from ghost.scraper.urls import Url

_SENDABLE = re.compile(r"[\x20-\x7e]{1,512}")


@dataclass(frozen=True)
class KnownPage:
    etag: str | None
    last_modified: str | None
    final_url: Url
    links: tuple[str, ...]
    """Normalised links, so that an unchanged page still leads to others."""

    def conditions(self) -> dict[str, str]:
        """Return the headers of a conditional request."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in found.items() if value is not None}


def validators(response: Response) -> tuple[str | None, str | None]:
    """Return ETag and Last-Modified, if safe to send back."""

    def fit(name: str) -> str | None:
        value = response.header(name)
        return value if value is not None and _SENDABLE.fullmatch(value) else None

    return fit("etag"), fit("last-modified")


class KnownPages:
    """The pages read most recently, by final address. Thread-safe."""

    def __init__(self, maximum: int = 1024) -> None:
        self._maximum = maximum
        self._pages: OrderedDict[Url, KnownPage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, url: Url) -> KnownPage | None:
        with self._lock:
            return self._pages.get(url)

    def keep(self, page: KnownPage) -> None:
        with self._lock:
            self._pages.pop(page.final_url, None)
            if page.etag is None and page.last_modified is None:
                return
            self._pages[page.final_url] = page
            while len(self._pages) > self._maximum:
                self._pages.popitem(last=False)

    def forget(self, url: Url | None = None) -> None:
        """Drop one page, or all, so that the next run reads it in full."""
        with self._lock:
            if url is None:
                self._pages.clear()
            else:
                self._pages.pop(url, None)
