"""The memory of a finished investigation, taken from its report so that it cites the same records.

A statement that the report could not support is not remembered as a cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ghost.mind import Finding, Finished, ResourceChange, Step


def finished(report: Mapping[str, Any]) -> Finished:
    """Return the content of `ghost_rca_{sid}.json` as the mind stores it."""
    summary = report["summary"]
    confirmed = [hypothesis for hypothesis in report["hypotheses"] if hypothesis["state"] == "CONFIRMED"]
    found = any(cause["supported"] for cause in report["causes"]) if "causes" in report else bool(confirmed)
    supported = found and bool(confirmed) and bool(summary["supported"])
    findings = tuple(
        Finding(row["layer"], row["status"] == "at_fault", row["note"], tuple(row["audit_ids"]))
        for row in report["coverage"]
        if row["status"] in ("at_fault", "cleared")
    )
    cited = {*summary["audit_ids"], *(i for finding in findings if finding.at_fault for i in finding.audit_ids)}
    return Finished(
        session_id=report["session_id"],
        ended_at=datetime.fromisoformat(report["generated"]).timestamp(),
        symptom=report["symptom"],
        network=report["network"],
        confidence=report["confidence"],
        conclusion=summary["text"],
        cause=summary["text"] if supported else "",
        audit_ids=tuple(summary["audit_ids"]),
        findings=findings,
        route=tuple(
            Step(str(row["command"]), row["audit_id"]) for row in report["evidence"] if row["audit_id"] in cited
        ),
        actions=tuple(report["recommended_actions"]),
        changes=tuple(
            ResourceChange(datetime.fromisoformat(row["time"]).timestamp(), row["what"], ", ".join(row["audit_ids"]))
            for row in report.get("timeline") or ()
            if row["kind"] == "change"
        ),
    )
