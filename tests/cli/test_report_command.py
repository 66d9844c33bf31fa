"""`ghost report`: the report from the records, and only as sound as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.ready_ghost import run_ghost

FAST = {"GHOST_LAB_SPEED": "1000"}


@pytest.fixture(scope="module")
def investigated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("investigated")
    done = run_ghost("investigate", "--lab", "blocked-port", "--html", cwd=directory, environment=FAST, in_process=True)
    assert done.returncode == 0, done.stderr
    return directory


def report(directory: Path, *words: str):
    return run_ghost("report", "last", *words, cwd=directory, environment=FAST, in_process=True)


def test_what_is_written_again_is_what_was_written(investigated: Path) -> None:
    (written,) = (investigated / "audit").glob("ghost_rca_*.md")
    assert report(investigated, "--format", "md").stdout == written.read_text()
    made = json.loads(report(investigated, "--format", "json").stdout)
    assert made == json.loads(written.with_suffix(".json").read_text())
    assert written.with_suffix(".html").read_text().startswith("<!doctype html>")
    assert report(investigated).stdout.startswith("Root Cause Analysis")


def test_no_form_is_written_among_the_records(investigated: Path) -> None:
    (audit,) = (investigated / "audit").glob("shell_audit_*.jsonl")
    before = audit.read_bytes()
    refused = report(investigated, "--output", str(audit))
    assert refused.returncode == 2
    assert "among the records" in refused.stderr
    assert audit.read_bytes() == before
    assert report(investigated, "--format", "html", "--output", "page.html").returncode == 0
    assert (investigated / "page.html").is_file()


def test_records_that_do_not_hold_are_said_in_the_report_and_by_the_status(investigated: Path) -> None:
    (audit,) = (investigated / "audit").glob("shell_audit_*.jsonl")
    whole = audit.read_text()
    audit.write_text(whole.replace("close-legacy-ports", "open-legacy-ports"))
    try:
        told = report(investigated)
    finally:
        audit.write_text(whole)
    assert told.returncode == 1
    assert "The records do not hold" in told.stderr
    assert "The records do not hold" in told.stdout
    assert report(investigated).returncode == 0


def test_one_report_that_cannot_be_read_hides_no_other_session(investigated: Path) -> None:
    (written,) = (investigated / "audit").glob("ghost_rca_*.json")
    whole = written.read_text()
    (investigated / "audit" / "shell_audit_shell_20260101_120000_ab.jsonl").symlink_to("/dev/null")
    written.write_text('{"causes": NaN}')
    try:
        listed = run_ghost("sessions", cwd=investigated, environment=FAST, in_process=True)
    finally:
        written.write_text(whole)
    assert listed.returncode == 0, listed.stderr
    assert written.stem.removeprefix("ghost_rca_") in listed.stdout
    assert re.search(r"shell_20260101_120000_ab .*cannot be read", listed.stdout)


def test_private_mode_sends_no_session_without_placeholders_to_a_model(investigated: Path) -> None:
    private = {**FAST, "GHOST_PRIVATE": "1", "OPENAI_API_KEY": "k", "GHOST_LLM_BASE_URL": "http://127.0.0.1:9"}
    words = ("ask", "last", "why not the route?", "--brain", "openai", "--model", "m")
    refused = run_ghost(*words, cwd=investigated, environment=private, in_process=True)
    assert refused.returncode == 2
    assert "private mode" in refused.stderr
    assert "Asking" not in refused.stderr
