// The stream of thoughts: live events, working memory, the next task, and a form for stimuli.

import { explained } from "../api.js";
import { bar, chip, field, input, panel } from "../controls.js";
import { fill, h, keyed, listOf, outside, setText, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { shortened } from "../router.js";
import { clock, every, soon, span, until } from "../times.js";
import { scoreBars, scoreTable } from "./score.js";
import { streamPanel } from "./stream.js";

const THOUGHTS = 60;

export function show(place, app, _route, signal) {
  fill(place, h("h1", { class: "unseen" }, "Thoughts"),
    h("div", { class: "columns" },
      h("div", { class: "column wide" }, streamPanel(app, signal), tellPanel(app)),
      h("div", { class: "column" }, nextTaskPanel(app, signal), workingMemoryPanel(app, signal))));
}

// --- working memory ---

function workingMemoryPanel(app, signal) {
  const weight = h("span", { class: "faint" });
  const { element, body } = panel("Working memory", { tools: weight, cls: "fixed working-memory" });
  body.setAttribute("tabindex", "0");
  body.setAttribute("role", "group");
  body.setAttribute("aria-label", "Thoughts by age, with their weight");
  const list = h("ul", { class: "thoughts" });
  let known = { thoughts: [], half_life_seconds: 900, count: 0 };
  let ahead = 0; // the server's clock before ours, in seconds

  const weigh = (thought) => thought.importance * 0.5 ** (Math.max(0, Date.now() / 1000 + ahead - thought.ts) / known.half_life_seconds);
  const row = (thought) => {
    const left = bar();
    const number = h("span", { class: "number" });
    const made = h("li", { class: "thought" }, left.element, number, h("span", { class: "when" }), thoughtText(thought));
    made.show = (of) => {
      const value = weigh(of);
      left.set(value);
      setText(number, value.toFixed(2));
      number.title = `importance ${of.importance.toFixed(2)}, ${span(Date.now() / 1000 + ahead - of.ts)} old`;
      setText(made.querySelector(".when"), clock(of.ts));
    };
    return made;
  };
  const render = () => {
    keyed(list, known.thoughts, (thought) => thought.id, row, (made, thought) => made.show(thought));
    const sum = known.thoughts.reduce((all, thought) => all + weigh(thought), 0);
    setText(weight, `${known.count} thoughts, total weight ${sum.toFixed(1)}, half-life ${span(known.half_life_seconds)}`);
  };
  const read = () => loaded(body, "Reading working memory.", async () => {
    known = await app.api.get("/wm", { n: THOUGHTS }, signal);
    ahead = known.now - Date.now() / 1000;
    render();
    return known.thoughts.length ? list : empty("Working memory is empty.",
      "Thoughts appear when something happens: an investigation runs, or you add a stimulus.");
  }, signal);
  const again = soon(300, read, signal);
  for (const kind of ["thought", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(5, render, signal);
  read();
  return element;
}

/** Its tag as a chip, and the rest as text. */
export function thoughtText(thought) {
  const [, tag = "", words = ""] = /^\s*#([a-z]{1,20})\s+([^]*)$/.exec(textOf(thought.content)) ?? [];
  const tones = { question: "warn", insight: "good", plan: "info" };
  return h("span", { class: "said" }, tag ? chip(tag, tones[tag] ?? "plain") : null, " ", outside(shortened(tag ? words : thought.content)));
}

// --- the next task ---

function nextTaskPanel(app, signal) {
  const { element, body } = panel("Next task", { cls: "fixed next-task", tools: h("a", { href: "#/tasks" }, "All tasks") });
  body.setAttribute("tabindex", "0");
  body.setAttribute("role", "group");
  body.setAttribute("aria-label", "The next task and its score");
  const read = () => loaded(body, "Reading the next task.", async () => {
    const { task } = await app.api.get("/tasks/next", {}, signal);
    if (!task) return empty("No open tasks.", "Open questions, unfinished investigations and clean-ups become tasks automatically.");
    return h("div", {},
      h("p", { class: "task-title" }, outside(task.title, { limit: 300 })),
      h("p", { class: "faint" }, `Score ${task.score.total.toFixed(2)}`, task.deadline_ts ? `, due ${until(task.deadline_ts)}` : ""),
      scoreBars(task.score), scoreTable(task.score));
  }, signal);
  const again = soon(400, read, signal);
  for (const kind of ["task", "thought", "answer", "interrupt", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(30, read, signal);
  read();
  return element;
}

// --- telling the mind something ---

function tellPanel(app) {
  const { element, body } = panel("Tell Ghost");
  const note = field("What happened", input({ name: "content", maxlength: "4000" }), { cls: "grow",
    hint: "One sentence, such as: the gateway in hub-rg was restarted at 03:10. It is used in the next cycle." });
  const said = h("div", { role: "status" });
  const think = h("button", { type: "button" }, "Run one cycle");
  const tell = h("button", { type: "submit", class: "primary" }, "Tell");
  const form = h("form", { class: "row", novalidate: true }, note.element, h("div", { class: "row buttons" }, tell, think));
  const busy = async (button, act) => {
    button.disabled = true;
    try {
      fill(said, h("p", { class: "hint" }, await act()));
    } catch (error) {
      fill(said, failure(error));
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const content = note.control.value.trim();
    if (!content) {
      note.refuse("Enter what happened first.");
      note.control.focus();
      return;
    }
    note.accept();
    busy(tell, async () => {
      try {
        await app.api.post("/stimuli", {}, { source: "dashboard", content });
      } catch (error) {
        note.refuse(explained(error));
        throw error;
      }
      note.control.value = "";
      return "Stored. Ghost uses it in its next cycle.";
    });
  });
  think.addEventListener("click", () => busy(think, async () => {
    const done = await app.api.post("/cycle");
    const asked = listOf(done.interrupts).length;
    return done.thought ? `One cycle in ${done.seconds.toFixed(2)} s, ${done.stimuli} new observations${asked ? "; Ghost asks a question" : ""}.` : "The cycle ended without a new thought.";
  }));
  fill(body, form, said);
  return element;
}
