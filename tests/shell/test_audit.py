"""The audit: a chained record per command, a trace of what a crash cut off, and no command stopped by a full disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ghost.records import Head, read_json, read_records, verify
from ghost.shell.audit import AuditRecord, ShellAudit

FIELDS = [
    *("timestamp", "session_id", "sequence", "audit_id", "command", "reasoning", "status", "classification"),
    *("tier_triggered", "error", "action", "user_decision", "denial_reason", "modified_command", "environment"),
    *("exit_code", "output", "stderr", "output_summary", "output_truncated", "redactions_applied"),
    *("redaction_categories", "duration_seconds", "anonymization_applied", "sandbox", "prev"),
]


def record(audit: ShellAudit, **changes: Any) -> AuditRecord:
    sequence, audit_id = audit.next_id()
    fields: dict[str, Any] = {
        "timestamp": "2025-01-15T14:32:00.000Z",
        "session_id": audit.session_id,
        "sequence": sequence,
        "audit_id": audit_id,
        "command": "ss -tln",
        "reasoning": "what listens",
        "status": "completed",
        "classification": "SAFE",
        "tier_triggered": None,
        "error": None,
        "action": "auto_approved",
        "user_decision": None,
        "denial_reason": None,
        "modified_command": None,
        "environment": "local",
    }
    return AuditRecord(**{**fields, **changes})


def test_a_record_holds_every_field_in_one_line(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit, output="x" * 300 + "\n\u2028\x00", redaction_categories=("password",)))
    lines = audit.path.read_text().splitlines()
    assert len(lines) == 1
    written = json.loads(lines[0])
    assert list(written) == FIELDS
    assert written["output_summary"] == "x" * 200
    assert written["audit_id"] == "s1_001"


def test_the_records_are_chained_and_the_head_is_saved_beside_them(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    for _ in range(3):
        audit.write(record(audit))
    saved = Head.from_dict(read_json(audit.head_path))
    assert saved == audit.head
    assert verify(audit.path, saved).ok
    audit.path.write_text(audit.path.read_text().replace('"sequence": 3', '"sequence": 4'))
    assert not verify(audit.path, saved).ok


def test_the_sequence_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.next_id()
    audit.write(record(audit))
    assert ShellAudit(tmp_path, "s1").next_id() == (3, "s1_003")
    assert ShellAudit(tmp_path, "s2").next_id() == (1, "s2_001")


def test_the_sequence_goes_on_after_a_half_written_line(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit))
    with audit.path.open("a") as file:
        file.write('{"sequence": 2, "comm')
    again = ShellAudit(tmp_path, "s1")
    assert again.next_id() == (3, "s1_003")


def test_an_intent_stands_beside_the_file_while_a_command_runs(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    running = record(audit)
    audit.begin(running)
    assert read_json(audit.intent_path)["command"] == "ss -tln"
    assert not audit.path.exists()
    audit.write(running)
    assert not audit.intent_path.exists()


def test_an_intent_found_at_start_up_becomes_an_interrupted_record(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.begin(record(audit, classification="RISKY", action="user_approved", sandbox=("landlock",)))
    again = ShellAudit(tmp_path, "s1")
    (written,) = read_records(again.path)
    assert (written["status"], written["error"], written["audit_id"]) == ("error", "interrupted", "s1_001")
    assert (written["action"], written["sandbox"]) == ("user_approved", ["landlock"])
    assert not again.intent_path.exists()
    assert again.next_id() == (2, "s1_002")


def test_an_intent_whose_record_was_written_is_only_removed(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    done = record(audit)
    audit.write(done)
    audit.begin(done)
    again = ShellAudit(tmp_path, "s1")
    assert len(list(read_records(again.path))) == 1
    assert not again.intent_path.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"command": 1}', "null"])
def test_an_intent_that_cannot_be_read_is_said_and_stops_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "shell_audit_s1.intent.json").write_text(content)
    warnings: list[str] = []
    audit = ShellAudit(tmp_path, "s1", warnings.append)
    assert len(warnings) == 1
    audit.write(record(audit))
    assert len(list(read_records(audit.path))) == 1


def test_a_file_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path, capsys: Any) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.path.mkdir()
    running = record(audit)
    audit.begin(running)
    audit.write(running)
    assert "ghost: warning: the audit has a gap at s1_001" in capsys.readouterr().err
