// A task's score and what it is made of: the bar shows the shares, the table says the numbers and the reasons.

import { fill, h, listOf, setText } from "../dom.js";

const NAMES = { goal_fit: "goal fit" };
const named = (part) => NAMES[part.name] ?? String(part.name);
/** Components by name get their colour from the sheet; one that it does not know is grey. */
export const PARTS = ["urgency", "importance", "uncertainty", "recency", "goal_fit"];
const colourOf = (part) => (PARTS.includes(part.name) ? part.name : "other");

export function scoreBars(score) {
  const element = h("div", { class: "score-bar", "aria-hidden": "true" });
  setBars(element, score);
  return element;
}

export function setBars(element, score) {
  const parts = listOf(score.parts);
  const most = Math.max(1, parts.reduce((all, part) => all + part.weight, 0));
  if (element.childElementCount !== parts.length) fill(element, parts.map((part) => h("span", { "data-part": colourOf(part) })));
  parts.forEach((part, place) => element.children[place].style.setProperty("--part", String(Math.max(0, part.contribution) / most)));
}

export function scoreTable(score) {
  const rows = listOf(score.parts).map((part) => h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "swatch", "data-part": colourOf(part), "aria-hidden": "true" }), named(part)),
    h("td", {}, `${part.value.toFixed(2)} × ${part.weight.toFixed(2)}`),
    h("td", {}, part.contribution.toFixed(3)),
    h("td", { class: "why" }, part.why)));
  return h("table", { class: "score" },
    h("caption", { class: "unseen" }, "Components of the score"),
    h("thead", {}, h("tr", {}, ["Part", "Value × weight", "Adds", "Because"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Score"), h("td"), h("td", {}, score.total.toFixed(3)), h("td"))));
}

export function updateTable(table, score) {
  const fresh = scoreTable(score);
  [...fresh.querySelectorAll("td")].forEach((cell, place) => {
    const old = table.querySelectorAll("td")[place];
    if (old) setText(old, cell.textContent);
  });
}
