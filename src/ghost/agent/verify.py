"""Whether the records of a session still say what they said: hash chains, saved heads, and every citation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ghost.agent.evidence import Evidence
from ghost.agent.session import Session, SessionPaths
from ghost.errors import RecordError
from ghost.records import read_json, verify


@dataclass(frozen=True)
class Check:
    """One thing that was checked; `problems` is empty where it holds."""

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
            () if checksum_holds else ("its checksum does not match: it was changed from outside",),
        )
    ]
    for name, title, path in (
        ("shell", "shell audit", paths.shell_audit),
        ("tasks", "task registry", paths.tasks),
        ("turns", "turns", paths.turns),
    ):
        result = verify(path, session.head(name))
        detail = ", ".join([f"{result.head.count} records", *result.notes])
        checks.append(Check(title, detail, tuple(result.errors)))
    if session.rca_report_path is not None:
        checks.append(_citations(paths))
    return checks


def _citations(paths: SessionPaths) -> Check:
    try:
        report = read_json(paths.report_json)
        groups = _cited_groups(report)
    except (FileNotFoundError, RecordError, AttributeError, KeyError, TypeError) as error:
        return Check("report", paths.report_json.name, (f"cannot be read: {error}",))
    evidence = Evidence(paths.shell_audit)
    problems = [f"{where}: {p}" for where, ids in groups for p in evidence.problems(ids)]
    cited = {audit_id for _, ids in groups for audit_id in ids}
    return Check("report", f"{len(groups)} cited statements, {len(cited)} records", tuple(problems))


def _cited_groups(report: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What the report rests on. What it prints as unsupported or not verified rests on nothing."""
    groups = [("summary", report["summary"]["audit_ids"])] if report["summary"]["supported"] else []
    groups += [(f"finding {n}", s["audit_ids"]) for n, s in enumerate(report["statements"], 1) if s["supported"]]
    groups += [
        (f"coverage of {c['layer']}", c["audit_ids"]) for c in report["coverage"] if c["status"] != "not_verified"
    ]
    groups += [(f"hypothesis {h['id']}", h["audit_ids"]) for h in report["hypotheses"] if h["audit_ids"]]
    return groups
