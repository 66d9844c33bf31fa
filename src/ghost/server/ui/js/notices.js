// Messages: failures with advice, empty states, and announcements for screen readers.

import { Unreachable, explained } from "./api.js";
import { fill, h, visible } from "./dom.js";

const QUIET_MS = 8_000;

/** A region that a screen reader reads politely: at most one message in `QUIET_MS`, the newest of those that wait. */
export class Announcer {
  #element;
  #waiting = null;
  #timer = null;

  constructor(element) { this.#element = element; }

  /** `urgent` is said at once: what a person just did, or is asked. */
  say(text, urgent = false) {
    if (urgent) {
      clearTimeout(this.#timer);
      this.#timer = null;
      this.#speak(text);
    } else {
      this.#waiting = text;
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        if (this.#waiting) this.#speak(this.#waiting);
      }, QUIET_MS);
    }
  }

  #speak(text) {
    this.#waiting = null;
    this.#element.textContent = visible(text).slice(0, 300);
  }
}

export function failure(error, again = null) {
  const words = h("p", {}, explained(error));
  const retry = again ? h("button", { type: "button", class: "again", listen: { click: again } }, "Try again") : null;
  return h("div", { class: "notice bad", role: error instanceof Unreachable ? "status" : "alert" }, words, retry);
}

export const empty = (what, how) => h("p", { class: "empty" }, h("strong", {}, what), " ", how);
export const loading = (what) => h("p", { class: "loading", role: "status" }, what);

/** Shows what `load()` makes in `place`; until then that it loads, and where it fails why. Keeps what was shown before. */
export async function loaded(place, what, load, signal) {
  if (!place.childElementCount || place.querySelector(":scope > .notice")) fill(place, loading(what));
  place.setAttribute("aria-busy", "true");
  try {
    const made = await load();
    if (signal.aborted) return;
    const kept = made instanceof Node && place.firstChild === made && place.childNodes.length === 1;
    if (made && !kept) fill(place, made);
  } catch (error) {
    if (signal.aborted) return;
    const again = () => loaded(place, what, load, signal);
    if (place.querySelector(":scope > .loading, :scope > .notice") || !place.childElementCount) fill(place, failure(error, again));
    else if (!(error instanceof Unreachable)) place.prepend(failure(error, again)); // the banner says that one
  } finally {
    place.removeAttribute("aria-busy");
  }
}
