"""The root-cause report, written from the audit files and the session, never from the conversation.

Seven phases: read the shell audit, read the task registry, find the artefacts, read their executive summaries (through
the shell, so the engineer decides), build, write, record the path in the session. Every statement carries audit ids;
one whose evidence is missing, denied or failed is printed as unsupported. Raw output is not repeated.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ghost.agent.audit_evidence import NEVER_RAN, Evidence, tag_of
from ghost.agent.captured_findings import findings_of
from ghost.agent.completion import classified_actions, judged_causes, settled_outcome, summary_ids
from ghost.agent.facts import UNCITED, Proofs, proofs_of
from ghost.agent.report_path import paths_of
from ghost.agent.report_timeline import timeline_of
from ghost.agent.session import Session, SessionPaths
from ghost.errors import RecordError
from ghost.net import security_rules_in
from ghost.patterns import lazy
from ghost.records import isoformat, read_valid_records, write_json, write_text
from ghost.report import LAYERS, Files, as_markdown, content_of, page_of
from ghost.shell import FORBIDDEN, READ_ONLY
from ghost.text import map_text, plural

if TYPE_CHECKING:
    from ghost.agent.tools import Shell

AZURE_API: Final = 2
"""The tier of what Azure says about its configuration."""
_SUMMARY_SECTION = lazy(
    r"(?ms)^## (?:Executive Summary|The two ends of one path) *$(?P<section>.*?)(?=^## |^\[truncated: |\Z)"
)


@dataclass(frozen=True)
class Statement:
    text: str
    audit_ids: tuple[str, ...]
    problems: tuple[str, ...]
    facts: tuple[dict[str, str], ...] = ()

    @property
    def supported(self) -> bool:
        return bool(self.audit_ids) and not self.problems

    def as_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "audit_ids": list(self.audit_ids),
            "supported": self.supported,
            "problems": list(self.problems),
            **({"facts": list(self.facts)} if self.facts else {}),
        }


@dataclass(frozen=True)
class Capture:
    """One capture task as cited in the report; `summary` is None if reading it was denied or failed."""

    task: dict[str, Any]
    summary: str | None
    summary_audit_id: str | None
    wanted: bool


def write_report(
    session: Session, paths: SessionPaths, shell: Shell, now: datetime, hide: Callable[[str], str] = str
) -> tuple[dict[str, Any], str]:
    """Write `ghost_rca_{sid}.md` and `.json`, set the session's `rca_report_path`, return the JSON content and the
    Markdown. `hide` puts the placeholders of private mode in.

    If the files cannot be written the path stays None and the caller prints the text.
    """
    for reads, task_id in {tuple(_summary_reads(task)): id for id, task in latest_tasks(paths.tasks).items()}.items():
        _read_summary(reads, task_id, shell)
    report = map_text(report_of_records(session, paths, now), hide, keys=False)
    markdown = as_markdown(content_of(report, files_of(paths)))
    try:
        write_json(paths.report_json, report)
        write_text(paths.report, markdown)
        session.rca_report_path = str(paths.report)
        session.rca_sha256 = {p.name: file_sha256(p) for p in (paths.report, paths.report_json)}
    except RecordError:
        session.rca_report_path = None
    return report, markdown


def report_of_records(session: Session, paths: SessionPaths, now: datetime) -> dict[str, Any]:
    """Return the JSON content of a report, with real values, from the records as they are now; runs nothing."""
    now = datetime.fromisoformat(isoformat(now))  # as the report holds it, so that it can be written again
    evidence = Evidence(paths.shell_audit)
    captures = [_capture(task, evidence) for task in latest_tasks(paths.tasks).values()]
    return build_report(session, evidence, captures, now)


def files_of(paths: SessionPaths) -> Files:
    return Files(str(paths.shell_audit), str(paths.tasks), str(paths.audit_dir.parent))


def file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def latest_tasks(registry: Path) -> dict[str, dict[str, Any]]:
    """Return the last record of each task."""
    records, _ = read_valid_records(registry)
    return {str(record["task_id"]): record for record in records if record.get("task_id")}


def build_report(session: Session, evidence: Evidence, captures: list[Capture], now: datetime) -> dict[str, Any]:
    completion = map_text(session.completion, evidence.restored) or {
        "confidence": "low",
        "root_cause_summary": "No conclusion was reached.",
    }
    proofs = proofs_of(evidence, session.session_id, session.meant)
    summary_text = str(completion.get("root_cause_summary", ""))
    summary = _statement(summary_text, summary_ids(completion, session), evidence, proofs.text_problems(summary_text))
    statements = [
        _statement(s["text"], s.get("audit_ids", []), evidence, proofs.statement_problems(s), s.get("facts", []))
        for s in completion.get("statements") or []
    ]
    actions = [
        {**{name: action[name] for name in ("text", "command", "classification")}, "changes": action["why"]}
        for action in classified_actions(completion.get("recommended_actions") or [])
        if action["classification"] != FORBIDDEN
    ]
    cited = any(statement.supported for statement in (summary, *statements))
    report: dict[str, Any] = {
        "session_id": session.session_id,
        "generated": isoformat(now),
        "symptom": session.symptom or "",
        "brain": ", then ".join([*session.earlier_models, session.model]),
        "network": session.network,
        "outcome": settled_outcome(completion, session, evidence),
        "confidence": completion.get("confidence", "low") if cited else "low",
        "causes": judged_causes(completion, session, evidence),
        "summary": summary.as_dict(),
        "statements": [statement.as_dict() for statement in statements],
        "coverage": _coverage(completion.get("coverage") or [], proofs, evidence),
        "hypotheses": [h.model_dump(mode="json") for h in session.hypothesis_log],
        "conflicts": [c.model_dump(mode="json") for c in session.evidence_conflicts],
        "recommended_actions": [action["text"] for action in actions],
        "actions": actions,
        "evidence": [_evidence_row(record) for record in evidence.values()],
        "captures": [_capture_row(capture) for capture in captures],
        "advisories": _advisories(session, evidence, captures),
    }
    report["path"] = paths_of(report, completion.get("traffic") or [], proofs)
    report["captured_findings"] = findings_of(report, evidence)
    report["timeline"] = timeline_of(report, session, evidence, proofs, now)
    return report


def _statement(
    words: str, audit_ids: list[str], evidence: Evidence, found: list[str], facts: Sequence[dict[str, str]] = ()
) -> Statement:
    unique = tuple(dict.fromkeys(audit_ids))
    words += evidence.dated(unique)
    problems = dict.fromkeys([*evidence.problems(unique), *(each for each in found if each != UNCITED)])
    return Statement(words, unique, tuple(problems), tuple(facts))


def _coverage(stated: list[dict[str, Any]], proofs: Proofs, evidence: Evidence) -> list[dict[str, Any]]:
    """Return one row for each layer. A layer that is cleared or at fault without a usable record is not verified."""
    by_layer = {str(row.get("layer")): row for row in stated}
    rows = []
    for layer in [*LAYERS, *(name for name in by_layer if name not in LAYERS)]:
        row = by_layer.get(layer, {"status": "not_verified", "audit_ids": [], "note": "not checked"})
        status, audit_ids = row["status"], list(row.get("audit_ids", []))
        note = f"{row.get('note', '')}{evidence.dated(audit_ids)}"
        if status != "not_verified" and proofs.coverage_problems(row):
            note = f"claimed {status} without usable evidence. {note}".strip()
            status = "not_verified"
        rows.append({"layer": layer, "status": status, "audit_ids": audit_ids, "note": note})
    return rows


def _evidence_row(record: dict[str, Any]) -> dict[str, Any]:
    tag = tag_of(record)
    return {
        "audit_id": record["audit_id"],
        "context": tag.context,
        "tier": tag.tier,
        "command": record.get("modified_command") or record.get("command"),
        "classification": record.get("classification"),
        "action": record.get("action"),
        "exit_code": record.get("exit_code"),
        "outcome": _outcome(record),
    }


def _outcome(record: dict[str, Any]) -> str:
    status = record.get("status")
    if status == "denied":
        reason = record.get("denial_reason")
        return f"denied: {reason}" if reason else "denied"
    if status == "error":
        return str(record.get("error") or "error").replace("_", " ")
    if record.get("exit_code") in NEVER_RAN:
        return "program not found"
    return "ran" if record.get("exit_code") == 0 else f"ran, exit {record.get('exit_code')}"


def _read_summary(reads: Sequence[str], task_id: str, shell: Shell) -> None:
    """Read a capture's summary through the shell, so that it is on record; its whole report where it cannot be read."""
    for command in reads:
        why = f"Reading the executive summary of capture {task_id} for the report."
        response = shell.execute({"command": command, "reasoning": why})
        if response.get("status") == "denied" or (response.get("exit_code") == 0 and response.get("output")):
            return


