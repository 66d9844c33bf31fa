// Settings, readiness and availability. Settings are read only: they come from the environment of ghost serve.

import { Problem } from "../api.js";
import { availabilitySwitch } from "../availability.js";
import { chip, panel } from "../controls.js";
import { fill, h, listOf, textOf } from "../dom.js";
import { loaded } from "../notices.js";
import { every, soon, span } from "../times.js";

const yes = (value) => (value ? "yes" : "no");
const ROWS = {
  version: ["Version", String],
  provider_llm: ["Language model (PROVIDER_LLM)", String],
  provider_embed: ["Embeddings (PROVIDER_EMBED)", (value, all) => `${value}, ${all.vector_dim} dimensions`],
  store: ["Memory", (value, all) => `${value}${all.memories_encrypted ? ", encrypted at rest" : ", not encrypted"}`],
  soc_enabled: ["Stream of thoughts (SOC_ENABLED)", (value, all) =>
    (value ? `on, a thought every ${span(all.soc_cadence_seconds)}, ${all.thoughts_per_minute} a minute at most` : "off")],
  wm_max_thoughts: ["Working memory", (value, all) => `${value} thoughts at most, half-life ${span(all.wm_half_life_seconds)}`],
  interrupt_expiry_seconds: ["A question expires after", span],
  allowlist: ["Pages may be read from (ALLOWLIST_DOMAINS)", (value) => (listOf(value).length ? listOf(value).map((domain) => [h("code", {}, domain), " "]) : "nowhere")],
  scraper_max_pages: ["One page read", (value, all) =>
    `${value} pages and ${span(all.scraper_max_runtime_seconds)} at most${all.scraper_same_domain_only ? ", links of the same domain only" : ", links of other allowed domains too"}`],
};
const SAID_WITH_ANOTHER = new Set(["vector_dim", "memories_encrypted", "soc_cadence_seconds", "thoughts_per_minute", "wm_half_life_seconds",
  "scraper_max_runtime_seconds", "scraper_same_domain_only", "user_available"]);

export function show(place, app, _route, signal) {
  const you = panel("You");
  const state = panel("State");
  const settings = panel("Settings");
  const said = h("p", { class: "hint", role: "status" });
  fill(you.body, availabilitySwitch(app.availability, (words) => fill(said, words), signal),
    h("p", { class: "hint" }, "While no user is available, Ghost may answer its own questions from allow-listed pages."), said);
  fill(place, h("h1", {}, "Setup"), you.element, state.element, settings.element);

  loaded(settings.body, "Reading the settings.", async () => {
    const config = await app.api.get("/config", {}, signal);
    app.availability.learn(config.user_available);
    const others = Object.keys(config).filter((name) => !(name in ROWS) && !SAID_WITH_ANOTHER.has(name));
    return [h("dl", { class: "facts wide" },
      Object.entries(ROWS).filter(([name]) => name in config).map(([name, [label, words]]) => [h("dt", {}, label), h("dd", {}, words(config[name], config))]),
      others.map((name) => [h("dt", {}, name), h("dd", {}, typeof config[name] === "boolean" ? yes(config[name]) : textOf(JSON.stringify(config[name])))])),
      h("p", { class: "hint" }, "Set by environment variables of ghost serve.")];
  }, signal);

  const readState = () => loaded(state.body, "Checking readiness.", async () => {
    const ready = await app.api.get("/readyz", {}, signal).catch((error) => {
      if (error instanceof Problem && error.status === 503) return { reasons: listOf(error.document.reasons), detail: error.message };
      throw error;
    });
    const stream = await app.api.get("/stream", {}, signal);
    const reasons = ready.reasons ? (ready.reasons.length ? ready.reasons : [ready.detail]) : [];
    return h("div", {},
      h("p", {}, reasons.length ? chip("not ready", "bad") : chip("ready", "good"), " ", reasons.length ? reasons.join(" ") : "Memory can be read."),
      h("p", {}, chip(`thoughts ${stream.state}`, stream.state === "running" ? "good" : stream.state === "ended" ? "bad" : "plain"), " ",
        stream.paused ? "Waiting for an answer." : "", stream.last_error ? `Last failure: ${stream.last_error}` : ""));
  }, signal);
  const again = soon(500, readState, signal);
  for (const kind of ["error", "gap"]) app.following.addEventListener(kind, again, { signal });
  every(15, readState, signal);
  readState();
}
