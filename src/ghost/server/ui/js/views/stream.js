// The live stream: the last events, newest first, in a box of fixed height. It can be paused.

import { chip, choice, panel } from "../controls.js";
import { fill, h, keyed, listOf, outside, setText, textOf } from "../dom.js";
import { KEPT } from "../following.js";
import { empty } from "../notices.js";
import { hashOf, recordLink } from "../router.js";
import { clock, every, soon, span } from "../times.js";
import { thoughtText } from "./thoughts.js";

const FILTERS = {
  all: () => true,
  thoughts: (kind) => ["thought", "interrupt", "answer", "gap"].includes(kind),
  work: (kind) => ["record", "stimulus", "scrape", "task", "stored", "gap"].includes(kind),
  errors: (kind) => ["error", "gap"].includes(kind),
};

export function streamPanel(app, signal) {
  const { following } = app;
  const filter = choice([["all", "Everything"], ["thoughts", "Thoughts and questions"], ["work", "Work"], ["errors", "Errors"]], "all");
  filter.setAttribute("aria-label", "What to show");
  const hold = h("button", { type: "button", "aria-pressed": "false" }, "Hold");
  const { element, body } = panel("Live thoughts", { cls: "fixed stream", tools: h("div", { class: "row" }, filter, hold) });
  const state = h("p", { class: "stream-state" }, "\u00a0");
  const list = h("ol", { class: "events", role: "log", "aria-live": "off", "aria-label": "Events, newest first", tabindex: "0" });
  const nothing = empty("Nothing has happened since this page was opened.",
    "Thoughts, questions and records of investigations appear here automatically.");
  fill(body, state, nothing, list);

  let held = null; // the events when it was held still
  let unsaid = 0;
  const render = () => {
    const shown = (held ?? following.kept).filter(({ kind }) => FILTERS[filter.value](kind));
    nothing.hidden = shown.length > 0;
    keyed(list, shown, (event) => event.number, row);
    const waiting = held ? Math.min(KEPT, (following.kept[0]?.number ?? 0) - (held[0]?.number ?? 0)) : 0;
    setText(hold, held ? `Continue${waiting ? ` (${waiting} new)` : ""}` : "Hold");
    hold.setAttribute("aria-pressed", String(held !== null));
  };
  const renderSoon = soon(100, render, signal);
  hold.addEventListener("click", () => { held = held ? null : [...following.kept]; render(); });
  filter.addEventListener("change", render);
  following.addEventListener("any", ({ detail }) => {
    renderSoon();
    if (detail.kind !== "thought") return;
    unsaid += 1;
    app.say(`${unsaid === 1 ? "New thought" : `${unsaid} new thoughts, the last`}: ${textOf(detail.data.content).slice(0, 200)}`, false);
  }, { signal });
  every(8, () => { unsaid = 0; }, signal);
  render();
  followState(app, state, signal);
  return element;
}

/** Whether the stream of thoughts runs: a line above the events. */
function followState(app, place, signal) {
  let now = null;
  const render = () => setText(place, now ? wordsOf(now) : "\u00a0");
  const read = async () => {
    try {
      now = await app.api.get("/stream", {}, signal);
    } catch {
      now = null; // the banner says that the server does not answer
    }
    if (!signal.aborted) render();
  };
  const again = soon(500, read, signal);
  for (const kind of ["thought", "interrupt", "answer", "error", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(15, read, signal);
  every(1, render, signal);
  read();
}

function wordsOf(now) {
  if (now.state === "disabled") return "The stream of thoughts is switched off (SOC_ENABLED): cycles run on request only.";
  if (now.state === "ended") return "The stream of thoughts has failed: see logs/ghost.log, then restart ghost serve.";
  if (now.paused) return "Waiting for an answer: see Questions.";
  const next = now.next_at ? Math.max(0, now.next_at - Date.now() / 1000) : null;
  if (now.last_error) return `Failed ${now.failures_in_a_row} times in a row: ${now.last_error}${next ? `. Tries again in ${span(next)}` : ""}`;
  return next === null ? "Thinking." : `Next thought in ${span(next)}${now.idle_cycles_in_a_row > 2 ? ", slower while nothing is new" : ""}.`;
}

// --- one event ---

const KINDS = {
  thought: ["thought", "info"], stimulus: ["heard", "plain"], stored: ["kept", "good"], interrupt: ["asks", "warn"],
  answer: ["answer", "good"], scrape: ["read", "plain"], task: ["next task", "violet"], record: ["record", "plain"],
  error: ["error", "bad"], gap: ["gap", "warn"],
};

function row({ kind, data, at }) {
  const [word, tone] = KINDS[kind];
  const ts = typeof data.ts === "number" ? data.ts : at;
  return h("li", { class: `event of-${kind}` }, h("time", { datetime: new Date(ts * 1000).toISOString() }, clock(ts)),
    chip(word, tone), h("span", { class: "event-text" }, SAID[kind](data)));
}

const SAID = {
  thought: (data) => thoughtText(data),
  stimulus: (data) => [h("span", { class: "faint" }, textOf(data.source), ": "), outside(data.content)],
  stored: (data) => [`As ${textOf(data.type)} memory: `, h("span", { class: "faint" }, outside(data.reason || data.id, { limit: 300 }))],
  interrupt: (data) => [outside(data.question), " ", h("a", { href: "#/questions" }, "Answer")],
  answer: (data) => [outside(data.question, { limit: 200 }), " → ", outside(data.answer, { limit: 300 })],
  scrape: (data) => `${listOf(data.documents).length} pages read, ${listOf(data.refusals).length} refused: ${textOf(data.question)}`,
  task: (data) => outside(data.title, { limit: 300 }),
  record: (data) => {
    const session = textOf(data.session_id);
    return data.kind === "command"
      ? ["New record ", recordLink(session, textOf(data.audit_id)), " of ", h("a", { href: hashOf("investigations", [session]) }, session)]
      : [`Capture ${textOf(data.task_id)} is ${textOf(data.state)}: `, h("a", { href: hashOf("investigations", [session]) }, session)];
  },
  error: (data) => [h("span", { class: "faint" }, textOf(data.where), ": "), outside(data.message)],
  gap: () => "Some events were missed while the connection was down; the page was reloaded.",
};
