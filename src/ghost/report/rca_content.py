"""What a root-cause report says, in the order it is read, as blocks that each format writes in its own way.

First what a person needs: the cause, what to do, how sure and why, what was not verified, the path, the timeline and
the evidence, with short record numbers (`#017`). Then the annex.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ghost.report.rca_annex import annex_of
from ghost.report.rca_blocks import (
    Block,
    Code,
    Command,
    Content,
    Files,
    Heading,
    Items,
    Paragraph,
    PathPicture,
    Span,
    Spans,
    Strong,
    Table,
)
from ghost.report.rca_wording import cited, flow_of, layer_of, moment, numbers, quoted, short, short_name, words

SIMULATED: Final = "(SIMULATED)"
"""Behind the name of a network that is the session's own lab."""
_OUTCOMES: Final = {"passes": "configuration allows it", "unknown": "not known to its end"}
_VERDICTS: Final = {"pass": "✓", "rewrite": "⇄", "unknown": "?"}


def content_of(report: Mapping[str, Any], files: Files) -> Content:
    """Return what a report says. `report`: the JSON of `ghost_rca_{sid}.json`."""
    return Content(
        f"Root Cause Analysis — {report['session_id']}", tuple(_main(report)), tuple(annex_of(report, files))
    )


def _main(report: Mapping[str, Any]) -> Iterator[Block]:
    yield Paragraph(
        (
            Strong(f"{words(report['outcome']).capitalize()}, {report['confidence']} confidence."),
            f" {report['network']}, brain {report['brain']}, written {moment(report['generated'])}.",
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
        yield Items(tuple((Strong(layer_of(row)), f": {short(report, row['note'])}") for row in open_layers))
    yield Heading(2, "Path")
    for path in report.get("path") or []:
        yield PathPicture(path, _in_words(path))
    checked = [row for row in report["coverage"] if row["status"] != "not_verified"]
    if checked:
        absent = [row for row in checked if row["status"] == "cleared" and str(row["note"]).startswith("no ")]
        present = [_layer_row(report, row) for row in checked if row not in absent]
        yield Table(("Layer", "Verdict", "Why", "Records"), (*present, *_absent(report, absent)))
    else:
        yield Paragraph(("No layer was verified.",))
    if report.get("timeline"):
        yield Heading(2, "Timeline (UTC)")
        if SIMULATED in report["network"]:
            yield Paragraph(("On the clock of the simulated network, which runs faster than real time.",))
        rows = ((moment(row["time"]), row["what"], numbers(report, row["audit_ids"])) for row in report["timeline"])
        yield Table(("Time", "What", "Records"), tuple(((time,), (what,), (ids,)) for time, what, ids in rows))
    yield from _evidence(report)


def _causes(report: Mapping[str, Any]) -> Iterator[Block]:
    for cause in report["causes"]:
        told = " ".join(filter(None, (cause["rule"], cause["direction"])))
        sure = f", {cause['confidence']} confidence" if cause["supported"] else ""
        wrong = "" if cause["supported"] else f" [unsupported: {'; '.join(cause['problems'])}]"
        flow = f" Traffic: {flow_of(cause['flow'])}." if cause["flow"] else ""
        yield Paragraph(
            (
                Strong(words(cause["kind"]).capitalize()),
                f"{place_of(cause)}{short_name(cause['resource'])}",
                *((": ", Code(told)) if told else ()),
                f"{sure}{wrong}.{flow} {numbers(report, cause['audit_ids'])}",
            )
        )
    yield Paragraph(cited(report, report["summary"], full=False))


def place_of(cause: Mapping[str, Any]) -> str:
    """Return how a cause stands to its resource: what a capture sees at a machine need not be the machine's fault."""
    return " seen at " if cause.get("layer") == "wire" else " at "


def _actions(report: Mapping[str, Any]) -> Iterator[Block]:
    for action in report["actions"]:
        command = action["command"]
        if not command:
            yield Items(((short(report, action["text"]),),))
            continue
        lead, _, after = action["text"].partition(command)
        words = " ".join(filter(None, (lead.strip(" `“:"), after.strip("` .”"))))
        if words:
            yield Items(((short(report, words),),))
        yield Command(command)
        yield Paragraph((Strong(action["classification"]), f": {action['changes']}" if action.get("changes") else ""))


def _next_of_captures(report: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what the capture engine would run next, on the machines that it names; Ghost runs none of it."""
    if shown := next_commands(report):
        yield Paragraph(("The capture engine's next commands, on the machines themselves; Ghost does not run them:",))
        yield Items(tuple((f"on {run_on}: ", Code(command)) for run_on, command in shown))


def next_commands(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the next commands of the captures' findings, each with where it is to be run."""
    steps = [step for finding in report.get("captured_findings") or [] for step in finding["next"]]
    return list(dict.fromkeys((step["run_on"], step["command"]) for step in steps))


def _reasons(report: Mapping[str, Any]) -> Iterator[Spans]:
    for cause in report["causes"]:
        if cause["checked"]:
            yield (Strong(words(cause["kind"])), f": {short(report, cause['checked'])}.")
        if cause.get("limit"):
            yield (f"Medium at most: high needs {short(report, cause['limit'])}.",)
    for hypothesis in report["hypotheses"]:
        state = "not settled" if hypothesis["state"] == "ACTIVE" else hypothesis["state"].lower()
        ids = numbers(report, hypothesis["audit_ids"])
        yield (Strong(f"{hypothesis['id']} {state}"), f": {short(report, hypothesis['description'])} {ids}")
    for conflict in report["conflicts"]:
        yield (
            Strong(f"Conflict in {conflict['hypothesis_id']}"),
            f": {conflict['description']} {numbers(report, conflict['conflicting_audit_ids'])}",
        )
    yield from ((short(report, note),) for note in report["advisories"])
    if not (report["causes"] or report["hypotheses"] or report["advisories"]):
        yield ("Nothing was tested.",)


def _layer_row(report: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[Spans, ...]:
    verdict: Span = Strong("✗ AT FAULT") if row["status"] == "at_fault" else "✓ cleared"
    note = "As stated under Cause." if _is_told(report, row["note"]) else short(report, row["note"])
    return (layer_of(row),), (verdict,), (note,), (numbers(report, row["audit_ids"]),)


def _absent(report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Spans, ...]]:
    """Yield one row for the layers of which the path has nothing."""
    if rows:
        ids = dict.fromkeys(audit_id for row in rows for audit_id in row["audit_ids"])
        notes = "; ".join(str(row["note"]) for row in rows)
        yield (", ".join(map(layer_of, rows)),), ("✓ cleared",), (notes,), (numbers(report, ids),)


def _evidence(report: Mapping[str, Any]) -> Iterator[Block]:
    shown = [_finding(report, finding) for finding in report.get("captured_findings") or []]
    read = [] if shown else [capture for capture in report["captures"] if capture["executive_summary"]]
    told = [s for s in report["statements"] if not (s["supported"] and _is_told(report, s["text"]))]
    if not (told or read or shown):
        return
    yield Heading(2, "Evidence")
    if shown:
        yield Items(tuple(shown))
    if told:
        yield Items(tuple(cited(report, statement, full=False) for statement in told), numbered=True)
    for capture in {each["executive_summary_audit_id"]: each for each in reversed(read)}.values():
        number = numbers(report, [capture["executive_summary_audit_id"]])
        yield Paragraph((Strong("What the capture engine says"), f" of {capture['task_id']} {number}:"))
        yield quoted(_verdict_of(capture["executive_summary"]))


def _finding(report: Mapping[str, Any], finding: Mapping[str, Any]) -> Spans:
    frames = ", ".join(map(str, finding["frames"]))
    times = [moment(each) for each in (finding["first_utc"], finding["last_utc"]) if each]
    when = f", {' to '.join(dict.fromkeys(times))} UTC" if times else ""
    cited = f"{f', frames {frames}' if frames else ''} {numbers(report, finding['audit_ids'])}"
    owner = f"; owner: {finding['owner']}, {finding['confidence']} confidence"
    seen = Strong(f"{finding['severity']} in the capture at {finding['seen_at']}")
    return seen, f": {finding['title']}{owner}{when}{cited}"


def _verdict_of(summary: str) -> str:
    """Return what a capture's summary says before it lists its traffic: the fault, its owner, the first step, when."""
    return summary.partition("\n## ")[0].strip()


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
        steps.append(f"{mark} {words(hop['kind'])} {hop['name']}{rule}")
    back = [hop for hop in path["hops"] if hop["leg"] == "return" and hop["fault"]]
    ends = f"; back: ✗ {back[0]['name']} ({back[0]['rule'] or back[0]['verdict']})" if back else ""
    outcome = _OUTCOMES.get(path["outcome"], path["outcome"])
    return f"{' → '.join(dict.fromkeys(steps))} → {path['destination_name']}: {outcome}{ends}"
