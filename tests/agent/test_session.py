"""The session file: whole, checked, and found again by its id."""

from __future__ import annotations

import json

import pytest

from ghost.agent import Session, Workspace, load_session, save_session
from ghost.errors import SessionError


def session(identity: str = "ghost_20260101_000000") -> Session:
    return Session(session_id=identity, created_at="2026-01-01T00:00:00.000Z", model="offline", audit_dir="audit")


def test_a_session_round_trips_with_a_checksum_that_holds(tmp_path):
    path = tmp_path / "ghost_session.json"
    original = session()
    original.hypotheses.register("h1", "d", "r", at="now")
    save_session(path, original)
    loaded, intact = load_session(path)
    assert loaded == original
    assert intact
    assert loaded.active_hypothesis_ids == ["h1"]


PUBLISHED = (
    "session_id created_at resumed_from model audit_dir turn_count rca_report_path hypothesis_log denial_tracker "
    "consecutive_denial_counter active_hypothesis_ids active_task_ids evidence_conflicts is_resume _checksum"
)
OF_A_HYPOTHESIS = "id description state denial_count created_at resolved_at resolving_audit_id denial_events"
OF_A_CONFLICT = "hypothesis_id conflicting_audit_ids higher_fidelity_source resolution description"


def test_the_file_has_the_published_fields(tmp_path):
    original = session()
    original.hypotheses.register("h1", "d", "r", at="now")
    original.hypotheses.contradict("h1", ["s_001", "s_002"], "capture (tier 1)", "they disagree")
    save_session(tmp_path / "s.json", original)
    content = json.loads((tmp_path / "s.json").read_text())
    assert set(PUBLISHED.split()) - content.keys() == set()
    assert set(OF_A_HYPOTHESIS.split()) - content["hypothesis_log"][0].keys() == set()
    assert set(OF_A_CONFLICT.split()) - content["evidence_conflicts"][0].keys() == set()


def test_a_changed_session_is_noticed(tmp_path):
    path = tmp_path / "ghost_session.json"
    save_session(path, session())
    content = json.loads(path.read_text())
    content["turn_count"] = 7
    path.write_text(json.dumps(content))
    assert load_session(path)[1] is False


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"session_id": "x"}', '{"session_id": "../../etc", "_checksum": 1}']
)
def test_what_is_no_session_is_a_clear_error(tmp_path, content):
    path = tmp_path / "ghost_session.json"
    path.write_text(content)
    with pytest.raises(SessionError, match=r"ghost_session\.json"):
        load_session(path)


def test_an_id_that_would_leave_the_directory_is_refused(tmp_path):
    path = tmp_path / "ghost_session.json"
    save_session(path, session("../../evil"))
    with pytest.raises(SessionError, match=r"its id is '../../evil'"):
        load_session(path)
    with pytest.raises(SessionError, match="no session"):
        Workspace(tmp_path).find("../../evil")


def test_starting_anew_keeps_the_old_session_findable(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.audit_dir.mkdir()
    for identity in ("ghost_20260101_000000", "ghost_20260101_000001"):
        workspace.set_current_aside()
        save_session(workspace.session_file, session(identity))
    assert list(workspace.session_ids()) == ["ghost_20260101_000001", "ghost_20260101_000000"]
    assert workspace.find("ghost_20260101_000000").parent == workspace.audit_dir
    assert workspace.taken("ghost_20260101_000000")
    assert not workspace.taken("ghost_20260101_000002")


def test_an_unknown_session_names_the_nearest_one(tmp_path):
    workspace = Workspace(tmp_path)
    save_session(workspace.session_file, session())
    with pytest.raises(SessionError, match="did you mean ghost_20260101_000000"):
        workspace.find("ghost_20260101_00000")


def test_a_corrupt_current_file_is_set_aside_not_lost(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.session_file.write_text("{half")
    workspace.set_current_aside()
    assert (tmp_path / "ghost_session.corrupt-1.json").read_text() == "{half"
