"""Tapes answer as was recorded, whatever the spelling, and a damaged one is one line of error."""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
import subprocess
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ghost.cli import main
from ghost.errors import LabError
from ghost.lab import Briefing
from ghost.lab.directory import LabClock
from ghost.lab.launchers import RunningLab, reopen, start
from ghost.lab.scenario import TapeScenario
from ghost.lab.tapes import Tape, TapeDirectory, playback, read_tape
from ghost.lab.tapes.command_forms import form_of
from ghost.lab.tapes.playback import NOT_RECORDED
from ghost.lab.tapes.recordings import MAX_MEMBER_BYTES, MAX_MEMBERS
from ghost.shell import HitlDecision, SafeExecShell

S = "/subscriptions/00000000-0000-0000-0000-00000000000a"
NIC = f"{S}/resourceGroups/rg/providers/Microsoft.Network/networkInterfaces/n1"
SUBNET = f"{S}/resourceGroups/RG/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
HOME = frozenset({"00000000-0000-0000-0000-00000000000a", "own"})

SAME = [
    ("az network nic show -g rg -n n1", "az network nic show --name N1 --resource-group RG -o json --only-show-errors"),
    ("az network nic show -g rg -n n1", f"az network nic show --ids {NIC}"),
    ("az network nic show -g rg -n n1", "az network nic show -g rg --name=n1 --subscription own"),
    ("az network vnet subnet show -g rg --vnet-name v -n s", f"az network vnet subnet show --ids {SUBNET} -o jsonc"),
    ("ping -c 4 -W 2 10.0.0.1", "ping 10.0.0.1 -W 2 -c 4"),
]
DIFFERENT = [
    ("az network nic show -g rg -n n1", "az network nic show -g rg -n n2"),
    ("az network nic show -g rg -n n1", "az network nic show -g rg -n n1 --subscription other"),
    ("az network nic show -g rg -n n1", f"az network nic show --ids {NIC.replace('0a/', '0b/')}"),
    ("az network nic show -g rg -n n1", "az network nic list -g rg"),
    ("az network nsg rule list -g rg --nsg-name a", "az network nsg rule list -g rg --nsg-name a --include-default"),
    ("az vm list", "az vm list -d"),
    ("ping -c 4 -W 2 10.0.0.1", "ping -c 2 -W 4 10.0.0.1"),
    ("curl -v https://a", "curl -v https://b"),
]


def test_spellings_of_one_command_have_one_form():
    wrong = []
    for expected, rows in ((True, SAME), (False, DIFFERENT)):
        for recorded, asked in rows:
            one, other = (form_of(shlex.split(text), HOME) for text in (recorded, asked))
            if one.asks_like(other) is not expected:
                wrong.append(f"{recorded} | {asked}")
    assert wrong == []


def tape_of(tmp_path: Path, *records: Mapping[str, Any]) -> TapeDirectory:
    file = tmp_path / "tape.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return TapeDirectory.create(tmp_path / "lab", read_tape(file), Briefing("tape", ""), LabClock(time.time(), 1.0))


def started(tape: Path, directory: Path) -> RunningLab:
    return start(TapeScenario(name="t", title="t", flows=(), symptoms=(), tape=tape), directory)


def play(lab: TapeDirectory, command: str) -> tuple[int, str, str]:
    played = lab.play(shlex.split(command))
    return played.exit_code, played.output, played.stderr


