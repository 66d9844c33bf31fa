"""Who sees little, uses a keyboard, a phone or a screen reader: names, headings, contrast, focus, motion, width."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import expect

from ghost.agent import SessionPaths
from ghost.mind import Thought
from ghost.shell import ApprovalRequest
from tests.server import dashboard_pages
from tests.server.conftest import NOW, Live, append, ask, command_record, remember, task, write_session
from tests.server.dashboard_pages import SECTIONS, Open, go, panel

browser, open_page = dashboard_pages.browser, dashboard_pages.open_page
pytestmark = [pytest.mark.needs("chromium")]

SESSION = "ghost_20250115_143200"
PLACES = (*SECTIONS, "memory?q=peering", f"investigations/{SESSION}")


@pytest.fixture
def furnished(live: Live, root: Any) -> Iterator[Live]:
    """Something in every section, so that what is looked at is there."""
    app, now = live.app, live.app.services.now()
    for number, tag in enumerate(("#plan", "#insight", "#question")):
        app.services.engine.wm.add(Thought(id=f"thought:{number}", content=f"{tag} look at route {number}", ts=now))
    remember(
        app, "gateway transit was lost on the peering", tags=("peering",), metadata={"url": "https://example.com/"}
    )
    ask(app, "q:1", "Which change?", rationale="The peering went", required_fields=("change_id",))
    ask(app, "q:2", "Too late?", created_ts=now - 20, expires_ts=now - 10)
    app.services.engine.attention.add_or_update(task("a", now), 0.5)
    records = [
        command_record(SESSION, 1),
        command_record(SESSION, 2, classification="RISKY", action="user_denied", status="denied", exit_code=None),
        command_record(SESSION, 3, classification="FORBIDDEN", exit_code=1),
    ]
    paths = SessionPaths(root / "audit", SESSION)
    append(paths.shell_audit, *records)
    write_session(root, "ghost_20250116_090000", symptom="It was interrupted")
    write_session(root, SESSION, rca_report_path="x", hypothesis_log=[HYPOTHESIS])
    paths.report_json.write_text(json.dumps(REPORT))
    asked = ApprovalRequest("plan", (f"az vm start --ids {VAULT}", "az vm list"), "Why", "Risk", 2, times=(1, 2))
    with app.services.room.occupied():  # as an investigation that waits
        for each in (asked, "Which port?"):
            app.services.room.ask(SESSION, "It is slow", each)
        yield live


VAULT = "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211/resourceGroups/rg-a/providers/Microsoft.KeyVault/vaults/kv"
HYPOTHESIS = {
    "id": "H1", "description": "A rule denies port 443", "refuted_by": "No deny rule matches", "state": "CONFIRMED",
    "created_at": "2025-01-15T14:32:05.000Z", "resolved_at": "2025-01-15T14:32:09.000Z",
    "audit_ids": [f"{SESSION}_001"],
}  # fmt: skip
REPORT = {
    "symptom": f"vm-a cannot reach {VAULT}", "outcome": "cause_found", "confidence": "high",
    "generated": "2025-01-15T14:33:00.000Z",
    "summary": {"text": f"A rule denies it ({SESSION}_001).", "audit_ids": [f"{SESSION}_001"], "supported": True},
    "actions": [{"text": f"az resource delete --ids {VAULT}", "command": f"az resource delete --ids {VAULT}",
                 "classification": "RISKY", "changes": "It deletes the vault."}],
    "coverage": [{"layer": "dns", "status": "not_verified", "audit_ids": [], "note": f"no name of {VAULT} was given"},
                 {"layer": "load_balancer", "status": "at_fault", "audit_ids": [f"{SESSION}_001"], "note": "denied"}],
    "captures": [{"task_id": "ghost_vm-a_20250115T143200", "outcome": "completed", "target": VAULT,
                  "executive_summary": "No segment was lost."}],
}  # fmt: skip
UNNAMED = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex="0"]')]
  .filter(each => each.checkVisibility())
  .filter(each => !(each.getAttribute('aria-label') || each.innerText.trim()
    || (each.getAttribute('aria-labelledby') ?? '').split(' ').some(id => document.getElementById(id)?.innerText.trim())
    || [...(each.labels ?? [])].some(label => label.textContent.trim())))
  .map(each => each.outerHTML)"""
