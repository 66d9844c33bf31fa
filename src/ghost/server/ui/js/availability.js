// The user's availability, shown in the bar and in the setup; stored by the server.

import { explained } from "./api.js";
import { h, newId, setText } from "./dom.js";

export class Availability extends EventTarget {
  /** null until loaded */
  now = null;
  busy = false;
  #api;

  constructor(api) {
    super();
    this.#api = api;
  }

  learn(value) {
    this.now = Boolean(value);
    this.dispatchEvent(new Event("change"));
  }

  async set(value) {
    if (this.busy) return;
    this.busy = true;
    try {
      const { user_available: now } = await this.#api.post("/config/user_available", { available: value });
      this.busy = false;
      this.learn(now);
    } finally {
      this.busy = false;
      this.dispatchEvent(new Event("change"));
    }
  }
}

/** A switch. `say` receives errors and changes. */
export function availabilitySwitch(availability, say, signal = undefined) {
  const id = newId("switch");
  const words = h("span", { class: "switch-words" });
  const button = h("button", { type: "button", role: "switch", class: "switch", "aria-checked": "false",
    "aria-labelledby": id, disabled: true }, h("span", { class: "knob", "aria-hidden": "true" }));
  const show = () => {
    button.disabled = availability.now === null;
    button.setAttribute("aria-checked", String(availability.now === true));
    setText(words, availability.now === null ? "…" : availability.now ? "yes" : "away");
  };
  button.addEventListener("click", async () => {
    try {
      await availability.set(!availability.now);
      say(availability.now ? "User available: questions wait for an answer."
        : "User away: questions may be answered from allow-listed pages.");
    } catch (error) {
      say(explained(error));
    }
  });
  availability.addEventListener("change", show, { signal });
  show();
  return h("span", { class: "availability" }, h("span", { id }, "User available"), button, words);
}
