"""What captures show of a report's causes: the engine's findings with their frames, times and next commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ghost.agent.audit_evidence import CAPTURE, Evidence, tag_of
from ghost.agent.facts.recorded_facts import argv_in
from ghost.net import known_kinds, name_of
from ghost.text import one_line

MAX_FRAMES: Final = 10
MAX_COMMANDS: Final = 3
MAX_FINDINGS: Final = 6


def captures_read(evidence: Evidence) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of `--findings` of one capture, each with what it printed."""
    yield from ((audit_id, told) for audit_id, told in _printed(evidence) if isinstance(told.get("capture"), dict))


def _printed(evidence: Evidence) -> Iterator[tuple[str, dict[str, Any]]]:
    for audit_id, record in evidence.items():
        if tag_of(record) == CAPTURE and "--findings" in argv_in(record) and record.get("exit_code") == 0:
            try:
                told = json.loads(evidence.real_output(audit_id) or "")
            except (ValueError, RecursionError):
                continue
            if isinstance(told, dict):
                yield audit_id, told


def _found(report: Mapping[str, Any], evidence: Evidence) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each finding of captures, and each fault between two, with its record and where it is seen."""
    for audit_id, told in _printed(evidence):
        if isinstance(told.get("capture"), dict):
            where = place_of_capture(report, told)
        elif isinstance(told.get("two_ends"), dict):
            files = [word for word in argv_in(evidence[audit_id])[1:] if not word.startswith("--")][:2]
            ends = [place_of_capture(report, {"capture": {"file": file.rpartition("/")[2]}}) for file in files]
            where = " and ".join(f"{end} ({letter})" for end, letter in zip(ends, "AB", strict=False))
            told = {"findings": told["two_ends"].get("faults")}
        else:
            continue
        yield from ((audit_id, where, finding) for finding in cited_in(report, audit_id, told))


def place_of_capture(report: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """Return the machine of a capture, else its file. `report`: its captures."""
    file = str(told["capture"].get("file"))
    of_file = (each for each in report["captures"] if str(each.get("local_pcap_path")).rpartition("/")[2] == file)
    return one_line(next((name_of(str(each["target"])) for each in of_file), file))


def cited_in(report: Mapping[str, Any], audit_id: str, told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the findings of a record that the supported causes of a report are seen as."""
    cited = (cause for cause in report["causes"] if cause["supported"] and audit_id in cause["audit_ids"])
    kinds = {each for cause in cited for each in known_kinds()[cause["kind"]].seen_as.split()}
    found = told.get("findings") if isinstance(told.get("findings"), list) else []
    yield from (each for each in found or [] if isinstance(each, dict) and each.get("kind") in kinds)


def findings_of(report: Mapping[str, Any], evidence: Evidence) -> list[dict[str, Any]]:
    """Return the findings of captures that the causes rest on, for the report's JSON."""
    rows = []
    for audit_id, where, finding in _found(report, evidence):
        steps = [step for step in finding.get("remediation") or [] if isinstance(step, dict)]
        rows.append(
            {
                "title": one_line(str(finding.get("title")), 200),
                "seen_at": where,
                "severity": str(finding.get("severity")),
                "owner": str(finding.get("blame")),
                "confidence": str(finding.get("confidence")),
                "frames": [frame for frame in finding.get("evidence") or [] if isinstance(frame, int)][:MAX_FRAMES],
                "first_utc": finding.get("first_utc"),
                "last_utc": finding.get("last_utc"),
                "next": [{"command": str(step.get("command")), "run_on": str(step.get("run_on"))} for step in steps][
                    :MAX_COMMANDS
                ],
                "audit_ids": [audit_id],
            }
        )
    return rows[:MAX_FINDINGS]
