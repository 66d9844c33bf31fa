// The only place that makes elements. Every text becomes a text node: nothing from the API is ever parsed as markup.
//
//   h(tag, attributes, ...children)   an element; strings among the children are text
//   visible(text)                     control, direction and invisible characters written out, as ⟦U+202E⟧
//   outside(text)                     a text from outside: isolated in its direction, long ones folded
//   keyed(parent, items, key, make)   brings a list up to date without touching what stays

const REFUSED = /^(on|style$|srcdoc$|src$|action$|formaction$|innerhtml$|outerhtml$)/i;
const isOwn = (tag, name, value, { sandbox }) => (name === "href" && value.startsWith("#")) ||
  (name === "src" && value.startsWith("blob:") && (tag === "img" || (tag === "iframe" && sandbox === ""))); // a frame without rights
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb]" +
  "|[\\u{e0000}-\\u{e0fff}]|\\p{Cs}", "gu");
const FOLDED_AT = 1500;

export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, (character) =>
    `⟦U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
}

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "listen") {
      for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    } else if (name === "value" || name === "checked" || name === "disabled" || name === "open") {
      element[name] = value;
    } else if ((REFUSED.test(name) || name === "href") && !isOwn(tag, name, String(value), attributes)) {
      throw new TypeError(`no element of the dashboard has ${name}=${value}`);
    } else {
      element.setAttribute(name, value === true ? "" : visible(value));
    }
  }
  fill(element, ...children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined &&
    child !== false && child !== "").map((child) => (child instanceof Node ? child : document.createTextNode(visible(child)))));
  return element;
}

export function setText(element, text) {
  const wanted = visible(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** A text from outside. `tag` is `span`, `p`, `code` or `pre`; what is longer than `limit` characters is folded. */
export function outside(text, { tag = "span", limit = FOLDED_AT, cls = "" } = {}) {
  const whole = String(text ?? "");
  const element = h(tag, { class: `outside ${cls}`.trim(), dir: "auto" });
  if (whole.length <= limit) return fill(element, whole);
  const words = document.createTextNode(visible(whole.slice(0, limit)) + " …");
  const more = h("button", { type: "button", class: "quiet", "aria-expanded": "false" },
    `Show all ${whole.length.toLocaleString("en")} characters`);
  more.addEventListener("click", () => {
    const open = more.getAttribute("aria-expanded") !== "true";
    words.data = open ? visible(whole) + " " : visible(whole.slice(0, limit)) + " …";
    more.setAttribute("aria-expanded", String(open));
    setText(more, open ? "Show less" : `Show all ${whole.length.toLocaleString("en")} characters`);
  });
  element.append(words, " ", more);
  return element;
}

/** Children of `parent` for `items`, in order: made once by `make(item)`, then only told by `update(element, item)`. */
export function keyed(parent, items, key, make, update = () => {}) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const wanted = items.map((item) => {
    const name = String(key(item));
    const known = before.get(name);
    before.delete(name);
    const element = known ?? make(item);
    element.dataset.key = name;
    update(element, item);
    return element;
  });
  for (const gone of before.values()) gone.remove();
  wanted.forEach((element, place) => {
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] ?? null);
  });
}

export const counted = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

let made = 0;
/** An id for `for`, `aria-describedby` and the like: never made of a text from outside. */
export const newId = (word) => `${word}-${++made}`;

// What a file or an answer holds where something else was expected is left out, and breaks nothing.
export const listOf = (value) => (Array.isArray(value) ? value : []);
export const textOf = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "" : String(value));
export const recordOf = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
