// The report's JSON as elements. It is a file of the workspace: what is missing or of another type breaks nothing, and
// the only links are those to records of evidence.

import { chip, command } from "../controls.js";
import { h, listOf, outside, recordOf, textOf } from "../dom.js";
import { empty } from "../notices.js";
import { shortened } from "../router.js";
import { CLASSES } from "./evidence.js";

export const LAYERS = {
  local_probe: "Local probe (engineer's machine)",
  vm_state: "VM state",
  nsg_outbound: "NSG outbound (source)",
  nsg_inbound: "NSG inbound (destination)",
  routes: "Routes",
  peering: "VNet peering",
  dns: "DNS",
  service_endpoints: "Service endpoints",
  load_balancer: "Load balancer and private endpoint",
  guest_firewall: "Guest firewall",
  wire: "Wire (packet capture)",
};
const STATUSES = { cleared: ["✓ cleared", "good"], at_fault: ["✕ at fault", "bad"], not_verified: ["? not verified", "plain"] };
const OUTCOMES = { cause_found: "good", healthy: "good", inconclusive: "warn", not_investigated: "warn" };

export const outcomeChip = (outcome) => chip(textOf(outcome).replace(/_/g, " "), OUTCOMES[outcome] ?? "plain");
export const confidenceChip = (confidence) => chip(`confidence ${textOf(confidence) || "unknown"}`, { high: "good", medium: "warn" }[confidence] ?? "plain");

/**
 * `{cause, actions, certainty, unverified, coverage, captured, cited}`: elements, and the ids that the report rests on.
 * `cite(id)` makes a link, `say` tells that a command was copied.
 */
export function reportParts(given, cite, say) {
  const report = recordOf(given);
  const cited = new Set();
  const citation = (id) => {
    cited.add(textOf(id));
    return cite(textOf(id));
  };
  return { cause: cause(report, citation), actions: actions(report, say), certainty: certainty(report, citation),
    unverified: unverified(report), coverage: coverage(report, citation), captured: captured(report), cited };
}

function cause(report, cite) {
  const causes = listOf(report.causes).map((each) => h("li", {}, named(recordOf(each), cite)));
  return h("div", {},
    h("p", { class: "root-cause" }, statement(recordOf(report.summary), cite)),
    causes.length ? h("ul", {}, causes) : null);
}

/** Kind, resource and rule of a cause; unsupported ones are marked. */
const named = (given, cite) => [h("strong", { class: "outside" }, textOf(given.kind).replace(/_/g, " ")), " ",
  outside(textOf(given.resource).split("/").pop()), " ", outside([given.rule, given.direction].map(textOf).filter(Boolean).join(" ")), " ",
  given.supported === true ? chip(textOf(given.confidence), "plain") : chip("unsupported", "bad"), listOf(given.audit_ids).map((id) => [" ", cite(textOf(id))])];

function actions(report, say) {
  const known = listOf(report.actions);
  const rows = known.length ? known.map(recordOf) : listOf(report.recommended_actions).map((text) => ({ text }));
  if (!rows.length) return empty("No action is recommended.", "“Not verified” says what was not checked, and why.");
  return h("ol", {}, rows.map((row, place) => h("li", {}, action(row, place + 1, say))));
}

/** The words of a recommendation; its command apart, with its class and, where the report says it, what it changes. */
function action(given, number, say) {
  const words = textOf(given.text);
  const run = textOf(given.command);
  const at = run ? words.indexOf(run) : -1;
  if (!run) return outside(words);
  const around = (at < 0 ? [words] : [words.slice(0, at), words.slice(at + run.length)]).map((part) => part.replace(/^[\s`”.]+|[\s`“]+$/g, ""));
  return [around.map((part) => (part ? outside(part, { tag: "p" }) : null)), command(run, `the command of step ${number}`, say),
    given.classification ? h("p", { class: "faint" }, chip(textOf(given.classification), CLASSES[given.classification] ?? "plain"), " ", outside(given.changes)) : null];
}

