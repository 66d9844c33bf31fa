"""Earlier sessions whose records may stand for reads of this one: found by memory, used only if everything verifies."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ghost.agent.audit_evidence import Evidence, ages
from ghost.agent.network_records import reads_since_change
from ghost.agent.session import Session, SessionPaths, load_session
from ghost.agent.turns import recorded_result
from ghost.agent.verification import verify_session
from ghost.brain import EarlierSession
from ghost.errors import RecordError, SessionError
from ghost.records import Head, read_json, valid_session_id, verify


def earlier_session(audit_dir: Path, session_id: str, network: str, now: datetime) -> EarlierSession | None:
    """Return a finished session that found a cause in this network, with its reads; None if it cannot be relied on.

    In place of a session that itself went on with the records of another, that one is returned.
    """
    try:
        session, paths = _verified(audit_dir, session_id)
        if session.earlier_records is not None:
            session, paths = _verified(audit_dir, str(session.earlier_records["session_id"]))
        report, evidence = read_json(paths.report_json), Evidence(paths.shell_audit)
    except (RecordError, SessionError, OSError):
        return None
    causes = tuple(cause for cause in report.get("causes") or () if cause["supported"])
    age = now - datetime.fromisoformat(report["generated"])
    if session.network != network or evidence.is_masked or not causes:
        return None
    if not timedelta(0) <= age <= timedelta(days=ages().usable_days):
        return None
    wire = next(row for row in report["coverage"] if row["layer"] == "wire")
    return EarlierSession(session.session_id, str(report["generated"]), causes, wire, _reads(evidence))


def relied_on(audit_dir: Path, session_id: str, network: str) -> Head:
    """Return up to where the records of a session hold, before they stand for reads of another.

    Raises `RecordError`, `SessionError` or `OSError` where they do not hold, or are of another network.
    """
    session, paths = _verified(audit_dir, session_id)
    if session.network != network:
        raise RecordError(f"{session_id} is of {session.network}, not of {network}")
    return verify(paths.shell_audit, session.head("shell")).head


def _verified(audit_dir: Path, session_id: str) -> tuple[Session, SessionPaths]:
    """Return a finished session that is no longer the current one. Raises `RecordError` if its records do not hold."""
    if not valid_session_id(session_id):
        raise RecordError(f"{session_id[:80]!r} is no session")
    paths = SessionPaths(audit_dir, session_id)
    session, intact = load_session(paths.archived_session)
    if session.rca_report_path is None or paths.anonymization_map.exists():
        raise RecordError(f"{session_id} is private or not finished")
    if broken := [check.name for check in verify_session(session, paths, checksum_holds=intact) if not check.ok]:
        raise RecordError(f"the records of {session_id} do not hold: {', '.join(broken)}")
    return session, paths


def _reads(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Return what reads told of the network, by command."""
    outputs = {command: (each, evidence.real_output(each)) for command, each in reads_since_change(evidence).items()}
    return {
        command: {**recorded_result(evidence[audit_id]), "real_output": whole}
        for command, (audit_id, whole) in outputs.items()
        if whole is not None
    }
