"""Texts from outside stay texts, wherever the dashboard shows them: no element, no link, no request comes of them.

`open_page` fails a test in which a dialog or a window opens, a script throws, the policy is violated, or another host
is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from ghost.agent import Evidence, Session, SessionPaths
from ghost.agent.hypotheses import Hypothesis, State
from ghost.agent.rca_report import build_report
from ghost.mind import Thought
from ghost.server.dashboard import FOLDER
from ghost.shell import ApprovalRequest
from tests.server import dashboard_pages
from tests.server.conftest import Live, append, ask, command_record, remember, task, with_whole_output, write_session
from tests.server.dashboard_pages import PHONE, SECTIONS, Open, go, panel

browser, open_page = dashboard_pages.browser, dashboard_pages.open_page
pytestmark = [pytest.mark.needs("chromium")]

MARKUP = '<img src=x onerror="alert(1)"></script><script>alert(2)</script><svg onload=alert(3)>&lt;b&gt;'
ADDRESS = "javascript:alert(4)//https://evil.example/x.png"
HIDDEN = "az vm list \u202etxt.exe\u2066 \u200bzero\u200d \x1b[31mred\x07 \u2028line \U000e0041tag \ufeffbom"
LONG = "w" * 100_000
HOSTILE = f"{MARKUP} {ADDRESS} {HIDDEN}"
SHOWN = "⟦U+202E⟧txt.exe⟦U+2066⟧ ⟦U+200B⟧zero⟦U+200D⟧ ⟦U+001B⟧[31mred⟦U+0007⟧ ⟦U+2028⟧line ⟦U+E0041⟧tag ⟦U+FEFF⟧bom"
SESSION = "ghost_20250115_143200"


LOOK = """() => {
  const made = [...document.querySelectorAll('body *')];
  const never = new Set(['img', 'svg', 'iframe', 'object', 'embed', 'script', 'style', 'link', 'meta', 'base', 'b']);
  return {
    odd: made.filter(each => never.has(each.localName) && !each.closest('.brand')).map(each => each.localName),
    running: made.flatMap(each => each.getAttributeNames()).filter(name => name.startsWith('on') || name === 'src'),
    away: [...document.links].map(each => each.getAttribute('href')).filter(href => !href.startsWith('#')),
    hidden: /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u0007\\u001b]/.test(document.body.innerText),
    wide: document.documentElement.scrollWidth - innerWidth,
  };
}"""
UNFOLD = """() => {
  for (const each of document.querySelectorAll('main details')) each.open = true;
  for (const each of document.querySelectorAll('main button[aria-expanded="false"]')) each.click();
}"""


def nothing_came_of_it(page: Page) -> None:
    """No element of a kind that no view makes, no attribute that runs or loads, no link that leaves, no wide page."""
    assert page.evaluate(LOOK) == {"odd": [], "running": ["src"], "away": [], "hidden": False, "wide": 0}  # the icon's


def hostile_report(root: Path, paths: SessionPaths, session: Session) -> None:
    session.symptom = HOSTILE
    report: dict[str, Any] = build_report(session, Evidence(paths.shell_audit), [], datetime(2025, 1, 15, tzinfo=UTC))
    report |= {"statements": [{"text": HOSTILE, "audit_ids": [ADDRESS, f"{SESSION}_001"], "supported": True}, None, 7]}
    report |= {
        "actions": [
            {"text": f"`{HOSTILE}`", "command": HOSTILE, "classification": MARKUP, "changes": LONG},
            {"text": {}},
            7,
        ],
        "advisories": [LONG],
        "conflicts": ["x", {}],
        "causes": [{"kind": MARKUP, "resource": HOSTILE, "rule": LONG, "audit_ids": [ADDRESS]}, 7],
        "outcome": MARKUP,
    }
    report["coverage"] = [{"layer": MARKUP, "status": MARKUP, "audit_ids": [ADDRESS], "note": HOSTILE}, "no row"]
    report["captures"] = [{"task_id": HOSTILE, "target": MARKUP, "executive_summary": f"# {HOSTILE}\n[a]({ADDRESS})"}]
    paths.report_json.write_text(json.dumps(report))


@pytest.fixture
def haunted(live: Live, root: Path) -> Iterator[Live]:
    """A server whose mind and workspace hold hostile text in every place."""
    app, engine = live.app, live.app.services.engine
    now = app.services.now()
    engine.wm.add(Thought(id=f"thought:{MARKUP}", content=f"#question {HOSTILE}", tags=(MARKUP,), ts=now))
    engine.wm.add(Thought(id="thought:long", content=LONG, ts=now))
    remember(
        app, f"peering {HOSTILE}", tags=(MARKUP,), metadata={"url": ADDRESS, "title": MARKUP, "session_id": HOSTILE}
    )
    remember(app, f"peering {LONG}", metadata={"url": f"https://evil.example/{LONG[:3000]}", "audit_ids": [MARKUP, 7]})
    ask(app, f"q:{MARKUP}", HOSTILE, rationale=LONG, required_fields=(MARKUP, ADDRESS))
    engine.attention.add_or_update(
        task("hostile", now, title=HOSTILE, goal=LONG, metadata={"session_id": ADDRESS}), 0.5
    )
    records = [
        command_record(SESSION, 1, command=HOSTILE, reasoning=HOSTILE, output_summary=HOSTILE, denial_reason=MARKUP),
        command_record(SESSION, 2, command=LONG, classification=MARKUP, action=MARKUP, error=MARKUP, status=MARKUP),
        command_record(SESSION, 3, audit_id=ADDRESS, timestamp=MARKUP, exit_code=None, duration_seconds=None),
    ]
    paths = SessionPaths(root / "audit", SESSION)
    records[0] = with_whole_output(paths.audit_dir, records[0], f"{HOSTILE}\n" + "row\n" * 300_000)
    append(paths.shell_audit, *records)
    hypothesis = Hypothesis(
        id=MARKUP[:60], description=HOSTILE, refuted_by=LONG, state=State.CONFIRMED, created_at=MARKUP,
        audit_ids=[ADDRESS, f"{SESSION}_002"],
    )  # fmt: skip
    completion = {"confidence": MARKUP, "root_cause_summary": HOSTILE}
    write_session(
        root, SESSION, hypothesis_log=[hypothesis], completion=completion, network=HOSTILE, rca_report_path="x"
    )
    hostile_report(root, paths, Session.model_validate(_session(root)))
    asked = ApprovalRequest("plan", (HOSTILE, LONG[:9000]), HOSTILE, MARKUP, 2, form=MARKUP, times=(1, 2))
    with app.services.room.occupied():  # as an investigation that waits
        for each in (asked, HOSTILE):
            app.services.room.ask(SESSION, HOSTILE, each)
        yield live


def _session(root: Path) -> dict[str, Any]:
    document = json.loads((root / "audit" / f"ghost_session_{SESSION}.json").read_text())
    return {name: value for name, value in document.items() if name in Session.model_fields}


def test_hostile_text_stays_text_in_every_section(haunted: Live, open_page: Open) -> None:
    page = open_page(haunted)
    desktop = page.viewport_size
    plain = {"thoughts", "memory", "investigations", "read", "setup"}
    for place in (*SECTIONS, "memory?q=peering", f"investigations/{SESSION}/evidence/{SESSION}_002"):
        go(page, place)
        nothing_came_of_it(page)
        page.evaluate(UNFOLD)
        for size in (PHONE, desktop):
            page.set_viewport_size(size)
            nothing_came_of_it(page)
        assert place in plain or "onerror" in page.locator("main").inner_text(), place


def test_what_is_hidden_is_written_out_and_what_is_long_is_folded(haunted: Live, open_page: Open) -> None:
    page = open_page(haunted, f"#/investigations/{SESSION}")
    expect(page.locator(".approval .command").first).to_contain_text(SHOWN)
    assert len(page.locator(".approval .command").last.inner_text()) == 9000  # what is approved is never folded
    expect(page.locator(".record .command").first).to_contain_text(SHOWN)
    expect(page.locator(".record .command").first).to_contain_text(MARKUP)
    command = page.locator(".record .command").nth(1)
    expect(command).to_contain_text("Show all 100,000 characters")
    assert len(command.inner_text()) < 1600
    command.get_by_role("button").click()
    assert len(command.inner_text()) > 100_000
    page.locator(".record").first.get_by_text("Reason and output").click()
    page.locator(".record").first.get_by_role("button", name="Read the whole output").click()
    whole = page.locator(".record").first.locator("pre").last
    expect(whole).to_contain_text(SHOWN)
    expect(page.locator(".record").first).to_contain_text(f"ghost audit show {SESSION} {SESSION}_001")
    whole.get_by_role("button", name="Show all 1,000,000 characters").click()
    nothing_came_of_it(page)
    cause = panel(page, "Root cause")
    expect(cause).to_contain_text(SHOWN)
    citations = page.locator("a.citation").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert set(citations) <= {f"#/investigations/{SESSION}/evidence/{SESSION}_00{n}" for n in (1, 2, 3)}
    go(page, "memory?q=peering")
    expect(page.locator(".memory dd code").filter(has_text="javascript:")).to_have_text(ADDRESS)


def test_hostile_events_stay_text_wherever_they_are_shown(live: Live, root: Path, open_page: Open) -> None:
    page = open_page(live, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    feed, now = live.app.services.feed, live.app.services.now()
    every: dict[str, dict[str, Any]] = {
        "thought": {"content": HOSTILE}, "stimulus": {"source": MARKUP, "content": LONG}, "stored": {"type": MARKUP},
        "interrupt": {"question": HOSTILE}, "answer": {"question": HOSTILE, "answer": MARKUP},
        "task": {"title": HOSTILE},
        "scrape": {"question": HOSTILE, "documents": "none", "refusals": None},
        "record": {"kind": "command", "session_id": ADDRESS, "audit_id": MARKUP},
        "error": {"where": MARKUP, "message": HOSTILE}, "gap": {}, "unknown": {"content": MARKUP},
    }  # fmt: skip
    told = (
        "session",
        "turn",
        "command",
        "approval_asked",
        "approval_answered",
        "question",
        "answer",
        "report",
        "ended",
    )
    names = ("text", "command", "reason", "reasoning", "model", "error", "outcome", "classification", "exit_code")
    for event in (*told, MARKUP):
        text = {"event": event, "session_id": SESSION, **dict.fromkeys(names, HOSTILE)}
        feed.publish("investigation", now, text)
        feed.publish("investigation", now, {**text, **{name: [{"nested": MARKUP}] for name in names}})
    feed.publish("order", now, {"id": MARKUP, "symptom": HOSTILE, "state": "failed", "error": HOSTILE, "lab": MARKUP})
    for kind, data in every.items():
        feed.publish(kind, now, data)
        feed.publish(kind, now, {name: [{"nested": MARKUP}] for name in data})
    expect(page.locator(".event")).to_have_count(2 * (len(every) - 1))
    nothing_came_of_it(page)
    assert SHOWN in page.get_by_role("log").inner_text()
    write_session(root, SESSION, symptom=HOSTILE)
    go(page, f"investigations/{SESSION}")
    expect(panel(page, "Live").locator(".event")).to_have_count(2 * len(told))
    expect(panel(page, "Live")).to_contain_text(SHOWN)
    nothing_came_of_it(page)
    go(page, "investigations")
    expect(page.locator(".investigation").first).to_contain_text(SHOWN)
    nothing_came_of_it(page)
    expect(page.locator("#announcements")).to_contain_text("Ghost asks")


def test_the_dashboard_cannot_make_markup_out_of_text(live: Live, open_page: Open, browser: Browser) -> None:
    page = open_page(live)
    tried = """async ([tag, attributes]) => {
      const { h } = await import('/ui/js/dom.js');
      try { h(tag, attributes); return 'made'; } catch (error) { return error.name; }
    }"""
    for tag, attributes in (
        ("p", {"onclick": "alert(1)"}), ("p", {"style": "color: red"}), ("a", {"href": ADDRESS}),
        ("a", {"href": "https://evil.example/"}), ("iframe", {"srcdoc": "x"}), ("img", {"src": "/ui/icon.svg"}),
        ("iframe", {"src": "blob:x"}), ("a", {"href": "blob:x"}),
    ):  # fmt: skip
        assert page.evaluate(tried, [tag, attributes]) == "TypeError", attributes
    picture = page.evaluate("URL.createObjectURL(new Blob([]))")
    for made in (["a", {"href": "#/tasks"}], ["img", {"src": picture}]):
        assert page.evaluate(tried, made) == "made"
    unwatched = browser.new_page()  # what is tried here is meant to violate the policy
    unwatched.goto(f"{live.url}/ui")
    unwatched.wait_for_selector("h1")
    for sink in ("document.body.innerHTML = '<b>x</b>'", "setTimeout('alert(1)')", "document.write('x')"):
        with pytest.raises(Error, match=r"TrustedHTML|TrustedScript|Content Security Policy"):
            unwatched.evaluate(f"() => {{ {sink} }}")
    unwatched.context.close()


def test_no_module_of_the_dashboard_names_what_makes_markup() -> None:
    sources = {path.name: path.read_text().lower() for path in FOLDER.rglob("*.js")}
    assert len(sources) > 15
    for word in ("insertadjacenthtml", "document.write", "eval(", "new function", "domparser", "http:", "https:"):
        assert [name for name, source in sources.items() if word in source] == [], word
    for word in ("innerhtml", "outerhtml"):  # refused by name in one place
        assert [name for name, source in sources.items() if word in source] == ["dom.js"], word
