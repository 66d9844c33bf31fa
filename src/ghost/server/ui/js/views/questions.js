// Open questions. A form is not redrawn while its question is open, so that typed text is not lost.

import { Problem, explained } from "../api.js";
import { chip, field, panel } from "../controls.js";
import { fill, h, keyed, listOf, outside, textOf } from "../dom.js";
import { empty, failure, loaded } from "../notices.js";
import { answerOf, labelOf } from "../questions.js";
import { moment, soon, until } from "../times.js";

const CLOSED = 50;
const LONGEST = 8000;

export function show(place, app, _route, signal) {
  const open = panel("Open");
  const closed = panel("Closed questions");
  fill(place, h("h1", {}, "Questions"), open.element, closed.element);

  const list = h("ul", { class: "cards" });
  const nothing = empty("No open questions.", "A question appears when Ghost needs information from a person.");
  const render = () => {
    const { open: questions, error } = app.questions;
    if (questions === null) {
      if (error) fill(open.body, failure(error, () => app.questions.read()));
      return;
    }
    // a question that is no longer open stays while something is typed in its form, and says so
    const typed = [...list.children].filter((card) => card.typed() && !questions.some(({ id }) => id === card.question.id)).map((card) => card.question);
    const shown = [...questions, ...typed];
    keyed(list, shown, ({ id }) => id, (question) => card(question, app, forget), (made, question) => made.show(questions.includes(question)));
    if (list.parentNode !== open.body) fill(open.body, nothing, list);
    nothing.hidden = shown.length > 0;
  };
  const forget = (made) => {
    const next = made.nextElementSibling ?? made.previousElementSibling;
    made.remove();
    (next?.querySelector("textarea") ?? open.element.querySelector("h2")).focus();
    app.questions.read();
  };
  open.element.querySelector("h2").setAttribute("tabindex", "-1");
  app.questions.addEventListener("change", render, { signal });
  if (app.questions.open === null) fill(open.body, h("p", { class: "loading", role: "status" }, "Reading open questions."));
  render();
  app.questions.read();

  const readClosed = () => loaded(closed.body, "Reading closed questions.", async () => {
    const found = await app.api.get("/interrupts/closed", { limit: CLOSED }, signal);
    return closedList(found);
  }, signal);
  const again = soon(400, readClosed, signal);
  app.questions.addEventListener("change", again, { signal });
  readClosed();
}

function closedList(found) {
  if (!found.interrupts.length) return empty("None yet.", "Closed questions are listed here.");
  const rows = found.interrupts.map((each) => h("li", { class: "closed" },
    h("p", {}, each.status === "answered" ? chip("answered", "good") : chip(textOf(each.status), "plain"), " ",
      h("span", { class: "faint" }, moment(each.answered_ts ?? each.expires_ts)), " ", outside(each.question, { limit: 400 })),
    each.answer === null ? null : outside(each.answer, { tag: "pre", limit: 600, cls: "answer" })));
  return h("div", {}, h("ul", { class: "plain" }, rows),
    found.count > rows.length ? h("p", { class: "faint" }, `The last ${rows.length} of ${found.count}.`) : null);
}

function card(question, app, forget) {
  const text = (rows) => h("textarea", { rows, autocomplete: "off", maxlength: String(LONGEST) });
  const required = listOf(question.required_fields).map((name) => ({ name, ...field(labelOf(name), text("1")) }));
  const note = field(required.length ? "Anything else (optional)" : "Answer", text(required.length ? "2" : "3"));
  const fields = [...required, note];
  const said = h("div", {});
  const button = h("button", { type: "submit", class: "primary" }, "Answer");
  const when = h("p", { class: "faint" });
  const form = h("form", { novalidate: true }, h("div", { class: "fields" }, fields.map(({ element }) => element)), h("div", { class: "row" }, button), said);
  const made = h("li", { class: "card question" }, h("h3", {}, outside(question.question)),
    question.rationale ? h("p", { class: "rationale" }, "Because: ", outside(question.rationale)) : null, when, form);
  made.question = question;
  made.typed = () => fields.some(({ control }) => control.value.trim());
  made.show = (open) => {
    fill(when, `Asked ${moment(question.created_ts)}, ${open ? "expires" : "closed: it was answered elsewhere, withdrawn, or expired"} ${open ? until(question.expires_ts) : ""}`);
    made.classList.toggle("gone", !open);
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lacking = (required.length ? required : [note]).filter(({ control }) => !control.value.trim());
    for (const each of fields) each.accept();
    for (const each of lacking) each.refuse(required.length ? `${labelOf(each.name)} is needed to go on.` : "Enter an answer first.");
    if (lacking.length) {
      lacking[0].control.focus();
      return;
    }
    button.disabled = true;
    fill(said);
    try {
      const values = Object.fromEntries(required.map(({ name, control }) => [name, control.value.trim()]));
      const answer = answerOf(values, note.control.value.trim());
      await app.api.post(`/interrupts/${encodeURIComponent(question.id)}/answer`, {}, { text: answer });
      app.say("Answered. Ghost uses it in its next cycle.");
      forget(made);
    } catch (error) {
      refused(error, required, note, said);
    } finally {
      button.disabled = false;
    }
  });
  return made;
}

function refused(error, required, note, said) {
  const missing = error instanceof Problem ? listOf(error.document.missing) : [];
  const by = required.filter(({ name }) => missing.includes(name));
  for (const each of by) each.refuse(`${labelOf(each.name)} was not found in the answer. Write it once more.`);
  const long = error instanceof Problem && error.status === 422 && !missing.length;
  if (long) note.refuse(explained(error));
  else if (!by.length) fill(said, failure(error));
  (by[0] ?? note).control.focus();
}
