// Requests to this server's API, with the token if there is one.

const TOKEN = "ghost.token";

/** An error from a problem document (RFC 9457), kept in `document`. */
export class Problem extends Error {
  constructor(status, document) {
    super(String(document.detail || document.title || `The server answered ${status}.`));
    this.name = "Problem";
    this.status = status;
    this.document = document;
  }
}

/** The server does not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("Ghost does not answer. Is ghost serve still running, and the tunnel to it open?");
    this.name = "Unreachable";
  }
}

export class Api extends EventTarget {
  /** Events: `locked` when the server wants a token, `reached` and `unreached` as requests fare. */

  get token() { return sessionStorage.getItem(TOKEN) ?? ""; }

  set token(value) {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  }

  get(path, query = {}, signal = undefined) { return this.#ask("GET", path, query, undefined, signal); }
  post(path, query = {}, body = undefined, signal = undefined) { return this.#ask("POST", path, query, body, signal); }
  remove(path) { return this.#ask("DELETE", path, {}, undefined, undefined); }

  headers(more = {}) {
    return this.token ? { ...more, Authorization: `Bearer ${this.token}` } : more;
  }

  /** The raw response; for what streams. Raises `Unreachable`, `Problem`, and `AbortError` where `signal` ended it. */
  async fetch(path, options = {}) {
    let response;
    try {
      response = await fetch(path, { ...options, headers: this.headers(options.headers), cache: "no-store",
        credentials: "omit", redirect: "error" });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      this.dispatchEvent(new Event("unreached"));
      throw new Unreachable();
    }
    this.dispatchEvent(new Event("reached"));
    if (response.ok) return response;
    const problem = new Problem(response.status, await response.json().catch(() => ({})));
    if (response.status === 401) this.dispatchEvent(new CustomEvent("locked", { detail: problem }));
    throw problem;
  }

  async #ask(method, path, query, body, signal) {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined && each !== null && each !== "") given.append(name, each);
      }
    }
    const options = { method, signal };
    if (body !== undefined) {
      options.body = JSON.stringify(body);
      options.headers = { "Content-Type": "application/json" };
    }
    const response = await this.fetch([...given].length ? `${path}?${given}` : path, options);
    return response.status === 204 ? null : response.json();
  }
}

/** The message of an error for people, with advice. */
export function explained(error) {
  if (!(error instanceof Problem)) return error.message || String(error);
  const { errors, request_id: requestId } = error.document;
  const faults = Array.isArray(errors) ? errors.map((each) => `${each.where}: ${each.message}`) : [];
  const log = error.status >= 500 && requestId ? ` (request ${requestId} in logs/ghost.log)` : "";
  return [error.message + log, ...faults].join(" ");
}

export const isAborted = (error) => error?.name === "AbortError";
export const part = (text) => encodeURIComponent(text);
