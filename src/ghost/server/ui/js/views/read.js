// Reads allow-listed pages and shows the result of each address.

import { Problem, explained, isAborted } from "../api.js";
import { chip, field, input, panel } from "../controls.js";
import { fill, h, listOf, outside, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { hashOf } from "../router.js";
import { span } from "../times.js";

const ENDED = { done: "Done", page_limit: "Page limit reached", time_limit: "Time limit reached", stopped: "Stopped" };

export function show(place, app, _route, signal) {
  const { element, body } = panel("Pages and purpose");
  const results = panel("Result");
  const allowed = h("div", {});
  fill(place, h("h1", {}, "Read pages"), h("p", { class: "lead" },
    "Ghost reads pages of the domains below, as their robots.txt permits, and remembers their text. It is data, never evidence."), element, results.element);
  fill(results.body, empty("No page was read yet.", "Results and refusals with their reasons appear here."));
  loaded(allowed, "Reading the allowlist.", async () => {
    const { allowlist } = await app.api.get("/config", {}, signal);
    return allowlist.length ? h("p", { class: "hint" }, "Allowlist: ", allowlist.map((domain) => [h("code", {}, domain), " "]))
      : empty("The allowlist is empty.", "Set ALLOWLIST_DOMAINS and restart ghost serve; until then no page is read.");
  }, signal);

  const question = field("Question", input({ name: "question", maxlength: "1000" }), { hint: "Why the pages are read. It stays on this machine." });
  const seeds = field("Start addresses", h("textarea", { rows: "3", name: "seeds", autocomplete: "off", spellcheck: "false" }), {
    hint: "One per line. If empty, allow-listed addresses in the question are read." });
  const most = field("Maximum pages", input({ type: "number", min: "1", max: "1000", name: "max_pages", inputmode: "numeric" }), { cls: "short" });
  const button = h("button", { type: "submit", class: "primary" }, "Read");
  const stop = h("button", { type: "button", hidden: true }, "Stop waiting");
  const progress = h("p", { class: "progress", role: "status" });
  const form = h("form", { novalidate: true }, question.element, seeds.element, h("div", { class: "row" }, most.element, h("div", { class: "row buttons" }, button, stop)), progress);
  fill(body, allowed, form);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const each of [question, seeds, most]) each.accept();
    if (!question.control.value.trim()) {
      question.refuse("Enter why the pages are read.");
      question.control.focus();
      return;
    }
    const waiting = new AbortController();
    signal.addEventListener("abort", () => waiting.abort());
    stop.onclick = () => waiting.abort();
    button.disabled = true;
    stop.hidden = false;
    const began = performance.now();
    const tick = () => fill(progress, h("span", { class: "working", "aria-hidden": "true" }), `Reading for ${span((performance.now() - began) / 1000)}.`);
    progress.setAttribute("aria-live", "off"); // said once; the seconds are for the eye
    tick();
    app.say("Reading pages.");
    const timer = setInterval(tick, 1000);
    try {
      const wanted = seeds.control.value.split(/\s+/).filter(Boolean);
      const query = { question: question.control.value.trim(), seeds: wanted, max_pages: most.control.value };
      const found = await app.api.post("/scrape", query, undefined, waiting.signal);
      fill(results.body, outcome(found));
      app.say(`${found.documents.length} pages read, ${found.refusals.length} refused.`);
    } catch (error) {
      if (isAborted(error)) fill(results.body, h("p", { class: "notice" }, "Stopped waiting. Pages that are being read are still stored."));
      else fill(results.body, refused(error, { question, seeds, most }));
    } finally {
      clearInterval(timer);
      fill(progress);
      button.disabled = false;
      stop.hidden = true;
    }
  });
}

function outcome(found) {
  const head = h("p", {}, `${ENDED[found.ended] ?? found.ended} after ${span(found.seconds)}: ${found.pages_read} pages asked for. `, found.why_ended ? outside(found.why_ended) : null);
  return h("div", {}, head,
    group("Read", "good", found.documents, (page) => [outside(page.title || "without a title", { limit: 200 }), " ", outside(page.url, { tag: "code", limit: 400 }),
      page.final_url !== page.url ? [" → ", outside(page.final_url, { tag: "code", limit: 400 })] : null,
      h("span", { class: "faint" }, ` ${page.characters.toLocaleString("en")} characters${page.truncated ? ", cut" : ""}`)]),
    group("Refused", "bad", found.refusals, (each) => [outside(each.url, { tag: "code", limit: 400 }), ": ", outside(each.reason)]),
    group("Unchanged since last read", "plain", found.not_modified, (url) => outside(url, { tag: "code", limit: 400 })),
    found.documents.length ? h("p", {}, h("a", { href: hashOf("memory") }, "Search memory")) : null);
}

const group = (title, tone, rows, words) => (rows.length
  ? h("section", {}, h("h3", {}, chip(title, tone), ` ${rows.length}`), h("ul", { class: "plain lines" }, rows.map((row) => h("li", {}, words(row)))))
  : null);

/** By the field where the fault is one's; where seeds are refused, each with its reason. */
function refused(error, { question, seeds, most }) {
  const faults = error instanceof Problem ? listOf(error.document.errors) : [];
  for (const { where, message } of faults) {
    const by = { "query.question": question, "query.max_pages": most }[textOf(where)] ?? (textOf(where).startsWith("query.seeds") ? seeds : null);
    by?.refuse(textOf(message));
  }
  const rows = error instanceof Problem ? listOf(error.document.seeds) : [];
  if (rows.length || (error instanceof Problem && error.status === 422 && !faults.length)) {
    seeds.refuse(rows.length ? "Not all of these are on the allowlist: see below." : explained(error));
    seeds.control.focus();
  }
  return [failure(error), group("Refused", "bad", rows, (each) => [outside(each.url, { tag: "code", limit: 400 }), ": ", outside(each.reason)])];
}