STRUCTURE = """() => ({
  levels: [...document.querySelectorAll('h1, h2, h3, h4')].filter(each => each.checkVisibility())
    .map(each => +each.localName[1]),
  ids: [...document.querySelectorAll('[id]')].map(each => each.id).filter((id, at, all) => all.indexOf(id) !== at),
  named: [...document.querySelectorAll('[aria-labelledby], [aria-describedby], label[for]')].flatMap(each =>
    ['aria-labelledby', 'aria-describedby', 'for'].flatMap(name => (each.getAttribute(name) ?? '').split(' ')))
    .filter(id => id && !document.getElementById(id)),
  landmarks: ['header', 'nav', 'main'].map(name => document.querySelectorAll(name).length),
  headless: [...document.querySelectorAll('table')]
    .filter(each => !each.caption || !each.querySelector('th[scope=col]')).length,
  positive: document.querySelectorAll('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])').length,
})"""


def test_headings_are_in_order_and_tables_and_landmarks_are_there(furnished: Live, open_page: Open) -> None:
    page = open_page(furnished)
    for place in PLACES:
        go(page, place)
        found = page.evaluate(STRUCTURE)
        levels = found.pop("levels")
        assert levels[0] == 1, place
        assert levels.count(1) == 1, place
        assert all(after - before <= 1 for before, after in pairwise(levels)), (place, levels)
        assert found == {"ids": [], "named": [], "landmarks": [1, 1, 1], "headless": 0, "positive": 0}, place
        assert page.locator("nav [aria-current=page]").count() == 1, place


CONTRASTS = """() => {
  const channels = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = each => {
    for (let up = each; up; up = up.parentElement) {
      const colour = channels(getComputedStyle(up).backgroundColor);
      if (colour[3] === 1) return colour;
      if (colour[3] !== 0) throw new Error('a background that is half transparent');
    }
    throw new Error('no background');
  };
  const ratio = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const found = {};
  const note = (kind, each, value) => {
    if (value < (found[kind] ?? 99)) Object.assign(found, { [kind]: value, [`worst ${kind}`]: each.outerHTML });
  };
  for (const each of document.querySelectorAll('body *')) {
    if (!each.checkVisibility()) continue;
    if ([...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()) && !each.disabled) {
      note('text', each, ratio(channels(getComputedStyle(each).color), behind(each)));
    }
    if (each.matches('input:not([type=checkbox]), select, textarea, button:not(.quiet)') && !each.disabled) {
      note('edge', each, Math.max(ratio(channels(getComputedStyle(each).borderTopColor), behind(each.parentElement)),
        ratio(behind(each), behind(each.parentElement))));
    }
    if (each.matches('.swatch, .meter span, .dot')) note('mark', each, ratio(behind(each), behind(each.parentElement)));
  }
  return found;
}"""


def test_contrast_is_enough_in_both_themes(furnished: Live, open_page: Open) -> None:
    """WCAG 2.2: 1.4.3 for text, 1.4.11 for edges of controls and for marks that carry meaning."""
    page = open_page(furnished, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    for kind in ("thought", "interrupt", "error", "stored", "task"):
        furnished.app.services.feed.publish(kind, NOW, {"content": "#plan x", "question": "x", "message": "x"})
    expect(page.locator(".of-task")).to_have_count(1)
    for place in PLACES:
        go(page, place)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        if place in ("questions", "memory", "read"):
            page.locator("main button[type=submit]").first.click()  # errors by the fields
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)
            found = page.evaluate(CONTRASTS)
            assert found["text"] >= 4.5, (place, theme, found)
            assert found["edge"] >= 3, (place, theme, found)
            assert found.get("mark", 3) >= 3, (place, theme, found)


def test_the_theme_is_kept_and_the_same_by_switch_and_by_system(furnished: Live, open_page: Open) -> None:
    page = open_page(furnished, color_scheme="light")
    values = """() => {
      const names = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
        .filter(rule => rule.selectorText === ':root').flatMap(rule => [...rule.style])
        .filter(name => name.startsWith('--')).map(name => [name, `var(${name})`]);
      const probe = document.body.appendChild(document.createElement('i'));
      const found = [...names, ['of the browser', 'canvas']].map(([name, colour]) => {
        probe.style.color = colour;
        return [name, getComputedStyle(probe).color];
      });
      probe.remove();
      return Object.fromEntries(found);
    }"""
    light = page.evaluate(values)
    assert len(light) > 15
    page.get_by_label("Theme").select_option("dark")
    by_switch = page.evaluate(values)
    assert not set(light.items()) & set(by_switch.items())
    page.reload()
    assert page.evaluate(values) == by_switch
    expect(page.get_by_label("Theme")).to_have_value("dark")
    page.get_by_label("Theme").select_option("auto")
    assert page.evaluate(values) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(values) == by_switch


ACTIVE = """() => {
  const { activeElement: at } = document;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  return { name: at.name || at.getAttribute('aria-label') || at.innerText, outline: `${outlineStyle} ${outlineWidth}` };
}"""


