// What a running investigation tells: its turns, its commands with class and outcome, what it asks.

import { chip, panel } from "../controls.js";
import { h, keyed, outside, textOf } from "../dom.js";
import { empty } from "../notices.js";
import { shortened } from "../router.js";
import { clock, soon } from "../times.js";
import { outcomeChip } from "./report.js";
import { CLASSES } from "./evidence.js";

const LINE = 160;
const SAID = {
  session: (event) => ["thinks with ", outside(event.model), " in ", outside(event.network)],
  turn: (event) => outside(shortened(event.text)),
  command: (event) => [chip(textOf(event.classification) || "unclassified", CLASSES[event.classification] ?? "plain"), " ",
    h("span", { class: event.exit_code === 0 ? "faint" : "exit" }, outcome(event)), " ", outside(event.command, { tag: "code" })],
  approval_asked: (event) => ["waits for an approval: ", outside(event.reasoning || event.command)],
  approval_answered: (event) => [`${textOf(event.action)}${event.by ? `, on the ${textOf(event.by)}` : ""} `, outside(event.reason)],
  question: (event) => ["asks: ", outside(event.text)],
  answer: (event) => ["was told: ", outside(event.text)],
  report: (event) => ["the report is written: ", outcomeChip(event.outcome)],
  ended: (event) => (event.error ? ["ended: ", outside(event.error)] : event.outcome ? "ended" : "stopped before a conclusion"),
};
const WORDS = { session: "begins", turn: "turn", command: "command", approval_asked: "asks", approval_answered: "answer",
  question: "asks", answer: "answer", report: "report", ended: "end" };
const TONES = { turn: "info", approval_asked: "warn", question: "warn", report: "good" };

/** `{element, render}`: `render(running)` hides it where nothing runs and nothing was told. */
export function livePanel(sessionId, app, signal) {
  const { element, body } = panel("Live");
  const list = h("ol", { class: "live-events", role: "log", "aria-live": "off", "aria-label": "What the investigation tells, newest first", tabindex: "0" });
  const nothing = empty("Nothing was told since this page was opened.", "Commands so far are in Evidence.");
  body.append(nothing, list);
  let isRunning = false;
  const render = (running = isRunning) => {
    isRunning = running;
    const shown = app.waiting.told(sessionId).filter(({ event }) => Object.hasOwn(SAID, event));
    element.hidden = !running && !shown.length;
    nothing.hidden = shown.length > 0;
    list.hidden = !shown.length;
    keyed(list, shown, ({ number }) => number, row);
  };
  const again = soon(100, () => render(), signal);
  app.waiting.addEventListener("told", ({ detail }) => { if (detail === sessionId) again(); }, { signal });
  return { element, render };
}

/** The last of what a session told, as one line. */
export function lastTold(app, sessionId) {
  const last = app.waiting.told(sessionId).find(({ event }) => event === "turn" || event === "command");
  const words = textOf(last?.event === "turn" ? shortened(last.text) : last?.command);
  return words ? outside(words.length > LINE ? `${words.slice(0, LINE)} …` : words) : null;
}

function row(event) {
  const ts = Number.isFinite(event.ts) ? event.ts : Date.now() / 1000;
  return h("li", { class: "event" }, h("time", { datetime: new Date(ts * 1000).toISOString() }, clock(ts)),
    chip(WORDS[event.event], TONES[event.event] ?? "plain"), h("span", { class: "event-text" }, SAID[event.event](event)));
}

function outcome(event) {
  if (event.exit_code !== null && event.exit_code !== undefined) return `exit ${event.exit_code}`;
  return [textOf(event.status), textOf(event.error).replace(/_/g, " ")].filter(Boolean).join(": ");
}
