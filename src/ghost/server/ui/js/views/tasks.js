// Open tasks by score, with its components.

import { chip, panel } from "../controls.js";
import { fill, h, keyed, outside, setText } from "../dom.js";
import { empty, loaded } from "../notices.js";
import { hashOf } from "../router.js";
import { every, moment, soon, until } from "../times.js";
import { PARTS, scoreBars, scoreTable, setBars, updateTable } from "./score.js";

const SHOWN = 50;
const TONES = { open: "info", doing: "good", blocked: "warn", done: "plain" };

export function show(place, app, _route, signal) {
  const { element, body } = panel("Open tasks", { tools: h("p", { class: "legend", "aria-hidden": "true" },
    PARTS.map((name) => h("span", {}, h("span", { class: "swatch", "data-part": name }), name.replace("_", " ")))) });
  fill(place, h("h1", {}, "Tasks"), h("p", { class: "lead" },
    "A score is the sum of five parts, each from 0 to 1 times its weight (GHOST_ATTENTION_…). It changes with time."), element);
  const list = h("ol", { class: "tasks" });
  const count = h("p", { class: "faint" });
  const whole = h("div", {}, list, count);
  let first = true;

  const read = () => loaded(body, "Reading tasks.", async () => {
    const found = await app.api.get("/tasks", { k: SHOWN }, signal);
    if (!found.tasks.length) return empty("No open tasks.", "Open questions, unfinished investigations, pending clean-ups and due consolidations become tasks automatically.");
    keyed(list, found.tasks, (task) => task.id, (task) => row(task, first && task === found.tasks[0]), (made, task) => made.show(task));
    first = false;
    setText(count, found.count > found.tasks.length ? `${found.tasks.length} of ${found.count} known tasks; the others are done, blocked or below these.` : "");
    return whole;
  }, signal);
  const again = soon(400, read, signal);
  for (const kind of ["task", "thought", "answer", "interrupt", "record", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(30, read, signal);
  read();
}

function row(task, open) {
  const total = h("span", { class: "total" });
  const bars = scoreBars(task.score);
  const table = scoreTable(task.score);
  const facts = h("span", { class: "faint" });
  const made = h("li", { class: "task" }, total,
    h("div", { class: "task-body" }, h("h3", {}, outside(task.title, { limit: 300 })), bars, h("p", {}, facts, wayTo(task)),
      h("details", { open }, h("summary", {}, "Why this score"), table,
        task.goal ? h("p", {}, "Goal: ", outside(task.goal)) : null,
        task.context ? h("p", {}, "Context: ", outside(task.context)) : null)));
  made.show = (now) => {
    setText(total, now.score.total.toFixed(2));
    setBars(bars, now.score);
    updateTable(table, now.score);
    fill(facts, chip(now.status, TONES[now.status] ?? "plain"), " ",
      now.deadline_ts ? `due ${until(now.deadline_ts)}, ` : "", `since ${moment(now.created_ts)} `);
  };
  return made;
}

function wayTo(task) {
  if (typeof task.metadata.query_id === "string") return h("a", { href: "#/questions" }, "Answer");
  if (typeof task.metadata.session_id === "string") return h("a", { href: hashOf("investigations", [task.metadata.session_id]) }, "Show");
  return null;
}
