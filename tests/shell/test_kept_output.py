"""All that a command printed is kept for code, redacted. What cannot be kept whole has a reason, and is no part."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import SessionPaths
from ghost.agent.verification import verify_commands
from ghost.errors import RecordError
from ghost.records import read_records
from ghost.shell import HitlDecision, SafeExecShell, TopologyAnonymizer, recorded_output, redact, truncate, whole_output
from ghost.shell.record.command_output import process_output
from ghost.shell.record.kept_output import MAX_BYTES, keep
from ghost.shell.run.execution import STDOUT_LIMIT, Captured
from tests.cli.ready_ghost import SIGNAL_AT, run_ghost
from tests.exhaustive import sample

PASSWORD = "h7Gq-tR4w9Zk2"
RULES = [{"name": f"rule-{n}", "address": "10.0.0.4", "adminPassword": PASSWORD} for n in range(5000)]
Prints = Callable[..., dict[str, Any]]


@pytest.fixture
def prints(tmp_path: Path) -> Prints:
    """Run a real program that prints a text. Returns the response."""

    def prints(text: str, after: str = "", **options: Any) -> dict[str, Any]:
        program = tmp_path / "bin" / "talk"
        program.parent.mkdir(exist_ok=True)
        (tmp_path / "text").write_text(text, encoding="utf-8")
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/text\n{after}\n")
        program.chmod(0o755)
        approve = HitlDecision("approve")
        options = {"program_dirs": [tmp_path / "bin", "/usr/bin", "/bin"], "roots": [tmp_path], **options}
        shell = SafeExecShell("s1", lambda *_: approve, tmp_path / "audit", **options)
        return shell.execute({"command": "talk", "reasoning": "to see"})

    return prints


def last_record(tmp_path: Path) -> dict[str, Any]:
    return list(read_records(tmp_path / "audit" / "shell_audit_s1.jsonl"))[-1]


def checked(tmp_path: Path) -> list[str]:
    """The details of the checks, which hold."""
    checks = verify_commands(SessionPaths(tmp_path / "audit", "s1"))
    assert [problem for check in checks for problem in check.problems] == []
    return [check.detail for check in checks if check.name != "approvals"]


def test_code_gets_every_rule_of_a_list_of_which_a_conversation_sees_some(prints: Prints, tmp_path: Path) -> None:
    for private, address, count in ((False, "10.0.0.4", 5000), (True, "[INTERNAL_IP_1]", 500)):
        response = prints(json.dumps(RULES[:count], indent=2), anonymization_enabled=private)
        expected = [{**rule, "address": address, "adminPassword": "[REDACTED]"} for rule in RULES[:count]]
        assert json.loads(whole_output(response)) == expected
        assert len(json.loads(response["output"])) < 300
        record, kept = last_record(tmp_path), Path(response["output_metadata"]["full_output"])
        assert kept == tmp_path / "audit" / "output" / f"{response['audit_id']}.txt"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert record["output_bytes"] == response["output_metadata"]["full_output_bytes"] == kept.stat().st_size
        assert record["output_sha256"] == hashlib.sha256(kept.read_bytes()).hexdigest()
        assert recorded_output(record, tmp_path / "audit") == whole_output(response)
        assert record["output"] == response["output"]
    assert "2 files" in checked(tmp_path)


def test_what_the_record_holds_whole_has_no_file(prints: Prints, tmp_path: Path) -> None:
    response = prints("short\n")
    assert whole_output(response) == recorded_output(last_record(tmp_path), tmp_path / "audit") == "short\n"
    assert not (tmp_path / "audit" / "output").exists()


def texts() -> dict[str, str]:
    row = "host-{n:<8}  10.0.2.{n}  password=" + PASSWORD + "\n"
    return {
        "an array": json.dumps(RULES[:300], indent=2),
        "a long array": json.dumps([{"name": f"rule-{n}", "text": "10.0.0.4" + " is up" * 500} for n in range(300)]),
        "an object": json.dumps({f"k{n}": {"password": PASSWORD, "list": list(range(99))} for n in range(99)}),
        "a table": "NAME           ADDRESS    SETTING\n" + "".join(row.format(n=n) for n in range(400)),
        "a long text": "".join(f"{n} failed login\n{row.format(n=n)}\x1b[1m" for n in range(300)),
        "half a surrogate": '"\\ud800\\n password: ' + PASSWORD + '"\n' * 300,
        "a short text": row,
    }


@pytest.mark.parametrize("private", [False, True])
def test_what_is_shown_is_the_cut_form_of_what_is_kept(private: bool, tmp_path: Path) -> None:
    for kind, text in texts().items():
        hidden = TopologyAnonymizer().anonymize if private else str
        output = process_output(Captured.of(text, STDOUT_LIMIT), Captured(), TopologyAnonymizer() if private else None)
        redacted = redact(text)[0]
        cut, metadata = truncate(redacted)
        assert (output.full is None) is not metadata["truncation_applied"], kind
        if output.full is not None:
            assert keep(tmp_path, "s1_001", output.full).missing is None
            kept = (tmp_path / "output" / "s1_001.txt").read_text(encoding="utf-8")
            assert kept == hidden(redacted).encode("utf-8", "replace").decode(), kind
        if kind != "a long array":  # rows of a long one are chosen in two steps
            assert output.text == hidden(redact(cut)[0]), kind
        assert PASSWORD not in output.text + (output.full or ""), kind


@pytest.mark.parametrize(
    ("text", "after", "why"),
    [
        (json.dumps(RULES[:500]), "exit 1", "failed: it may have printed only a part"),
        (json.dumps(RULES[:500]), "kill -9 $$", "failed: it may have printed only a part"),
        ("x" * 20 + "\0", "", "binary output"),
        (f"[{'1' * STDOUT_LIMIT}]", "", "it is longer than 16 MiB"),
    ],
)
def test_a_part_is_never_given_as_the_whole(prints: Prints, tmp_path: Path, text: str, after: str, why: str) -> None:
    response = prints(text, after)
    with pytest.raises(RecordError, match=why):
        whole_output(response)
    if "exit" not in after and "kill" not in after:
        assert response["output_metadata"]["full_output_missing"] == last_record(tmp_path)["output_missing"] == why
        with pytest.raises(RecordError, match=f"is on record: {why}"):
            recorded_output(last_record(tmp_path), tmp_path / "audit")
        assert checked(tmp_path)[1] == "0 files; 1 cut output without one"


def test_of_an_older_record_only_uncut_output_is_whole(tmp_path: Path) -> None:
    assert recorded_output({"audit_id": "s1_001", "output": "all", "output_truncated": False}, tmp_path) == "all"
    with pytest.raises(RecordError, match="is on record: the rest was not kept"):
        recorded_output({"audit_id": "s1_001", "output": "a part", "output_truncated": True}, tmp_path)
    for name in ("../s1_001", "s1", "s1_x", "", f"s1_{10**400}"):
        with pytest.raises(RecordError, match="is not an audit id"):
            recorded_output({"audit_id": name, "output_sha256": "0" * 64}, tmp_path)


def test_a_full_disk_leaves_a_record_without_a_file(
    prints: Prints, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "output").symlink_to("/dev/full")
    response = prints(json.dumps(RULES))
    assert response["status"] == "completed"
    assert last_record(tmp_path)["output_missing"].startswith("it could not be written (")
    (warning,) = capfd.readouterr().err.splitlines()
    assert "the full output of s1_001 is not kept: it could not be written" in warning


def test_ended_between_file_and_record_the_file_is_no_evidence(
    prints: Prints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept_then_ended(*words: Any) -> None:
        keep(*words)
        raise KeyboardInterrupt

    monkeypatch.setattr("ghost.shell.safe_exec_shell.keep", kept_then_ended)
    with pytest.raises(KeyboardInterrupt):
        prints(json.dumps(RULES))
    record = last_record(tmp_path)
    assert (record["error"], record["output_sha256"], recorded_output(record, tmp_path)) == ("interrupted", None, "")
    assert checked(tmp_path)[1] == "0 files; of no record: s1_001.txt"


@pytest.mark.parametrize("count", sample(range(1, 13), 3))
def test_killed_at_any_moment_no_half_file_counts(tmp_path: Path, count: int) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(RULES[:500], indent=1))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GHOST_")}
    command = shlex.join(["cat", str(tmp_path / "rules.json")])
    killed = {**clean, SIGNAL_AT: f"SIGKILL {count}"}
    run_ghost("shell", "run", command, cwd=tmp_path, environment=killed, stdin="a\n")
    SafeExecShell.record_interrupted(tmp_path / "audit")
    for audit in (tmp_path / "audit").glob("shell_audit_*.jsonl"):
        paths = SessionPaths(tmp_path / "audit", audit.stem.removeprefix("shell_audit_"))
        assert [check for check in verify_commands(paths) if not check.ok] == []
        (record,) = read_records(audit)
        if record["output_sha256"] is not None:
            assert len(json.loads(recorded_output(record, paths.audit_dir))) == 500
        else:
            assert record["error"] == "interrupted"


def test_the_longest_output_that_is_kept_is_read_back(tmp_path: Path) -> None:
    for text, missing in (("x" * MAX_BYTES, None), ("x" * MAX_BYTES + "y", "it is longer than 16 MiB")):
        kept = keep(tmp_path, "s1_001", text)
        assert kept.missing == missing
        if missing is None:
            record = {"audit_id": "s1_001", "output_sha256": kept.sha256, "output_bytes": kept.size}
            assert recorded_output(record, tmp_path) == text
