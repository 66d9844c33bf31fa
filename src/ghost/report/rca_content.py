"""What a root-cause report says, in the order it is read, as blocks that each format writes in its own way.

First what a person needs: the cause, what to do, how sure and why, what was not verified, the path, the timeline and
the evidence, with short record numbers (`#017`). Then an annex with all that was asked and run, with full audit ids.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ghost.text import short_ids

LAYERS: Final = {
    "local_probe": "Local probe (engineer's machine)",
    "vm_state": "VM state",
    "nsg_outbound": "NSG outbound (source)",
    "nsg_inbound": "NSG inbound (destination)",
    "routes": "Routes",
    "peering": "VNet peering",
    "dns": "DNS",
    "service_endpoints": "Service endpoints",
    "load_balancer": "Load balancer and private endpoint",
    "guest_firewall": "Guest firewall",
    "wire": "Wire (packet capture)",
}
LOCAL_AND_CLOUD: Final = (
    "Rows tagged [LOCAL] show the engineer's own machine (its resolver, its VPN): a [LOCAL] probe that fails is no "
    "evidence of a fault in Azure without a [CLOUD] record."
)
SIMULATED: Final = "(SIMULATED)"
INTEGRITY: Final = (
    "All evidence in this report is cited by audit id from append-only, hash-chained JSONL files. Raw command output "
    "stays in the audit; only conclusions appear here."
)
_OUTCOMES: Final = {"passes": "configuration allows it", "unknown": "not known to its end"}
_MARKED: Final = re.compile(r"(\*\*[^*]+\*\*|`[^`]+`)")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_VERDICTS: Final = {"pass": "✓", "rewrite": "⇄", "unknown": "?"}


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Strong:
    text: str


Span: TypeAlias = str | Code | Strong
Spans: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True)
class Items:
    rows: tuple[Spans, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Command:
    """A command to copy."""

    text: str


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Spans, ...], ...]


@dataclass(frozen=True)
class Quote:
    """Lines of the capture engine's summary."""

    lines: tuple[Spans, ...]


@dataclass(frozen=True)
class PathPicture:
    path: Mapping[str, Any]
    in_words: str


@dataclass(frozen=True)
class CapturePlots:
    """The plots of a capture, where its page still lies."""

    report_path: str


Block: TypeAlias = Heading | Paragraph | Items | Command | Table | Quote | PathPicture | CapturePlots


@dataclass(frozen=True)
class Files:
    """Where a session's records lie, as a reader may open them."""

    shell_audit: str
    tasks: str
    workspace: str


@dataclass(frozen=True)
class Content:
    title: str
    main: tuple[Block, ...]
    annex: tuple[Block, ...]


def content_of(report: Mapping[str, Any], files: Files) -> Content:
    """Return what a report says. `report`: the JSON of `ghost_rca_{sid}.json`."""
    return Content(f"Root Cause Analysis — {report['session_id']}", tuple(_main(report)), tuple(_annex(report, files)))


def _main(report: Mapping[str, Any]) -> Iterator[Block]:
    yield Paragraph(
        (
            Strong(f"{_words(report['outcome']).capitalize()}, {report['confidence']} confidence."),
            f" {report['network']}, brain {report['brain']}, written {_moment(report['generated'])}.",
        )
    )
    yield Paragraph((Strong("Symptom:"), f" {report['symptom']}"))
    yield Heading(2, "Cause" if report["causes"] else "Conclusion")
    yield from _causes(report)
    if report["actions"]:
        yield Heading(2, "What to do")
        yield from _actions(report)
        yield from _next_of_captures(report)
    yield Heading(2, "Confidence and reasons")
    yield Items(tuple(_reasons(report)))
    open_layers = [row for row in report["coverage"] if row["status"] == "not_verified"]
    if open_layers:
        yield Heading(2, "Not verified")
        yield Items(tuple((Strong(_layer(row)), f": {_short(report, row['note'])}") for row in open_layers))
    yield Heading(2, "Path")
    for path in report.get("path") or []:
        yield PathPicture(path, _in_words(path))
    checked = [row for row in report["coverage"] if row["status"] != "not_verified"]
    if checked:
        absent = [row for row in checked if row["status"] == "cleared" and str(row["note"]).startswith("no ")]
        present = [_layer_row(report, row) for row in checked if row not in absent]
        yield Table(("Layer", "Verdict", "Why", "Records"), (*present, *_absent(absent)))
    else:
        yield Paragraph(("No layer was verified.",))
    if report.get("timeline"):
        yield Heading(2, "Timeline (UTC)")
        if SIMULATED in report["network"]:
            yield Paragraph(("On the clock of the simulated network, which runs faster than real time.",))
        rows = ((_moment(row["time"]), row["what"], _numbers(row["audit_ids"])) for row in report["timeline"])
        yield Table(("Time", "What", "Records"), tuple(((time,), (what,), (ids,)) for time, what, ids in rows))
    yield from _evidence(report)


