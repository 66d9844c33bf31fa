"""The dashboard in a real browser: each section does what it promises, with what a real mind and lab left behind."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from ghost.mind import MemoryType, QueryStatus
from ghost.server.app import Application
from tests.cli.ready_ghost import run_ghost
from tests.server import dashboard_pages
from tests.server.conftest import NOW, Live, ask, remember, served, stimulus, task, thought, until
from tests.server.dashboard_pages import SECTIONS, Open, go, panel

browser, open_page = dashboard_pages.browser, dashboard_pages.open_page
pytestmark = [pytest.mark.needs("chromium")]


# --- now ---


def test_thoughts_appear_as_they_come_and_weigh_what_is_left_of_them(live: Live, open_page: Open) -> None:
    engine = live.app.services.engine
    now = live.app.services.now()
    engine.wm.add(thought(1, ts=now - 900, importance=0.8))
    page = open_page(live, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    expect(panel(page, "Working memory").locator(".number")).to_have_text("0.40")  # half of it is gone after 900 s
    expect(panel(page, "Live thoughts")).to_contain_text("Nothing has happened since this page was opened.")
    page.get_by_role("textbox", name="What happened").fill("vnet-b lost its peering")
    page.get_by_role("button", name="Tell", exact=True).click()
    expect(page.get_by_role("log")).to_contain_text("dashboard: vnet-b lost its peering")
    page.get_by_role("button", name="Run one cycle").click()
    expect(page.locator(".event.of-thought")).to_have_count(1)
    expect(panel(page, "Working memory").locator(".thought")).to_have_count(2)
    bars = page.evaluate("[...document.querySelectorAll('.thought .meter span')].map(each => each.style.cssText)")
    newest = float(bars[0].split(":")[1].strip("; "))
    assert newest == pytest.approx(engine.wm.weights(live.app.services.now())[-1][1], abs=0.02)


def test_the_stream_keeps_the_last_200_and_can_be_held_still(live: Live, open_page: Open) -> None:
    page = open_page(live, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    feed = live.app.services.feed
    for number in range(230):
        feed.publish("thought", NOW, {"content": f"#plan number {number}"})
    expect(page.locator(".event").first).to_contain_text("number 229")
    expect(page.locator(".event")).to_have_count(200)
    page.get_by_role("button", name="Hold").click()
    top = panel(page, "Tell Ghost").bounding_box()
    for number in range(5):
        feed.publish("error", NOW, {"where": "cycle", "message": f"late {number}"})
    expect(page.get_by_role("button", name="Continue (5 new)")).to_be_visible()
    expect(page.locator(".event").first).to_contain_text("number 229")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".event").first).to_contain_text("late 4")
    expect(page.locator(".event")).to_have_count(200)
    page.get_by_label("What to show").select_option("errors")
    expect(page.locator(".event")).to_have_count(5)
    assert panel(page, "Tell Ghost").bounding_box() == top  # nothing moved


def test_a_person_says_whether_they_are_there(live: Live, open_page: Open) -> None:
    page = open_page(live, "#/setup")
    both = page.get_by_role("switch", name="User available")
    expect(both).to_have_count(2)
    expect(both.first).to_be_checked()
    both.first.click()
    expect(both.last).not_to_be_checked()
    assert live.app.services.engine.user_available is False
    page.reload()
    expect(both.first).not_to_be_checked()


# --- memory ---


def test_memory_is_searched_narrowed_and_forgotten(live: Live, open_page: Open) -> None:
    known = {"session_id": "ghost_20250115_143200", "audit_ids": ["ghost_20250115_143200_007"]}
    remember(live.app, "gateway transit was lost on the peering", tags=("peering", "hub"), metadata=known)
    (page_id,) = remember(
        live.app, "peering needs a flag on both sides", created_at=NOW + 86_400, metadata={"url": "https://example.com/peering"}
    )  # fmt: skip
    remember(live.app, "how to look at a peering", kind=MemoryType.PROCEDURAL)
    page = open_page(live, "#/memory")
    cards = page.locator(".memory")
    expect(panel(page, "Found")).to_contain_text("No search yet.")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_label("Search for")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Search for").fill("peering")
    page.get_by_label("Search for").press("Enter")
    expect(cards).to_have_count(3)
    expect(cards.filter(has_text="gateway transit")).to_contain_text("Records#007")
    expect(cards.filter(has_text="both sides")).to_contain_text("https://example.com/peering")
    assert page.locator("a[href*='example.com']").count() == 0
    page.get_by_label("By").select_option("keyword")
    page.get_by_text("Filters").click()
    page.get_by_label("semantic").check()
    page.get_by_label("Since").fill("2024-11-23T00:00")
    page.get_by_role("button", name="Search").click()
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("words: no. 1")
    for answer, left in (("Keep it", 1), ("Forget it", 0)):
        cards.get_by_role("button", name="Forget").click()
        page.get_by_role("dialog", name="Forget this memory?").get_by_role("button", name=answer).click()
        expect(cards).to_have_count(left)
        assert (live.app.services.engine.ltm.get_memory(page_id) is not None) == bool(left)
    page.go_back()
    expect(cards).to_have_count(2)
    expect(page.get_by_label("By")).to_have_value("hybrid")


# --- tasks ---


def test_tasks_say_what_their_scores_are_made_of(live: Live, open_page: Open) -> None:
    engine = live.app.services.engine
    now = live.app.services.now()
    engine.attention.add_or_update(task("a", now, importance=0.9, deadline_ts=now + 1800, goal="Know the route"), 0.8)
    engine.attention.add_or_update(task("b", now, importance=0.1), 0.1)
    page = open_page(live, "#/tasks")
    rows = page.locator(".task")
    expect(rows).to_have_count(2)
    with live.client() as client:
        scores = [each["score"] for each in client.get("/tasks").json()["tasks"]]
    shown = rows.first.locator("tbody tr")
    assert [row.split("\t")[0] for row in shown.all_inner_texts()] == [
        part["name"].replace("_", " ") for part in scores[0]["parts"]
    ]
    adds = [float(row.split("\t")[2]) for row in shown.all_inner_texts()]
    assert adds == pytest.approx([part["contribution"] for part in scores[0]["parts"]], abs=0.002)
    assert sum(adds) == pytest.approx(float(rows.first.locator(".total").inner_text()), abs=0.01)
    expect(rows.first).to_contain_text(re.compile(r"due in 2\d min"))  # a browser may take minutes to start
    expect(rows.last.locator("details")).not_to_have_attribute("open", "")
    go(page, "thoughts")
    expect(panel(page, "Next task")).to_contain_text("Do a")
    expect(panel(page, "Next task")).to_contain_text("urgency")


# --- questions ---


def test_questions_are_answered_field_by_field(live: Live, open_page: Open) -> None:
    app = live.app
    ask(app, "q:1", "Which change?", rationale="The peering went at 02:50", required_fields=("change_id", "remark"))
    ask(app, "q:2", "Is the circuit back?")
    past = app.services.now() - 60
    ask(app, "q:3", "Too late?", created_ts=past - 10, expires_ts=past)
    page = open_page(live, "#/questions")
    cards = page.locator(".question")
    expect(cards).to_have_count(2)
    expect(page.locator("#open-questions")).to_have_text("2 open")
    assert page.title() == "(2) Questions · Ghost"
    first = cards.first
    first.get_by_label("Change id").fill("CHG-1 = 10.2.0.0/16")
    first.get_by_role("button", name="Answer").click()
    expect(first.get_by_label("Remark")).to_have_attribute("aria-invalid", "true")
    expect(first.get_by_label("Remark")).to_be_focused()
    expect(first).to_contain_text("Remark is needed to go on.")
    ask(app, "q:4", "And this one?")  # what is typed stays while the list changes below it
    app.services.feed.publish("interrupt", NOW, {"id": "q:4", "question": "And this one?"})
    expect(cards).to_have_count(3)
    first.get_by_label("Remark").fill("the night shift\nand: another")
    first.get_by_label("Anything else").fill("remark: nobody")
    first.get_by_role("button", name="Answer").click()
    expect(cards).to_have_count(2)
    kept = app.services.engine.interrupts.get("q:1")
    assert kept.metadata["fields"] == {"change_id": "CHG-1 = 10.2.0.0/16", "remark": "the night shift\nand: another"}
    closed = panel(page, "Closed questions")
    expect(closed).to_contain_text("CHG-1")
    expect(closed.locator(".closed").filter(has_text="Too late?")).to_contain_text("expired")
    cards.filter(has_text="circuit").get_by_label("Answer").fill("Since 03:05")
    cards.filter(has_text="circuit").get_by_role("button").click()
    expect(cards).to_have_count(1)
    assert app.services.engine.interrupts.get("q:2").answer == "Since 03:05"
    cards.get_by_label("Answer").fill("I type")
    app.services.engine.interrupts.answer("q:4", "somebody was faster")
    expect(cards).to_contain_text("it was answered elsewhere, withdrawn, or expired")
    cards.get_by_role("button").click()
    expect(cards.get_by_role("alert")).to_contain_text("answered already")
    assert app.services.engine.interrupts.get("q:4").status is QueryStatus.ANSWERED


# --- pages ---


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = (
            b"<title>Peering</title><main><p>" + b"Gateway transit needs a flag on both sides. " * 20 + b"</p></main>"
        )
        found = self.path == "/peering"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"localhost:{server.server_port}"
        server.shutdown()
        thread.join()


def test_pages_are_read_or_refused_with_the_reason(site: str, make_app, open_page: Open) -> None:
    with served(make_app(allowlist_domains=site, scraper_max_pages=3)) as live:
        page = open_page(live, "#/read")
        expect(panel(page, "Pages and purpose")).to_contain_text(f"Allowlist: {site}")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_label("Question")).to_be_focused()
        page.get_by_label("Question").fill("gateway transit")
        page.get_by_label("Start addresses").fill("https://www.who.int/health-topics")
        page.get_by_role("button", name="Read").click()
        results = panel(page, "Result")
        expect(results).to_contain_text("www.who.int is not on the allowlist")
        expect(results).to_contain_text("ALLOWLIST_DOMAINS")
        expect(page.get_by_label("Start addresses")).to_have_attribute("aria-invalid", "true")
        page.get_by_label("Start addresses").fill(f"http://{site}/peering\nhttp://{site}/nothing")
        page.get_by_label("Maximum pages").fill("0")
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_label("Maximum pages")).to_have_attribute("aria-invalid", "true")
        page.get_by_label("Maximum pages").fill("3")
        page.get_by_role("button", name="Read").click()
        expect(results).to_contain_text(f"Peering http://{site}/peering")
        expect(results.get_by_role("listitem").filter(has_text="/nothing")).to_contain_text("404")
        expect(page.get_by_role("button", name="Stop waiting")).to_be_hidden()
        assert live.app.services.engine.ltm.keyword_search("gateway transit", 1)


# --- investigations ---


@pytest.fixture
def investigated(root: Path) -> str:
    """A real investigation of the lab in the workspace; its id."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "GEMINI_"))}
    words = ("investigate", "--lab", "blocked-port", "--workspace", str(root))
    environment |= {"GHOST_LAB_SPEED": "500"}
    assert run_ghost(*words, cwd=root.parent, environment=environment, in_process=True).returncode == 0
    return json.loads((root / "ghost_session.json").read_text())["session_id"]