def _summary_reads(task: dict[str, Any]) -> list[str]:
    """Return the commands that read a capture's summary, the second where the first finds none; two ends share them."""
    report_path = str(task.get("report_path") or "")
    if task.get("state") not in {"COMPLETED", "CLEANING_UP", "DONE"} or not report_path:
        return []
    summary_path = report_path.replace("_forensic_report.md", "_executive_summary.md")
    return [
        shlex.join(["cat", path]) for path in (str(task.get("executive_summary_path") or summary_path), report_path)
    ]


def _capture(task: dict[str, Any], evidence: Evidence) -> Capture:
    """Return a capture with the summary that is on record."""
    reads = _summary_reads(task)
    read = [(i, command) for i, r in evidence.items() if (command := evidence.restored(str(r["command"]))) in reads]
    if not read:
        return Capture(task, None, None, wanted=bool(reads))
    audit_id, command = read[-1]
    record = evidence[audit_id]
    if record.get("status") != "completed" or record.get("exit_code") != 0:
        return Capture(task, None, audit_id, wanted=True)
    text = evidence.real_output(audit_id) or ""
    return Capture(task, text if command == reads[0] else _summary_section(text), audit_id, wanted=True)


def _summary_section(report: str) -> str | None:
    """Return the text below `## Executive Summary`, up to the next such heading or the cut; None without it."""
    found = _SUMMARY_SECTION.search(report)
    return found["section"].strip() or None if found else None