def test_everything_is_reached_and_done_with_the_keyboard(furnished: Live, open_page: Open) -> None:
    page = open_page(furnished, "#/thoughts")
    expect(page.locator(".connection")).to_have_text("live")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    expect(panel(page, "Working memory").locator(".thought")).to_have_count(3)
    expect(page.locator(".next-task .task-title")).to_be_visible()
    reached: list[dict[str, str]] = []
    while len(reached) < 25 and (not reached or not reached[-1]["name"].startswith("Thoughts by age")):  # the last
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break  # behind the last
        reached.append(page.evaluate(ACTIVE))
        assert reached[-1]["outline"] == "solid 2px", reached[-1]
    assert {"Hold", "content", "Tell", "Run one cycle", "All tasks"} <= {each["name"] for each in reached}
    page.locator("nav a").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Questions", level=1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Change id")).to_be_focused()
    page.keyboard.type("CHG-7")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_have_count(0)
    assert furnished.app.services.engine.interrupts.get("q:1").answer == "change_id: CHG-7"
    expect(panel(page, "Open").get_by_role("heading", level=2)).to_be_focused()  # not lost with the form
    go(page, "memory?q=peering")
    page.locator(".memory").get_by_role("button", name="Forget").press("Enter")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".memory").get_by_role("button", name="Forget")).to_be_focused()


def test_what_comes_in_moves_nothing_and_is_said_now_and_then(furnished: Live, open_page: Open) -> None:
    page = open_page(furnished, "#/thoughts", reduced_motion="reduce")
    expect(page.locator(".connection")).to_have_text("live")
    expect(page.locator(".next-task .task-title")).to_be_visible()
    page.evaluate(
        """() => {
          window.said = [];
          new MutationObserver(() => window.said.push(document.getElementById('announcements').textContent))
            .observe(document.getElementById('announcements'), { childList: true });
        }"""
    )
    places = """() => [...document.querySelectorAll('.panel, .bar > *, nav a')].map(each => {
      const { x, y, width, height } = each.getBoundingClientRect();
      return [x, y, width, height];
    })"""
    before = page.evaluate(places)
    engine, now = furnished.app.services.engine, furnished.app.services.now()
    for number in range(30):
        words = f"#plan number {number} " + "and more words " * (number % 7)
        engine.wm.add(Thought(id=f"thought:new{number}", content=words, ts=now))
        furnished.app.services.feed.publish("thought", now, {"content": words})
    expect(page.locator(".of-thought")).to_have_count(30)
    expect(panel(page, "Working memory").locator(".thought")).to_have_count(33)
    assert page.evaluate(places) == before
    assert page.get_by_role("log").get_attribute("aria-live") == "off"
    assert page.evaluate("window.said") == []  # thirty thoughts in a second are not thirty sentences
    furnished.app.services.feed.publish("interrupt", now, {"question": "Which port?"})
    expect(page.locator("#announcements")).to_have_text("Ghost asks: Which port?")
    assert page.evaluate("getComputedStyle(document.querySelector('.brand')).transitionDuration") == "0s"


CRAMPED = """() => [...document.querySelectorAll('button, input:not([type=checkbox]), select, textarea, nav a')]
  .filter(each => each.checkVisibility() && !each.closest('.unseen'))
  .filter(each => { const { height, right } = each.getBoundingClientRect(); return height < 21 || right > innerWidth; })
  .map(each => each.outerHTML)"""
CUT_OFF = """() => [...document.querySelectorAll('body *')]
  .filter(each => each.checkVisibility() && !each.closest('.unseen, [aria-hidden=true]'))
  .filter(each => {
    const { overflowX, overflowY, clipPath } = getComputedStyle(each);
    const over = each.scrollWidth > each.clientWidth + 1, below = each.scrollHeight > each.clientHeight + 1;
    if (clipPath !== 'none') return false; // for screen readers only
    return (over && overflowX !== 'visible') || (below && ['hidden', 'clip'].includes(overflowY));
  })
  .map(each => each.outerHTML.slice(0, 300))"""


def test_every_section_fits_and_names_its_controls_at_every_width(furnished: Live, open_page: Open) -> None:
    """No page or box scrolls sideways, nothing is cut off, and every control has a name and a size to touch."""
    page = open_page(furnished)
    for place in PLACES:
        go(page, place)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        for width in (1280, 900, 390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                at = (place, width, theme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, at
                assert {name: page.evaluate(name) for name in (CUT_OFF, CRAMPED, UNNAMED)} == {
                    CUT_OFF: [], CRAMPED: [], UNNAMED: [],
                }, at  # fmt: skip
    expect(panel(page, "What to do")).to_contain_text("It deletes the vault.")
