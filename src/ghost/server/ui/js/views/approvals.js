// Cards of what investigations wait for. Nothing here is focused or clicked by itself: no key approves, and a card that
// has just moved takes no click. The buttons of a long card stay in view, and say how much of it is not.

import { Problem, part } from "../api.js";
import { chip, command, field, input } from "../controls.js";
import { fill, h, keyed, listOf, outside, setText, textOf } from "../dom.js";
import { failure } from "../notices.js";
import { hashOf } from "../router.js";
import { every, moment, until } from "../times.js";
import { CLASSES, TIERS } from "./evidence.js";

const STEADY_MS = 500;
const LOOK_MS = 100;
const CLOSED_MS = 10_000;
const LONGEST = "8000";
const NOBODY = "Nobody can answer here: without a token anybody on this machine could. Start ghost serve with GHOST_API_TOKEN " +
  "(at least 16 characters), or answer at the terminal of the investigation.";
const SAID = { approve: "Approved", deny: "Denied", each: "Each command will be asked about", session: "Approved for the session", form: "Approved for the session, with its form", answer: "Answered" };

/** The cards of all investigations, or of one. Returns `{list, render}`; `render()` says how many there are. */
export function waitingCards(app, signal, sessionId = null) {
  const list = h("ul", { class: "cards" });
  const made = (waiting) => card(waiting, app, () => { render(); });
  const render = () => {
    const { approvals } = app.waiting;
    const open = listOf(approvals).filter((each) => sessionId === null || each.session_id === sessionId);
    for (const each of list.children) if (approvals !== null && !each.closed && !open.some(({ id }) => id === each.waiting.id)) each.ask();
    const leaving = [...list.children].filter((each) => !each.over && !open.some(({ id }) => id === each.waiting.id)).map((each) => each.waiting);
    const shown = [...open, ...leaving].sort((one, other) => one.asked_ts - other.asked_ts);
    keyed(list, shown, ({ id }) => id, made, (each) => each.show());
    settle();
    list.dispatchEvent(new Event("change"));
    return shown.length;
  };
  const settle = steady(list, app.say, signal);
  app.waiting.addEventListener("change", render, { signal });
  every(30, render, signal);
  return { list, render };
}