def _capture_row(capture: Capture) -> dict[str, Any]:
    keys = ("task_id", "target", "state", "outcome", "cleanup_status", "report_path", "local_pcap_path")
    return {
        **{key: capture.task.get(key) for key in keys},
        "local_pcap_exists": Path(str(capture.task.get("local_pcap_path") or "-")).is_file(),
        "page_path": str(page) if (page := page_of(str(capture.task.get("report_path") or "-"))).is_file() else None,
        "audit_ids": list(capture.task.get("shell_audit_ids") or []),
        "executive_summary": capture.summary,
        "executive_summary_audit_id": capture.summary_audit_id,
        "executive_summary_available": capture.summary is not None or not capture.wanted,
    }


def _advisories(session: Session, evidence: Evidence, captures: list[Capture]) -> list[str]:
    """Return notes for the reader; heuristics, not conclusions."""
    notes = []
    if any(map(_is_failed_probe, evidence.values())) and any(
        _holds_allow_rule(evidence, audit_id) for audit_id in evidence
    ):
        notes.append(
            "A local probe failed while an NSG rule allows traffic. The probe shows the path from the engineer's "
            "machine, not the Azure data path; only a capture shows whether that path is blocked."
        )
    notes += [
        f"The forensic report of {c.task['task_id']} was not read (cat denied or failed); it is at "
        f"{c.task.get('report_path')} for offline review."
        for c in captures
        if c.wanted and c.summary is None
    ]
    for capture in captures:
        remaining = [
            str(step["command"])
            for step in capture.task.get("cleanup_plan") or []
            if not step.get("executed") and not step.get("not_needed")
        ]
        if remaining and capture.task.get("cleanup_status") in {"partial", "pending"}:
            notes.append(f"Not removed yet (it may incur charges); to remove it: {'; '.join(remaining)}")
    if evidence.earlier is not None:
        notes.append(
            f"The fault was read anew. What is marked (as of ...) rests on records of {evidence.earlier.session_id}: "
            "another fault that came there since is not seen. To read all now: ghost investigate --fresh with the same "
            "symptom."
        )
    if bounds := (session.completion or {}).get("confidence_bounds"):
        notes.append(f"The confidence was lowered: {'; '.join(bounds)}.")
    if session.read_only:
        refused = sum(record.get("error") == READ_ONLY for record in evidence.values())
        what = f"{plural(refused, 'command')} that would have needed an approval did not run" if refused else ""
        notes.append(f"Read-only: {what or 'nothing that needs an approval ran, and no capture was taken'}.")
    if session.integrity_warning:
        notes.append(f"Integrity: {session.integrity_warning}")
    if session.resumed_from:
        notes.append(f"This session was started in place of {session.resumed_from}, whose records were damaged.")
    if evidence.broken_lines:
        notes.append(f"Lines of the audit that could not be read: {', '.join(map(str, evidence.broken_lines))}.")
    notes += [
        f"{name} is left from an earlier session: its clean-up was declined or not completed."
        for name in session.manual_cleanup_pending
    ]
    return notes


def _is_failed_probe(record: dict[str, Any]) -> bool:
    command = str(record.get("modified_command") or record.get("command") or "")
    ended = record.get("status") == "completed" and record.get("exit_code") not in {0, None, *NEVER_RAN}
    return ended and command.startswith(("ping ", "traceroute "))


def _holds_allow_rule(evidence: Evidence, audit_id: str) -> bool:
    """Return whether a read of Azure returned a security rule that allows; output that is cut or no JSON has none."""
    record = evidence[audit_id]
    if tag_of(record).tier != AZURE_API or record.get("exit_code") != 0:
        return False
    try:
        rules = security_rules_in(json.loads(evidence.whole_output(audit_id)))
        return any(rule.access == "Allow" for rule in rules)
    except (RecordError, ValueError, RecursionError):
        return False
