"""A session can be handed on as one file that says of itself whether it holds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ghost.cli import main
from ghost.shell import SafeExecShell
from tests.cli.ready_ghost import run_ghost

SESSION = "ghost_20260101_120000"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace with an investigation of the lab, finished."""
    monkeypatch.chdir(tmp_path)
    words = ("investigate", "--lab", "blocked-port", "--workspace", "w", "--json", "--brain", "offline")
    environment = {**os.environ, "GHOST_LAB_SPEED": "500"}
    assert run_ghost(*words, cwd=tmp_path, environment=environment, in_process=True).returncode in (0, 1)
    return tmp_path / "w"


def session_of(workspace: Path) -> str:
    return json.loads((workspace / "ghost_session.json").read_text())["session_id"]


def test_an_export_holds_every_record_and_their_hashes(workspace, capsys):
    session = session_of(workspace)
    capsys.readouterr()
    assert main(["audit", "export", session, "-w", str(workspace), "--output", "case.zip"]) == 0
    assert "case.zip" in capsys.readouterr().out
    archive = zipfile.ZipFile("case.zip")
    manifest = json.loads(archive.read("manifest.json"))
    assert set(archive.namelist()) == {"manifest.json", *manifest["files"]}
    for part in ("ghost_session.json", f"shell_audit_{session}.jsonl", f"ghost_turns_{session}.jsonl"):
        assert part in manifest["files"]
    for name, entry in manifest["files"].items():
        assert hashlib.sha256(archive.read(name)).hexdigest() == entry["sha256"]
    assert json.loads(archive.read("verification.json"))["ok"] is True
    assert (
        archive.read(f"shell_audit_{session}.jsonl")
        == (workspace / "audit" / f"shell_audit_{session}.jsonl").read_bytes()
    )
    assert stat.S_IMODE(Path("case.zip").stat().st_mode) == 0o600

    # nothing is overwritten
    before = Path("case.zip").read_bytes()
    assert main(["audit", "export", session, "-w", str(workspace), "--output", "case.zip"]) != 0
    assert "not overwritten" in capsys.readouterr().err
    assert Path("case.zip").read_bytes() == before

    # and the same session makes the same file
    assert main(["audit", "export", session, "-w", str(workspace), "--output", "again.zip"]) == 0
    assert Path("again.zip").read_bytes() == before

    # a record that was changed is handed on too, and said to be
    audit = workspace / "audit" / f"shell_audit_{session}.jsonl"
    audit.chmod(0o600)
    audit.write_bytes(audit.read_bytes().replace(b"prod", b"dev_", 1))
    capsys.readouterr()
    assert main(["audit", "export", session, "-w", str(workspace), "-o", "changed.zip", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verified"] is False
    assert json.loads(zipfile.ZipFile("changed.zip").read("verification.json"))["ok"] is False


def test_a_session_that_is_not_there_is_no_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "export", SESSION]) != 0
    assert SESSION in capsys.readouterr().err
    assert list(tmp_path.glob("*.zip")) == []


def test_a_token_that_looks_like_a_secret_stays_on_this_machine(workspace, capsys):
    session = session_of(workspace)
    report = next(workspace.rglob(f"*{session}*.md"))
    token = "q7RkLm92Pw4RtVbZ81Tx"
    report.write_text(report.read_text() + f"\nheader {token}\n")
    main(["audit", "export", session, "-w", str(workspace), "--output", "out.zip"])
    assert f"{report.name}: tokens that look like secrets have placeholders" in capsys.readouterr().out
    outside = zipfile.ZipFile("out.zip")
    assert "header [TOKEN_1]" in outside.read(report.name).decode()
    assert json.loads(outside.read("verification.json"))["with_placeholders"] == [report.name]
    main(["audit", "export", session, "-w", str(workspace), "--output", "local.zip", "--local"])
    assert f"header {token}" in zipfile.ZipFile("local.zip").read(report.name).decode()


def test_an_export_holds_whole_outputs_and_verifies_where_it_is_unpacked(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = [{"name": f"rule-{n}", "text": "\u202e" * 3} for n in range(500)]
    run = SimpleNamespace(stdout=json.dumps(shown, ensure_ascii=False), stderr="", returncode=0)
    shell = SafeExecShell("shell_1", audit_dir="audit", runner=lambda *_, **__: run, sandbox="off")
    for command in ("ip route", "ss -tln"):
        audit_id = shell.execute({"command": command, "reasoning": "to see"})["audit_id"]
    assert main(["audit", "show", "shell_1"]) == 0
    assert re.search(r"^#002 ✓ ss -tln +SAFE 0.0 s exit 0$", capsys.readouterr().out, re.M)
    for name in ("2", "002", "#002", audit_id):
        assert main(["audit", "show", "shell_1", name]) == 0
        about, output = re.split(r"\n\noutput, \d+ bytes:\n", capsys.readouterr().out)
        assert about.startswith(
            f"#002  {audit_id}\n\nss -tln\n\nwhy:      to see\nclass:    SAFE\napproval: ran unasked"
        )
        assert json.loads(output) == [{**row, "text": ""} for row in shown]
    assert main(["audit", "show", "shell_1", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["audit_id"], len(told["whole_output"]) > len(told["output"])) == (audit_id, True)
    assert main(["audit", "show", "shell_1", "9"]) == 2
    assert "shell_1 has no record '9': its records are 1 to 2." in capsys.readouterr().err

    kept = Path("audit/output", f"{audit_id}.txt")
    for words, target in ((("--local",), "local"), ((), "outside")):
        assert main(["audit", "export", "shell_1", "-o", f"{target}.zip", *words]) == 0
        archive = zipfile.ZipFile(f"{target}.zip")
        assert archive.read(f"output/{audit_id}.txt") == kept.read_bytes()
        archive.extractall(f"{target}/audit")
        assert main(["audit", "verify", "shell_1", "-w", target]) == 0
        assert "OK    whole outputs: 2 files" in capsys.readouterr().out
    kept.write_text(kept.read_text().replace("rule-7", "rule-8"))
    assert main(["audit", "show", "shell_1", "2"]) == 1
    assert "was modified" in capsys.readouterr().err
    assert main(["audit", "export", "shell_1", "-o", "changed.zip"]) == 1
    assert f"output/{audit_id}.txt" not in zipfile.ZipFile("changed.zip").namelist()
    assert (
        f"the full output {audit_id}.txt was modified"
        in zipfile.ZipFile("changed.zip").read("verification.json").decode()
    )
