// `#/section/part/part?name=value` to the view that shows it.

export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { section: parts[0] || "now", parts: parts.slice(1), query: new URLSearchParams(query) };
}

export function hashOf(section, parts = [], query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  const path = [section, ...parts].map(encodeURIComponent).join("/");
  return [...given].length ? `#/${path}?${given}` : `#/${path}`;
}

/** A link to one record of an investigation's evidence. */
export const recordHash = (sessionId, auditId) => hashOf("investigations", [sessionId, "evidence", auditId]);

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}