function certainty(report, cite) {
  const checked = listOf(report.causes).map(recordOf).filter((each) => each.checked).map((each) => h("li", {}, pieces(textOf(each.checked), listOf(each.audit_ids).map(textOf), cite)));
  const statements = listOf(report.statements).map((each) => h("li", {}, statement(recordOf(each), cite)));
  const conflicts = listOf(report.conflicts).map((each) => conflict(recordOf(each), cite));
  const advisories = listOf(report.advisories).map((note) => h("li", {}, outside(shortened(note))));
  return h("div", {},
    h("p", {}, confidenceChip(report.confidence)),
    checked.length ? h("ul", {}, checked) : null,
    statements.length ? [h("h3", {}, "Findings"), h("ol", {}, statements)] : null,
    conflicts.length ? [h("h3", {}, "Contradicting evidence"), h("ul", {}, conflicts)] : null,
    advisories.length ? [h("h3", {}, "Notes"), h("ul", {}, advisories)] : null);
}

/** Its text, with the records it names as links, those it does not name behind it, and what it lacks. */
function statement(given, cite) {
  const words = textOf(given.text);
  const ids = listOf(given.audit_ids).map(textOf);
  const problems = listOf(given.problems).map(textOf).join("; ");
  const unnamed = ids.filter((id) => !words.includes(id));
  return [pieces(words, ids, cite), unnamed.map((id) => [" ", cite(id)]),
    given.supported === true ? null : [" ", chip("unsupported", "bad"), ` ${problems || "it cites no audit record"}`]];
}

function pieces(words, ids, cite) {
  const found = ids.map((id) => ({ id, at: id ? words.indexOf(id) : -1 })).filter(({ at }) => at >= 0).sort((one, other) => one.at - other.at || other.id.length - one.id.length);
  const made = [];
  let from = 0;
  for (const { id, at } of found) {
    if (at < from) continue;
    made.push(outside(words.slice(from, at), { limit: 5000 }), cite(id));
    from = at + id.length;
  }
  return [made, from < words.length ? outside(words.slice(from), { limit: 5000 }) : null];
}

const conflict = (given, cite) => h("li", {}, h("strong", { class: "outside" }, textOf(given.hypothesis_id)), " ", outside(shortened(given.description)), " ",
  listOf(given.conflicting_audit_ids).map((id) => [cite(id), " "]),
  h("span", { class: "faint" }, `trusted: ${textOf(given.higher_fidelity_source) || "not settled"}; `, outside(textOf(given.resolution) || "open")));

const layer = (row) => LAYERS[textOf(row.layer)] ?? outside(row.layer);

function unverified(report) {
  const rows = listOf(report.coverage).map(recordOf).filter((row) => row.status === "not_verified");
  if (!rows.length) return h("p", { class: "empty" }, "Every layer of the path was checked.");
  return h("ul", {}, rows.map((row) => h("li", {}, h("strong", {}, layer(row)), ": ", outside(shortened(row.note), { limit: 600 }))));
}

function coverage(report, cite) {
  const rows = listOf(report.coverage).map(recordOf);
  if (!rows.length) return empty("The report has no coverage.", "It lists for each layer of the path whether it was cleared, at fault, or not verified.");
  return h("table", { class: "coverage" }, h("caption", { class: "unseen" }, "Each layer of the path"),
    h("thead", {}, h("tr", {}, ["Layer", "Status", "Records", "Note"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => {
      const [words, tone] = STATUSES[row.status] ?? [textOf(row.status), "plain"];
      return h("tr", { class: textOf(row.status) === "at_fault" ? "at-fault" : "" },
        h("th", { scope: "row" }, layer(row)), h("td", {}, chip(words, tone)),
        h("td", { class: "ids" }, listOf(row.audit_ids).map((id) => [cite(id), " "])), h("td", {}, outside(shortened(row.note), { limit: 600 })));
    })));
}

function captured(report) {
  const rows = listOf(report.captures).map(recordOf);
  if (!rows.length) return null;
  return h("ul", { class: "plain lines" }, rows.map((row) => h("li", {}, outside(row.task_id, { tag: "code" }), " ",
    chip(textOf(row.outcome) || textOf(row.state).toLowerCase(), row.outcome === "completed" ? "good" : "plain"), " ", outside(textOf(row.target).split("/").pop()),
    h("span", { class: "faint" }, row.cleanup_status ? ` clean-up: ${textOf(row.cleanup_status)}` : ""),
    row.executive_summary ? h("details", {}, h("summary", {}, "What the capture shows"), outside(row.executive_summary, { tag: "pre", limit: 6000 })) : null)));
}
