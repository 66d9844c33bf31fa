// Memory: search by keywords, similarity or both; forgetting.

import { Problem, explained, part } from "../api.js";
import { chip, choice, confirmed, field, input, panel } from "../controls.js";
import { fill, h, listOf, outside, recordOf, setText, textOf } from "../dom.js";
import { empty, failure, loading } from "../notices.js";
import { hashOf, recordLink, shortened } from "../router.js";
import { moment } from "../times.js";

const TYPES = { episodic: "what happened", semantic: "what is known", procedural: "what works" };
const TONES = { episodic: "info", semantic: "good", procedural: "violet" };
const MODES = [["hybrid", "Words and meaning"], ["keyword", "Words"], ["vector", "Meaning"]];
const TAGS = 8;

export function show(place, app, route, signal) {
  const { form, read, write } = searchForm();
  const results = panel("Found");
  const count = h("p", { class: "faint", role: "status" });
  results.element.querySelector(".panel-head").append(count);
  results.element.querySelector("h2").setAttribute("tabindex", "-1");
  fill(place, h("h1", {}, "Memory"), panelOf(form), results.element);

  const search = async (query) => {
    setText(count, "");
    if (!query.get("q")) {
      fill(results.body, empty("No search yet.",
        "Enter a symptom, a name or an address. Memory holds finished investigations, stored thoughts and pages."));
      return;
    }
    fill(results.body, loading("Searching."));
    try {
      const found = await app.api.get("/ltm/search", asked(query), signal);
      if (signal.aborted) return;
      setText(count, `${found.count} for “${found.query.slice(0, 80)}”`);
      if (!found.count) {
        fill(results.body, empty("Nothing close.", "Try other words, another search mode, or no type, tag and time filter."));
        return;
      }
      fill(results.body, h("ol", { class: "cards" }, found.hits.map((hit) => card(hit, app, count))));
    } catch (error) {
      if (!signal.aborted) fill(results.body, failure(error, () => search(query)));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const query = read();
    if (!query) return;
    const hash = hashOf("memory", [], query);
    if (location.hash === hash) search(new URLSearchParams(query));
    else location.hash = hash; // an address of its own: back and forward work
  });
  const go = (next) => {
    write(next.query);
    search(next.query);
    return true;
  };
  go(route);
  return go;
}

const panelOf = (form) => {
  const { element, body } = panel("Search");
  body.append(form);
  return element;
};

// --- the form ---

function searchForm() {
  const words = field("Search for", input({ type: "search", name: "q", maxlength: "1000" }), { cls: "grow" });
  const mode = field("By", choice(MODES, "hybrid"));
  const k = field("At most", choice([["10", "10"], ["25", "25"], ["50", "50"], ["100", "100"]], "10"));
  const tags = field("With tags", input({ name: "tags" }), { hint: "Separated by commas; all must match." });
  const since = field("Since", input({ type: "datetime-local", name: "since" }));
  const until = field("Until", input({ type: "datetime-local", name: "until" }));
  const types = Object.entries(TYPES).map(([type, meaning]) => ({ type, box: h("input", { type: "checkbox", name: type }), meaning }));
  const more = h("details", { class: "more" }, h("summary", {}, "Filters"), h("div", { class: "row" },
    h("fieldset", {}, h("legend", {}, "Types (none: all)"), types.map(({ type, box, meaning }) =>
      h("label", { class: "check" }, box, h("span", {}, `${type} `, h("span", { class: "faint" }, meaning))))),
    tags.element, since.element, until.element));
  const form = h("form", { role: "search", novalidate: true },
    h("div", { class: "row" }, words.element, mode.element, k.element, h("button", { type: "submit", class: "primary" }, "Search")), more);

  const read = () => {
    for (const each of [words, tags, until]) each.accept();
    const query = { q: words.control.value.trim(), mode: mode.control.value, k: k.control.value, tag: tags.control.value.trim(),
      type: types.filter(({ box }) => box.checked).map(({ type }) => type).join(","), since: since.control.value, until: until.control.value };
    const faults = [
      [words, !query.q && "Enter a search text."],
      [tags, query.tag.split(",").length > TAGS && `${TAGS} tags at most.`],
      [until, query.since && query.until && query.until <= query.since && "This must be after “Since”."],
    ].filter(([, said]) => said);
    for (const [each, said] of faults) each.refuse(said);
    if (!faults.length) return query;
    if (faults[0][0] !== words) more.open = true;
    faults[0][0].control.focus();
    return null;
  };
  const write = (query) => {
    words.control.value = query.get("q") ?? "";
    mode.control.value = query.get("mode") ?? "";
    if (!mode.control.value) mode.control.value = "hybrid";
    k.control.value = query.get("k") ?? "";
    if (!k.control.value) k.control.value = "10";
    tags.control.value = query.get("tag") ?? "";
    since.control.value = query.get("since") ?? "";
    until.control.value = query.get("until") ?? "";
    for (const { type, box } of types) box.checked = (query.get("type") ?? "").split(",").includes(type);
    if (["tag", "since", "until", "type"].some((name) => query.get(name))) more.open = true;
  };
  return { form, read, write };
}

