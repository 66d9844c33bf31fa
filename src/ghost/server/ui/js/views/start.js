// The form that starts an investigation, and the buttons of one: cancel, resume, start again.

import { explained, part } from "../api.js";
import { choice, command, field, panel } from "../controls.js";
import { fill, h, listOf, setText } from "../dom.js";
import { failure } from "../notices.js";

const LONGEST = "4000";

export function startPanel(app, signal) {
  const { element, body } = panel("Start an investigation");
  const symptom = field("What fails", h("textarea", { rows: "2", autocomplete: "off", maxlength: LONGEST, name: "symptom" }), {
    hint: "In your words, such as: web-vm cannot reach db-vm on port 5432." });
  const lab = field("Network", choice([["", "Azure, as az is logged in"]]), { cls: "network" });
  const own = h("p", { class: "hint", hidden: true });
  const readOnly = h("input", { type: "checkbox" });
  const nobody = h("p", { class: "hint" });
  const said = h("div", { role: "status" });
  const button = h("button", { type: "submit", class: "primary" }, "Start");
  const form = h("form", { novalidate: true }, symptom.element, h("div", { class: "row" }, lab.element,
    h("label", { class: "check" }, readOnly, h("span", {}, "Read only: what needs an approval is refused"))), own, nobody, button, said);

  let scenarios = [];
  app.api.get("/scenarios", {}, signal).then((found) => {
    scenarios = listOf(found.scenarios);
    const options = scenarios.map(({ name }) => h("option", { value: name }, name));
    lab.control.append(h("optgroup", { label: "Simulated, to practise" }, options));
  }).catch(() => {}); // an investigation of Azure needs none
  lab.control.addEventListener("change", () => {
    const chosen = scenarios.find(({ name }) => name === lab.control.value);
    own.hidden = !chosen;
    setText(own, chosen ? `Without a symptom, its own: ${chosen.symptom.trim()}` : "");
  });

  const show = () => {
    const { whyNot, canAnswer } = app.waiting;
    if (whyNot) fill(body, h("p", { class: "empty" }, whyNot));
    else if (!form.isConnected) fill(body, form);
    if (!canAnswer) readOnly.checked = true; // as the server does
    readOnly.disabled = !canAnswer;
    setText(nobody, canAnswer ? "" : "Always so without a token: start ghost serve with GHOST_API_TOKEN to answer here.");
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = { symptom: symptom.control.value.trim() || null, lab: lab.control.value || null, read_only: readOnly.checked };
    if (!wanted.symptom && !wanted.lab) {
      symptom.refuse("Say what fails first.");
      symptom.control.focus();
      return;
    }
    symptom.accept();
    button.disabled = true;
    fill(said);
    try {
      await app.api.post("/investigations", {}, wanted);
      symptom.control.value = "";
      app.say("Queued. It starts when no other investigation runs here.");
    } catch (error) {
      fill(said, failure(error));
    } finally {
      button.disabled = false;
    }
  });
  app.waiting.addEventListener("change", show, { signal });
  show();
  return element;
}

/** What a person may do with an investigation: `session` of the list, `order` of the queue, or both. */
export function steering(app, session, order) {
  const said = h("div", { role: "status" });
  const act = (words, path, done) => {
    const button = h("button", { type: "button" }, words);
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await app.api.post(path);
        app.say(done);
      } catch (error) {
        button.disabled = false;
        fill(said, failure(error));
        app.say(explained(error));
      }
    });
    return h("div", { class: "row" }, button, said);
  };
  if (order && ["queued", "running"].includes(order.state)) {
    return act("Cancel", `/queue/${part(order.id)}/cancel`, "Cancelled: it ends after its current command, and can be resumed.");
  }
  if (session?.state === "resumable" && (order?.can_resume !== false || session.turns)) {
    const id = session.session_id;
    if (app.waiting.whyNot === "") return act("Resume", `/investigations/${part(id)}/resume`, "Queued to be resumed.");
    return command(`ghost investigate --resume ${id}`, `the command that resumes ${id}`, app.say);
  }
  if (!session && order?.state === "interrupted") return act("Start again", `/queue/${part(order.id)}/again`, "Queued again.");
  return null;
}