def test_an_investigation_of_the_lab_is_shown_with_everything_it_rests_on(
    investigated: str, app: Application, open_page: Open
) -> None:
    with served(app) as live:
        with live.client() as client:
            report = client.get(f"/investigations/{investigated}/report").json()
            count = client.get(f"/investigations/{investigated}").json()["evidence_count"]
        page = open_page(live, "#/investigations", permissions=["clipboard-read", "clipboard-write"])
        row = page.locator(".investigation").filter(has_text=investigated)
        for words in ("cause found", "confidence high", report["symptom"], "close-legacy-ports"):
            expect(row).to_contain_text(words)
        row.get_by_role("link").click()
        cause = panel(page, "Root cause")
        expect(page.get_by_role("heading", level=1)).to_have_text(report["symptom"])
        expect(cause).to_contain_text(re.split(r" \(records? ", report["summary"]["text"])[0])
        expect(cause).not_to_contain_text("unsupported")
        expect(panel(page, "Path").get_by_role("img")).to_be_visible()
        headings = page.locator("main h2:visible").all_inner_texts()
        assert headings == ["Root cause", "What to do", "Confidence and reasons", "Not verified", "Path",
            "Path coverage", "Timeline (UTC)", "Captures", "Evidence"]  # fmt: skip
        actions = panel(page, "What to do")
        expect(actions).to_contain_text("RISKY")
        copy = actions.get_by_role("button", name="Copy the command of step 2")
        copy.press("Enter")
        expect(page.locator("#announcements")).to_have_text("Copied the command of step 2.")
        expect(copy).to_be_focused()
        assert page.evaluate("navigator.clipboard.readText()") == report["actions"][1]["command"]
        expect(panel(page, "Not verified").get_by_role("listitem").filter(has_text="DNS")).to_be_visible()
        expect(panel(page, "Timeline (UTC)")).to_contain_text("The investigation concluded: cause found")
        layers = panel(page, "Path coverage").locator("tbody tr")
        assert layers.count() == len(report["coverage"])
        expect(layers.filter(has_text="NSG inbound")).to_contain_text("at fault")
        hypotheses = page.locator(".hypothesis")
        states = [each["state"].lower().replace("active", "not settled") for each in report["hypotheses"]]
        assert [each.split("\n")[0].partition(" ")[2] for each in hypotheses.all_inner_texts()] == states
        records = page.locator(".record")
        expect(records).to_have_count(count)
        expect(records.first).to_contain_text("auto-approved")
        expect(records.first).to_contain_text("exit 0")
        assert investigated + "_" not in page.locator("main").inner_text()  # records are named by their number
        links = page.locator("main").get_by_role("link").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert links
        assert all(link.startswith("#/investigations") for link in links)
        cited = report["summary"]["audit_ids"][0]
        cause.get_by_role("link").first.click()
        expect(page.locator(".record.here")).to_contain_text(f"#{cited.rpartition('_')[2]}")
        expect(page.locator(".record.here")).to_be_focused()
        expect(page.locator(".record.here")).to_be_in_viewport()
        page.get_by_label("Which records").select_option("cited")
        named = {
            i for each in (report["summary"], *report["statements"], *report["coverage"]) for i in each["audit_ids"]
        }
        expect(records).to_have_count(len(named))


