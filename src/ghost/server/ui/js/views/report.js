// The report's JSON as elements. It is a file of the workspace: what is missing or of another type breaks nothing, and
// the only links are those to records of evidence.

import { chip } from "../controls.js";
import { h, listOf, outside, recordOf, textOf } from "../dom.js";
import { empty } from "../notices.js";
import { momentOf } from "../times.js";

export const LAYERS = {
  local_probe: "Local probe (engineer's machine)",
  vm_state: "VM state",
  nsg_outbound: "NSG outbound (source)",
  nsg_inbound: "NSG inbound (destination)",
  routes: "Effective routes",
  peering: "VNet peering",
  dns: "DNS",
  service_endpoints: "Service endpoints",
  load_balancer: "Load balancer and private endpoint",
  guest_firewall: "Guest firewall",
  wire: "Wire (packet capture)",
};
const STATUSES = { cleared: ["✓ cleared", "good"], at_fault: ["✕ at fault", "bad"], not_verified: ["? not verified", "plain"] };

/** `{cause, coverage, captured, cited}`: elements, and the ids that the report rests on. `cite(id)` makes a link. */
export function reportParts(given, cite) {
  const report = recordOf(given);
  const cited = new Set();
  const citation = (id) => {
    cited.add(textOf(id));
    return cite(textOf(id));
  };
  const parts = { cause: cause(report, citation), coverage: coverage(report, citation), captured: captured(report) };
  return { ...parts, cited };
}

function cause(report, cite) {
  const said = statement(recordOf(report.summary), cite);
  const statements = listOf(report.statements).map((each) => h("li", {}, statement(recordOf(each), cite)));
  const actions = listOf(report.recommended_actions).map((action) => h("li", {}, advice(textOf(action))));
  const causes = listOf(report.causes).map((each) => h("li", {}, named(recordOf(each), cite)));
  const advisories = listOf(report.advisories).map((note) => h("li", {}, outside(note)));
  const conflicts = listOf(report.conflicts).map((each) => conflict(recordOf(each), cite));
  return h("div", {},
    h("p", { class: "symptom" }, h("span", { class: "faint" }, "Symptom: "), outside(report.symptom)),
    h("p", { class: "root-cause" }, said),
    causes.length ? h("ul", {}, causes) : null,
    h("p", { class: "faint" }, report.outcome ? [chip(textOf(report.outcome).replace(/_/g, " "), "plain"), " "] : null, chip(`confidence ${textOf(report.confidence) || "unknown"}`, { high: "good", medium: "warn" }[report.confidence] ?? "plain"),
      ` ${[textOf(report.network), textOf(report.brain), momentOf(report.generated)].filter(Boolean).join(" · ")}`),
    actions.length ? [h("h3", {}, "What to do"), h("ul", {}, actions)] : null,
    statements.length > 1 ? [h("h3", {}, "Findings"), h("ol", {}, statements)] : null,
    conflicts.length ? [h("h3", {}, "Contradicting evidence"), h("ul", {}, conflicts)] : null,
    advisories.length ? [h("h3", {}, "Notes"), h("ul", {}, advisories)] : null);
}

/** Kind, resource and rule of a cause; unsupported ones are marked. */
const named = (given, cite) => [h("strong", { class: "outside" }, textOf(given.kind).replace(/_/g, " ")), " ",
  outside(textOf(given.resource).split("/").pop()), " ", outside([given.rule, given.direction].map(textOf).filter(Boolean).join(" ")), " ",
  given.supported === true ? chip(textOf(given.confidence), "plain") : chip("unsupported", "bad"), listOf(given.audit_ids).map((id) => [" ", cite(textOf(id))])];

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

/** A command inside a recommendation is set apart, so that it can be copied as it stands. */
function advice(action) {
  const start = action.search(/(^|[ :`])az /);
  if (start < 0) return outside(action);
  const at = action.indexOf("az ", start);
  return [outside(action.slice(0, at).replace(/[ `]+$/, " ")), outside(action.slice(at).replace(/[` ]+$/, ""), { tag: "code", cls: "command" })];
}

const conflict = (given, cite) => h("li", {}, h("strong", { class: "outside" }, textOf(given.hypothesis_id)), " ", outside(given.description), " ",
  listOf(given.conflicting_audit_ids).map((id) => [cite(id), " "]),
  h("span", { class: "faint" }, `trusted: ${textOf(given.higher_fidelity_source) || "not settled"}; `, outside(textOf(given.resolution) || "open")));

function coverage(report, cite) {
  const rows = listOf(report.coverage).map(recordOf);
  if (!rows.length) return empty("The report has no coverage.", "It lists for each layer of the path whether it was cleared, at fault, or not verified.");
  return h("table", { class: "coverage" }, h("caption", { class: "unseen" }, "Each layer of the path"),
    h("thead", {}, h("tr", {}, ["Layer", "Status", "Records", "Note"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => {
      const [words, tone] = STATUSES[row.status] ?? [textOf(row.status), "plain"];
      return h("tr", { class: textOf(row.status) === "at_fault" ? "at-fault" : "" },
        h("th", { scope: "row" }, LAYERS[textOf(row.layer)] ?? outside(row.layer)), h("td", {}, chip(words, tone)),
        h("td", { class: "ids" }, listOf(row.audit_ids).map((id) => [cite(id), " "])), h("td", {}, outside(row.note, { limit: 600 })));
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