/** While an answer's place has moved within `STEADY_MS`, no button of `list` takes a click. Returns what looks again. */
function steady(list, say, signal) {
  let places = "";
  let movedAt = -Infinity;
  const look = () => {
    const now = [...list.querySelectorAll(".answers")].map((row) => {
      const { x, bottom } = row.parentElement.getBoundingClientRect(); // the row itself stays in view when a person scrolls
      sayWhatIsBelow(row);
      return `${row.closest("li").dataset.key} ${Math.round(x + scrollX)} ${Math.round(bottom + scrollY)}`;
    }).join();
    if (now !== places) movedAt = performance.now();
    places = now;
    const moving = performance.now() - movedAt < STEADY_MS;
    for (const button of list.querySelectorAll(".answers button")) {
      if (moving) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    return moving;
  };
  list.addEventListener("click", (event) => {
    if (!look() || !event.target.closest(".answers button")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    say("This has just moved: read it, then click again.");
  }, { capture: true });
  const changes = new MutationObserver(look); // a message in a card moves its buttons at once
  changes.observe(list, { childList: true, characterData: true, subtree: true });
  const timer = setInterval(() => { if (list.childElementCount) look(); }, LOOK_MS);
  signal.addEventListener("abort", () => { clearInterval(timer); changes.disconnect(); });
  return look;
}

/** Above the buttons that stay at the bottom of the window: how many commands are not read to their end. */
function sayWhatIsBelow(row) {
  const said = row.querySelector(".below");
  if (!said) return;
  const { top } = row.getBoundingClientRect();
  const commands = [...row.closest("li").querySelectorAll(".command")];
  const below = commands.filter((each) => each.getBoundingClientRect().bottom > top).length;
  const words = commands.length > 1 ? `${below} of ${commands.length} commands go on below.` : "The command goes on below.";
  setText(said, below ? words : "");
}

function card(waiting, app, changed) {
  const isQuestion = waiting.kind === "question";
  const when = h("span", { class: "faint" });
  const said = h("div", {});
  const place = h("div", {});
  const many = waiting.lines.length;
  const made = h("li", { class: "card approval" },
    h("h3", {}, h("a", { href: hashOf("investigations", [waiting.session_id]) }, outside(waiting.symptom || waiting.session_id, { limit: 300 }))),
    h("p", { class: "card-head" }, chip(isQuestion ? "question" : many > 1 ? `${many} commands` : "command", "warn"),
      waiting.classification ? chip(waiting.classification, CLASSES[waiting.classification]) : null,
      TIERS[waiting.tier] ? chip(`tier ${waiting.tier}: ${TIERS[waiting.tier]}`) : null, when),
    place, said);
  Object.assign(made, { waiting, closed: false, over: false });
  made.show = () => setText(when, `asked ${moment(waiting.asked_ts)}${waiting.expires_ts ? `, ${isQuestion ? "expires" : "denied by itself"} ${until(waiting.expires_ts)}` : ""}`);

  /** Says what became of it, and goes a while later. */
  made.close = (words, focused = made.contains(document.activeElement)) => {
    if (made.closed) return;
    made.closed = true;
    made.classList.add("gone");
    const last = h("p", { tabindex: "-1", role: "status" }, outside(words));
    fill(place);
    fill(said, last);
    app.say(words);
    if (focused) last.focus();
    setTimeout(() => {
      made.over = true;
      if (made.contains(document.activeElement)) made.closest("section")?.querySelector("h2").focus();
      changed();
    }, CLOSED_MS);
  };
  /** It is no longer open, and was not answered here. */
  made.ask = async () => {
    try {
      const became = await app.api.get(`/approvals/${part(waiting.id)}`);
      if (!became.is_open) made.close(became.said);
    } catch (error) {
      if (error instanceof Problem) made.close(error.message);
    }
  };
  const answer = async (word, text = "") => {
    const buttons = [...place.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    fill(said);
    try {
      await app.api.post(`/approvals/${part(waiting.id)}/answer`, {}, { sha256: waiting.sha256, answer: word, text });
      made.close(`${SAID[word]}.`, true);
      app.waiting.forget(waiting.id);
    } catch (error) {
      for (const button of buttons) button.disabled = false;
      if (error instanceof Problem && [404, 409].includes(error.status)) made.close(error.message, true);
      else fill(said, failure(error));
    }
  };
  const controls = app.waiting.canAnswer ? (isQuestion ? inWords : choices)(waiting, answer) : h("p", { class: "notice" }, NOBODY);
  fill(place, isQuestion ? waiting.lines.map((line) => outside(line, { tag: "p", limit: Infinity })) : about(waiting, app.say), controls);
  made.show();
  return made;
}

/** Why, the risk, and each command whole. */
function about(waiting, say) {
  const facts = [["Why", waiting.reasoning], ["Risk", waiting.risk], ["Form", waiting.form]].filter(([, text]) => text);
  const commands = waiting.lines.map((line, at) => {
    const name = waiting.lines.length > 1 ? `command ${at + 1} of ${waiting.lines.length}` : "the command";
    const times = listOf(waiting.times)[at] ?? 1;
    return h("li", {}, command(line, name, say, Infinity), times > 1 ? h("p", { class: "hint" }, `It may run ${times} times.`) : null);
  });
  return [h("dl", { class: "facts" }, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, outside(text))])),
    h(commands.length > 1 ? "ol" : "ul", { class: commands.length > 1 ? "commands" : "plain" }, commands)];
}

function choices(waiting, answer) {
  const many = waiting.lines.length;
  const words = { approve: many > 1 ? `Approve all ${many}` : "Approve", deny: "Deny", each: "Ask about each command",
    session: "Approve for the session", form: "Approve the form for the session" };
  const reason = field("Reason, if you deny (optional)", input({ maxlength: LONGEST }), { cls: "grow" });
  const button = (word) => h("button", { type: "button", listen: { click: () => answer(word, word === "deny" ? reason.control.value.trim() : "") } }, words[word] ?? textOf(word));
  return [reason.element, h("div", { class: "row answers" }, h("p", { class: "below hint" }), waiting.answers.map(button))];
}

function inWords(_waiting, answer) {
  const words = field("Answer", h("textarea", { rows: "2", autocomplete: "off", maxlength: LONGEST }));
  const form = h("form", { novalidate: true }, words.element, h("div", { class: "row answers" }, h("button", { type: "submit" }, "Answer")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (words.control.value.trim()) {
      words.accept();
      answer("answer", words.control.value.trim());
    } else {
      words.refuse("Enter an answer first.");
      words.control.focus();
    }
  });
  return form;
}
