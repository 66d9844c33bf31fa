"""Investigations from the dashboard: started, approved, denied, cancelled and resumed in a browser, in a real lab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ghost.agent import WatchRuns, Workspace
from ghost.cli.served_investigation import ServedInvestigator
from ghost.records import SystemClock
from ghost.server.server_process import wired
from ghost.shell import ApprovalRequest, SafeExecShell
from tests.agent.test_watches import BLOCK, WEB_TO_CACHE, Bench
from tests.lab import in_process
from tests.server import dashboard_pages
from tests.server.conftest import Live, served, settings_for, until
from tests.server.dashboard_pages import Open, panel

browser, open_page = dashboard_pages.browser, dashboard_pages.open_page
pytestmark = [pytest.mark.needs("chromium")]

TOKEN = "a-token-of-this-test"
MINUTE = 60_000
FORM = "az vm start -n *"


@contextmanager
def investigating(root: Path) -> Iterator[Live]:
    with wired(settings_for(root, api_token=TOKEN), root, ServedInvestigator(root)) as app, served(app) as live:
        yield live


@pytest.fixture
def lab(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A server that investigates. The lab's programs run in this process."""
    monkeypatch.setitem(SafeExecShell.__init__.__kwdefaults__, "runner", in_process.run)
    monkeypatch.setenv("GHOST_LAB_SPEED", "500")
    monkeypatch.setenv("GHOST_CAPTURE_SECONDS", "30")
    with investigating(root) as live:
        yield live


def entered(open_page: Open, live: Live, address: str = "", **given: Any) -> Page:
    page = open_page(live, address, quiet=True, **given)
    page.get_by_role("textbox", name="Token").fill(TOKEN)
    page.get_by_role("button", name="Enter").click()
    expect(page.locator(".connection")).to_have_text("live")
    return page


def start(page: Page, scenario: str) -> None:
    page.get_by_label("Network").select_option(scenario)
    page.get_by_role("button", name="Start", exact=True).click()


def test_an_investigation_is_started_approved_and_read(lab: Live, open_page: Open) -> None:
    page = entered(open_page, lab)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_label("What fails")).to_be_focused()
    start(page, "wire-loss")
    card = page.locator(".approval")
    expect(card).to_be_visible(timeout=MINUTE)
    (asked,) = lab.app.services.room.open()
    assert card.locator(".command").all_inner_texts() == list(asked.asked.lines)
    for words in (asked.symptom, asked.asked.reasoning, asked.asked.risk, "RISKY", "tier 2", "8 commands"):
        expect(card).to_contain_text(words)
    assert not card.evaluate("card => card.contains(document.activeElement)")
    expect(page.locator("#waiting-approvals")).to_have_text("1 open")
    expect(page.locator(".investigation").first).to_contain_text("waits for your approval")
    card.get_by_role("link").click()
    page.get_by_role("button", name="Approve all 8").click()
    expect(card).to_contain_text("Approved.")
    live_panel = panel(page, "Live")
    expect(live_panel).to_contain_text("approve, on the dashboard", timeout=MINUTE)
    expect(live_panel.locator(".event").filter(has_text="packet-capture create").first).to_contain_text(
        "RISKY exit 0", timeout=MINUTE
    )
    expect(page.locator(".root-cause")).to_contain_text("lost", timeout=MINUTE)
    below_the_cause = page.locator(".report ~ section").filter(has=page.get_by_role("heading", name="Live"))
    expect(below_the_cause).to_be_visible(timeout=MINUTE)
    expect(panel(page, "Path").get_by_role("img")).to_be_visible()
    frame = panel(page, "Captures").locator("iframe").content_frame
    expect(frame.locator("main")).to_contain_text("Rates and times at each end")
    style = frame.locator("body").evaluate("body => getComputedStyle(body).marginTop")
    assert style == "0px"  # the page's own style passed the policy
    expect(page.locator(".record").filter(has_text="packet-capture create").first).to_contain_text("person approved")


def test_after_a_cancel_and_a_resume_one_tab_denies_and_the_others_are_told(lab: Live, open_page: Open) -> None:
    page, deaf = entered(open_page, lab), open_page(lab)
    deaf.route("**/events", lambda route: route.abort())
    start(page, "wire-loss")
    asked = page.locator(".approval:not(.gone)")
    expect(asked).to_be_visible(timeout=MINUTE)
    row = page.locator(".investigation").first
    row.get_by_role("button", name="Cancel").click()
    expect(page.locator(".approval")).to_contain_text("closed without an answer")
    row.get_by_role("button", name="Resume").click(timeout=MINUTE)
    expect(asked).to_be_visible(timeout=MINUTE)
    deaf.get_by_role("textbox", name="Token").fill(TOKEN)
    deaf.get_by_role("button", name="Enter").click()
    deaf.get_by_role("button", name="Approve").wait_for()
    told = entered(open_page, lab)
    expect(told.locator(".approval")).to_be_visible()
    asked.get_by_label("Reason, if you deny").fill("no capture today")
    asked.get_by_role("button", name="Deny").click()
    expect(page.locator(".approval").last).to_contain_text("Denied.")
    expect(told.locator(".approval.gone")).to_contain_text("answered before, on the dashboard: deny")
    deaf.get_by_role("button", name="Approve").click()
    expect(deaf.locator(".approval.gone")).to_contain_text("answered before, on the dashboard: deny")
    expect(row.get_by_text("inconclusive")).to_be_visible(timeout=MINUTE)  # it was one plan for both ends
    expect(page.locator(".approval").filter(has_text="closed without an answer")).to_have_count(0, timeout=MINUTE)
    row.get_by_role("link").click()
    expect(page.locator(".record").filter(has_text="no capture today").first).to_contain_text("person denied")


