// Shared controls: chips, fields with errors, the theme, a confirmation dialog.

import { fill, h, newId, outside, setText, visible } from "./dom.js";

/** A word with a tone: good, warn, bad, info, violet or plain. The word says it; the colour only repeats it. */
export const chip = (word, tone = "plain") => h("span", { class: `chip ${tone}` }, word);

/** A labelled control. Returns `{element, control, refuse(words), accept()}`; the words stand by the field. */
export function field(label, control, { hint = "", cls = "" } = {}) {
  const id = newId("field");
  const error = h("p", { class: "field-error", id: `${id}-error`, hidden: true });
  const words = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  const described = (refused) => [refused ? error.id : "", words ? words.id : ""].filter(Boolean).join(" ");
  control.id = id;
  if (words) control.setAttribute("aria-describedby", words.id);
  const element = h("div", { class: `field ${cls}`.trim() }, h("label", { for: id }, label), control, words, error);
  const show = (refused, said) => {
    setText(error, said);
    error.hidden = !refused;
    if (refused) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
    if (described(refused)) control.setAttribute("aria-describedby", described(refused));
    else control.removeAttribute("aria-describedby");
  };
  return { element, control, refuse: (said) => show(true, said), accept: () => show(false, "") };
}

export const input = (attributes = {}) => h("input", { autocomplete: "off", spellcheck: "false", ...attributes });

export function choice(options, chosen = "") {
  const control = h("select", {}, options.map(([value, words]) => h("option", { value }, words)));
  for (const [place, [value]] of options.entries()) control.options[place].value = value;
  control.value = chosen;
  return control;
}

export function themeChoice() {
  const control = choice([["auto", "System"], ["dark", "Dark"], ["light", "Light"]], document.documentElement.dataset.theme ?? "auto");
  control.addEventListener("change", () => {
    const theme = control.value;
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      if (theme === "auto") localStorage.removeItem("ghost.theme");
      else localStorage.setItem("ghost.theme", theme);
    } catch { /* storage is switched off: it holds until the page is closed */ }
  });
  return h("label", { class: "theme" }, h("span", {}, "Theme"), control);
}

/** Confirms an irreversible action. Resolves to true or false; restores the focus. */
export function confirmed(title, what, verb) {
  return new Promise((done) => {
    const id = newId("dialog");
    const dialog = h("dialog", { "aria-labelledby": id });
    const answer = (value) => () => dialog.close(value);
    fill(dialog, h("h2", { id }, title), what, h("div", { class: "row end" },
      h("button", { type: "button", autofocus: true, listen: { click: answer("no") } }, "Keep it"),
      h("button", { type: "button", class: "danger", listen: { click: answer("yes") } }, verb)));
    dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const PLACEHOLDER = /\[[A-Z][A-Z_]*_\d+\]/;

/**
 * A command, whole, with a button that copies it. `what` names it for a screen reader; `say` tells the result. What has
 * lines or characters that the page writes out is not offered: pasted, it would be another command than the one shown.
 * `limit`: of characters, what is longer is folded.
 */
export function command(text, what, say, limit = undefined) {
  const code = outside(text, { tag: "code", cls: "command", limit });
  if (!text || visible(text) !== text || text.includes("\n")) return code;
  const words = h("span", {}, "Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setText(words, "Copied");
      setTimeout(() => setText(words, "Copy"), 2000);
      say(`Copied ${what}.`);
    } catch { // over plain HTTP from another machine a browser has no clipboard
      getSelection().selectAllChildren(code);
      say("The browser does not let the page copy. The command is selected: press Ctrl+C.");
    }
  };
  return h("div", { class: "copied" }, code,
    h("button", { type: "button", class: "quiet", listen: { click: copy } }, words, h("span", { class: "unseen" }, ` ${what}`)),
    PLACEHOLDER.test(text) ? h("p", { class: "hint" }, "Private mode: put real names in place of the placeholders before you run it. audit/anonymization_map_… has them.") : null);
}

/** A panel with a heading; `tools` stand beside it. Returns `{element, body}`. */
export function panel(title, { tools = null, cls = "", level = 2 } = {}) {
  const id = newId("panel");
  const body = h("div", { class: "panel-body" });
  const element = h("section", { class: `panel ${cls}`.trim(), "aria-labelledby": id },
    h("div", { class: "panel-head" }, h(`h${level}`, { id }, title), tools), body);
  return { element, body };
}

/** A proportion from 0 to 1 as a bar. The number beside it says the same, so it is nothing to a screen reader. */
export function bar(tone = "") {
  const element = h("span", { class: `meter ${tone}`.trim(), "aria-hidden": "true" }, h("span"));
  return { element, set: (value) => element.firstChild.style.setProperty("--part", String(Math.min(1, Math.max(0, value)))) };
}
