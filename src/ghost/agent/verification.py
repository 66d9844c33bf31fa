"""Integrity checks of a session's records: hash chains, saved heads, and every citation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ghost.agent.audit_evidence import Evidence
from ghost.agent.completion import LEVELS, bounded_confidence, classified_actions, proof_of
from ghost.agent.facts import proofs_of
from ghost.agent.fix_log import fix_log_problems
from ghost.agent.rca_report import file_sha256
from ghost.agent.report_path import differences, paths_of
from ghost.agent.session import Session, SessionPaths
from ghost.agent.watches import WATCH, result_problems
from ghost.errors import RecordError
from ghost.records import Head, head_beside, read_json, read_lines, read_valid_records, verify
from ghost.shell import FORBIDDEN
from ghost.text import map_text, plural


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
    checks += _approvals(paths, session.head("approvals"))
    repeated = Evidence(paths.shell_audit).repeated
    if repeated:
        checks.append(
            Check("audit ids", "each once", tuple(f"{i} occurs more than once in the audit" for i in repeated))
        )
    checks += [*_whole_outputs(paths), *_earlier_records(session, paths), *_fixes(paths)]
    if session.integrity_warning:
        checks.append(Check("history", "of the session", (session.integrity_warning,)))
    if session.rca_report_path is not None:
        checks += [_report_files(session, paths), *_report_claims(session, paths)]
    return checks


def verify_commands(paths: SessionPaths) -> list[Check]:
    """Check commands without a session file: single ones, those of a connection of `ghost mcp`, or those of a session
    whose file is lost.

    The head beside each file holds the expected length of its chain.
    """
    checks = []
    if paths.calls.exists():
        calls = verify(paths.calls, head_beside(paths.calls))
        detail = ", ".join([plural(calls.head.count, "record"), *calls.notes])
        checks.append(Check("calls", detail, tuple(calls.errors)))
    if paths.shell_audit.exists() or not checks:
        result = verify(paths.shell_audit, head_beside(paths.shell_audit))
        errors = () if paths.intent.exists() and result.head.count == 0 else tuple(result.errors)
        checks.append(Check("shell audit", ", ".join([plural(result.head.count, "record"), *result.notes]), errors))
    checks += _approvals(paths, head_beside(paths.approvals))
    checks += _whole_outputs(paths)
    if paths.intent.exists():
        cut_off = "a command was started and its end is not recorded: it was interrupted or is still running"
        checks.append(Check("intent", paths.intent.name, (cut_off,)))
    if paths.session_id.startswith(WATCH):
        stated, problems = result_problems(paths)
        checks.append(Check("watch result", stated, tuple(problems)))
    checks += _fixes(paths)
    if paths.turns.exists():
        checks.insert(0, Check("session file", "of an investigation", ("it is missing or damaged",)))
    return checks


def _fixes(paths: SessionPaths) -> list[Check]:
    """Check what the log of fixes holds of a session."""
    found = fix_log_problems(paths)
    return [] if found is None else [Check("fixes", found[0], tuple(found[1]))]


def verify_head(paths: SessionPaths, given: str) -> Check:
    """Check that the audit holds the record of a head that somebody kept elsewhere: COUNT:HASH or the last HASH."""
    audit = paths.shell_audit
    form = re.fullmatch(r"(?:([0-9]{1,9}):)?([0-9a-f]{64})", given.strip().lower())
    if form is None:
        return Check(
            "given head", "not read", (f"{given[:80]!r} is no head; write COUNT:HASH as `shell run` printed it.",)
        )
    count = int(form[1]) if form[1] else sum(1 for _ in read_lines(audit))
    result = verify(audit, Head(count, form[2]))
    follow = f", {plural(result.head.count - count, 'record')} came later" if result.head.count > count else ""
    detail = f"{plural(count, 'record')} with the hash {form[2]}{follow}"
    return Check("given head", detail, (*result.errors, *(() if count else ("a head of no record proves nothing.",))))


_APPROVING: Final = ("approve", "modify")


def _approvals(paths: SessionPaths, head: Head | None) -> list[Check]:
    """Check the file of approvals, and that each command that asked ran under one that covers it."""
    records = [record for record in Evidence(paths.shell_audit).values() if "approval_id" in record]
    runs = [r for r in records if r.get("argv_sha256") is not None or r.get("action") == "user_approved"]
    if not (paths.approvals.exists() or runs or (head is not None and head.count)):
        return []
    result = verify(paths.approvals, head)
    problems = list(result.errors)
    approved = {a.get("id"): a for a in read_valid_records(paths.approvals)[0] if a.get("answer") in _APPROVING}
    left = {name: Counter(approval.get("argv_sha256") or ()) for name, approval in approved.items()}
    for run in runs:
        name, argv = run["approval_id"], run.get("argv_sha256")
        by_form = name in approved and approved[name].get("form") is not None
        if not by_form and left.get(name, Counter())[argv] < 1:
            problems.append(f"{run['audit_id']} ran, and no approval on record covers it")
        elif not by_form and approved[name].get("kind") != "session":
            left[name][argv] -= 1
    return [Check("approvals", ", ".join([plural(result.head.count, "record"), *result.notes]), tuple(problems))]


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


def _earlier_records(session: Session, paths: SessionPaths) -> Iterator[Check]:
    """Check the records of the earlier session that stand for reads of this one: still the same, and whole."""
    told = session.earlier_records
    if told is None and not paths.earlier_records.exists():
        return
    try:
        same = read_json(paths.earlier_records) == told
    except (FileNotFoundError, RecordError):
        same = False
    problems = () if same else (f"{paths.earlier_records.name} is not what the session file says",)
    if told is None:
        yield Check("earlier records", "of another session", problems)
        return
    earlier = SessionPaths(paths.audit_dir, str(told["session_id"]))
    result = verify(earlier.shell_audit, Head.from_dict(told["head"]))
    outputs = (problem for check in _whole_outputs(earlier) for problem in check.problems)
    detail = f"{plural(result.head.count, 'record')} of {earlier.session_id}"
    yield Check("earlier records", detail, (*problems, *result.errors, *outputs))


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


def _report_claims(session: Session, paths: SessionPaths) -> list[Check]:
    """Check that every audit id cited in the report is a usable record, and that the records say what it says."""
    evidence = Evidence(paths.shell_audit)
    try:
        report = read_json(paths.report_json)
        groups = _cited_groups(report)
        wrong = tuple(_wrong_claims(map_text(report, evidence.restored), session, evidence))
    except (FileNotFoundError, RecordError, AttributeError, KeyError, TypeError, ValueError) as error:
        return [Check("citations", paths.report_json.name, (f"cannot be read: {error}",))]
    problems = tuple(f"{where}: {p}" for where, ids in groups for p in evidence.problems(ids))
    how = "not compared: private mode, and the map of its placeholders is gone" if evidence.is_masked else None
    cited = {audit_id for _, ids in groups for audit_id in ids}
    compared = plural(len(report["statements"]) + len(report.get("causes") or []), "claim")
    return [
        Check("citations", f"{plural(len(groups), 'cited statement')}, {plural(len(cited), 'record')}", problems),
        Check("claims", how or f"{compared} compared with what the records say", () if how else wrong),
    ]


def _wrong_claims(report: dict[str, Any], session: Session, evidence: Evidence) -> Iterator[str]:
    """Yield what a report says and its records do not: nothing in it is trusted but the claims themselves."""
    proofs = proofs_of(evidence, session.session_id, session.meant)
    summary = report["summary"]
    told = [("summary", proofs.text_problems(summary["text"]) if summary["supported"] else [])]
    told += [
        (f"finding {n}", proofs.statement_problems(s)) for n, s in enumerate(report["statements"], 1) if s["supported"]
    ]
    told += [
        (f"cause {n}", list(proof_of(cause, session, evidence).problems))
        for n, cause in enumerate(report.get("causes") or [], 1)
        if cause["supported"]
    ]
    told += [
        (f"coverage of {row['layer']}", proofs.coverage_problems(row))
        for row in report["coverage"]
        if row["status"] != "not_verified"
    ]
    yield from (f"{where}: {problem}" for where, problems in told for problem in problems)
    if "path" in report:
        traffic = map_text((session.completion or {}).get("traffic") or [], evidence.restored)
        yield from (f"path {each}" for each in differences(report["path"], paths_of(report, traffic, proofs)))
    classes = {row["text"]: row["classification"] for row in classified_actions(report["recommended_actions"])}
    printed = {row["text"]: row["classification"] for row in report.get("actions") or []}
    yield from (f"actions: {text} is {of}" for text, of in classes.items() if printed.get(text, of) != of)
    yield from (f"actions: {text} is {FORBIDDEN}" for text, of in classes.items() if of == FORBIDDEN)
    if session.completion is not None and "confidence_bounds" in session.completion:
        allowed, _ = bounded_confidence(session.completion, session, evidence)
        if LEVELS.index(report["confidence"]) > LEVELS.index(allowed):
            yield f"confidence: {report['confidence']} is more than the records allow ({allowed})"


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
