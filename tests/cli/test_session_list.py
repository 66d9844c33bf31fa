"""`ghost sessions` tells how each session ended and what is left to do, in lines that fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import Session, SessionPaths, TurnLog, Workspace, save_session
from ghost.brain import Turn
from ghost.cli import main, session_list
from ghost.cloud.unreleased_captures import UnreleasedCapture
from ghost.records import private_dir, write_json

SYMPTOM = "VMs in prod-subnet cannot reach the Redis cache\x1b[31m on port 6379, since the change of Monday night"
CAUSE = {
    "resource": "/subscriptions/s/networkSecurityGroups/cache-nsg",
    "rule": "close-legacy-ports",
    "supported": True,
}


def add(workspace: Path, number: int, *, report: dict[str, Any] | None = None, symptom: str = SYMPTOM) -> SessionPaths:
    """A session of `workspace`, finished with `report`."""
    paths = SessionPaths(workspace / "audit", f"ghost_20260101_12000{number}")
    private_dir(paths.audit_dir)
    session = Session(
        session_id=paths.session_id,
        created_at=f"2026-01-01T12:00:0{number}Z",
        model="offline",
        audit_dir=str(paths.audit_dir),
        symptom=symptom,
    )
    if report is not None:
        write_json(paths.report_json, report)
        session.rca_report_path = str(paths.report)
    save_session(paths.archived_session, session)
    return paths


def found(*causes: dict[str, Any], outcome: str = "cause_found") -> dict[str, Any]:
    return {"outcome": outcome, "confidence": "high", "causes": list(causes)}


def test_each_session_is_one_line_newest_first_with_its_end_and_what_waits(tmp_path, capsys, monkeypatch):
    add(tmp_path, 1, report=found(CAUSE))
    add(tmp_path, 2, report=found({**CAUSE, "rule": "close-old"}, CAUSE))
    add(tmp_path, 3, report=found({**CAUSE, "supported": False}, outcome="inconclusive"))
    add(tmp_path, 4)
    TurnLog(add(tmp_path, 5).turns).turn(1, Turn("Which port?"))
    add(tmp_path, 6).intent.write_text("{}")
    add(tmp_path, 7, report=found()).report_json.write_text("{half")
    left = UnreleasedCapture("t1", "ghost_20260101_120001", "needs_cleanup", "vm-1", 3, None)
    monkeypatch.setattr(session_list, "unreleased_captures_of", lambda *_: [left, left])

    assert main(["sessions", "-w", str(tmp_path)]) == 0
    *lines, hint = capsys.readouterr().out.splitlines()
    assert [line.partition("…")[2].strip() for line in lines] == [
        "finished; its report cannot be read",
        "interrupted: resume",
        "question open: resume",
        "not finished: resume",
        "inconclusive (high)",
        "cause found (high): cache-nsg close-old +1",
        "cause found (high): cach…; 2 captures to clean up",
    ]
    assert [line.split("  ")[0] for line in lines] == [f"ghost_20260101_12000{n}" for n in range(7, 0, -1)]
    assert all("01-01 12:00Z  VMs in " in line and len(line) <= 100 for line in lines)
    assert hint.startswith("See one: ghost report ghost_20260101_120007 ")

    assert main(["sessions", "-w", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[6]["waits"] == ["2 captures to clean up"]
    assert (rows[6]["symptom"], rows[6]["causes"], rows[6]["outcome"]) == (SYMPTOM, [CAUSE], "cause_found")


@pytest.mark.parametrize("width", [40, 66, 80, 100, 200])
def test_a_line_fits_and_an_id_is_never_cut(tmp_path, width):
    add(tmp_path, 1, report=found(CAUSE))
    add(tmp_path, 2, symptom="short")
    rows = session_list._newest_first(session_list._investigations(Workspace(tmp_path)))
    lines = list(session_list._lines(rows, width))
    assert [line.split()[0] for line in lines] == [row.session_id for row in rows]
    assert max(map(len, lines)) <= max(width, 66)
    assert "\x1b" not in "".join(lines)
    if width == 200:
        assert SYMPTOM.replace("\x1b", "\\x1b") in lines[1]
