"""A session is opened new, resumed or afresh; whatever ended the last one, nothing of it is lost or deleted."""

from __future__ import annotations

import io
import json
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from ghost.agent import Orphan, Session, TurnLog, Workspace, load_session, recorded_symptom, save_session
from ghost.brain import OfflineBrain, StatedEnds, UserMessage
from ghost.cli.investigation_command import INCONCLUSIVE
from ghost.cli.leftovers import of_this_network
from ghost.cli.narration import Narration
from ghost.cli.session_opening import OpenedSession, SessionOpening
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.lab import load_scenario
from ghost.records import SystemClock, private_dir
from tests.cli.ready_ghost import SIGNAL_AT, run_ghost
from tests.exhaustive import sample

SYMPTOM = "web-vm-01 cannot reach redis-cache-01 on 6379"


class Desk:
    """Opens sessions of a workspace; a person answers, or nobody does."""

    def __init__(self, root: Path, answers: str | None = None) -> None:
        self.workspace, self.screen = Workspace(root), io.StringIO()
        typed = iter(answers or "")
        rich = Console(file=self.screen, width=300)
        narration = Narration(rich, interactive=answers is not None, read=lambda _: next(typed))
        self.opening = SessionOpening(self.workspace, Settings(), narration, SystemClock(), OfflineBrain())

    def resumed(self, session_id: str) -> OpenedSession:
        return self.opening.resumed(session_id)


@pytest.fixture
def begun(tmp_path: Path) -> str:
    """The id of a session in a lab whose symptom is on record."""
    workspace = Workspace(tmp_path)
    session = Desk(tmp_path).opening.new(load_scenario("blocked-port"), SYMPTOM).session
    turns = TurnLog(session.paths(tmp_path).turns)
    turns.user(UserMessage(SYMPTOM))
    session.audit_head["turns"] = turns.head.as_dict()
    save_session(workspace.session_file, session)
    return session.session_id


def damage_checksum(root: Path) -> None:
    content = json.loads((root / "ghost_session.json").read_text())
    (root / "ghost_session.json").write_text(json.dumps({**content, "turn_count": 7}))


def damage_records(root: Path) -> None:
    (turns,) = root.glob("audit/ghost_turns_*.jsonl")
    turns.write_text(turns.read_text() + "not a record\n" * 12)


def damage_file(root: Path) -> None:
    (root / "ghost_session.json").write_text("{half")


def every_file(root: Path) -> set[bytes]:
    return {path.read_bytes() for path in root.rglob("*") if path.is_file() and "lab" not in path.parts}


@pytest.mark.parametrize("damage", [damage_checksum, damage_records, damage_file])
def test_a_fresh_session_has_the_symptom_and_the_lab_of_the_damaged_one_and_deletes_nothing(tmp_path, begun, damage):
    damage(tmp_path)
    before = every_file(tmp_path)
    opened = Desk(tmp_path, "f").resumed(begun)
    assert opened.session.session_id != begun
    assert (opened.session.resumed_from, opened.session.symptom) == (begun, SYMPTOM)
    assert opened.lab is not None
    assert opened.session.network == "lab blocked-port (SIMULATED)"
    assert before <= every_file(tmp_path)
    assert Desk(tmp_path).resumed(opened.session.session_id).session.session_id == opened.session.session_id


@pytest.mark.parametrize("damage", [damage_checksum, damage_records])
def test_one_that_is_continued_with_keeps_its_id_and_a_warning(tmp_path, begun, damage):
    damage(tmp_path)
    session = Desk(tmp_path, "c").resumed(begun).session
    assert (session.session_id, session.resumed_from, session.is_resume) == (begun, None, True)
    assert session.integrity_warning


def test_a_file_that_cannot_be_read_cannot_be_continued_with(tmp_path, begun):
    damage_file(tmp_path)
    with pytest.raises(SessionError, match="corrupted"):
        Desk(tmp_path, "ca").resumed(begun)


@pytest.mark.parametrize("answers", ["a", None])
@pytest.mark.parametrize("damage", [damage_checksum, damage_records, damage_file])
def test_abort_and_nobody_there_change_nothing_and_say_what_to_do(tmp_path, begun, damage, answers):
    damage(tmp_path)
    before = every_file(tmp_path)
    with pytest.raises(SessionError, match="ghost audit verify"):
        Desk(tmp_path, answers).resumed(begun)
    assert every_file(tmp_path) == before


