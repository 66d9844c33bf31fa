// What investigations wait for, the investigations that this server started, and what the running ones tell: known to
// every part of the page.

import { listOf, textOf } from "./dom.js";
import { every, soon } from "./times.js";

const TOLD = 200;
const SESSIONS = 20;

export class Waiting extends EventTarget {
  /** What the API lists as open; null until it was read. `canAnswer`: whether this server has a token. */
  approvals = null;
  canAnswer = true;
  error = null;
  /** The newest first. */
  orders = [];
  /** Why this server starts no investigation; empty where it does, null until that is known. */
  whyNot = null;
  #told = new Map();
  #api;

  constructor(api) {
    super();
    this.#api = api;
  }

  follow(following, signal) {
    const look = soon(100, () => this.read(), signal);
    for (const kind of ["approvals", "gap"]) following.addEventListener(kind, look, { signal });
    following.addEventListener("gap", () => this.readOrders(), { signal });
    following.addEventListener("order", ({ detail }) => this.#take(detail), { signal });
    following.addEventListener("investigation", ({ detail }) => this.#hear(detail), { signal });
    every(30, look, signal); // those that expire make no event
  }

  async read() {
    try {
      const { approvals, can_answer: canAnswer } = await this.#api.get("/approvals");
      Object.assign(this, { approvals, canAnswer, error: null });
    } catch (error) {
      this.error = error;
    }
    this.dispatchEvent(new Event("change"));
  }

  async readOrders() {
    try {
      const { orders, why_not: whyNot } = await this.#api.get("/queue");
      Object.assign(this, { orders, whyNot: whyNot ?? "" });
    } catch { /* the banner says that the server does not answer */ }
    this.dispatchEvent(new Event("change"));
  }

  /** What a session told since this page was opened, the newest first. */
  told(sessionId) { return this.#told.get(sessionId) ?? []; }

  of(sessionId) { return listOf(this.approvals).filter((each) => each.session_id === sessionId); }

  /** It was answered: it is no longer open, whatever was read before. */
  forget(id) {
    this.approvals = listOf(this.approvals).filter((each) => each.id !== id);
    this.dispatchEvent(new Event("change"));
  }

  #take(order) {
    this.orders = [order, ...this.orders.filter(({ id }) => id !== order.id)].sort((one, other) => other.queued_at - one.queued_at);
    this.dispatchEvent(new Event("change"));
  }

  #hear(event) {
    const session = textOf(event.session_id);
    const before = this.told(session);
    this.#told.delete(session);
    this.#told.set(session, [{ ...event, number: (before[0]?.number ?? 0) + 1 }, ...before].slice(0, TOLD));
    if (this.#told.size > SESSIONS) this.#told.delete(this.#told.keys().next().value);
    this.dispatchEvent(new CustomEvent("told", { detail: session }));
  }
}
