// Open questions, known to every part of the page: the count in the navigation and in the title, and the view.

import { every, soon } from "./times.js";

export class Questions extends EventTarget {
  /** What the API lists as open; null until it was read. */
  open = null;
  error = null;
  #api;
  #reading = null;

  constructor(api) {
    super();
    this.#api = api;
  }

  follow(following, signal) {
    const look = soon(250, () => this.read(), signal);
    for (const kind of ["interrupt", "answer", "gap"]) following.addEventListener(kind, look, { signal });
    every(30, look, signal); // those that expire make no event
  }

  read() {
    this.#reading ??= this.#read().finally(() => { this.#reading = null; });
    return this.#reading;
  }

  async #read() {
    try {
      this.open = (await this.#api.get("/interrupts")).interrupts;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.dispatchEvent(new Event("change"));
  }
}

/** The text of an answer that names the fields: lines `name: value` where those say it, else JSON. */
export function answerOf(values, note) {
  const fields = Object.entries(values);
  if (!fields.length) return note;
  const plain = fields.every(([name, value]) => /^[A-Za-z0-9][\w -]{0,60}$/.test(name) && !/[\r\n]/.test(value));
  if (!plain) return JSON.stringify(note ? { ...values, note } : values);
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  return [...(note ? [`${note}\n`] : []), ...lines].join("\n");
}

/** `place_of_it` as words for a label. */
export const labelOf = (name) => name.replace(/[_-]+/g, " ").replace(/^./, (first) => first.toUpperCase());