def test_one_that_failed_before_its_first_turn_is_not_offered_to_be_resumed(lab: Live, open_page: Open) -> None:
    page = entered(open_page, lab)
    page.get_by_label("What fails").fill("web-vm cannot reach cache-vm on 6379")
    page.get_by_role("button", name="Start", exact=True).click()
    row = page.locator(".investigation").filter(has=page.get_by_role("link"))
    expect(row).to_contain_text("az cannot name a subscription", timeout=MINUTE)
    expect(row.get_by_role("button")).to_have_count(0)


def test_a_card_takes_no_click_where_it_has_just_come(root: Path, make_app: Any, open_page: Open) -> None:
    """It is put under the pointer in the instant of the click; half a second later the same click counts."""
    with served(make_app(api_token=TOKEN)) as live, live.app.services.room.occupied():
        page = entered(open_page, live)
        page.evaluate(
            """() => { window.clicks = 0; new MutationObserver(() => {
              const button = document.querySelector('.answers button');
              if (button && !window.clicks++) button.click();
            }).observe(document.body, { childList: true, subtree: true }); }"""
        )
        room = live.app.services.room
        long = "az vm start -n " + "x" * 5000
        once = ApprovalRequest("once", (long,), "It is off.", "It starts a machine.", 2, session=True, form=FORM)
        one = room.ask("ghost_20250115_143200", "It is slow", once)
        card = page.locator(".approval")
        expect(card.locator(".command")).to_have_text(long)
        until(lambda: page.evaluate("window.clicks"))
        expect(page.locator("#announcements")).to_have_text("This has just moved: read it, then click again.")
        assert room.closed(one.id) is None
        names = ["Approve", "Deny", "Approve for the session", "Approve the form for the session"]
        assert card.locator(".answers button").all_inner_texts() == names
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        expect(card).to_contain_text(FORM)
        page.evaluate("window.scrollTo(0, 0)")
        expect(card.get_by_role("button", name="Deny")).to_be_in_viewport(ratio=1)
        below = card.get_by_text("The command goes on below.")
        expect(below).to_be_in_viewport()
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(below).to_have_count(0)
        two = room.ask("ghost_20250115_143200", "It is slow", "Which port?")
        expect(card).to_have_count(2)
        room.give_up(one.id)
        expect(card.first).to_contain_text("closed without an answer")
        card.last.get_by_role("button", name="Answer").click()
        expect(card.last.get_by_label("Answer")).to_be_focused()
        page.keyboard.type("5432")
        card.last.get_by_role("button", name="Answer").click()
        expect(card.last).to_contain_text("Answered.")
        assert room.closed(two.id).answer == "5432"


def test_a_break_hides_no_approval_and_without_a_token_it_says_who_can_answer(
    live: Live, root: Path, open_page: Open
) -> None:
    page = open_page(live)
    expect(page.locator(".connection")).to_have_text("live")
    expect(panel(page, "Start an investigation")).to_contain_text("starts no investigations")
    live.app.services.feed.publish("thought", 0, {"content": "seen"})
    for follower in list(live.app.services.feed._followers):  # the connection breaks; the server runs on
        live.app.services.feed.leave(follower)
        follower._feed = type("Gone", (), {"closed": True})()
        follower.wake()
    with live.app.services.room.occupied():
        once = ApprovalRequest("once", ("az vm start -n a",), "It is off.", "It starts a machine.", 2)
        live.app.services.room.ask("ghost_20250115_143200", "It is slow", once)
        card = page.locator(".approval")
        expect(card).to_contain_text("Start ghost serve with GHOST_API_TOKEN")
        expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.locator(".connection")).to_have_text("live")


def test_a_drift_is_asked_about_and_is_a_task(make_app, root: Path, open_page: Open) -> None:
    app = make_app()
    at = Bench(root, WEB_TO_CACHE)
    interrupts = app.services.engine.interrupts
    asking = SimpleNamespace(ask=interrupts.create, withdraw=interrupts.withdraw)
    at.runs = WatchRuns(Workspace(root), at.open_shell, SystemClock(), asking)
    with served(app) as live:
        page = open_page(live, "#/questions")
        at.az(BLOCK)
        assert at.run().outcome == "drift"
        question = page.locator(".question").filter(has_text="Was this intended?")
        expect(question).to_contain_text("new-block", timeout=MINUTE)
        app.services.engine.tend()
        page.get_by_role("link", name="Tasks").click()
        expect(page.locator("li.task").filter(has_text="Watch w1 found a changed path")).to_have_count(
            1, timeout=MINUTE
        )
        page.get_by_role("link", name="Questions").click()
        question.get_by_role("textbox").fill("yes, by change 4711")
        question.get_by_role("button").first.click()
        expect(page.locator(".question").filter(has_text="Was this intended?")).to_have_count(0, timeout=MINUTE)