def _causes(report: Mapping[str, Any]) -> Iterator[Block]:
    for cause in report["causes"]:
        told = " ".join(filter(None, (cause["rule"], cause["direction"])))
        sure = f", {cause['confidence']} confidence" if cause["supported"] else ""
        wrong = "" if cause["supported"] else f" [unsupported: {'; '.join(cause['problems'])}]"
        flow = f" Traffic: {_flow(cause['flow'])}." if cause["flow"] else ""
        yield Paragraph(
            (
                Strong(_words(cause["kind"]).capitalize()),
                f"{place_of(cause)}{_name(cause['resource'])}",
                *((": ", Code(told)) if told else ()),
                f"{sure}{wrong}.{flow} {_numbers(cause['audit_ids'])}",
            )
        )
    yield Paragraph(_cited(report, report["summary"], full=False))


def place_of(cause: Mapping[str, Any]) -> str:
    """Return how a cause stands to its resource: what a capture sees at a machine need not be the machine's fault."""
    return " seen at " if cause.get("layer") == "wire" else " at "


def _actions(report: Mapping[str, Any]) -> Iterator[Block]:
    for action in report["actions"]:
        command = action["command"]
        if not command:
            yield Items(((_short(report, action["text"]),),))
            continue
        lead, _, after = action["text"].partition(command)
        words = " ".join(filter(None, (lead.strip(" `“:"), after.strip("` .”"))))
        if words:
            yield Items(((_short(report, words),),))
        yield Command(command)
        yield Paragraph((Strong(action["classification"]), f": {action['changes']}" if action.get("changes") else ""))


