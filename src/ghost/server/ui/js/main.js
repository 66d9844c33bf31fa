// Wires the page: the bar, the navigation, the view of the address, the login, the state of the connection.

import { Api } from "./api.js";
import { Availability, availabilitySwitch } from "./availability.js";
import { themeChoice } from "./controls.js";
import { fill, h, listOf, setText, visible } from "./dom.js";
import { Following } from "./following.js";
import { showLogin } from "./login.js";
import { Announcer, failure, loading } from "./notices.js";
import { Questions } from "./questions.js";
import { routeOf } from "./router.js";
import * as investigations from "./views/investigations.js";
import { Waiting } from "./waiting.js";

const SECTIONS = {
  investigations: ["Investigations", async () => investigations],
  questions: ["Questions", () => import("./views/questions.js")],
  tasks: ["Tasks", () => import("./views/tasks.js")],
  memory: ["Memory", () => import("./views/memory.js")],
  read: ["Read pages", () => import("./views/read.js")],
  setup: ["Setup", () => import("./views/setup.js")],
  thoughts: ["Thoughts", () => import("./views/thoughts.js")],
};
const main = document.getElementById("content");
const banner = document.getElementById("banner");

const api = new Api();
const following = new Following(api);
const announcer = new Announcer(document.getElementById("announcements"));
const app = {
  api, following,
  availability: new Availability(api),
  questions: new Questions(api),
  waiting: new Waiting(api),
  say: (text, urgent = true) => announcer.say(text, urgent),
  title: (words) => showTitle(words),
};
let locked = false;
let away = new AbortController(); // aborted where the token is missing: then nothing is asked
let leaving = new AbortController();
let shown = { section: "", go: null };
let title = "Ghost";

// --- views ---

async function show(moved) {
  if (locked) return;
  const route = routeOf(location.hash);
  if (!Object.hasOwn(SECTIONS, route.section)) route.section = "investigations";
  const [name, load] = SECTIONS[route.section];
  if (moved && shown.section === route.section && shown.go?.(route)) return; // the view goes there by itself
  leaving.abort();
  const { signal } = (leaving = new AbortController());
  shown = { section: route.section, go: null };
  for (const link of document.querySelectorAll(".sections a")) {
    const here = link.getAttribute("href") === `#/${route.section}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showTitle(name);
  const place = h("div", { class: `view view-${route.section}` });
  const slow = setTimeout(() => { if (!signal.aborted) fill(main, loading(`Loading ${name}.`)); }, 150);
  try {
    const view = await load();
    if (signal.aborted) return;
    fill(main, place);
    shown.go = view.show(place, app, route, signal) ?? null;
    if (moved) {
      const heading = place.querySelector("h1");
      heading?.setAttribute("tabindex", "-1");
      if (!place.contains(document.activeElement)) heading?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  } catch (error) {
    shown.go = null;
    if (!signal.aborted) fill(main, failure(new Error(`This section could not be shown: ${error.message}. Is ghost serve running?`), () => show(false)));
  } finally {
    clearTimeout(slow);
  }
}

function showTitle(words) {
  title = `${visible(words)} · Ghost`;
  showCounts();
}

function showCounts() {
  const counts = { "open-questions": app.questions.open?.length ?? 0, "waiting-approvals": app.waiting.approvals?.length ?? 0 };
  for (const [id, open] of Object.entries(counts)) {
    const count = document.getElementById(id);
    count.hidden = !open;
    fill(count, String(open), h("span", { class: "unseen" }, " open"));
  }
  const open = counts["open-questions"] + counts["waiting-approvals"];
  document.title = open ? `(${open}) ${title}` : title;
}

// --- the bar ---

const signOut = h("button", { type: "button", class: "quiet", hidden: true, listen: { click: () => { api.token = ""; lock("You signed out."); } } }, "Sign out");
fill(document.getElementById("bar-controls"),
  availabilitySwitch(app.availability, (words) => app.say(words)), themeChoice(), signOut);

app.questions.addEventListener("change", showCounts);
let known = new Set();
app.waiting.addEventListener("change", () => {
  showCounts();
  const { approvals } = app.waiting;
  const fresh = listOf(approvals).find(({ id }) => !known.has(id));
  if (fresh) app.say(`An investigation waits for you: ${fresh.symptom}`);
  if (approvals) known = new Set(approvals.map(({ id }) => id));
});
following.addEventListener("interrupt", ({ detail }) => app.say(`Ghost asks: ${detail.question ?? ""}`));

// --- the connection ---

const tryNow = h("button", { type: "button", listen: { click: () => following.now() } }, "Try now");
const bannerWords = h("p");
fill(banner, bannerWords, tryNow);

function showConnection() {
  const { state, why, nextAt } = following;
  document.querySelector(".connection").dataset.state = state;
  const wait = Math.max(0, Math.ceil((nextAt - Date.now()) / 1000));
  setText(document.getElementById("connection"), 
    locked ? "token required" : state === "reconnecting" ? `reconnecting${wait ? ` in ${wait} s` : ""}` : state);
  banner.hidden = locked || state === "live" || state === "connecting";
  if (banner.hidden) return;
  const what = state === "stopped" ? `Nothing new is shown: ${why || "the stream was stopped"}` : `What is shown may be old: ${why}`;
  setText(bannerWords, /[.?!]$/.test(what) ? what : `${what}.`);
  setText(tryNow, state === "stopped" ? "Reconnect" : "Try now");
}
tryNow.addEventListener("click", () => { if (following.state === "stopped") following.start(); });
following.addEventListener("state", showConnection);
following.addEventListener("state", () => { // what could not be read meanwhile is read now
  if (following.state === "live") for (const button of main.querySelectorAll("button.again")) button.click();
});
setInterval(() => { if (following.state === "reconnecting") showConnection(); }, 1000);
addEventListener("online", () => following.now());

// --- the token ---

function lock(refused = "") {
  if (locked) return;
  locked = true;
  leaving.abort();
  away.abort();
  shown = { section: "", go: null };
  following.stop("the token is missing");
  signOut.hidden = true;
  showTitle("Token");
  showConnection();
  showLogin(main, api, { refused, entered: begin });
}
api.addEventListener("locked", () => {
  if (document.querySelector(".login") === null) lock(api.token ? "The token is no longer valid." : "");
});

async function begin() {
  locked = false;
  away = new AbortController();
  app.questions.follow(following, away.signal);
  app.waiting.follow(following, away.signal);
  signOut.hidden = !api.token;
  const config = api.get("/config").then((config) => app.availability.learn(config.user_available)).catch(() => {});
  app.questions.read();
  app.waiting.read();
  app.waiting.readOrders();
  following.start();
  show(false);
  await config;
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => show(true));
following.addEventListener("gap", () => api.get("/config").then((config) => app.availability.learn(config.user_available)).catch(() => {}));
if (document.documentElement.dataset.token === "required" && !api.token) lock();
else begin();
// What every section is made of, while the server is there: then they can be looked through when it is not.
setTimeout(() => { for (const [, load] of Object.values(SECTIONS)) load().catch(() => {}); }, 300);
