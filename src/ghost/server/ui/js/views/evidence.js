// The records of an investigation in the order of time. A citation is a link to its record, where there is one.

import { part } from "../api.js";
import { chip, choice, command } from "../controls.js";
import { fill, h, keyed, outside, setText, textOf } from "../dom.js";
import { empty, loaded } from "../notices.js";
import { recordLink, shortened } from "../router.js";
import { utc } from "../times.js";

const PAGE = 200;
const MOST = 10_000;
const FOLDED = 1200;
const LONGEST = 1_000_000;
export const CLASSES = { SAFE: "good", RISKY: "warn", FORBIDDEN: "bad" };
export const TIERS = { 1: "a capture", 2: "the Azure API", 3: "an active probe", 4: "a host's own state" };
const FILTERS = {
  all: () => true,
  cited: (record, cited) => cited.has(record.audit_id),
  decided: (record) => record.action !== "auto_approved",
  failed: (record) => record.status !== "completed" || record.exit_code !== 0,
};

/** `read()` brings it up to date and returns what the API says of the investigation; `goTo(id)` shows one record. */
export function evidenceList(sessionId, app, signal) {
  const records = new Map();
  let count = 0;
  let cited = new Set();
  const filter = choice([["all", "Everything"], ["cited", "Cited by the report"], ["decided", "Decided by a person, or refused"], ["failed", "Refused or ended with an error"]], "all");
  filter.setAttribute("aria-label", "Which records");
  const words = h("span", { class: "faint", role: "status" });
  const list = h("ol", { class: "evidence" });
  const nothing = h("div", {});
  const more = h("button", { type: "button", hidden: true, listen: { click: () => load() } }, "Show more");
  const element = h("div", {}, h("div", { class: "row" }, filter, words), nothing, list, more);
  filter.addEventListener("change", () => render());

  const ask = (offset) => app.api.get(`/investigations/${part(sessionId)}`, { limit: PAGE, offset }, signal);
  const take = (found) => {
    for (const record of found.evidence) records.set(record.audit_id, record);
    count = Math.min(found.evidence_count, MOST);
    render(found.unreadable_lines);
    return found;
  };
  const load = async () => take(await ask(records.size));
  const read = load; // what is shown does not change: records are only ever added

  const render = (unreadable = []) => {
    const shown = [...records.values()].filter((record) => FILTERS[filter.value](record, cited));
    keyed(list, shown, ({ audit_id: id }) => id, (record) => row(record, sessionId, app, signal), (made, record) => made.classList.toggle("cited", cited.has(record.audit_id)));
    setText(words, `${shown.length} of ${count} records${unreadable.length ? `; lines ${unreadable.join(", ")} of the audit cannot be read` : ""}`);
    more.hidden = records.size >= count;
    fill(nothing, records.size ? (shown.length ? null : empty("No matching records.", "Choose “Everything” to see all records."))
      : empty("No records yet.", "Every command of an investigation, run or refused, is recorded here."));
  };

  const goTo = async (id) => {
    while (!records.has(id) && records.size < count) {
      const before = records.size;
      await load();
      if (records.size === before) break;
    }
    if (records.has(id) && filter.value !== "all") {
      filter.value = "all";
      render();
    }
    const found = [...list.children].find((each) => each.dataset.key === id);
    for (const each of list.querySelectorAll(".here")) each.classList.remove("here");
    if (!found) {
      app.say(`There is no record ${id}.`);
      setText(words, `There is no record ${id.slice(0, 100)} in this investigation.`);
      return;
    }
    found.classList.add("here");
    found.focus({ preventScroll: true });
    found.scrollIntoView({ block: "center" });
  };

  return { element, read, goTo, has: (id) => records.has(id) || count > records.size, cite: (ids) => { cited = ids; render(); } };
}

/** Makes a link of an audit id. Only ids of this investigation are links; others are text. */
export function citing(sessionId, evidence) {
  return (id) => {
    const known = id.startsWith(`${sessionId}_`) && evidence.has(id);
    return known ? recordLink(sessionId, id) : h("code", { class: "outside" }, id);
  };
}

function row(record, sessionId, app, signal) {
  const exit = record.exit_code;
  const number = `#${record.audit_id.split("_").pop()}`;
  return h("li", { class: "record", tabindex: "-1" },
    h("div", { class: "record-head" },
      h("strong", { title: record.audit_id }, number), h("time", { title: textOf(record.timestamp) }, utc(record.timestamp).slice(-8)),
      chip(record.context.replace(/[[\]]/g, "").toLowerCase(), record.context === "[CLOUD]" ? "info" : "plain"),
      chip(record.classification || "unclassified", CLASSES[record.classification] ?? "plain"),
      h("span", { class: "decision" }, decision(record)), h("span", { class: exit === 0 ? "faint" : "exit" }, exit === null ? "did not end" : `exit ${exit}`),
      record.duration_seconds === null ? null : h("span", { class: "faint" }, `${record.duration_seconds.toFixed(1)} s`)),
    command(record.command, `the command of ${number}`, app.say),
    h("details", {}, h("summary", {}, "Reason and output", h("span", { class: "unseen" }, ` of ${number}`)),
      h("p", {}, outside(shortened(record.reasoning) || "No reason was given.")),
      h("p", { class: "faint" }, `${utc(record.timestamp)} UTC, ${TIERS[record.tier] ?? "another source"}, record `, outside(record.audit_id, { tag: "code" })),
      record.denial_reason || record.error ? h("p", {}, outside([record.error, record.denial_reason].filter(Boolean).join(": "))) : null,
      record.output_summary ? outside(record.output_summary, { tag: "pre", limit: FOLDED }) : h("p", { class: "faint" }, "No output."),
      record.output_bytes ? wholeOutput(record, sessionId, app, signal) : null));
}

/** A button that reads the whole output of a record. What a page cannot hold is left to the command line. */
function wholeOutput(record, sessionId, app, signal) {
  const place = h("div", {});
  const read = async () => {
    const response = await app.api.fetch(`/investigations/${part(sessionId)}/evidence/${part(record.audit_id)}/output`, { signal });
    const text = await response.text();
    const rest = text.length > LONGEST ? h("p", { class: "faint" }, `The first ${LONGEST.toLocaleString("en")} of ${text.length.toLocaleString("en")} characters. All of it: `,
      h("code", {}, `ghost audit show ${sessionId} ${record.audit_id}`)) : null;
    return [outside(text.slice(0, LONGEST), { tag: "pre", limit: FOLDED }), rest];
  };
  const words = `Read the whole output (${record.output_bytes.toLocaleString("en")} bytes)`;
  const load = () => loaded(fill(place), "Reading the output.", read, signal);
  return fill(place, h("button", { type: "button", class: "quiet", listen: { click: load } }, words));
}

function decision({ action, status, error }) {
  const words = textOf(action).replace(/_/g, " ").replace(/^user/, "person").replace(/^auto/, "auto-").replace("- ", "-");
  return [words || "no decision", status && status !== "completed" ? `, ${status}${error ? ` (${textOf(error).replace(/_/g, " ")})` : ""}` : ""].join("");
}
