// The first view: what waits for a person, a form that starts an investigation, and all of the workspace, the newest
// first; one of them where the address names it.

import { chip, panel } from "../controls.js";
import { counted, fill, h, keyed, listOf, outside, setText, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { hashOf, shortened } from "../router.js";
import { every, soon, utc } from "../times.js";
import { waitingCards } from "./approvals.js";
import { show as showOne } from "./investigation.js";
import { lastTold } from "./live.js";
import { confidenceChip, outcomeChip } from "./report.js";
import { startPanel, steering } from "./start.js";

const SHOWN = 200;
const TASKS = 200;
const STATES = { running: ["running", "info"], finished: ["finished", "plain"], resumable: ["interrupted", "warn"], damaged: ["damaged", "bad"],
  queued: ["queued", "info"], failed: ["failed", "bad"], interrupted: ["interrupted", "warn"] };
const SAID = { running: "Running; new records appear automatically.", resumable: "No conclusion yet.", finished: "Ended without a conclusion.",
  damaged: "The session file is unreadable; its records may be readable.", queued: "It starts when no other investigation runs here." };

/** Of a session, of an order without one, or of both: one that is to be resumed is queued. */
export function stateChip(session, order = null) {
  const state = order?.state === "queued" || !session ? order.state : session.state;
  if (state === "finished" && session.outcome) return outcomeChip(session.outcome);
  return chip(...(STATES[state] ?? [textOf(state), "plain"]));
}

/** The order that began a session, or is to resume it: the newest. */
export const orderOf = (orders, sessionId) => orders.find((order) => (order.session_id ?? order.resume) === sessionId) ?? null;

export function show(place, app, route, signal) {
  if (route.parts.length) return showOne(place, app, route, signal);
  const count = h("p", { class: "faint" });
  const { element, body } = panel("In this workspace", { tools: count });
  fill(place, h("h1", {}, "Investigations"), waitingPanel(app, signal), startPanel(app, signal), element);
  const list = h("ul", { class: "investigations" });
  let found = { investigations: [], count: 0 };
  let cleanups = () => [];

  const render = () => {
    const { orders } = app.waiting;
    const sessions = listOf(found.investigations);
    const ids = new Set(sessions.map(({ session_id: id }) => id));
    const alone = orders.filter((order) => STATES[order.state] && !ids.has(order.session_id ?? order.resume));
    const rows = [...alone.map((order) => ({ session: null, order })), ...sessions.map((session) => ({ session, order: orderOf(orders, session.session_id) }))];
    setText(count, found.count > SHOWN ? `the newest ${SHOWN} of ${found.count}` : `${found.count}, the newest first`);
    keyed(list, rows, ({ session, order }) => session?.session_id ?? order.id, () => row(app), (made, each) => made.show(each, each.session ? cleanups(each.session.session_id) : []));
    return rows.length ? list : empty("No investigation has run in this workspace.", "Start one above, or at a terminal: ghost investigate \"what fails, in your words\".");
  };
  const read = () => loaded(body, "Reading investigations.", async () => {
    const [rows, { tasks }] = await Promise.all([app.api.get("/investigations", { limit: SHOWN }, signal), app.api.get("/tasks", { k: TASKS }, signal)]);
    found = rows;
    cleanups = (id) => tasks.filter((task) => task.id.startsWith("cleanup:") && task.metadata.session_id === id).map(({ title }) => title);
    return render();
  }, signal);
  const again = soon(1000, read, signal);
  for (const kind of ["record", "gap", "order"]) app.following.addEventListener(kind, again, { signal });
  const renderSoon = soon(100, () => { if (list.isConnected) render(); }, signal);
  for (const kind of ["change", "told"]) app.waiting.addEventListener(kind, renderSoon, { signal });
  every(15, read, signal);
  read();
  return null;
}

function waitingPanel(app, signal) {
  const { element, body } = panel("Waiting for you", { cls: "waiting" });
  element.querySelector("h2").setAttribute("tabindex", "-1");
  const nothing = empty("No running investigation waits for you.", "What needs your approval or an answer appears here.");
  const cards = waitingCards(app, signal);
  fill(body, nothing, cards.list);
  const failed = h("div", {});
  cards.list.addEventListener("change", () => {
    const { approvals, error } = app.waiting;
    nothing.hidden = cards.list.childElementCount > 0 || (approvals === null && error !== null);
    fill(failed, error && approvals === null ? failure(error, () => app.waiting.read()) : null);
  });
  body.append(failed);
  cards.render();
  return element;
}

function row(app) {
  const head = h("h3", { class: "investigation-head" });
  const chips = h("p", {});
  const cause = h("p", { class: "summary" });
  const live = h("p", { class: "faint", hidden: true });
  const waits = h("div", {});
  const facts = h("p", { class: "faint" });
  const made = h("li", { class: "investigation" }, head, chips, cause, live, waits, facts);
  let before = "";
  made.show = ({ session, order }, cleanups) => {
    const running = session?.state === "running";
    const last = running ? lastTold(app, session.session_id) : null;
    live.hidden = !last;
    if (last && last.textContent !== live.textContent) fill(live, last);
    const asked = session ? app.waiting.of(session.session_id) : [];
    const fresh = JSON.stringify([session, order, cleanups, asked.map(({ id }) => id), app.waiting.whyNot]);
    if (fresh === before) return;
    before = fresh;
    const state = order?.state === "queued" || !session ? order.state : session.state;
    const focused = head.contains(document.activeElement);
    const symptom = outside(session?.symptom || order?.symptom || session?.session_id || `lab ${order?.lab}`, { limit: 300 });
    fill(head, session ? h("a", { href: hashOf("investigations", [session.session_id]) }, symptom) : symptom);
    if (focused) head.querySelector("a")?.focus();
    fill(chips, stateChip(session, order), session?.confidence ? [" ", confidenceChip(session.confidence)] : null,
      asked.map((each) => [" ", chip(each.kind === "question" ? "waits for your answer" : "waits for your approval", "warn")]));
    const failed = order?.error && session?.state !== "finished" ? outside(order.error) : null;
    fill(cause, session?.summary ? outside(shortened(session.summary), { limit: 500 })
      : failed ?? h("span", { class: "faint" }, SAID[state] ?? ""));
    fill(waits, steering(app, session, order), cleanups.map((title) => h("p", {}, chip("waits", "warn"), " ", outside(title))));
    fill(facts, session ? [h("code", {}, session.session_id), " ", [session.created_at && `${utc(session.created_at)} UTC`, textOf(session.network), textOf(session.brain),
      counted(session.turns, "turn"), counted(session.hypotheses, "hypothesis", "hypotheses"), session.has_report ? "report" : "no report"].filter(Boolean).join(" · ")]
      : [order.lab ? `lab ${order.lab}` : "Azure", order.read_only ? "read only" : ""].filter(Boolean).join(" · "));
  };
  return made;
}