def test_problems_are_listed_one_a_line_ten_at_most(tmp_path, begun):
    damage_records(tmp_path)
    desk = Desk(tmp_path, "c")
    warning = desk.resumed(begun).session.integrity_warning
    listed = [line for line in desk.screen.getvalue().splitlines() if "[WARN]" in line]
    assert len(listed) == 11
    assert "line 2 is not a JSON object" in listed[0]
    assert listed[-1].endswith("and 2 more")
    assert warning.endswith("and 2 more")


def test_an_archived_file_that_names_another_session_is_not_resumed(tmp_path, begun):
    workspace = Workspace(tmp_path)
    workspace.set_current_aside()
    other = load_session(workspace.find(begun))[0].model_copy(update={"session_id": "ghost_20260101_000000"})
    save_session(workspace.find(begun), other)
    with pytest.raises(SessionError, match="is of another session: resume ghost_20260101_000000"):
        Desk(tmp_path, "ca").resumed(begun)


def test_an_archived_session_of_the_same_id_is_not_overwritten(tmp_path, begun):
    workspace = Workspace(tmp_path)
    archived = load_session(workspace.session_file)[0].paths(tmp_path).archived_session
    archived.write_text("the older one")
    workspace.set_current_aside()
    assert archived.read_text() == "the older one"
    assert (tmp_path / "ghost_session.corrupt-1.json").is_file()


MOMENTS = [(name, count) for count in range(1, 61, 3) for name in ("SIGKILL", "SIGINT")]
"""Changes of files from the start to a few turns of the brain: twenty moments."""


@pytest.mark.parametrize(("name", "count"), sample(MOMENTS, 6, seed=3))
def test_ended_at_any_moment_of_its_start_it_verifies_and_resumes_with_its_symptom(tmp_path, name, count):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GHOST_", "GEMINI_"))}

    def ghost(*words: str, **environment: str):
        return run_ghost(*words, cwd=tmp_path, environment={**clean, **environment}, in_process=True)

    words = ("investigate", SYMPTOM, "--port", "6379", "--dest", "redis-cache-01", "--lab", "blocked-port")
    stated = StatedEnds(destination="redis-cache-01", port=6379)
    ended = ghost(*words, **{SIGNAL_AT: f"{name} {count}"})
    assert ended.returncode == (130 if name == "SIGINT" else -signal.SIGKILL)
    assert "Traceback" not in ended.stderr
    session_file = Workspace(tmp_path).session_file
    assert ("Resume with" in ended.stderr) == (name == "SIGINT" and session_file.exists())
    if not session_file.exists():
        assert count < 20
        return
    session_id = load_session(session_file)[0].session_id
    verified = ghost("audit", "verify", session_id)
    assert verified.returncode == 0, verified.stdout
    resumed = ghost("investigate", "--resume", session_id, "--max-turns", "1", "--json")
    assert resumed.returncode == INCONCLUSIVE, resumed.stderr
    report = json.loads(resumed.stdout)
    assert report["symptom"] == SYMPTOM
    session = load_session(session_file)[0]
    assert recorded_symptom(session.paths(tmp_path).turns) == UserMessage(SYMPTOM, stated)
    assert session.stated == stated
    assert not [note for note in report["advisories"] if "Integrity" in note]
    assert ghost("audit", "verify", session_id).returncode == 0


def test_what_sessions_of_another_network_left_is_told_and_not_offered(tmp_path):
    """A lab's capture cannot be deleted through another network: an approved delete would fail, or hit another one."""
    workspace = Workspace(tmp_path)
    private_dir(workspace.audit_dir)
    about = {"created_at": "2026-01-01T12:00:00Z", "model": "offline", "audit_dir": str(workspace.audit_dir)}
    here = Session(session_id="ghost_20260101_120001", **about)
    other = here.model_copy(update={"session_id": "ghost_20260101_120000", "network": "lab wire-loss (SIMULATED)"})
    save_session(workspace.audit_dir / f"ghost_session_{other.session_id}.json", other)
    same = here.model_copy(update={"session_id": "ghost_20260101_115959"})
    save_session(workspace.audit_dir / f"ghost_session_{same.session_id}.json", same)
    save_session(workspace.session_file, here)
    left = [
        Orphan("partially_cleaned", name, name, None, session)
        for name, session in (
            ("ghost_a", other.session_id),
            ("ghost_b", same.session_id),
            ("ghost_c", None),
            ("ghost_d", here.session_id),  # of the session that goes on
        )
    ]
    screen = io.StringIO()
    narration = Narration(Console(file=screen, soft_wrap=True), interactive=False)
    assert [o.name for o in of_this_network(left, workspace, here, narration)] == ["ghost_b", "ghost_c"]
    assert "ghost_a (lab wire-loss (SIMULATED))" in screen.getvalue()
