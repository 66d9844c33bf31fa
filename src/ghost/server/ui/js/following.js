// Follows `/events` while the page is open: reads the streamed body (a header carries the token), reconnects with the
// last event id, and backs off after each failure.

import { Problem, isAborted } from "./api.js";
import { EventReader } from "./server-sent.js";

export const KINDS = ["stimulus", "thought", "stored", "interrupt", "answer", "scrape", "task", "record", "error", "gap"];
const OF_INVESTIGATIONS = ["approvals", "order", "investigation"]; // shown in their own places, not in the stream
export const KEPT = 200;
const SILENCE_MS = 40_000; // a comment comes every 15 s: after this the connection is dead, whatever TCP says
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
const LASTED_MS = 5_000; // a stream that was cut sooner was no success: the waits go on growing

/** Events: each kind of both lists (detail: data), `any` of `KINDS` (detail: {kind, data}), and `state`. */
export class Following extends EventTarget {
  /** connecting, live, reconnecting, stopped */
  state = "connecting";
  why = "";
  /** Epoch milliseconds of the next attempt, while reconnecting. */
  nextAt = 0;
  /** The last events, the newest first, without gaps in front of them. */
  kept = [];
  #api;
  #lastId = "";
  #attempt = 0;
  #since = Infinity;
  #ending = null;
  #wake = () => {};

  constructor(api) {
    super();
    this.#api = api;
  }

  async start() {
    if (this.#ending) return;
    const ending = (this.#ending = new AbortController());
    this.#attempt = 0;
    this.#become("connecting", "");
    while (!ending.signal.aborted) {
      try {
        await this.#read(ending.signal);
        this.#failed("the server ended the stream");
      } catch (error) {
        if (ending.signal.aborted) break;
        if (error instanceof Problem && error.status < 500 && ![408, 429].includes(error.status)) {
          this.stop(error.message);
          break;
        }
        this.#failed(isAborted(error) ? "nothing came for too long" : error.message);
      }
      await this.#pause(ending.signal);
    }
  }

  stop(why = "") {
    this.#ending?.abort();
    this.#ending = null;
    this.#become("stopped", why);
  }

  /** Tries at once. */
  now() { this.#wake(); }

  async #read(ended) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const headers = { Accept: "text/event-stream", ...(this.#lastId ? { "Last-Event-ID": this.#lastId } : {}) };
      const response = await this.#api.fetch("/events", { headers, signal: AbortSignal.any([ended, silence.signal]) });
      const again = this.#attempt > 0;
      this.#since = Date.now();
      this.#become("live", "");
      if (again && !this.#lastId) this.#tell("gap", {}); // nothing to ask after: read again what is shown
      const events = new EventReader();
      const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await pieces.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        for (const event of events.push(value)) this.#take(event);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take({ id, kind, data }) {
    this.#lastId = id;
    let read;
    try { read = JSON.parse(data); } catch { return; }
    if (!read || typeof read !== "object") return;
    if (KINDS.includes(kind)) this.#tell(kind, read);
    else if (OF_INVESTIGATIONS.includes(kind)) this.dispatchEvent(new CustomEvent(kind, { detail: read }));
  }

  #tell(kind, data) {
    const event = { kind, data, number: (this.kept[0]?.number ?? 0) + 1, at: Date.now() / 1000 };
    this.kept.unshift(event);
    this.kept.length = Math.min(this.kept.length, KEPT);
    this.dispatchEvent(new CustomEvent(kind, { detail: data }));
    this.dispatchEvent(new CustomEvent("any", { detail: event }));
  }

  #failed(why) {
    this.#attempt = Date.now() - this.#since > LASTED_MS ? 1 : this.#attempt + 1;
    this.#since = Infinity;
    const most = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (this.#attempt - 1));
    this.nextAt = Date.now() + most * (0.75 + Math.random() / 4);
    this.#become("reconnecting", why);
  }

  #pause(ended) {
    return new Promise((done) => {
      const timer = setTimeout(done, Math.max(0, this.nextAt - Date.now()));
      this.#wake = () => { clearTimeout(timer); done(); };
      ended.addEventListener("abort", this.#wake, { once: true });
    });
  }

  #become(state, why) {
    this.state = state;
    this.why = why;
    this.dispatchEvent(new Event("state"));
  }
}
