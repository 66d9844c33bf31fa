"""`GET /ui`, and `/`, which leads to it: the dashboard's files from the folder beside this module.

They are read once, so no path from a client reaches the file system.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from ghost.server.problems import Refused

FOLDER: Final = Path(__file__).parent / "ui"
INDEX: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class Page:
    content: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, name: str) -> Page:
        return cls(content, _TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def pages_of(folder: Path) -> dict[str, Page]:
    """Return the files below `folder` by their path; files without a web type are skipped."""
    found: dict[str, Page] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES and path.is_file() and not path.is_symlink():
            name = path.relative_to(folder).as_posix()
            found[name] = Page.of(path.read_bytes(), name)
    return found


def dashboard_router(folder: Path = FOLDER, *, needs_token: bool = False) -> APIRouter:
    """Return the router: `/ui` and `/ui/` serve the index, whose files are at `/ui/...`; `/` redirects to `/ui`.

    With `needs_token` the index says so: its script asks for the token before it asks the API.
    """
    router = APIRouter(include_in_schema=False)
    pages = pages_of(folder)
    if needs_token and INDEX in pages:
        pages[INDEX] = Page.of(pages[INDEX].content.replace(b"<html", b'<html data-token="required"', 1), INDEX)

    @router.get("/")
    async def root() -> Response:
        return RedirectResponse("/ui")

    @router.get("/ui")
    @router.get("/ui/")
    async def index(request: Request) -> Response:
        return _page(request, INDEX)

    @router.get("/ui/{name:path}")
    async def file(request: Request, name: str) -> Response:
        return _page(request, name)

    def _page(request: Request, name: str) -> Response:
        page = pages.get(name)
        if page is None:
            raise Refused(404, "The dashboard has no such file.")
        headers = {"etag": page.etag}
        if request.headers.get("if-none-match") == page.etag:
            return Response(status_code=304, headers=headers)
        return Response(page.content, media_type=page.media_type, headers=headers)

    return router