def test_an_answer_serves_every_projection_and_format_and_repeats(tmp_path):
    nic = {"id": NIC, "name": "n1", "properties": {"primary": True}}
    refused = {"command": "az network nsg list", "exit_code": 1, "stderr": "ERROR: (AuthorizationFailed) no\n"}
    lab = tape_of(
        tmp_path,
        {"command": "az network nic show -g rg -n n1", "body": nic},
        {"command": "az network nic show -g rg -n n1", "json": {"name": "n1", "primary": False}},
        {"command": "az vm show -g rg -n m --query name -o tsv", "output": "m\n"},
        refused,
        {"command": "dig +noall +answer db.x", "output": "db.x.\t300\tIN\tA\t10.0.0.9\n"},
        {"command": "az vm list", "output": "[", "output_truncated": True, "output_missing": "too long"},
        {"command": "rm x", "exit_code": None, "output": ""},
    )
    show = "az network nic show -n n1 -g rg"
    assert play(lab, f"{show} --query primary") == (0, "true\n", "")
    assert play(lab, f"{show} --query primary") == (0, "false\n", "")
    assert play(lab, f"{show} --query primary") == (0, "false\n", "")
    assert play(lab, f"{show} --query '[name,resourceGroup]' -o tsv") == (0, "n1\nrg\n", "")
    assert json.loads(play(lab, show)[1]) == {"id": NIC, "name": "n1", "primary": True, "resourceGroup": "rg"}
    assert play(lab, "az vm show -n m -g rg -o tsv --query name") == (0, "m\n", "")
    assert play(lab, "az network nsg list --query [].name") == (1, "", refused["stderr"])
    assert lab.resolve("DB.x") == ["10.0.0.9"]
    assert lab.resolve("db.y") == []
    for command in ("az vm show -g rg -n m", "az nonsense", "rm x", "sh -c 'x\x1b[2J'"):
        status, out, err = play(lab, command)
        assert (status, out, err.count("\n")) == (NOT_RECORDED, "", 1)
        assert err.startswith("ERROR: not recorded")
        assert "\x1b" not in err
    for command, why in (("az vm list", "only a part"), (f"{show} --query 'a['", "jmespath")):
        with pytest.raises(LabError, match=why):
            play(lab, command)


def test_a_command_that_may_not_write_gets_what_was_recorded_as_long_after_the_last_change(tmp_path):
    status = "az network watcher packet-capture show-status -l westeurope -n c"
    rows = [
        {"command": f"{status}", "output": text, "timestamp": f"2026-01-01T00:00:{second:02d}Z"}
        for second, text in ((0, "0\n"), (20, "1\n"), (50, "2\n"))
    ]
    lab = tape_of(tmp_path, *rows)
    told = []
    for seconds in (1, 10, 21, 48, 51, 900):
        there = replace(lab, clock=LabClock(time.time() - seconds, 1.0))
        with mock.patch.object(playback, "changing_state", side_effect=PermissionError(errno.EACCES, "no")):
            told.append(play(there, status)[1].strip())
    assert told == ["0", "0", "1", "1", "2", "2"]


