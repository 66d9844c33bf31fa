// `#/section/part/part?name=value` to the view that shows it.

import { h } from "./dom.js";

export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { section: parts[0] || "investigations", parts: parts.slice(1), query: new URLSearchParams(query) };
}

export function hashOf(section, parts = [], query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  const path = [section, ...parts].map(encodeURIComponent).join("/");
  return [...given].length ? `#/${path}?${given}` : `#/${path}`;
}

/** A link to one record of an investigation's evidence. */
export const recordHash = (sessionId, auditId) => hashOf("investigations", [sessionId, "evidence", auditId]);

/** `ghost_20261128_180420_017` as `#017`, alone or inside a text. */
export const shortened = (text) => String(text ?? "").replace(/\bghost_\d{8}_\d{6}(?:_\d{1,2})?_(\d{3,})\b/g, "#$1");

/** A link to a record, named by its number; its whole id is the title. */
export const recordLink = (sessionId, auditId) => h("a", { class: "citation", href: recordHash(sessionId, auditId), title: auditId },
  auditId.startsWith(`${sessionId}_`) ? `#${auditId.slice(sessionId.length + 1)}` : auditId);

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}
