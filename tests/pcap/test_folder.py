"""A folder of captures: the worst first, and one that is broken spoils nothing."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from ghost.pcap import main
from ghost.pcap.report import capture_workers
from ghost.pcap.report.capture_folder import judge_folder, table_lines
from ghost.pcap.report.output_files import Places
from ghost.pcap.report.single_capture import Report, report_on
from tests.pcap.wire import SYN, Talk, pcap, transfer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A healthy capture, one with loss, one where nobody answers, a damaged one, and things that are none."""
    root = tmp_path / "evidence"
    (root / "deeper" / "still").mkdir(parents=True)
    (root / ".hidden").mkdir()
    healthy, _ = transfer(1, segments=60)
    healthy.save(root / "healthy.pcap")
    healthy.save(root / ".hidden" / "unseen.pcap")
    lossy, _ = transfer(2, segments=200, downstream=0.05)
    (root / "deeper" / "lossy.cap").write_bytes(gzip.compress(pcap(lossy.records)))
    silent = Talk().c(0, 0, SYN).c(0, 0, SYN, after_ms=1000).c(0, 0, SYN, after_ms=2000)
    silent.save(root / "deeper" / "still" / "silent.data")
    (root / "damaged.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a" + b"\xff" * 60)
    (root / "notes.txt").write_text("seen on Tuesday")
    (root / "link.pcap").symlink_to(root / "healthy.pcap")
    return root


def test_every_capture_below_is_found_by_its_content_and_the_worst_comes_first(folder: Path, tmp_path: Path) -> None:
    found = judge_folder(folder, Places(tmp_path / "out", tmp_path / "out"))
    assert [(row.name, row.word) for row in found.ranked()][:2] == [
        ("deeper/still/silent.data", "HIGH"),
        ("deeper/lossy.cap", "MEDIUM"),
    ]
    assert {row.name for row in found.rows} <= {
        "deeper/still/silent.data",
        "deeper/lossy.cap",
        "healthy.pcap",
        "damaged.pcapng",
    }
    assert found.skipped == ["notes.txt"]
    table = table_lines(found)
    assert re.match(r"HIGH +deeper/still/silent.data +3  10.0.1.4 gets no answer", table[1])


def test_the_index_leads_to_the_report_of_each_capture(folder: Path, tmp_path: Path) -> None:
    found = judge_folder(folder, Places(tmp_path / "out", tmp_path / "out"))
    for name, link in (("folder_summary.md", r"\]\(([^)]+)\)"), ("folder_index.html", r'href="([^"]+)"')):
        links = re.findall(link, (tmp_path / "out" / name).read_text())
        assert len(links) == len(found.rows)
        assert all((tmp_path / "out" / each).is_file() for each in links)


def test_captures_of_the_same_name_keep_files_of_their_own(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "web.pcap").write_bytes((folder / "healthy.pcap").read_bytes())
    found = judge_folder(folder, Places(tmp_path / "out", tmp_path / "out"))
    written = [path for row in found.rows for path in row.written.values()]
    assert len(set(written)) == len(written)
    assert (tmp_path / "out" / "a_web.pcap_report.html").is_file()


def test_a_capture_that_cannot_be_read_is_named_and_the_others_are_judged(folder: Path, tmp_path: Path) -> None:
    broken = folder / "broken.pcap.gz"
    broken.write_bytes(gzip.compress(pcap([]), compresslevel=0)[:27])  # it ends inside the header of the capture
    (folder / "full_disk.pcap").touch()
    found = judge_folder(folder, Places(tmp_path / "out", tmp_path / "out"))
    assert [row.name for row in found.failed] == ["broken.pcap.gz"]
    assert found.sentence == "5 captures, 1 without packets, 1 not decoded, 1 could not be read, 1 other file skipped"
    for text in ((tmp_path / "out" / name).read_text() for name in ("folder_summary.md", "folder_index.html")):
        assert re.search(r"FAILED\b.*broken.pcap.gz.*damaged gzip data", text)
        assert re.search(r"NO PACKETS.*full\\?_disk.pcap", text)
    assert [row.word for row in found.ranked()] == ["HIGH", "MEDIUM", "FAILED", "NOT READ", "NO PACKETS", "INFO"], (
        "unknown before healthy"
    )


def test_what_is_called_a_capture_and_is_none_or_empty_is_named_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder / "written.pcap").write_text("a note under the wrong name")
    (folder / "full_disk.pcap3").touch()
    assert main([str(folder), "--json"]) == 1
    said = capsys.readouterr()
    printed = json.loads(said.out)
    assert [one["capture"] for one in printed["failed"]] == ["written.pcap"]
    assert "is not a packet capture" in said.err
    assert {one["capture"]: one["packets"] for one in printed["captures"]}["full_disk.pcap3"] == 0
    assert printed["skipped_files"] == 1


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root reads everything")
def test_captures_and_folders_that_may_not_be_read_are_named_and_fail(folder: Path, tmp_path: Path) -> None:
    secret, room = folder / "secret.dump", folder / "deeper" / "room"
    secret.write_bytes((folder / "healthy.pcap").read_bytes())
    room.mkdir()
    (room / "web.pcap").write_bytes((folder / "healthy.pcap").read_bytes())
    program = [sys.executable, "-m", "ghost.pcap"]
    if os.geteuid() == 0:
        program = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *program]
    secret.chmod(0)
    room.chmod(0)
    try:
        done = subprocess.run([*program, folder, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
        locked = subprocess.run([*program, room], cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        secret.chmod(0o600)
        room.chmod(0o700)
    failed = {one["capture"]: one["error"] for one in json.loads(done.stdout)["failed"]}
    assert failed.keys() == {"secret.dump", "deeper/room"}
    assert all("Permission denied" in error for error in failed.values())
    assert (done.returncode, locked.returncode) == (1, 1)
    assert "Permission denied" in locked.stderr
    assert "holds no packet capture" not in locked.stderr


def test_an_interrupt_keeps_what_is_done_and_says_what_is_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done: list[Path] = []

    def interrupted(path: Path, progress_on: TextIO | None = None) -> Report:
        if done:
            raise KeyboardInterrupt
        done.append(path)
        return report_on(folder / "healthy.pcap")

    monkeypatch.setattr(capture_workers, "report_on", interrupted)
    assert main([str(folder)]) == 130
    said = capsys.readouterr().out
    assert "1 capture, 1 other file skipped, 3 not read (interrupted)" in said
    assert (tmp_path / "evidence_reports" / "folder_summary.md").is_file()


def test_the_program_writes_to_a_directory_of_its_own_and_ranks_for_machines_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["captures"][0]["kind"] == "syn_unanswered"
    assert printed["captures"][0]["html_report_path"] == "evidence_reports/silent.data_report.html"
    assert printed["skipped_files"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"evidence", "evidence_reports"}


def test_names_that_would_act_in_a_page_or_a_table_are_shown_as_they_are(folder: Path, tmp_path: Path) -> None:
    hostile = "x<script>alert(1)|\x1b[2J\u202e.pcap"
    (folder / hostile).write_bytes((folder / "healthy.pcap").read_bytes())
    found = judge_folder(folder, Places(tmp_path / "out", tmp_path / "out"))
    page = (tmp_path / "out" / "folder_index.html").read_text()
    summary = (tmp_path / "out" / "folder_summary.md").read_text()
    for shown in (page, summary, "\n".join(table_lines(found)).replace("<script>", "")):
        assert "<script>" not in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "&lt;script&gt;alert(1)" in page