def test_the_export_of_a_session_is_a_tape(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    many = json.dumps([{"name": f"rule-{n}"} for n in range(3000)])
    answers = {"az network nsg list": many, "az storage blob download": ""}
    run = lambda words, **_: SimpleNamespace(  # noqa: E731
        stdout=next((text for start, text in answers.items() if shlex.join(words).startswith(start)), "[]"),
        stderr="",
        returncode=0,
    )
    shell = SafeExecShell(
        "shell_1", hitl_callback=lambda *_: HitlDecision("approve"), audit_dir="audit", runner=run, sandbox="off"
    )
    name = "ghost_vm_20260101T000000"
    create = f"az network watcher packet-capture create -g rg -n {name} --vm m --storage-account a -o json"
    download = f"az storage blob download --account-name a -c caps -n {name}.cap --file captures/{name}.cap"
    answers[create] = json.dumps({"name": name, "storagePath": f"https://x/{name}.cap"})
    for command in ("az network nsg list -o json", create, download):
        assert shell.execute({"command": command, "reasoning": "to see"})["exit_code"] == 0, command
    Path("captures").mkdir()
    Path("captures", f"{name}.cap").write_bytes(b"\xd4\xc3\xb2\xa1packets")
    assert main(["audit", "export", "shell_1", "-o", "case.zip", "--local"]) == 0

    lab = started(Path("case.zip"), tmp_path / "lab")
    tape = TapeDirectory.open(tmp_path / "lab")
    assert json.loads(play(tape, "az network nsg list")[1]) == json.loads(many)
    new = "ghost_vm_20270101T000000"
    assert f"https://x/{new}.cap" in play(tape, create.replace(name, new))[1]
    assert play(tape, download.replace(name, new))[0] == 0
    assert Path("captures", f"{new}.cap").read_bytes() == b"\xd4\xc3\xb2\xa1packets"

    program = [lab.program_dir / "az", "network", "nsg", "list", "--query", "length(@)", "-o", "tsv"]
    again = reopen(tmp_path / "lab")
    ran = subprocess.run(program, env={**os.environ, **again.environment}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "3000\n", "")


AUDIT = "shell_audit_s_1.jsonl"
LINE = b'{"command": "az vm list", "exit_code": 0, "output": "[]"}\n'


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_damaged_or_hostile_export_is_one_line_of_error(tmp_path):
    link = zipfile.ZipInfo("captures/x.cap")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    exports: dict[str, tuple[tuple[str | zipfile.ZipInfo, bytes], ...]] = {
        "no records": (("manifest.json", b"{}"),),
        "two sessions": ((AUDIT, LINE), ("shell_audit_s_2.jsonl", LINE)),
        "twice": ((AUDIT, LINE), (AUDIT, LINE)),
        "link": ((AUDIT, LINE), (link, b"/etc/passwd")),
        "json": ((AUDIT, b"{"),),
        "no object": ((AUDIT, b"[1]\n"),),
        "deep": ((AUDIT, b'{"command": ' + b"[" * 100_000),),
        "no text": ((AUDIT, b'{"command": 7, "exit_code": 0}\n'),),
        "quote": ((AUDIT, b'{"command": "az \'", "exit_code": 0}\n'),),
        "half a character": ((AUDIT, b'{"command": "az x", "exit_code": 0, "output": "\\ud800"}\n'),),
        "time": ((AUDIT, b'{"command": "az x", "exit_code": 0, "timestamp": "9999-12-31T23:59:59-23:59"}\n'),),
        "not utf-8": ((AUDIT, b"\xff\n"),),
        "bad session": ((AUDIT, LINE), ("ghost_session.json", b"\x1b[2J")),
        "many": ((AUDIT, LINE), *((f"output/{n}.txt", b"") for n in range(MAX_MEMBERS))),
        "huge": ((AUDIT, LINE), ("captures/x.cap", bytes(MAX_MEMBER_BYTES + 1))),
    }
    (tmp_path / "none.zip").write_bytes(b"PK\x03\x04 no zip")
    paths = [tmp_path / "none.zip", tmp_path / "missing.jsonl"]
    for name, members in exports.items():
        paths.append(tmp_path / f"{name}.zip")
        with zipfile.ZipFile(paths[-1], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for member, content in members:
                archive.writestr(member, content)
    for path in paths:
        with pytest.raises(LabError) as refused:
            read_tape(path)
        assert str(refused.value).isprintable(), path


def test_no_file_of_an_export_is_written_under_its_own_path(tmp_path):
    export = tmp_path / "case.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr(AUDIT, LINE)
        archive.writestr("ghost_session.json", json.dumps({"symptom": "it\x1b[2J\nfails"}))
        for name in (
            "captures/../../out.cap",
            "/tmp/out.cap",
            "captures/a/b.cap",
            "captures/-x.cap",
            "captures/ok.cap",
        ):
            archive.writestr(name, b"packets")
    tape = read_tape(export)
    assert dict(tape.captures or {}) == {"ok.cap": b"packets"}
    assert tape.symptom is not None
    assert tape.symptom.isprintable()
    TapeDirectory.create(tmp_path / "lab" / "one", tape, Briefing("x", ""), LabClock(0.0, 1.0))
    assert not list(tmp_path.rglob("out.cap"))


def test_only_recorded_programs_and_those_of_every_lab_are_there(tmp_path):
    file = tmp_path / "t.jsonl"
    file.write_text("".join(f'{{"command": "{name} x"}}\n' for name in ("nc", "rm", "../evil", "a/b", "A;b")))
    lab = started(file, tmp_path / "lab")
    there = {path.name for path in lab.program_dir.iterdir()}
    assert there == {"az", "ping", "traceroute", "dig", "ss", "curl", "ip", "cat", "rm", "nc"}
    assert Tape(()).recordings == ()
