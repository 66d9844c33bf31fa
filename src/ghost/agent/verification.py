"""Integrity checks of a session's records: hash chains, saved heads, and every citation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ghost.agent.audit_evidence import Evidence
from ghost.agent.rca_report import file_sha256
from ghost.agent.session import Session, SessionPaths
from ghost.errors import RecordError
from ghost.records import Head, read_json, verify
from ghost.text import plural


@dataclass(frozen=True)
class Check:
    """One check; `problems` is empty if it passed."""

    name: str
    detail: str
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def verify_session(session: Session, paths: SessionPaths, *, checksum_holds: bool) -> list[Check]:
    checks = [
        Check(
            "session file",
            "checksum",
            () if checksum_holds else ("its checksum does not match: the file was modified",),
        )
    ]
    for name, title, path in (
        ("shell", "shell audit", paths.shell_audit),
        ("tasks", "task registry", paths.tasks),
        ("turns", "turns", paths.turns),
    ):
        result = verify(path, session.head(name))
        detail = ", ".join([plural(result.head.count, "record"), *result.notes])
        later = result.notes if session.rca_report_path is not None and result.head.count else []
        checks.append(Check(title, detail, (*result.errors, *later)))
    repeated = Evidence(paths.shell_audit).repeated
    if repeated:
        checks.append(
            Check("audit ids", "each once", tuple(f"{i} occurs more than once in the audit" for i in repeated))
        )
    checks += _whole_outputs(paths)
    if session.integrity_warning:
        checks.append(Check("history", "of the session", (session.integrity_warning,)))
    if session.rca_report_path is not None:
        checks += [_report_files(session, paths), _citations(paths)]
    return checks


def verify_commands(paths: SessionPaths) -> list[Check]:
    """Check commands without a session file: single ones, or those of a session whose file is lost.

    The head beside the audit file holds the expected length of the chain.
    """
    beside = paths.shell_audit.with_name(f"{paths.shell_audit.name}.head")
    try:
        head = Head.from_dict(read_json(beside))
    except (FileNotFoundError, RecordError):
        head = None
    result = verify(paths.shell_audit, head)
    errors = () if paths.intent.exists() and result.head.count == 0 else tuple(result.errors)
    checks = [Check("shell audit", ", ".join([plural(result.head.count, "record"), *result.notes]), errors)]
    checks += _whole_outputs(paths)
    if paths.intent.exists():
        cut_off = "a command was started and its end is not recorded: it was interrupted or is still running"
        checks.append(Check("intent", paths.intent.name, (cut_off,)))
    if paths.turns.exists():
        checks.insert(0, Check("session file", "of an investigation", ("it is missing or damaged",)))
    return checks


def _whole_outputs(paths: SessionPaths) -> list[Check]:
    """Check the files of whole outputs. One without a record counts for nothing; it is named, and fails no check."""
    evidence = Evidence(paths.shell_audit)
    cut = [audit_id for audit_id, record in evidence.items() if record.get("output_truncated")]
    kept = [audit_id for audit_id in cut if evidence[audit_id].get("output_sha256")]
    of_session = re.compile(rf"\.?{re.escape(paths.session_id)}_\d{{3,}}\.txt.*")
    found = sorted(file.name for file in paths.outputs.iterdir()) if paths.outputs.is_dir() else []
    without_record = [name for name in found if of_session.fullmatch(name) and name.removesuffix(".txt") not in kept]
    problems = []
    for audit_id in kept:
        try:
            evidence.whole_output(audit_id)
        except RecordError as error:
            problems.append(str(error))
    notes = [plural(len(kept), "file")]
    notes += [f"{plural(len(cut) - len(kept), 'cut output')} without one"] if len(cut) > len(kept) else []
    notes += [f"of no record: {', '.join(without_record)}"] if without_record else []
    return [Check("whole outputs", "; ".join(notes), tuple(problems))] if cut or without_record else []


def _report_files(session: Session, paths: SessionPaths) -> Check:
    """Check that the report on disk is the one that was written."""
    problems = []
    for path in (paths.report, paths.report_json):
        try:
            if file_sha256(path) != session.rca_sha256.get(path.name):
                problems.append(f"{path.name} was modified after it was written")
        except OSError as error:
            problems.append(f"{path.name} cannot be read: {error.strerror}")
    return Check("report files", "SHA-256 of Markdown and JSON", tuple(problems))


def _citations(paths: SessionPaths) -> Check:
    """Check that every audit id cited in the report is a usable record."""
    try:
        report = read_json(paths.report_json)
        groups = _cited_groups(report)
    except (FileNotFoundError, RecordError, AttributeError, KeyError, TypeError) as error:
        return Check("citations", paths.report_json.name, (f"cannot be read: {error}",))
    evidence = Evidence(paths.shell_audit)
    problems = [f"{where}: {p}" for where, ids in groups for p in evidence.problems(ids)]
    cited = {audit_id for _, ids in groups for audit_id in ids}
    return Check(
        "citations", f"{plural(len(groups), 'cited statement')}, {plural(len(cited), 'record')}", tuple(problems)
    )


def _cited_groups(report: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the audit ids of each supported statement of the report."""
    groups = [("summary", report["summary"]["audit_ids"])] if report["summary"]["supported"] else []
    groups += [(f"finding {n}", s["audit_ids"]) for n, s in enumerate(report["statements"], 1) if s["supported"]]
    groups += [(f"cause {n}", c["audit_ids"]) for n, c in enumerate(report.get("causes") or [], 1) if c["supported"]]
    groups += [
        (f"coverage of {c['layer']}", c["audit_ids"]) for c in report["coverage"] if c["status"] != "not_verified"
    ]
    groups += [(f"hypothesis {h['id']}", h["audit_ids"]) for h in report["hypotheses"] if h["audit_ids"]]
    return groups