def test_a_picture_of_the_path_is_shown_where_the_server_has_one(
    investigated: str, app: Application, open_page: Open
) -> None:
    drawn = '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="90"><text y="20">web-vm-01</text></svg>'
    asked = []

    def answer(route: Route) -> None:
        asked.append(route.request.headers["authorization"])
        route.fulfill(body=drawn, content_type="image/svg+xml")

    with served(app) as live:
        page = open_page(live)
        page.route("**/path.svg", answer)
        page.evaluate("sessionStorage.setItem('ghost.token', 'a-token')")
        go(page, f"investigations/{investigated}")
        image = panel(page, "Path").get_by_role("img", name="The path of the packet")
        expect(image).to_be_visible()
        assert image.get_attribute("src").startswith("blob:")
        assert image.evaluate("image => image.naturalWidth") == 2000
        assert asked == ["Bearer a-token"]
        page.set_viewport_size(dashboard_pages.PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") == 390


# --- nothing yet, and what fails ---


def test_an_empty_workspace_says_what_would_fill_each_place(live: Live, open_page: Open) -> None:
    page = open_page(live)
    for section in SECTIONS:
        go(page, section)
        assert page.locator("main .empty:visible, main .facts").count() >= 1, section
        assert page.locator("main .notice").count() == 0, section
    for section in ("investigations/ghost_none", "investigations/x%00%2F..%2F"):
        go(page, section)
        expect(page.get_by_role("alert").first).to_be_visible()


def test_a_store_that_fails_is_said_with_where_to_look(app: Application, open_page: Open) -> None:
    with served(app) as live:
        page = open_page(live, "#/memory")
        app.services.engine.ingest([stimulus(1, "one")])
        app.services.engine.store.close()
        page.get_by_label("Search for").fill("anything")
        page.get_by_role("button", name="Search").click()
        alert = panel(page, "Found").get_by_role("alert")
        expect(alert).to_contain_text("Memory cannot be read or written now.")
        expect(alert).to_contain_text("in logs/ghost.log")
        expect(alert.get_by_role("button", name="Try again")).to_be_visible()
        go(page, "setup")
        until(lambda: "not ready" in panel(page, "State").inner_text())
