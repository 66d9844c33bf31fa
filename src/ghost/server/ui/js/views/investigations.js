// The workspace's investigations, the newest first; one of them where the address names it. Read only.

import { chip, panel } from "../controls.js";
import { fill, h, keyed, outside, setText } from "../dom.js";
import { empty, loaded } from "../notices.js";
import { hashOf } from "../router.js";
import { every, momentOf, soon } from "../times.js";
import { show as showOne } from "./investigation.js";

const SHOWN = 200;
export const STATES = { running: "info", finished: "good", resumable: "warn", damaged: "bad" };

export function show(place, app, route, signal) {
  if (route.parts.length) return showOne(place, app, route, signal);
  const count = h("p", { class: "faint" });
  const { element, body } = panel("In this workspace", { tools: count });
  fill(place, h("h1", {}, "Investigations"), element);
  const list = h("ul", { class: "investigations" });
  const read = () => loaded(body, "Reading investigations.", async () => {
    const found = await app.api.get("/investigations", { limit: SHOWN }, signal);
    setText(count, found.count > SHOWN ? `the newest ${SHOWN} of ${found.count}` : `${found.count}`);
    if (!found.count) return empty("No investigation has run in this workspace.", "Start one: ghost investigate \"what fails, in your words\", or try --lab blocked-port.");
    keyed(list, found.investigations, (each) => each.session_id, row, (made, each) => made.show(each));
    return list;
  }, signal);
  const again = soon(1000, read, signal);
  for (const kind of ["record", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(15, read, signal);
  read();
  return null;
}

function row(investigation) {
  const head = h("p", { class: "investigation-head" });
  const summary = h("p", { class: "summary" });
  const facts = h("p", { class: "faint" });
  const made = h("li", { class: "investigation" }, head, summary, facts);
  let before = "";
  made.show = (now) => {
    if (JSON.stringify(now) === before) return;
    before = JSON.stringify(now);
    const focused = head.contains(document.activeElement);
    fill(head, h("a", { href: hashOf("investigations", [now.session_id]) }, now.session_id), " ", chip(now.state, STATES[now.state]));
    if (focused) head.querySelector("a").focus();
    fill(summary, now.summary ? outside(now.summary, { limit: 500 }) : h("span", { class: "faint" }, {
      running: "Running; new records appear automatically.", resumable: "No conclusion yet. Resume with ghost investigate --resume and this id.",
      damaged: "The session file is unreadable; its records may be readable.", finished: "Ended without a conclusion." }[now.state]));
    fill(facts, [now.created_at && momentOf(now.created_at), now.network, now.brain, `${now.turns} turns`, `${now.hypotheses} hypotheses`,
      now.confidence && `confidence ${now.confidence}`, now.has_report ? "report" : "no report"].filter(Boolean).join(" · "));
  };
  return made;
}