/** The query of the address as the API wants it: local times become epoch seconds. */
function asked(query) {
  const parts = (name) => (query.get(name) ?? "").split(",").map((each) => each.trim()).filter(Boolean);
  const seconds = (name) => {
    const ms = Date.parse(query.get(name) ?? "");
    return Number.isNaN(ms) ? undefined : ms / 1000;
  };
  return { q: query.get("q"), k: query.get("k") ?? 10, mode: query.get("mode") ?? "hybrid", type: parts("type"), tag: parts("tag"),
    since: seconds("since"), until: seconds("until") };
}

// --- one memory ---

function card(hit, app, count) {
  const { memory } = hit;
  const metadata = recordOf(memory.metadata);
  const forget = h("button", { type: "button", class: "quiet danger" }, "Forget", h("span", { class: "unseen" }, ` ${memory.id}`));
  const said = h("div", {});
  const made = h("li", { class: "card memory" },
    h("div", { class: "card-head" }, chip(memory.type, TONES[memory.type]), h("time", { datetime: iso(memory.created_at) }, moment(memory.created_at)),
      h("span", { class: "faint" }, memory.id), h("span", { class: "faint" }, why(hit)), forget),
    outside(shortened(memory.content), { tag: "p", cls: "content" }),
    memory.tags.length ? h("p", { class: "tags" }, h("span", { class: "unseen" }, "Tags: "), memory.tags.map((tag) => h("span", { class: "tag" }, tag))) : null,
    about(metadata), said);
  forget.addEventListener("click", async () => {
    const what = [h("p", {}, outside(shortened(memory.content), { limit: 300 })),
      h("p", { class: "faint" }, "It is removed from search and from the file. A summary made from it remains: forget that separately.")];
    if (!(await confirmed("Forget this memory?", what, "Forget it"))) return;
    try {
      await app.api.remove(`/memories/${part(memory.id)}`);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) {
        fill(said, h("div", { class: "notice bad", role: "alert" }, h("p", {}, `Not forgotten: ${explained(error)}`)));
        return;
      }
    }
    const next = made.nextElementSibling ?? made.previousElementSibling;
    const heading = made.closest(".panel").querySelector("h2");
    made.remove();
    setText(count, "Forgotten.");
    (next?.querySelector("button.danger") ?? heading).focus();
    app.say("Forgotten.");
  });
  return made;
}

const iso = (seconds) => new Date(seconds * 1000).toISOString();

function why({ keyword_rank: keyword, vector_rank: vector, similarity }) {
  return [keyword && `words: no. ${keyword}`, vector && `meaning: no. ${vector}`, similarity !== null && `similarity ${Math.max(0, similarity).toFixed(2)}`]
    .filter(Boolean).join(", ");
}

/** Where it comes from. Addresses of pages are text: a page that was read is no place to send a person to. */
function about(metadata) {
  const session = textOf(metadata.session_id);
  const rows = [
    ["Source", textOf(metadata.url) && outside(metadata.url, { tag: "code", limit: 400 })],
    ["Title", textOf(metadata.title) && outside(metadata.title, { limit: 300 })],
    ["Investigation", session && h("a", { href: hashOf("investigations", [session]) }, session)],
    ["Records", listOf(metadata.audit_ids).slice(0, 50).map((id) => [auditLink(session, textOf(id)), " "])],
    ["Made of", listOf(metadata.sources).slice(0, 50).map((id) => [h("code", {}, textOf(id)), " "])],
  ].filter(([, value]) => value && value.length !== 0);
  return rows.length ? h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])) : null;
}

function auditLink(session, id) {
  const of = session && id.startsWith(`${session}_`) ? session : /^(.+)_\d{3,}$/.exec(id)?.[1];
  return of ? recordLink(of, id) : h("code", {}, id);
}
