// One investigation: what it waits for and tells while it runs; then in the order of its report: cause, what to do, how sure and why, what was not verified, the path,
// the timeline, and everything that ran. Times are UTC, as in the report.

import { Problem, part } from "../api.js";
import { chip, panel } from "../controls.js";
import { counted, fill, h, listOf, outside, recordOf, setText, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { soon, utc } from "../times.js";
import { waitingCards } from "./approvals.js";
import { citing, evidenceList } from "./evidence.js";
import { orderOf, stateChip } from "./investigations.js";
import { livePanel } from "./live.js";
import { reportParts } from "./report.js";
import { steering } from "./start.js";

const HYPOTHESES = { CONFIRMED: "good", REFUTED: "plain", ACTIVE: "info", CONTRADICTED: "warn", DENIED_ONCE: "warn", DENIED_TWICE: "warn", UNVERIFIABLE: "violet" };

export function show(place, app, route, signal) {
  const sessionId = route.parts[0];
  app.title(sessionId);
  const heading = h("h1", { class: "outside" }, sessionId);
  const about = h("div", {});
  const parts = { cause: panel("Root cause", { cls: "report" }), actions: panel("What to do", { cls: "report" }),
    certainty: panel("Confidence and reasons", { cls: "report" }), unverified: panel("Not verified", { cls: "report" }), path: panel("Path"),
    coverage: panel("Path coverage"), timeline: panel("Timeline (UTC)"), captures: panel("Captures"), evidence: panel("Evidence") };
  parts.path.element.hidden = true;
  const waits = panel("Waiting for you", { cls: "waiting" });
  waits.element.querySelector("h2").setAttribute("tabindex", "-1");
  const cards = waitingCards(app, signal, sessionId);
  const live = livePanel(sessionId, app, signal);
  const steered = h("div", {});
  const pages = h("div", {});
  const captured = h("div", {});
  fill(waits.body, cards.list);
  fill(parts.captures.body, captured, pages);
  cards.list.addEventListener("change", () => { waits.element.hidden = !cards.list.childElementCount; });
  waits.element.hidden = !cards.render();
  const reasons = h("div", {});
  const tested = h("div", {});
  fill(parts.certainty.body, reasons, h("h3", {}, "Hypotheses"), tested);
  fill(place, h("p", {}, h("a", { href: "#/investigations" }, "All investigations")), heading, about, steered,
    waits.element, live.element, Object.values(parts).map(({ element }) => element));
  const evidence = evidenceList(sessionId, app, signal);
  const cite = citing(sessionId, evidence);
  let seen = null;

  const once = { hypotheses: "", captures: "", report: "", timeline: "", steered: "", pages: "" };
  const changed = (name, value) => {
    const before = once[name];
    once[name] = JSON.stringify(value);
    return once[name] !== before;
  };

  const steer = () => {
    const order = orderOf(app.waiting.orders, sessionId);
    if (seen && changed("steered", [seen.investigation.state, order, app.waiting.whyNot])) fill(steered, steering(app, seen.investigation, order));
  };
  const read = async () => {
    await loaded(about, "Reading the investigation.", async () => {
      const found = await evidence.read();
      const { investigation: now } = (seen = found);
      setText(heading, now.symptom ? now.symptom.slice(0, 300) : sessionId);
      if (changed("hypotheses", [found.hypotheses, now.state])) fill(tested, hypotheses(found.hypotheses, now.state === "running", cite));
      if (!evidence.element.isConnected) fill(parts.evidence.body, evidence.element);
      if (!once.report && changed("captures", found.captures)) fill(captured, captures(found.captures));
      live.render(now.state === "running");
      if (now.state === "finished" && live.element.nextSibling !== parts.timeline.element) parts.timeline.element.before(live.element); // the cause is first
      steer();
      return h("p", { class: "faint" }, stateChip(now, orderOf(app.waiting.orders, sessionId)), " ", h("code", {}, sessionId), " ", [now.created_at && `${utc(now.created_at)} UTC`, now.network, now.brain,
        counted(now.turns, "turn")].filter(Boolean).join(" · "));
    }, signal);
    await readReport();
  };
  const readReport = () => loaded(parts.cause.body, "Reading the report.", async () => {
    let report = null;
    try {
      if (!seen || seen.investigation.has_report) report = await app.api.get(`/investigations/${part(sessionId)}/report`, {}, signal);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
    }
    if (seen && changed("timeline", [seen, report])) fill(parts.timeline.body, timeline(seen, report, cite));
    for (const name of ["unverified", "coverage"]) parts[name].element.hidden = !report;
    if (!report) {
      fill(parts.actions.body, empty("Nothing yet.", "The report says what to do."));
      return empty("No report yet.", "It is written when the investigation concludes. The commands so far are below.");
    }
    if (!changed("report", report)) return null;
    const made = reportParts(report, cite, app.say);
    evidence.cite(made.cited);
    fill(parts.actions.body, made.actions);
    fill(reasons, made.certainty);
    fill(parts.unverified.body, made.unverified);
    fill(parts.coverage.body, made.coverage);
    if (made.captured) fill(captured, made.captured);
    if (changed("pages", seen.captures)) fill(pages, capturePages(seen.captures, sessionId, app, signal));
    showPath(parts.path, sessionId, app, signal);
    return made.cause;
  }, signal);

  /** Goes to a record of this investigation; false where the address names another place. */
  const go = (next) => {
    if (next.parts[0] !== sessionId) return false;
    if (next.parts[1] === "evidence" && next.parts[2]) evidence.goTo(next.parts[2]);
    return true;
  };
  const again = soon(1000, read, signal);
  app.following.addEventListener("record", ({ detail }) => { if (detail.session_id === sessionId) again(); }, { signal });
  for (const kind of ["gap", "order"]) app.following.addEventListener(kind, again, { signal });
  app.waiting.addEventListener("change", steer, { signal });
  read().then(() => { if (!signal.aborted && route.parts[1]) go(route); })
    .catch((error) => { if (!signal.aborted) fill(about, failure(error)); });
  return go;
}

/** The picture of the path; a server that has none answers 404, and the panel stays hidden. An image runs no script. */
async function showPath({ element, body }, sessionId, app, signal) {
  try {
    const response = await app.api.fetch(`/investigations/${part(sessionId)}/path.svg`, { signal });
    const address = URL.createObjectURL(new Blob([await response.text()], { type: "image/svg+xml" }));
    signal.addEventListener("abort", () => URL.revokeObjectURL(address));
    fill(body, h("img", { class: "path", src: address, alt: "The path of the packet, hop by hop. “Path coverage” below says the same in words." }));
    element.hidden = false;
  } catch (error) {
    if (signal.aborted) return;
    element.hidden = error instanceof Problem && error.status === 404;
    if (!element.hidden) fill(body, failure(error, () => showPath({ element, body }, sessionId, app, signal)));
  }
}

/** The pages of captures, each in a frame without rights: they are files that others may have written. */
function capturePages(found, sessionId, app, signal) {
  const named = [...new Map(found.filter(({ page }) => page).map((each) => [each.page, each])).values()];
  return named.map((each) => {
    const place = h("div", { class: "capture-page" });
    loaded(place, "Reading the page of the capture.", async () => {
      const response = await app.api.fetch(`/investigations/${part(sessionId)}/captures/${part(each.task_id)}/page`, { signal });
      const address = URL.createObjectURL(new Blob([await response.text()], { type: "text/html" }));
      signal.addEventListener("abort", () => URL.revokeObjectURL(address));
      return [h("p", { class: "faint" }, "The capture’s own page with its plots, a file of the workspace and no record: ", outside(each.page, { tag: "code" })),
        h("iframe", { sandbox: "", src: address, title: `The page of ${each.page}` })];
    }, signal);
    return place;
  });
}

function hypotheses(found, running, cite) {
  if (!found.length) return empty("No hypotheses yet.", "Hypotheses appear with the observation that would refute them.");
  return h("ul", { class: "hypotheses" }, found.map((each) => h("li", { class: "hypothesis" },
    h("p", {}, h("strong", { class: "outside" }, each.id), " ", chip(each.state === "ACTIVE" ? (running ? "being tested" : "not settled") : textOf(each.state).replace(/_/g, " ").toLowerCase(), HYPOTHESES[each.state] ?? "plain"),
      each.denial_count ? h("span", { class: "faint" }, ` refused ${each.denial_count === 1 ? "once" : `${each.denial_count} times`}`) : null),
    outside(each.description, { tag: "p" }),
    h("p", { class: "faint" }, "Would be refuted by: ", outside(each.refuted_by)),
    each.audit_ids.length ? h("p", { class: "faint" }, "Decided by ", each.audit_ids.map((id) => [cite(id), " "])) : null)));
}

/** Start, hypotheses, what a person decided or what failed, captures' findings, and the report; commands are in Evidence. */
function timeline({ investigation, hypotheses: found, evidence }, report, cite) {
  const proposed = Map.groupBy(found, ({ created_at: at }) => utc(at));
  const told = listOf(report?.timeline).map(recordOf).map((row) => [textOf(row.time), outside(row.what, { limit: 300 }), listOf(row.audit_ids).map(textOf)]);
  const rows = (told.length ? told : [
    [investigation.created_at, "Started"],
    ...[...proposed].map(([at, each]) => [`${at}Z`, [outside(each.map(({ id }) => id).join(", ")), each.length === 1 ? " is proposed" : " are proposed"]]),
    ...found.filter(({ resolved_at: at }) => at).map((each) => [each.resolved_at,
      [outside(each.id), ` is ${textOf(each.state).replace(/_/g, " ").toLowerCase()}`], each.audit_ids]),
    ...evidence.filter((each) => each.action !== "auto_approved" || each.status !== "completed" || each.tier === 1)
      .map((each) => [each.timestamp, outside(each.reasoning || each.command, { limit: 300 }), [each.audit_id]]),
    ...(report ? [[textOf(report.generated), "The report is written"]] : []),
  ]).map(([at, ...rest]) => [utc(at), ...rest]).sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
  return h("table", { class: "coverage timeline" }, h("caption", { class: "unseen" }, "Timeline"),
    h("thead", {}, h("tr", {}, ["Time", "Event", "Records"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map(([at, words, ids = []]) => h("tr", {}, h("th", { scope: "row" }, h("time", {}, at)), h("td", {}, words),
      h("td", { class: "ids" }, ids.map((id) => [cite(id), " "]))))));
}

function captures(found) {
  if (!found.length) return empty("No packets were captured.", "A capture is made when configuration alone does not explain the symptom.");
  return h("ul", { class: "plain lines" }, found.map((each) => h("li", {}, outside(each.task_id, { tag: "code" }), " ", chip(each.outcome ?? each.state.toLowerCase(), each.outcome === "completed" ? "good" : "plain"),
    " ", each.target ? outside(each.target.split("/").pop()) : "", h("span", { class: "faint" }, each.cleanup_status ? ` clean-up: ${each.cleanup_status}` : ""))));
}
