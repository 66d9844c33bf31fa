// The workspace's investigations, the newest first; one of them where the address names it. Read only.

import { chip, command, panel } from "../controls.js";
import { fill, h, keyed, outside, setText, textOf } from "../dom.js";
import { empty, loaded } from "../notices.js";
import { hashOf, shortened } from "../router.js";
import { every, soon, utc } from "../times.js";
import { show as showOne } from "./investigation.js";
import { confidenceChip, outcomeChip } from "./report.js";

const SHOWN = 200;
const TASKS = 200;
const STATES = { running: ["running", "info"], finished: ["finished", "plain"], resumable: ["interrupted", "warn"], damaged: ["damaged", "bad"] };

export const stateChip = ({ state, outcome }) => (state === "finished" && outcome ? outcomeChip(outcome) : chip(...STATES[state]));
export const resuming = (sessionId, say) => h("div", {}, h("p", {}, "It was interrupted. Resume it in this workspace:"),
  command(`ghost investigate --resume ${sessionId}`, `the command that resumes ${sessionId}`, say));

export function show(place, app, route, signal) {
  if (route.parts.length) return showOne(place, app, route, signal);
  const count = h("p", { class: "faint" });
  const { element, body } = panel("In this workspace", { tools: count });
  fill(place, h("h1", {}, "Investigations"), element);
  const list = h("ul", { class: "investigations" });
  const read = () => loaded(body, "Reading investigations.", async () => {
    const [found, { tasks }] = await Promise.all([app.api.get("/investigations", { limit: SHOWN }, signal), app.api.get("/tasks", { k: TASKS }, signal)]);
    setText(count, found.count > SHOWN ? `the newest ${SHOWN} of ${found.count}` : `${found.count}, the newest first`);
    if (!found.count) return empty("No investigation has run in this workspace.", "Start one: ghost investigate \"what fails, in your words\", or try --lab blocked-port.");
    const cleanups = (id) => tasks.filter((task) => task.id.startsWith("cleanup:") && task.metadata.session_id === id).map(({ title }) => title);
    keyed(list, found.investigations, (each) => each.session_id, () => row(app), (made, each) => made.show(each, cleanups(each.session_id)));
    return list;
  }, signal);
  const again = soon(1000, read, signal);
  for (const kind of ["record", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(15, read, signal);
  read();
  return null;
}

function row(app) {
  const head = h("h3", { class: "investigation-head" });
  const chips = h("p", {});
  const cause = h("p", { class: "summary" });
  const waits = h("div", {});
  const facts = h("p", { class: "faint" });
  const made = h("li", { class: "investigation" }, head, chips, cause, waits, facts);
  let before = "";
  made.show = (now, cleanups) => {
    const fresh = JSON.stringify([now, cleanups]);
    if (fresh === before) return;
    before = fresh;
    const focused = head.contains(document.activeElement);
    fill(head, h("a", { href: hashOf("investigations", [now.session_id]) }, outside(now.symptom || now.session_id, { limit: 300 })));
    if (focused) head.querySelector("a").focus();
    fill(chips, stateChip(now), now.confidence ? [" ", confidenceChip(now.confidence)] : null);
    fill(cause, now.summary ? outside(shortened(now.summary), { limit: 500 }) : h("span", { class: "faint" }, {
      running: "Running; new records appear automatically.", resumable: "No conclusion yet.",
      damaged: "The session file is unreadable; its records may be readable.", finished: "Ended without a conclusion." }[now.state]));
    fill(waits, now.state === "resumable" ? resuming(now.session_id, app.say) : null,
      cleanups.map((title) => h("p", {}, chip("waits", "warn"), " ", outside(title))));
    fill(facts, h("code", {}, now.session_id), " ", [now.created_at && `${utc(now.created_at)} UTC`, textOf(now.network), textOf(now.brain), `${now.turns} turns`,
      `${now.hypotheses} hypotheses`, now.has_report ? "report" : "no report"].filter(Boolean).join(" · "));
  };
  return made;
}
