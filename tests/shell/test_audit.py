"""The audit: a chained record per command, a trace of what a crash cut off, and no command stopped by a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ghost.errors import WorkspaceError
from ghost.records import Head, read_json, read_records, verify
from ghost.shell.record.audit import AuditRecord, ShellAudit, record_interrupted
from ghost.shell.record.intent import Intent

FIELDS = [
    *("timestamp", "session_id", "sequence", "audit_id", "command", "reasoning", "status", "classification"),
    *(
        "tier_triggered",
        "error",
        "action",
        "user_decision",
        "denial_reason",
        "modified_command",
        "environment",
        "approval_id",
        "argv_sha256",
        "message",
    ),
    *("exit_code", "output", "stderr", "output_summary", "output_truncated", "output_sha256", "output_bytes"),
    *("output_missing", "redactions_applied"),
    *(
        "redaction_categories",
        "redaction_rules",
        "duration_seconds",
        "anonymization_applied",
        "sandbox",
        "stages",
        "prev",
    ),
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


def begun_by_a_process_that_ended(directory: Path, session_id: str = "s1", **changes: Any) -> None:
    pid = os.fork()
    if pid == 0:
        audit = ShellAudit(directory, session_id)
        audit.begin(record(audit, **changes))
        os._exit(0)
    os.waitpid(pid, 0)


def test_an_intent_found_at_start_up_becomes_an_interrupted_record(tmp_path: Path) -> None:
    begun_by_a_process_that_ended(tmp_path, classification="RISKY", action="user_approved", sandbox=("landlock",))
    again = ShellAudit(tmp_path, "s1")
    (written,) = read_records(again.path)
    assert (written["status"], written["error"], written["audit_id"]) == ("error", "interrupted", "s1_001")
    assert (written["action"], written["sandbox"]) == ("user_approved", ["landlock"])
    assert not again.intent_path.exists()
    assert again.next_id() == (2, "s1_002")


def test_an_interrupted_record_claims_nothing_of_how_the_command_ended(tmp_path: Path) -> None:
    begun_by_a_process_that_ended(tmp_path, command="touch x", classification="RISKY")
    assert record_interrupted(tmp_path) == ["s1_001"]
    (written,) = read_records(tmp_path / "shell_audit_s1.jsonl")
    assert (written["exit_code"], written["output"], written["duration_seconds"]) == (None, "", None)
    assert (written["command"], written["timestamp"]) == ("touch x", "2025-01-15T14:32:00.000Z")


def test_whoever_opens_the_directory_records_what_was_cut_off_in_any_session(tmp_path: Path) -> None:
    for session_id in ("s1", "s2"):
        begun_by_a_process_that_ended(tmp_path, session_id)
    other = ShellAudit(tmp_path, "s3")
    for session_id in ("s1", "s2"):
        path = tmp_path / f"shell_audit_{session_id}.jsonl"
        assert [r["error"] for r in read_records(path)] == ["interrupted"]
        assert verify(path, Head.from_dict(read_json(Path(f"{path}.head")))).ok
    assert list(tmp_path.glob("*.intent.json")) == []
    assert not other.path.exists()


def test_a_command_that_still_runs_is_not_taken_for_one_that_was_cut_off(tmp_path: Path) -> None:
    ready, tell = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        audit = ShellAudit(tmp_path, "s1")
        running = record(audit)
        audit.begin(running)
        os.write(tell, b"x")
        os.read(wait, 1)
        os._exit(0 if audit.write(running) else 1)
    os.read(ready, 1)
    assert record_interrupted(tmp_path) == []
    ShellAudit(tmp_path, "s2")
    assert (tmp_path / "shell_audit_s1.intent.json").exists()
    os.write(go, b"x")
    assert os.waitpid(pid, 0)[1] == 0
    (written,) = read_records(tmp_path / "shell_audit_s1.jsonl")
    assert written["status"] == "completed"
    for descriptor in (ready, tell, wait, go):
        os.close(descriptor)


def test_many_that_open_the_directory_at_once_record_it_once(tmp_path: Path) -> None:
    begun_by_a_process_that_ended(tmp_path)
    pids = []
    for n in range(8):
        if (pid := os.fork()) == 0:
            ShellAudit(tmp_path, "s1" if n % 2 else f"other{n}")
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    path = tmp_path / "shell_audit_s1.jsonl"
    assert len(list(read_records(path))) == 1
    assert verify(path, Head.from_dict(read_json(Path(f"{path}.head")))).ok


def test_an_intent_that_speaks_for_another_session_makes_no_record(tmp_path: Path) -> None:
    begun_by_a_process_that_ended(tmp_path)
    (tmp_path / "shell_audit_s1.intent.json").rename(tmp_path / "shell_audit_s2.intent.json")
    assert record_interrupted(tmp_path) == []
    assert not (tmp_path / "shell_audit_s2.jsonl").exists()


def test_an_intent_whose_record_was_written_is_only_removed(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit))
    del audit  # a session has one process at a time
    begun_by_a_process_that_ended(tmp_path, sequence=1, audit_id="s1_001")
    again = ShellAudit(tmp_path, "s1")
    assert len(list(read_records(again.path))) == 1
    assert not again.intent_path.exists()


def test_a_record_that_could_not_be_written_is_written_before_the_next_one(tmp_path: Path) -> None:
    warnings: list[str] = []
    audit = ShellAudit(tmp_path, "s1", warnings.append)
    audit.path.mkdir()
    assert audit.write(record(audit, command="first")) is False
    audit.path.rmdir()
    assert audit.write(record(audit, command="second")) is True
    assert [r["command"] for r in read_records(audit.path)] == ["first", "second"]
    assert verify(audit.path, audit.head).ok
    assert warnings[-1].startswith("the audit has a gap at s1_001")


ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
from ghost.errors import GhostError
from ghost.shell import SafeExecShell, HitlDecision
try:
    shell = SafeExecShell("s1", lambda *_: HitlDecision("approve"), sys.argv[1])
except GhostError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print("has it", flush=True)
shell.execute({"command": sys.argv[2], "reasoning": "x"})
"""


