"""A snapshot is a path of records: it walks as the session did, and a changed output is not walked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.agent import SessionPaths, open_snapshot, snapshot_of
from ghost.brain import OfflineBrain
from ghost.errors import RecordError, SessionError
from tests.agent.lab_bench import investigated


def test_a_snapshot_walks_as_its_session_did_and_only_from_what_was_written(tmp_path: Path) -> None:
    done = investigated("blocked-port", tmp_path, OfflineBrain())
    paths = done.session.paths(tmp_path)
    snapshot = snapshot_of(done.session, paths)
    assert {done.evidence[each.audit_id]["classification"] for each in snapshot.reads} == {"SAFE"}
    (walked,) = open_snapshot(snapshot, paths, done.session.head("shell")).walks
    assert walked.blocker is not None
    assert walked.blocker.rule == "close-legacy-ports"
    assert set(walked.blocker.references) <= {each.audit_id for each in snapshot.reads}

    without = done.session.model_copy(update={"completion": {}})
    with pytest.raises(SessionError, match="no traffic that could be walked"):
        snapshot_of(without, paths)
    kept = [each.audit_id for each in snapshot.reads if done.evidence[each.audit_id].get("output_sha256")]
    file = paths.outputs / f"{kept[0]}.txt"
    file.write_text(file.read_text().replace("web-vm-01", "web-vm-02", 1))
    with pytest.raises(RecordError, match=kept[0]):
        open_snapshot(snapshot, paths, done.session.head("shell"))
    audit = SessionPaths(tmp_path / "audit", done.session.session_id).shell_audit
    audit.write_text(audit.read_text().replace('"exit_code": 0', '"exit_code": 1', 1))
    with pytest.raises(RecordError, match="do not hold"):
        open_snapshot(snapshot, paths, done.session.head("shell"))
