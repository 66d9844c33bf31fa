"""How a session is named: its id, `last`, a unique beginning or end of the id."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.cli.session_records import session_named
from ghost.config import Settings
from ghost.errors import SessionError

GHOSTS = ("ghost_20260101_120000", "ghost_20260102_093000")
WALK, COMMAND = "reach_20260103_101010_abcdef", "shell_20260101_130000_123456"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    audit = tmp_path / "demo" / "audit"
    audit.mkdir(parents=True)
    for name in (*GHOSTS, WALK, COMMAND):
        (audit / f"shell_audit_{name}.jsonl").touch()
        (audit / f"shell_audit_{name}.jsonl.head").touch()
    return audit.parent


@pytest.mark.parametrize(
    ("named", "meant", "of_investigations"),
    [
        (GHOSTS[0], GHOSTS[0], GHOSTS[0]),
        ("last", WALK, GHOSTS[1]),
        ("093000", GHOSTS[1], GHOSTS[1]),
        ("ghost_20260101", GHOSTS[0], GHOSTS[0]),
        ("shell", COMMAND, "shell"),
        ("ghost_3", "ghost_3", "ghost_3"),
        ("", "", ""),
    ],
)
def test_a_session_is_named_by_its_id_last_or_a_part(
    workspace: Path, named: str, meant: str, of_investigations: str
) -> None:
    assert session_named(named, workspace, Settings())[1] == meant
    assert session_named(named, workspace, Settings(), investigations=True)[1] == of_investigations


def test_a_part_of_several_ids_is_refused_with_examples(workspace: Path) -> None:
    with pytest.raises(SessionError, match=r"fits 2 sessions: give more of the id.*ghost_20260101_120000"):
        session_named("ghost_", workspace, Settings())


def test_last_of_no_session_stays_a_name_that_is_not_found(tmp_path: Path) -> None:
    assert session_named("last", tmp_path, Settings())[1] == "last"


def test_a_session_in_a_directory_below_is_found(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.parent)
    place, session_id = session_named("120000", None, Settings())
    assert (place.root.name, session_id) == (workspace.name, GHOSTS[0])
