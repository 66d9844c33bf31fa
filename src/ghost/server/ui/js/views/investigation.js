// One investigation: its report, coverage of the path, hypotheses, and everything that ran in the order of time.

import { Problem, part } from "../api.js";
import { chip, panel } from "../controls.js";
import { fill, h, outside, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { momentOf, soon } from "../times.js";
import { citing, timeline } from "./evidence.js";
import { STATES } from "./investigations.js";
import { reportParts } from "./report.js";

const HYPOTHESES = { CONFIRMED: "good", REFUTED: "plain", ACTIVE: "info", CONTRADICTED: "warn", DENIED_ONCE: "warn", DENIED_TWICE: "warn", UNVERIFIABLE: "violet" };

export function show(place, app, route, signal) {
  const sessionId = route.parts[0];
  app.title(sessionId);
  const about = h("div", {});
  const parts = { report: panel("Root cause", { cls: "report" }), coverage: panel("Path coverage"), hypotheses: panel("Hypotheses"),
    evidence: panel("Evidence"), captures: panel("Captures") };
  fill(place, h("p", {}, h("a", { href: "#/investigations" }, "All investigations")), h("h1", { class: "outside" }, sessionId), about,
    h("div", { class: "columns" }, h("div", {}, parts.report.element), h("div", {}, parts.hypotheses.element, parts.captures.element)),
    parts.coverage.element, parts.evidence.element);
  const evidence = timeline(sessionId, app, signal);
  const cite = citing(sessionId, evidence);

  const once = { hypotheses: "", captures: "", report: "" };
  const changed = (name, value) => {
    const before = once[name];
    once[name] = JSON.stringify(value);
    return once[name] !== before;
  };

  const read = async () => {
    await loaded(about, "Reading the investigation.", async () => {
      const found = await evidence.read();
      const { investigation: now } = found;
      if (changed("hypotheses", found.hypotheses)) fill(parts.hypotheses.body, hypotheses(found.hypotheses, cite));
      if (!evidence.element.isConnected) fill(parts.evidence.body, evidence.element);
      if (!once.report && changed("captures", found.captures)) fill(parts.captures.body, captures(found.captures));
      return h("p", { class: "lead" }, chip(now.state, STATES[now.state]), " ", [now.created_at && momentOf(now.created_at), now.network, now.brain,
        `${now.turns} turns`, now.confidence && `confidence ${now.confidence}`].filter(Boolean).join(" · "));
    }, signal);
    await readReport();
  };
  const readReport = () => loaded(parts.report.body, "Reading the report.", async () => {
    let report = null;
    try {
      report = await app.api.get(`/investigations/${part(sessionId)}/report`, {}, signal);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
      fill(parts.coverage.body, empty("Not known yet.", "The report says which layers of the path were cleared, at fault, or not verified."));
      return empty("No report yet.", "It is written when the investigation concludes. The commands so far are below.");
    }
    if (!changed("report", report)) return null;
    const { cause, coverage, captured, cited } = reportParts(report, cite);
    evidence.cite(cited);
    fill(parts.coverage.body, coverage);
    if (captured) fill(parts.captures.body, captured);
    return cause;
  }, signal);

  /** Goes to a record of this investigation; false where the address names another place. */
  const go = (next) => {
    if (next.parts[0] !== sessionId) return false;
    if (next.parts[1] === "evidence" && next.parts[2]) evidence.goTo(next.parts[2]);
    return true;
  };
  const again = soon(1000, read, signal);
  app.following.addEventListener("record", ({ detail }) => { if (detail.session_id === sessionId) again(); }, { signal });
  app.following.addEventListener("gap", again, { signal });
  read().then(() => { if (!signal.aborted && route.parts[1]) go(route); })
    .catch((error) => { if (!signal.aborted) fill(about, failure(error)); });
  return go;
}

function hypotheses(found, cite) {
  if (!found.length) return empty("No hypotheses yet.", "Hypotheses appear with the observation that would refute them.");
  return h("ul", { class: "hypotheses" }, found.map((each) => h("li", { class: "hypothesis" },
    h("p", {}, h("strong", { class: "outside" }, each.id), " ", chip(textOf(each.state).replace(/_/g, " ").toLowerCase(), HYPOTHESES[each.state] ?? "plain"),
      each.active ? [" ", chip("being tested", "info")] : null, each.denial_count ? h("span", { class: "faint" }, ` refused ${each.denial_count} times`) : null),
    outside(each.description, { tag: "p" }),
    h("p", { class: "faint" }, "Would be refuted by: ", outside(each.refuted_by)),
    each.audit_ids.length ? h("p", { class: "faint" }, "Supported by ", each.audit_ids.map((id) => [cite(id), " "])) : null)));
}

function captures(found) {
  if (!found.length) return empty("No packets were captured.", "A capture is made when configuration alone does not explain the symptom.");
  return h("ul", { class: "plain lines" }, found.map((each) => h("li", {}, outside(each.task_id, { tag: "code" }), " ", chip(each.outcome ?? each.state.toLowerCase(), each.outcome === "completed" ? "good" : "plain"),
    " ", each.target ? outside(each.target.split("/").pop()) : "", h("span", { class: "faint" }, each.cleanup_status ? ` clean-up: ${each.cleanup_status}` : ""))));
}
