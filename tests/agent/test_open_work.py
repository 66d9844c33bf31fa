"""What a workspace leaves open is a task of the mind until it is done, and no longer."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ghost.agent import OpenInvestigations, PendingCleanups, Session, Workspace, save_session
from ghost.cloud import CaptureTask, CleanupStatus, CleanupStep, Outcome, State
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.task import Timestamps
from ghost.mind import TaskStatus
from ghost.records import workspace_lock

NOW = datetime(2026, 1, 2, tzinfo=UTC).timestamp()


def a_session(number: int, **fields: object) -> Session:
    return Session(
        session_id=f"ghost_2026010{number}_120000",
        created_at="2026-01-01T12:00:00.000Z",
        model="offline",
        audit_dir="audit",
        **fields,
    )


def a_workspace(root: Path) -> Workspace:
    workspace = Workspace(root)
    workspace.audit_dir.mkdir(parents=True)
    return workspace


def test_an_investigation_without_a_conclusion_is_a_task_until_it_concludes(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path)
    source = OpenInvestigations(workspace)
    assert list(source.tasks(NOW)) == []

    save_session(workspace.session_file, a_session(1, turn_count=3))
    workspace.set_current_aside()
    save_session(workspace.session_file, a_session(2))
    found = {task.id: task for task in source.tasks(NOW)}
    assert set(found) == {"investigation:ghost_20260101_120000", "investigation:ghost_20260102_120000"}
    assert "--resume ghost_20260101_120000" in found["investigation:ghost_20260101_120000"].context
    assert found["investigation:ghost_20260101_120000"].created_ts == datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()

    save_session(workspace.session_file, a_session(2, completion={"confidence": "high"}))
    assert [task.id for task in source.tasks(NOW)] == ["investigation:ghost_20260101_120000"]


def test_one_that_is_under_way_is_being_done(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path)
    save_session(workspace.session_file, a_session(1))
    source = OpenInvestigations(workspace)
    with workspace_lock(tmp_path):
        assert [task.status for task in source.tasks(NOW)] == [TaskStatus.DOING]
    assert [task.status for task in source.tasks(NOW)] == [TaskStatus.OPEN]


def test_a_damaged_session_file_is_no_task_and_hides_no_other(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path)
    save_session(workspace.session_file, a_session(1))
    (workspace.audit_dir / "ghost_session_ghost_20260103_120000.json").write_text("{")
    undated = a_session(4).model_copy(update={"created_at": "some day"})
    save_session(workspace.audit_dir / "ghost_session_ghost_20260104_120000.json", undated)
    assert [task.id for task in OpenInvestigations(workspace).tasks(NOW)] == ["investigation:ghost_20260101_120000"]


def a_capture(state: State, **fields: object) -> CaptureTask:
    return CaptureTask(
        task_id="ghost_web_1",
        session_id="ghost_20260101_120000",
        target="web-01",
        state=state,
        cleanup_plan=(CleanupStep(command="az network watcher packet-capture delete", resource="capture"),),
        cleanup_status=CleanupStatus.PENDING,
        timestamps=Timestamps(created=datetime(2026, 1, 1, 12, tzinfo=UTC)),
        **fields,
    )


def test_a_capture_that_was_not_cleaned_up_is_a_task_until_a_later_session_did_it(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path)
    source = PendingCleanups(workspace)
    first = TaskRegistry(workspace.audit_dir, "ghost_20260101_120000", print)
    first.save(a_capture(State.COMPLETED, outcome=Outcome.COMPLETED))

    (task,) = source.tasks(NOW)
    assert task.id == "cleanup:ghost_web_1"
    assert "1 step left" in task.context
    assert task.deadline_ts == datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
    before = sorted(path.name for path in workspace.audit_dir.iterdir())

    later = TaskRegistry(workspace.audit_dir, "ghost_20260102_120000", print)
    left = later.get("ghost_web_1")
    assert left is not None
    done = tuple(step.model_copy(update={"executed": True}) for step in left.cleanup_plan)
    later.save(left.having(state=State.DONE, cleanup_plan=done, cleanup_status=CleanupStatus.COMPLETED))
    assert list(source.tasks(NOW)) == []
    assert sorted(path.name for path in workspace.audit_dir.iterdir() if "20260102" not in path.name) == before


def test_a_capture_of_the_session_that_runs_is_none_until_that_session_ends(tmp_path: Path) -> None:
    workspace = a_workspace(tmp_path)
    save_session(workspace.session_file, a_session(1))
    TaskRegistry(workspace.audit_dir, "ghost_20260101_120000", print).save(a_capture(State.WAITING))
    source = PendingCleanups(workspace)
    with workspace_lock(tmp_path):
        assert list(source.tasks(NOW)) == []
    (task,) = source.tasks(NOW)
    assert "its session ended while the capture was active" in task.context