def another_process(directory: Path, command: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", ANOTHER_PROCESS, str(directory), command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_session_has_one_process_at_a_time(tmp_path: Path) -> None:
    """Two of them took the same numbers, and one removed the intent of the other's approved command."""
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit))
    said = another_process(tmp_path, "true").communicate(timeout=60)[1]
    assert "WorkspaceError: another process runs commands of the session" in said
    del audit
    assert another_process(tmp_path, "true").communicate(timeout=60)[0] == "has it\n"
    assert [r["audit_id"] for r in read_records(tmp_path / "shell_audit_s1.jsonl")] == ["s1_001", "s1_002"]
    assert not list(tmp_path.glob(".*"))


def test_a_killed_process_leaves_the_session_and_its_approved_command_is_on_record(tmp_path: Path) -> None:
    other = another_process(tmp_path, "sleep 30")
    while not list(tmp_path.glob("*.intent.json")):
        assert other.poll() is None
        time.sleep(0.02)
    with pytest.raises(WorkspaceError, match="or use a session of another name"):
        ShellAudit(tmp_path, "s1")
    other.kill()
    other.communicate()
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit))
    path = tmp_path / "shell_audit_s1.jsonl"
    assert [(r["audit_id"], r["command"]) for r in read_records(path)] == [
        ("s1_001", "sleep 30"),
        ("s1_002", "ss -tln"),
    ]
    assert verify(path, Head.from_dict(read_json(Path(f"{path}.head")))).ok


def test_two_shells_of_one_process_share_the_chain_and_the_numbers(tmp_path: Path) -> None:
    first, second = ShellAudit(tmp_path, "s1"), ShellAudit(tmp_path, "s1")
    for audit in (first, second, first, second):
        assert audit.write(record(audit))
    assert [r["sequence"] for r in read_records(first.path)] == [1, 2, 3, 4]
    assert verify(first.path, first.head).ok
    assert first.one_at_a_time is second.one_at_a_time


def test_an_intent_of_another_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    """A file system may have no locks: then another process may be there after all."""
    other, own = Intent(tmp_path / "shell_audit_s1.intent.json"), Intent(tmp_path / "shell_audit_s1.intent.json")
    other.state({"command": "other"}, on_disk=False)
    own.state({"command": "own"}, on_disk=True)
    assert sorted(read_json(p)["command"] for p in tmp_path.glob("shell_audit_*.intent.json")) == ["other", "own"]
    own.remove()
    assert read_json(other.path) == {"command": "other"}
    other.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_was_cut_off_under_a_number_that_is_taken_gets_one_of_its_own(tmp_path: Path) -> None:
    audit = ShellAudit(tmp_path, "s1")
    audit.write(record(audit))
    del audit
    begun_by_a_process_that_ended(tmp_path, sequence=1, audit_id="s1_001", command="sleep 30")
    assert record_interrupted(tmp_path) == ["s1_002"]
    written = list(read_records(tmp_path / "shell_audit_s1.jsonl"))
    assert [(r["audit_id"], r["command"]) for r in written] == [("s1_001", "ss -tln"), ("s1_002", "sleep 30")]


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