def _next_of_captures(report: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what the capture engine would run next, on the machines that it names; Ghost runs none of it."""
    steps = [step for finding in report.get("captured_findings") or [] for step in finding["next"]]
    shown = {(step["run_on"], step["command"]): None for step in steps}
    if shown:
        yield Paragraph(("The capture engine's next commands, on the machines themselves; Ghost does not run them:",))
        yield Items(tuple((f"on {run_on}: ", Code(command)) for run_on, command in shown))


def _reasons(report: Mapping[str, Any]) -> Iterator[Spans]:
    for cause in report["causes"]:
        if cause["checked"]:
            yield (Strong(_words(cause["kind"])), f": {_short(report, cause['checked'])}.")
        if cause.get("limit"):
            yield (f"Medium at most: high needs {_short(report, cause['limit'])}.",)
    for hypothesis in report["hypotheses"]:
        state = "not settled" if hypothesis["state"] == "ACTIVE" else hypothesis["state"].lower()
        ids = _numbers(hypothesis["audit_ids"])
        yield (Strong(f"{hypothesis['id']} {state}"), f": {_short(report, hypothesis['description'])} {ids}")
    for conflict in report["conflicts"]:
        yield (
            Strong(f"Conflict in {conflict['hypothesis_id']}"),
            f": {conflict['description']} {_numbers(conflict['conflicting_audit_ids'])}",
        )
    yield from ((_short(report, note),) for note in report["advisories"])
    if not (report["causes"] or report["hypotheses"] or report["advisories"]):
        yield ("Nothing was tested.",)


def _layer_row(report: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[Spans, ...]:
    verdict: Span = Strong("✗ AT FAULT") if row["status"] == "at_fault" else "✓ cleared"
    note = "As stated under Cause." if _is_told(report, row["note"]) else _short(report, row["note"])
    return (_layer(row),), (verdict,), (note,), (_numbers(row["audit_ids"]),)


def _absent(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Spans, ...]]:
    """Yield one row for the layers of which the path has nothing."""
    if rows:
        ids = dict.fromkeys(audit_id for row in rows for audit_id in row["audit_ids"])
        notes = "; ".join(str(row["note"]) for row in rows)
        yield (", ".join(map(_layer, rows)),), ("✓ cleared",), (notes,), (_numbers(ids),)


def _evidence(report: Mapping[str, Any]) -> Iterator[Block]:
    shown = [_finding(finding) for finding in report.get("captured_findings") or []]
    read = [capture for capture in report["captures"] if capture["executive_summary"]]
    told = [s for s in report["statements"] if not (s["supported"] and _is_told(report, s["text"]))]
    if not (told or read or shown):
        return
    yield Heading(2, "Evidence")
    if shown:
        yield Items(tuple(shown))
    if told:
        yield Items(tuple(_cited(report, statement, full=False) for statement in told), numbered=True)
    for capture in read:
        number = _numbers([capture["executive_summary_audit_id"]])
        yield Paragraph((Strong("What the capture engine says"), f" of {capture['task_id']} {number}:"))
        yield quoted(_verdict_of(capture["executive_summary"]))
        yield CapturePlots(str(capture["report_path"]))


def _finding(finding: Mapping[str, Any]) -> Spans:
    frames = ", ".join(map(str, finding["frames"]))
    times = [_moment(each) for each in (finding["first_utc"], finding["last_utc"]) if each]
    when = f", {' to '.join(dict.fromkeys(times))} UTC" if times else ""
    cited = f"{f', frames {frames}' if frames else ''} {_numbers(finding['audit_ids'])}"
    return Strong(f"{finding['severity']} in the capture at {finding['seen_at']}"), f": {finding['title']}{when}{cited}"


def quoted(summary: str) -> Quote:
    """Return a summary's lines, of whose Markdown only headings, bold words and code count."""
    return Quote(tuple(_quoted_line(line) for line in summary.splitlines() if line.strip(" #-")))


def _quoted_line(line: str) -> Spans:
    words = line.lstrip("#- ")
    if line.startswith("#"):
        return (Strong(_ESCAPED.sub(r"\1", words)),)
    spans: list[Span] = []
    for part in filter(None, _MARKED.split(words)):
        if part.startswith("**") and len(part) > 4:
            spans.append(Strong(_ESCAPED.sub(r"\1", part[2:-2])))
        elif part.startswith("`") and len(part) > 2:
            spans.append(Code(part.strip("`")))
        else:
            spans.append(_ESCAPED.sub(r"\1", part))
    return tuple(spans)


def _verdict_of(summary: str) -> str:
    """Return what a capture's summary says before it lists its traffic: the fault, its owner, the first step, when."""
    return summary.partition("\n## ")[0].strip()


def _annex(report: Mapping[str, Any], files: Files) -> Iterator[Block]:
    yield Heading(2, "Investigation Summary")
    yield Paragraph(_cited(report, report["summary"], full=True))
    if report["causes"]:
        yield Heading(2, "Causes")
        yield _causes_in_full(report["causes"])
    if report["actions"]:
        yield Heading(2, "Recommended Actions")
        yield Items(tuple((action["text"],) for action in report["actions"]))
    yield Heading(2, "Hypotheses Log")
    yield from _hypotheses(report["hypotheses"])
    if report["conflicts"]:
        yield Heading(2, "Conflicting Evidence")
        yield _conflicts(report["conflicts"])
    yield Heading(2, "Command Evidence")
    yield from _commands(report["evidence"])
    yield Paragraph((LOCAL_AND_CLOUD,))
    yield Heading(2, "Capture Evidence")
    yield from _captures(report["captures"])
    yield Heading(2, "Integrity Statement")
    yield Paragraph((INTEGRITY,))
    check = shlex.join(["ghost", "audit", "verify", str(report["session_id"]), "--workspace", files.workspace])
    rows: list[Spans] = [("Shell audit: ", Code(files.shell_audit))]
    rows += [("Task registry: ", Code(files.tasks))] if report["captures"] else []
    yield Items((*rows, ("Check it: ", Code(check))))


def _causes_in_full(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        ("Kind", "Resource", "Rule", "Flow", "Confidence", "Record"),
        tuple(
            (
                (_words(c["kind"]),),
                (Code(c["resource"]),),
                (" ".join(filter(None, (c["rule"], c["direction"]))),),
                (_flow(c["flow"]) if c["flow"] else "",),
                (c["confidence"] if c["supported"] else Strong(f"unsupported: {'; '.join(c['problems'])}"),),
                (_ids(c["audit_ids"]),),
            )
            for c in rows
        ),
    )


def _hypotheses(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No hypothesis was registered.",))
        return
    header = ("Hypothesis ID", "Description", "Would be refuted by", "Final State", "Denial Count", "Evidence")
    yield Table(
        header,
        tuple(
            (
                (h["id"],),
                (h["description"],),
                (h["refuted_by"],),
                ("ACTIVE (not settled)" if h["state"] == "ACTIVE" else h["state"],),
                (str(h["denial_count"]),),
                (_ids(h["audit_ids"]),),
            )
            for h in rows
        ),
    )


def _conflicts(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        ("Hypothesis", "Records that disagree", "Trusted source", "Resolution", "What"),
        tuple(
            (
                (c["hypothesis_id"],),
                (_ids(c["conflicting_audit_ids"]),),
                (c["higher_fidelity_source"] or "not settled",),
                (c["resolution"] or "open",),
                (c["description"],),
            )
            for c in rows
        ),
    )


def _commands(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No command reached the shell.",))
        return
    yield Table(
        ("Audit ID", "Context", "Command", "Classification", "Action", "Exit Code", "Outcome"),
        tuple(
            (
                (r["audit_id"],),
                (r["context"],),
                (Code(str(r["command"])),),
                (str(r["classification"]),),
                (str(r["action"] or "none"),),
                ("" if r["exit_code"] is None else str(r["exit_code"]),),
                (r["outcome"],),
            )
            for r in rows
        ),
    )


def _captures(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph(("No capture was taken.",))
        return
    yield Table(
        ("Task ID", "Target", "State", "Cleanup", "Report Path", "PCAP Path"),
        tuple(
            (
                (r["task_id"],),
                (r["target"] or "",),
                (f"{r['state']} ({r['outcome']})" if r.get("outcome") else str(r["state"]),),
                (r["cleanup_status"] or "none",),
                (Code(str(r["report_path"] or "-")),),
                (Code(str(r["local_pcap_path"] or "-")), *((" (removed by the clean-up)",) if _is_removed(r) else ())),
            )
            for r in rows
        ),
    )
    for r in rows:
        if r["executive_summary"]:
            yield Heading(3, f"Executive summary of {r['task_id']} ([CLOUD], {r['executive_summary_audit_id']})")
            yield quoted(r["executive_summary"])
        elif not r["executive_summary_available"]:
            yield Paragraph((f"Report content of {r['task_id']} unavailable (cat denied by the engineer, or failed).",))


def _is_removed(row: Mapping[str, Any]) -> bool:
    return (
        bool(row["local_pcap_path"]) and row["cleanup_status"] == "completed" and not row.get("local_pcap_exists", True)
    )


def _cited(report: Mapping[str, Any], statement: Mapping[str, Any], *, full: bool) -> Spans:
    text = statement["text"] if full else _short(report, statement["text"])
    if not statement["supported"]:
        why = "; ".join(statement["problems"]) or "it cites no audit record"
        return text, " ", Strong(f"[unsupported: {why if full else _short(report, why)}]")
    unnamed = [i for i in statement["audit_ids"] if i not in statement["text"]]
    cited = ", ".join(unnamed) if full else ", ".join(_number(i) for i in unnamed)
    return (text, f" ({cited})") if unnamed else (text,)


def _is_told(report: Mapping[str, Any], text: str) -> bool:
    """Return whether the summary says a text already."""
    said, summary = text.strip(". "), report["summary"]
    return (
        bool(said) and summary["supported"] and f" {said}" in f" {summary['text']}" and summary["text"].startswith(said)
    )


def _in_words(path: Mapping[str, Any]) -> str:
    """Return the way there in one line, to the fault: `web-vm-01 → ✓ prod-nsg → ✗ cache-nsg (rule)`."""
    steps = [str(path["source_name"])]
    for hop in path["hops"]:
        if hop["leg"] == "return" or hop.get("reached") is False:
            break
        mark = "✗" if hop["fault"] else _VERDICTS.get(hop["verdict"], "✗")
        rule = f" ({hop['rule']})" if hop["fault"] and hop["rule"] else ""
        steps.append(f"{mark} {_words(hop['kind'])} {hop['name']}{rule}")
    back = [hop for hop in path["hops"] if hop["leg"] == "return" and hop["fault"]]
    ends = f"; back: ✗ {back[0]['name']} ({back[0]['rule'] or back[0]['verdict']})" if back else ""
    outcome = _OUTCOMES.get(path["outcome"], path["outcome"])
    return f"{' → '.join(dict.fromkeys(steps))} → {path['destination_name']}: {outcome}{ends}"


def _short(report: Mapping[str, Any], text: str) -> str:
    return short_ids(str(text), str(report["session_id"]))


def _number(audit_id: str) -> str:
    return f"#{str(audit_id).rpartition('_')[2]}"


def _numbers(audit_ids: Iterable[str]) -> str:
    return " ".join(_number(each) for each in audit_ids)


def _ids(audit_ids: Sequence[str]) -> str:
    return ", ".join(audit_ids) or "none"


def _layer(row: Mapping[str, Any]) -> str:
    return LAYERS.get(row["layer"], str(row["layer"]))


def _name(resource: str) -> str:
    return resource.rstrip("/").rpartition("/")[2] or resource


def _words(text: str) -> str:
    return str(text).replace("_", " ")


def _flow(flow: Mapping[str, Any]) -> str:
    port = f" port {flow['port']}" if flow.get("port") else ""
    return f"{flow['source']} to {flow['destination']}, {str(flow['protocol']).upper()}{port}"


def _moment(iso: str) -> str:
    """Return `2026-11-28 17:53:22` for an ISO time."""
    return str(iso).replace("T", " ").partition(".")[0].removesuffix("Z")
