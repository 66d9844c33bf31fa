// Server-sent events out of a response body, as the HTML standard reads them. No I/O.

export const LONGEST = 1_000_000;

/** `push(text)` returns the events that are complete: `{id, kind, data}`. `id` is the last one named so far. */
export class EventReader {
  #rest = "";
  #lines = [];
  #id = "";
  #first = true;

  push(text) {
    if (this.#first && text) {
      text = text.replace(/^\ufeff/, "");
      this.#first = false;
    }
    this.#rest += text;
    const found = [];
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A carriage return that ends the piece may be the first half of a line end: wait for what follows.
      if (end < 0 || (this.#rest[end] === "\r" && end + 1 === this.#rest.length)) break;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest[end] === "\r" && this.#rest[end + 1] === "\n" ? 2 : 1));
      if (line !== "") this.#lines.push(line);
      else if (this.#lines.length) {
        const event = this.#event();
        if (event) found.push(event);
      }
    }
    if (this.#rest.length > LONGEST) throw new RangeError("an event is longer than any that this server sends");
    return found;
  }

  #event() {
    let kind = "message";
    const data = [];
    for (const line of this.#lines) {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") kind = value;
      else if (name === "data") data.push(value);
      else if (name === "id" && !value.includes("\0")) this.#id = value;
    }
    this.#lines = [];
    return data.length ? { id: this.#id, kind, data: data.join("\n") } : null;
  }
}
