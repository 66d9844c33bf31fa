"""The dashboard and its server: the token, breaks, restarts, back-off, and events as the standard reads them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ghost.mind.answer_fields import fields_of
from ghost.report import LAYERS
from ghost.server.app import Application
from ghost.server.server_process import Server, wired
from tests.server import dashboard_pages
from tests.server.conftest import NOW, Live, ask, served, settings_for, until
from tests.server.dashboard_pages import Open, go, panel

browser, modules, open_page = dashboard_pages.browser, dashboard_pages.modules, dashboard_pages.open_page
pytestmark = [pytest.mark.needs("chromium")]

TOKEN = "a-token-of-this-test"


@contextlib.contextmanager
def served_at(app: Application, port: int) -> Iterator[Live]:
    """As `served`, at a port that was served before."""
    listening = socket.create_server(("127.0.0.1", port))
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    live = Live(app, port, server, thread)
    try:
        until(lambda: server.started)
        yield live
    finally:
        live.stop()


# --- the token ---


def test_a_token_is_asked_for_checked_kept_for_the_tab_and_given_up(make_app: Any, open_page: Open) -> None:
    with served(make_app(api_token=TOKEN)) as live:
        ask(live.app, "q:1", "Which port?")
        page = open_page(live, "#/questions")
        field = page.get_by_role("textbox", name="Token")
        expect(field).to_be_focused()
        expect(page.locator("#banner")).to_be_hidden()
        for given, said in (
            ("", "Type or paste"),
            ("no tokén", "without blanks"),
            ("wrong", "Wrong token"),
        ):
            field.fill(given)
            field.press("Enter")
            expect(page.locator(".field-error")).to_contain_text(said)
            expect(field).to_have_attribute("aria-invalid", "true")
        assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]
        field.fill(f" {TOKEN}\n")
        field.press("Enter")
        expect(page.locator(".question")).to_have_count(1)
        expect(page.locator(".connection")).to_have_text("live")  # /events got the token too
        go(page, "thoughts")
        live.app.services.feed.publish("thought", NOW, {"content": "#plan behind the token"})
        expect(page.locator(".of-thought")).to_have_count(1)
        assert page.evaluate("[JSON.stringify(sessionStorage), localStorage.length, document.cookie]") == [
            f'{{"ghost.token":"{TOKEN}"}}', 0, "",
        ]  # fmt: skip
        page.reload()
        expect(page.locator(".connection")).to_have_text("live")
        assert TOKEN not in page.url
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("textbox", name="Token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
        until(lambda: live.app.services.feed.clients == 0)


def test_a_token_that_is_no_longer_right_is_asked_for_anew(make_app: Any, open_page: Open) -> None:
    with served(make_app(api_token=TOKEN)) as live:
        page = open_page(live)
        page.evaluate("sessionStorage.setItem('ghost.token', 'of-yesterday')")
        page.reload()
        expect(page.get_by_role("alert").filter(has_text="The token is no longer valid.")).to_be_visible()
        page.get_by_role("textbox", name="Token").fill(TOKEN)
        page.get_by_role("button", name="Enter").click()
        expect(page.locator(".connection")).to_have_text("live")


# --- breaks ---

FETCHED = "path => performance.getEntriesByType('resource').some(each => each.name.endsWith(path) && each.responseEnd)"


def test_after_a_restart_it_follows_again_and_reads_anew(root: Any, open_page: Open) -> None:
    with wired(settings_for(root), root) as app, served(app) as live:
        port = live.port
        page = open_page(live, "#/thoughts")
        expect(page.locator(".connection")).to_have_text("live")
        app.services.feed.publish("thought", NOW, {"content": "#plan before"})
        expect(page.locator(".of-thought")).to_have_count(1)
        until(lambda: page.evaluate(FETCHED, "/ui/js/views/setup.js"))  # sections are there before they are opened
        live.stop()
        expect(page.locator("#connection")).to_contain_text("reconnecting")
        expect(page.locator("#banner")).to_contain_text("What is shown may be old")
        go(page, "setup")  # offline: the section says so, and what to do
        expect(panel(page, "Settings")).to_contain_text("Is ghost serve still running")
        expect(panel(page, "Settings").get_by_role("button", name="Try again")).to_be_visible()
    with wired(settings_for(root), root) as app:
        ask(app, "q:while-away", "Asked while nobody listened?")
        with served_at(app, port):
            page.get_by_role("button", name="Try now").click()
            expect(page.locator(".connection")).to_have_text("live")
            expect(page.locator("#banner")).to_be_hidden()
            expect(page.locator("#open-questions")).to_contain_text("1")  # the gap made it read again
            expect(panel(page, "State")).to_contain_text("ready")
            expect(panel(page, "Settings")).to_contain_text("Language model")  # without being asked
            go(page, "thoughts")
            expect(page.locator(".of-gap")).to_have_count(1)
            expect(page.locator(".of-thought")).to_contain_text("before")
            app.services.feed.publish("thought", NOW, {"content": "#plan after"})
            expect(page.locator(".of-thought").first).to_contain_text("after")


def test_after_a_break_what_was_missed_follows_once(live: Live, open_page: Open) -> None:
    page = open_page(live, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    feed = live.app.services.feed
    feed.publish("thought", NOW, {"content": "#plan seen"})
    expect(page.locator(".of-thought")).to_have_count(1)
    asked: list[str | None] = []
    page.on(
        "request",
        lambda request: asked.append(request.headers.get("last-event-id")) if "/events" in request.url else None,
    )
    for follower in list(feed._followers):  # the connection breaks; the server runs on
        feed.leave(follower)
        follower._feed = type("Gone", (), {"closed": True})()
        follower.wake()
    feed.publish("thought", NOW, {"content": "#plan missed"})
    expect(page.locator(".of-thought")).to_have_count(2)
    expect(page.locator(".of-thought").first).to_contain_text("missed")
    expect(page.locator(".of-gap")).to_have_count(0)
    assert asked[0].endswith("-1")


def test_attempts_get_rarer_and_stop_where_asking_again_is_no_use(modules: Page) -> None:
    waits = modules.evaluate(
        """async () => {
          const { Following } = await import('/ui/js/following.js');
          const { Unreachable, Problem } = await import('/ui/js/api.js');
          const waits = [];
          let tries = 0;
          const other = new Problem(421, { detail: 'Another server.' });
          const api = { fetch: async () => { tries += 1; throw tries < 10 ? new Unreachable() : other; } };
          const following = new Following(api);
          following.addEventListener('state', () => {
            if (following.state !== 'reconnecting') return;
            waits.push(following.nextAt - Date.now());
            setTimeout(() => following.now());
          });
          await following.start();
          return { waits, state: following.state, why: following.why };
        }"""
    )
    assert (waits["state"], waits["why"]) == ("stopped", "Another server.")
    bounds = [min(30_000, 500 * 2**number) for number in range(9)]
    assert all(0.7 * most <= wait <= most + 5 for wait, most in zip(waits["waits"], bounds, strict=True))


def test_a_stream_that_is_cut_at_once_again_and_again_is_no_success(modules: Page) -> None:
    waits = modules.evaluate(
        """async () => {
          const { Following } = await import('/ui/js/following.js');
          const waits = [];
          const following = new Following({ fetch: async () => new Response(': hello\\n\\n') });
          following.addEventListener('state', () => {
            if (following.state !== 'reconnecting') return;
            waits.push(following.nextAt - Date.now());
            setTimeout(() => (waits.length < 5 ? following.now() : following.stop()));
          });
          await following.start();
          return waits;
        }"""
    )
    assert all(0.7 * 500 * 2**number <= wait for number, wait in enumerate(waits))


# --- the wire ---


def read_in_pieces(page: Page, text: str, size: int) -> list[list[str]]:
    return page.evaluate(
        """async ([text, size]) => {
          const { EventReader } = await import('/ui/js/server-sent.js');
          const reader = new EventReader();
          const found = [];
          for (let at = 0; at < text.length; at += size) found.push(...reader.push(text.slice(at, at + size)));
          return found.map(({ id, kind, data }) => [id, kind, data]);
        }""",
        [text, size],
    )


def test_events_are_read_however_they_are_cut_into_pieces(modules: Page) -> None:
    wire = (
        "\ufeffretry: 3000\n: a comment\n\nid: r-1\nevent: thought\ndata: {}\n\ndata:one\r\ndata: two\r\n\r\n"
        "event: empty\n\nid: r-2\rdata:  blank kept\r\rid: \0\ndata\n\nnonsense\ndata: x\n\ndata: never ends"
    )
    wanted = [
        ["r-1", "thought", "{}"], ["r-1", "message", "one\ntwo"], ["r-2", "message", " blank kept"],
        ["r-2", "message", ""], ["r-2", "message", "x"],
    ]  # fmt: skip
    for size in (1, 2, 3, 7, 1000):
        assert read_in_pieces(modules, wire, size) == wanted, size
    with pytest.raises(Exception, match="longer than any"):
        read_in_pieces(modules, "data: " + "x" * 1_200_000, 100_000)


def test_answers_name_their_fields_so_that_the_mind_finds_them(modules: Page) -> None:
    """What the form writes is what `fields_of` reads, whatever is typed."""
    write = "async ([values, note]) => (await import('/ui/js/questions.js')).answerOf(values, note)"
    for values in (
        {"port": "6379"}, {"change_id": "CHG-1: x = y", "who": "a: b"}, {"port": "one\nwho: two", "who": "three"},
        {"weird: name": "1", "ünï": "2"}, {"a-b c_d": "{not json", "x": "[1]"}, {"__proto__x": "1", "port": '"quoted"'},
    ):  # fmt: skip
        for note in ("", "by the way", "who: me\nport: 1"):
            text = modules.evaluate(write, [values, note])
            assert fields_of(text, list(values)) == {name: value.strip() for name, value in values.items()}, (
                values,
                note,
            )


def test_layers_are_called_what_the_report_calls_them(modules: Page) -> None:
    assert modules.evaluate("import('/ui/js/views/report.js').then(({ LAYERS }) => LAYERS)") == LAYERS
