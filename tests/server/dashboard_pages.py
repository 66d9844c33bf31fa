"""Pages of the dashboard in the system's Chromium, against a real server. What a page must never do fails its test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from ghost.server.dashboard import FOLDER
from tests.server.conftest import Live

PHONE = {"width": 390, "height": 844}
SECTIONS = ("investigations", "questions", "tasks", "memory", "read", "setup", "thoughts")
SECONDS = 10.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a module, not for the session: while it is open, no other test of its process could run a loop."""
    options = ["--disable-gpu", "--no-first-run"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)


@dataclass
class Watch:
    """What one page did. With `quiet` the test provokes no refused request: one is a failure, too."""

    quiet: bool = False
    said: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        page.on("console", lambda message: self._console(message.type, message.text, message.location["url"]))
        page.on("pageerror", lambda error: self.failed.append(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: (self.failed.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: self.failed.append(f"popup: {popup.url}"))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url.removeprefix("blob:")).netloc))

    def _console(self, kind: str, text: str, place: str) -> None:
        self.said.append(text)
        # Chromium writes a line for every answer from 400 on, and one with net:: where a server ended before its page
        provoked = text.startswith("Failed to load resource: net::" if self.quiet else "Failed to load resource:")
        if kind in ("error", "warning") and not provoked:
            self.failed.append(f"console {kind}: {text} {place}")


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """`open_page(live, "#/tasks", color_scheme="dark")`; checked at the end of the test."""
    contexts: list[BrowserContext] = []
    watched: list[tuple[Watch, str]] = []

    def opened(live: Live, address: str = "", *, quiet: bool = False, **given: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC", **given})
        contexts.append(context)
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        watch = Watch(quiet)
        watch.over(page)
        watched.append((watch, f"localhost:{live.port}"))
        page.goto(f"{live.url}/ui{address}")
        return page

    yield opened
    for context in contexts:
        context.close()
    for watch, host in watched:
        assert not watch.failed, watch.failed
        assert watch.hosts <= {host}


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    """A page that imports the dashboard's modules from their folder, without a server: for what they decide alone."""
    context = browser.new_context()

    def answer(route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix("/ui/")
        if name.endswith(".js"):
            route.fulfill(path=FOLDER / name, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>modules</title>", content_type="text/html")

    context.route("**/*", answer)
    page = context.new_page()
    page.goto("http://localhost/")
    yield page
    context.close()


def go(page: Page, section: str) -> None:
    page.evaluate("hash => { location.hash = hash; }", f"#/{section}")
    page.wait_for_selector(f".view-{section.split('/')[0].split('?')[0]}")
    expect(page.locator("main [aria-busy], main .loading")).to_have_count(0)


def panel(page: Page, title: str) -> Any:
    """A panel by its heading."""
    return page.get_by_role("region", name=title, exact=True)
