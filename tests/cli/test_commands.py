"""What a person types wrongly gets one clear line, the documented exit status, and no traceback."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ghost.cli.investigation_run import _prompt
from ghost.cli.session_records import session_named
from ghost.cli.shell_commands import RunningNotice
from ghost.config import Settings
from ghost.errors import SessionError

from .ready_ghost import run_ghost

GHOST = Path(sys.executable).with_name("ghost")


def ghost(
    *arguments: str, cwd: Path, stdin: str = "", in_process: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    base = {k: v for k, v in os.environ.items() if not k.startswith(("GHOST_", "GEMINI_"))}
    whole = {**base, "COLUMNS": "200", **environment}
    return run_ghost(*arguments, cwd=cwd, stdin=stdin, environment=whole, in_process=in_process)


BAD = {
    "an unknown scenario": (["investigate", "x", "--lab", "blockedport"], 1, "did you mean blocked-port? "),
    "an unknown scenario to show": (["lab", "show", "blokced-port"], 1, "did you mean blocked-port? "),
    "a missing capture": (["pcap", "missing.pcap"], 1, "missing.pcap"),
    "a file that is no capture": (["pcap", "notes.txt"], 1, "notes.txt"),
    "a directory for a capture": (["pcap", "."], 1, "."),
    "an unknown session to show": (["audit", "show", "ghost_1"], 1, "ghost_1"),
    "an unknown session to verify": (["audit", "verify", "ghost_1"], 1, "ghost_1"),
    "an unknown session to resume": (["investigate", "--resume", "ghost_1"], 1, "ghost_1"),
    "a session id that is a path": (["audit", "verify", "../../etc/passwd"], 1, "no session"),
    "an unknown brain": (["investigate", "x", "--brain", "hal"], 2, "there is no brain 'hal'"),
    "no symptom": (["investigate"], 2, "no symptom"),
    "an empty symptom": (["investigate", "  ", "--lab", "blocked-port"], 2, "no symptom"),
    "resume with a symptom": (["investigate", "x", "--resume", "ghost_1"], 2, "--resume"),
    "two kinds of JSON": (["investigate", "x", "--json", "--json-events"], 2, "choose one"),
    "a port that is none": (["investigate", "x", "--port", "70000"], 2, "'--port'"),
    "a protocol that is none": (["investigate", "--dest", "x", "--protocol", "ip"], 2, "'--protocol'"),
    "a port of icmp": (["investigate", "--dest", "x", "--protocol", "icmp", "--port", "1"], 2, "icmp has no ports"),
    "resume with an end": (["investigate", "--dest", "x", "--resume", "ghost_1"], 2, "--resume"),
    "a directory of audits": (["investigate", "x", "--audit-dir", "audits"], 2, "--workspace DIR"),
    "an unknown command": (["frobnicate"], 2, "frobnicate"),
    "a misspelt option of pcap": (["pcap", "x.pcap", "--opne"], 2, "did you mean --open? "),
    "a misspelt command": (["investigat"], 2, "investigate"),
    "a misspelt option": (["sessions", "--wrkspace", "x"], 2, "Did you mean --workspace? See: ghost sessions --help."),
    "an unknown option": (["sessions", "--frob"], 2, "--frob"),
    "a workspace that is a file": (["investigate", "x", "--lab", "blocked-port", "-w", "notes.txt"], 1, "notes.txt"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_line(tmp_path, name):
    arguments, status, words = BAD[name]
    (tmp_path / "notes.txt").write_text("These are notes, not packets.\n")
    result = ghost(*arguments, cwd=tmp_path)
    assert result.returncode == status, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert re.fullmatch(r"ghost( pcap)?: .*(: | See: |; give ).*\.\n", result.stderr), "one line with the way out"


def test_an_unreadable_setting_names_its_variable(tmp_path):
    result = ghost("sessions", cwd=tmp_path, GHOST_MAX_TURNS="many")
    assert result.returncode == 1
    assert "GHOST_MAX_TURNS" in result.stderr


def test_an_investigation_that_no_table_lets_begin_says_why(tmp_path):
    result = ghost("investigate", "--lab", "blocked-port", cwd=tmp_path, GHOST_POLICY_DIR=str(tmp_path / "none"))
    assert result.returncode == 1
    assert "GHOST_POLICY_DIR" in result.stderr
    assert "az login" not in result.stderr


def test_the_version_is_printed(tmp_path):
    assert ghost("--version", cwd=tmp_path).stdout.startswith("ghost 0.")


@pytest.mark.needs("ss")
def test_a_safe_command_runs_at_once_and_is_audited(tmp_path):
    result = ghost("shell", "run", "ss -tln", cwd=tmp_path)
    assert result.returncode == 0
    assert "Local Address" in result.stdout
    assert "SAFE" in result.stderr
    records = [json.loads(line) for p in (tmp_path / "audit").glob("*.jsonl") for line in p.read_text().splitlines()]
    assert [r["command"] for r in records] == ["ss -tln"]
    assert records[0]["action"] == "auto_approved"


def test_a_risky_command_in_a_pipe_is_denied_at_the_end_of_input(tmp_path):
    (tmp_path / "keep").write_text("x")
    result = ghost("shell", "run", "rm keep", cwd=tmp_path)
    assert result.returncode == 1
    assert (tmp_path / "keep").exists()
    assert "RISKY" in result.stderr


def test_a_risky_command_runs_after_an_approval_typed_into_the_pipe(tmp_path):
    (tmp_path / "gone").write_text("x")
    result = ghost("shell", "run", "rm gone", cwd=tmp_path, stdin="a\n")
    assert result.returncode == 0
    assert not (tmp_path / "gone").exists()


def test_a_forbidden_command_is_never_asked_about(tmp_path):
    result = ghost("shell", "run", "rm -rf /", cwd=tmp_path, stdin="a\n")
    assert result.returncode == 1
    assert "FORBIDDEN" in result.stderr
    assert "approval required" not in result.stderr.lower()


def test_the_reason_told_is_of_the_command_that_was_judged_last(tmp_path):
    result = ghost("shell", "run", "ip link set eth9 down", cwd=tmp_path, stdin="m\nrm -rf /\n")
    assert result.returncode == 1
    reason = result.stderr.splitlines()[-1]
    assert "rm would destroy /" in reason
    assert "eth9" not in reason


def test_an_empty_command_names_no_record(tmp_path):
    result = ghost("shell", "run", "", cwd=tmp_path)
    assert result.returncode == 1
    assert "audit:" not in result.stderr
    assert not list((tmp_path / "audit").glob("*.jsonl"))


def test_single_commands_are_listed_with_the_ids_that_the_audit_takes(tmp_path):
    ghost("shell", "run", "rm keep", cwd=tmp_path)
    listed = ghost("sessions", cwd=tmp_path).stdout.splitlines()
    assert re.search(r"\$ rm keep  RISKY, user abandoned$", listed[-2])
    (row,) = json.loads(ghost("sessions", "--json", cwd=tmp_path).stdout)
    assert (row["kind"], row["command"], row["waits"]) == ("command", "rm keep", [])
    assert listed[-2].startswith(row["session_id"])
    assert listed[-1] == f"See one: ghost audit show {row['session_id']}"
    (shown, *_) = ghost("audit", "show", row["session_id"], cwd=tmp_path).stdout.splitlines()
    assert re.fullmatch(r"#001 – rm keep +RISKY +denied, nobody answered", shown)


@pytest.mark.needs("sleep")
def test_a_command_is_ended_after_its_timeout(tmp_path):
    result = ghost("shell", "run", "sleep 60", "--timeout", "0.5", cwd=tmp_path, stdin="a\n")
    assert result.returncode == 1
    assert "timeout" in result.stderr.splitlines()[-1]
    assert ghost("shell", "run", "ss", "--timeout", "0", cwd=tmp_path).returncode == 2


@pytest.mark.needs("sleep")
def test_ctrl_c_during_a_command_names_its_record(tmp_path):
    process = subprocess.Popen(
        [GHOST, "shell", "run", "sleep 60"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("a\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list((tmp_path / "audit").glob("*.intent.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    (audit,) = (tmp_path / "audit").glob("shell_audit_*.jsonl")
    record = json.loads(audit.read_text())
    assert record["error"] == "interrupted"
    assert f"[Shell] interrupted: sleep 60  (audit: {record['audit_id']})" in shown
    assert "running" not in shown  # errors go to a pipe here


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_command_that_takes_long_says_so_but_not_while_a_person_is_asked():
    screen = Screen()
    waiting = RunningNotice(screen, after_seconds=0.2)
    with waiting:
        with waiting.quiet():
            time.sleep(1.2)
        assert screen.getvalue() == ""
        time.sleep(1.4)
    assert "[Shell] running" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_in_a_pipe_nothing_is_said_of_a_command_that_takes_long():
    pipe = io.StringIO()
    with RunningNotice(pipe, after_seconds=0.1):
        time.sleep(0.8)
    assert pipe.getvalue() == ""


def test_explain_names_class_tier_and_rule_and_runs_nothing(tmp_path):
    result = ghost("shell", "explain", "dig example.com", cwd=tmp_path)
    assert result.returncode == 0
    assert "SAFE" in result.stdout
    risky = json.loads(ghost("shell", "explain", "sudo dig example.com", "--json", cwd=tmp_path).stdout)
    assert (risky["classification"], risky["tier"]) == ("RISKY", 3)
    assert risky["rule"]
    assert list(tmp_path.iterdir()) == []


def test_json_of_a_command_is_the_shells_response(tmp_path):
    response = json.loads(ghost("shell", "run", "rm -rf /", "--json", cwd=tmp_path).stdout)
    assert response["error"] == "forbidden_command"


def test_without_az_an_investigation_says_how_to_get_it(tmp_path):
    result = ghost("investigate", "vm-a cannot reach vm-b on 443", cwd=tmp_path, GHOST_AZ=str(tmp_path / "none" / "az"))
    assert result.returncode == 1
    assert "GHOST_AZ" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_an_az_that_nobody_is_logged_in_to_says_so(tmp_path):
    program = tmp_path / "bin" / "az"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho \"ERROR: Please run 'az login' to setup account.\" >&2\nexit 1\n")
    program.chmod(0o755)
    result = ghost("investigate", "vm-a cannot reach vm-b on 443", cwd=tmp_path, GHOST_AZ=str(program))
    assert result.returncode == 5  # paused
    assert "run az login" in result.stderr.splitlines()[-1]
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    result = ghost("investigate", "vm-a cannot reach vm-b on 443", cwd=tmp_path, GHOST_AZ=str(program))
    assert result.returncode == 1
    assert "it ended with status -11" in result.stderr.splitlines()[-1]


def test_a_second_investigation_in_a_workspace_is_told_to_wait(tmp_path):
    from ghost.records import workspace_lock

    with workspace_lock(tmp_path):
        result = ghost("investigate", "x", "--lab", "blocked-port", cwd=tmp_path)
    assert result.returncode == 1
    assert "in use by process" in result.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    result = subprocess.run(
        f"{GHOST} lab list --json | true", shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


def test_a_single_commands_records_are_shown_and_verified_by_their_id(tmp_path):
    ghost("shell", "run", "rm -rf /", cwd=tmp_path)
    audit = next((tmp_path / "audit").glob("shell_audit_*.jsonl"))
    identity = audit.stem.removeprefix("shell_audit_")
    listed = ghost("audit", "show", identity, cwd=tmp_path).stdout
    assert re.match(r"#001 – rm -rf / +FORBIDDEN refused by rule\n", listed)
    shown = ghost("audit", "show", identity, "1", cwd=tmp_path).stdout
    assert "\napproval: refused by rule\n" in shown
    assert "output" not in shown
    assert ghost("audit", "verify", identity, cwd=tmp_path).returncode == 0
    audit.write_bytes(audit.read_bytes()[:-1])
    assert ghost("audit", "verify", identity, cwd=tmp_path).returncode == 1


def test_a_record_edited_with_its_head_is_found_by_the_head_that_was_printed(tmp_path):
    printed = ghost("shell", "run", "rm -rf /", cwd=tmp_path).stderr
    head = re.search(r"^\[Shell\] audit head (1:[0-9a-f]{64}) of shell_\w+$", printed, re.M)[1]
    told = ghost("audit", "verify", "last", "--head", head, cwd=tmp_path)
    assert told.returncode == 0
    assert f"OK    given head: 1 record with the hash {head[2:]}\n" in told.stdout
    assert ghost("audit", "verify", "last", "--head", head[2:], cwd=tmp_path).returncode == 0
    assert ghost("audit", "verify", "last", "--head", f"2:{head[2:]}", cwd=tmp_path).returncode == 1
    assert "write COUNT:HASH" in ghost("audit", "verify", "last", "--head", "x", cwd=tmp_path).stdout
    audit = next((tmp_path / "audit").glob("shell_audit_*.jsonl"))
    edited = audit.read_bytes().replace(b"rm -rf /", b"rm -rf x")
    audit.write_bytes(edited)
    sha256 = hashlib.sha256(edited.rstrip(b"\n")).hexdigest()
    Path(f"{audit}.head").write_text(json.dumps({"count": 1, "sha256": sha256}))
    assert ghost("audit", "verify", "last", cwd=tmp_path).returncode == 0
    told = ghost("audit", "verify", "last", "--head", head, cwd=tmp_path)
    assert told.returncode == 1
    assert "line 1 is not the record that was written there" in told.stdout
    as_json = json.loads(ghost("shell", "run", "rm -rf /", "--json", cwd=tmp_path).stdout)
    session = as_json["audit_id"].removesuffix("_001")
    assert ghost("audit", "verify", session, "--head", as_json["audit_head"], cwd=tmp_path).returncode == 0


def test_a_refused_command_says_why(tmp_path):
    assert "would destroy /" in ghost("shell", "run", "rm -rf /", cwd=tmp_path).stderr.splitlines()[-1]


def test_a_damaged_session_file_is_said_and_its_records_stay_readable(tmp_path):
    (tmp_path / "audit").mkdir()
    (tmp_path / "ghost_session.json").write_text("{half")
    (tmp_path / "audit" / "ghost_turns_ghost_1.jsonl").write_text("")
    (tmp_path / "audit" / "shell_audit_ghost_1.jsonl").write_text("")
    assert "damaged" in ghost("sessions", cwd=tmp_path).stdout
    assert ghost("audit", "show", "ghost_1", cwd=tmp_path).returncode == 0
    resumed = ghost("investigate", "--resume", "ghost_1", cwd=tmp_path)
    assert resumed.returncode == 1
    assert "corrupted" in resumed.stderr


def test_a_full_disk_behind_standard_output_is_one_line(tmp_path):
    result = subprocess.run(
        f"{GHOST} lab list > /dev/full", shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["ghost: No space left on device: make room on the disk."]


@pytest.fixture
def cut_off(tmp_path):
    """The session of a command that ran when its `ghost shell run` was ended by SIGKILL; it began, and left a trace."""
    (tmp_path / "slow").write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nsleep 60\n")
    command = f"sh {tmp_path}/slow"
    process = subprocess.Popen([GHOST, "shell", "run", command], cwd=tmp_path, stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write("a\n")
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    (intent,) = (tmp_path / "audit").glob("*.intent.json")
    identity = intent.name.removeprefix("shell_audit_").removesuffix(".intent.json")
    running = ghost("audit", "verify", identity, cwd=tmp_path)
    process.kill()
    process.wait()
    process.stdin.close()
    return identity, command, running


def test_a_command_whose_process_was_killed_is_put_on_record_as_interrupted(tmp_path, cut_off):
    identity, command, running = cut_off
    assert running.returncode == 1  # while it runs its end is not on record, and it is not taken for cut off
    assert f"$ {command}" in running.stdout
    verified = ghost("audit", "verify", identity, cwd=tmp_path)
    assert verified.returncode == 0
    assert f"NOTE  {identity}_001: interrupted while it ran" in verified.stdout
    assert f"$ {command}" in verified.stdout
    shown = ghost("audit", "show", identity, "--json", cwd=tmp_path).stdout
    (record,) = json.loads(shown)
    assert (record["status"], record["error"], record["action"]) == ("error", "interrupted", "user_approved")
    assert (record["exit_code"], record["output"], record["command"]) == (None, "", command)
    assert json.loads(ghost("audit", "verify", identity, "--json", cwd=tmp_path).stdout)["interrupted"] == [
        f"{identity}_001"
    ]


@pytest.mark.needs("ss")
def test_the_next_command_of_the_directory_records_what_was_cut_off(tmp_path, cut_off):
    identity, command, _ = cut_off
    assert ghost("shell", "run", "ss -tln", cwd=tmp_path).returncode == 0
    assert list((tmp_path / "audit").glob("*.intent.json")) == []
    (record,) = map(json.loads, (tmp_path / "audit" / f"shell_audit_{identity}.jsonl").read_text().splitlines())
    assert (record["error"], record["command"]) == ("interrupted", command)


@pytest.mark.needs("ss")
def test_a_command_that_leaves_no_record_says_so(tmp_path):
    (tmp_path / "audit").write_text("where the directory should be")
    result = ghost("shell", "run", "ss -tln", cwd=tmp_path)
    assert (result.returncode, "Local Address" in result.stdout) == (0, True)
    assert "NOT ON RECORD" in result.stderr
    as_json = ghost("shell", "run", "ss -tln", "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout)["audit_written"] is False


def test_a_private_command_shows_placeholders_and_keeps_what_they_stand_for_to_its_owner(tmp_path):
    for environment, option in ({}, ["--private"]), ({"GHOST_PRIVATE": "1"}, []):
        result = ghost("shell", "run", "ip route get 10.20.30.40", *option, "--json", cwd=tmp_path, **environment)
        response = json.loads(result.stdout)
        assert response["output_metadata"]["anonymization_applied"] is True
        assert "10.20.30.40" not in response["output"] + response["stderr"]
    maps = list(tmp_path.glob("audit/anonymization_map_*.json"))
    assert all("10.20.30.40" in file.read_text() and file.stat().st_mode & 0o077 == 0 for file in maps)
    assert len(maps) == 2
    assert not any("10.20.30.40" in audit.read_text() for audit in tmp_path.glob("audit/*.jsonl"))


def test_a_private_investigation_says_so_and_leaves_no_private_address_in_its_records(tmp_path):
    symptom = "web-vm-01 cannot reach redis-cache-01 on port 6379"
    words = ("investigate", symptom, "--lab", "blocked-port", "--private")
    result = ghost(*words, cwd=tmp_path, in_process=True, GHOST_LAB_SPEED="500")
    assert "Private mode" in result.stdout
    assert list(tmp_path.glob("audit/anonymization_map_*.json"))
    records = [*tmp_path.glob("audit/shell_audit_*.jsonl"), *tmp_path.glob("audit/ghost_rca_*.md")]
    assert len(records) == 2
    assert not [file for file in records if re.search(r"\b10\.\d+\.\d+\.\d+", file.read_text())]


def test_the_mark_before_what_a_person_types_is_no_part_of_the_report(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("web-vm-01 is slow\n"))
    assert _prompt() == "web-vm-01 is slow"
    assert capsys.readouterr() == ("", "> ")


def test_of_several_workspaces_none_is_picked_silently(tmp_path, monkeypatch):
    for place, moment in (("one", "20260101_120000"), ("two", "20260102_120000")):
        audit = tmp_path / place / "audit"
        audit.mkdir(parents=True)
        (audit / f"shell_audit_ghost_{moment}.jsonl").write_text("")
        (audit / "shell_audit_zz_99999999_999999\x1b.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    place, session_id = session_named("last", None, Settings())
    assert (place.root.name, session_id) == ("two", "ghost_20260102_120000")
    with pytest.raises(SessionError, match=r"fits 2 sessions.*--workspace one.*--workspace two"):
        session_named("ghost_", None, Settings())
    (tmp_path / "two/audit/shell_audit_ghost_20260101_120000.jsonl").write_text("")
    with pytest.raises(SessionError, match="fits 2 sessions"):
        session_named("ghost_20260101_120000", None, Settings())
    assert session_named("ghost_20260101_120000", tmp_path / "one", Settings())[0].root == tmp_path / "one"
