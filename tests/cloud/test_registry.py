"""The registry gives back the last record of every task, whatever else the files hold."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.cloud.registry import TaskRegistry
from ghost.cloud.registry_lines import Reading, UnreadTask, read_tasks
from ghost.cloud.task import CaptureTask, CleanupStatus, CleanupStep, Outcome, State
from ghost.records import ChainedLog, verify
from tests.exhaustive import examples

# As other tools and earlier versions write it: no field beyond the published ones.
PUBLISHED = {
    "task_id": "ghost_web-vm-01_20250115T143200",
    "session_id": "sess_abc123",
    "intent": "capture_traffic",
    "target": "web-vm-01",
    "target_type": "vm",
    "state": "COMPLETED",
    "investigation_context": "Investigating intermittent 502 errors",
    "parameters": {"duration_seconds": 60, "storage_account": "forensics-sa", "resource_group": "prod-rg"},
    "azure_operation_id": "ghost_web-vm-01_20250115T143200",
    "storage_account": "forensics-sa",
    "storage_container": "captures",
    "storage_blob_name": "ghost_web-vm-01_20250115T143200.pcap",
    "local_pcap_path": "/tmp/captures/web-vm-01.pcap",
    "semantic_json_path": "/tmp/captures/web-vm-01_semantic.json",
    "report_path": "/tmp/captures/web-vm-01_forensic_report.md",
    "paired_task_id": None,
    "cleanup_plan": [{"command": "rm /tmp/captures/web-vm-01.pcap", "executed": False}],
    "poll_count": 8,
    "max_polls": 20,
    "shell_audit_ids": ["sess_abc123_012"],
    "timestamps": {"created": "2025-01-15T14:32:00Z", "completed": "2025-01-15T14:37:30Z", "cleanup_started": None},
    "error_detail": None,
    "duration_seconds": 330,
}


def open_registry(directory: Path, session: str = "s1") -> tuple[TaskRegistry, list[str]]:
    warnings: list[str] = []
    return TaskRegistry(directory, session, warnings.append), warnings


def a_task(task_id: str = "ghost_a", state: State = State.WAITING) -> CaptureTask:
    return CaptureTask(task_id=task_id, session_id="s1", state=state)


def test_the_last_record_of_a_task_wins(tmp_path: Path) -> None:
    registry, _ = open_registry(tmp_path)
    task = registry.save(a_task())
    registry.save(a_task("ghost_b"))
    registry.save(task.having(state=State.DOWNLOADING))
    again, warnings = open_registry(tmp_path)
    assert {t.task_id: t.state for t in again.all()} == {"ghost_a": State.DOWNLOADING, "ghost_b": State.WAITING}
    assert warnings == []


def test_a_later_session_has_the_last_word_and_leaves_the_earlier_file_alone(tmp_path: Path) -> None:
    first, _ = open_registry(tmp_path, "zz_first")
    first.save(first.save(a_task()).having(poll_count=3))
    before = first.path.read_bytes()
    second, _ = open_registry(tmp_path, "aa_second")
    task = second.get("ghost_a")
    assert task is not None
    second.save(task.having(state=State.ABANDONED, outcome=Outcome.CANCELLED))
    assert first.path.read_bytes() == before
    third, _ = open_registry(tmp_path, "mm_third")
    found = third.get("ghost_a")
    assert found is not None
    assert found.state is State.ABANDONED


def test_a_task_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    task = CaptureTask.model_validate(PUBLISHED).having(
        outcome=Outcome.COMPLETED,
        cleanup_status=CleanupStatus.PENDING,
        location="eastus",
        cleanup_plan=(CleanupStep(command="rm /captures/x.cap", resource="local file x", kept_because="denied"),),
    )
    registry, _ = open_registry(tmp_path)
    saved = registry.save(task)
    again, _ = open_registry(tmp_path)
    assert again.get(task.task_id) == saved
    assert verify(registry.path, registry.head).ok


def test_an_unchanged_task_is_not_written_again(tmp_path: Path) -> None:
    registry, _ = open_registry(tmp_path)
    task = registry.save(a_task())
    assert registry.save(task) == task
    assert registry.head.count == 1


def test_the_published_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "orchestrator_tasks_sess_abc123.jsonl").write_text(json.dumps(PUBLISHED) + "\n")
    registry, warnings = open_registry(tmp_path)
    task = registry.get(PUBLISHED["task_id"])
    assert task is not None
    assert warnings == []
    written = task.model_dump(mode="json")
    assert written.keys() >= PUBLISHED.keys()
    assert written["timestamps"]["created"] == "2025-01-15T14:32:00.000Z"


def test_ids_are_taken_whatever_their_case(tmp_path: Path) -> None:
    registry, _ = open_registry(tmp_path)
    registry.save(a_task("ghost_WEB"))
    assert registry.holds("ghost_web")


def test_a_registry_that_cannot_be_written_goes_on_in_memory_and_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "audit"
    blocked.write_text("a file where the directory should be")
    registry, warnings = open_registry(blocked)
    task = registry.save(a_task())
    assert registry.get("ghost_a") == task
    assert "memory only" in warnings[0]


@pytest.mark.parametrize(
    "record",
    [
        {**PUBLISHED, "task_id": "--ids"},
        {**PUBLISHED, "task_id": "a b"},
        {**PUBLISHED, "state": "FLYING"},
        {**PUBLISHED, "location": "-l"},
        {**PUBLISHED, "resource_group": "--debug"},
        {**PUBLISHED, "storage_account": "-a"},
        {**PUBLISHED, "storage_container": "$(id)"},
        {**PUBLISHED, "storage_blob_name": "--file"},
        {**PUBLISHED, "storage_auth_mode": "sas"},
        {**PUBLISHED, "target_id": "--ids"},
        {**PUBLISHED, "network_interface": "x y"},
        {**PUBLISHED, "storage_endpoint": "http://evil/"},
        {**PUBLISHED, "local_pcap_path": "-rf"},
        {**PUBLISHED, "artifact_paths": ["--help"]},
        *[
            {**PUBLISHED, "cleanup_plan": [{"command": command, "executed": False}]}
            for command in ("az group delete -n prod --yes", "rm -rf /", "rm a", "rm", "curl x", "", "rm '", "rm /a /b")
        ],
        {**PUBLISHED, "timestamps": {"created": "0001-01-01T00:00:00+14:00"}},
        {**PUBLISHED, "timestamps": {"created": "2025-01-15T14:32:00"}},
        {"task_id": "ghost_a"},
        {},
    ],
)
def test_a_record_that_is_no_task_is_skipped_with_a_warning(tmp_path: Path, record: dict[str, object]) -> None:
    (tmp_path / "orchestrator_tasks_old.jsonl").write_text(json.dumps(record) + "\n")
    registry, warnings = open_registry(tmp_path)
    assert registry.all() == []
    assert len(warnings) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
mutations = st.tuples(st.sampled_from(sorted(PUBLISHED)), json_values).map(
    lambda change: json.dumps({**PUBLISHED, "task_id": "ghost_mutant", change[0]: change[1]}).encode()
)
corrupt_lines = st.one_of(st.binary(max_size=80), json_values.map(lambda v: json.dumps(v).encode()), mutations)


@settings(max_examples=examples(60))
@given(st.lists(corrupt_lines, max_size=8), st.integers(0, 8))
def test_no_corrupt_line_hides_a_good_one_or_stops_the_next_write(lines: list[bytes], position: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "orchestrator_tasks_s1.jsonl"
        good = json.dumps({**PUBLISHED, "task_id": "ghost_good"}).encode()
        lines.insert(min(position, len(lines)), b"\n" + good)
        path.write_bytes(b"\n".join(lines))
        registry, _ = open_registry(Path(name))
        assert registry.get("ghost_good") is not None
        for task in registry.all():
            registry.save(task.having(poll_count=99))
        registry.save(a_task("ghost_new"))
        again, _ = open_registry(Path(name))
        new = again.get("ghost_new")
        assert new is not None
        assert {t.task_id for t in registry.all()} == {t.task_id for t in again.all()}


# --- lines that wait until someone asks --------------------------------------------------------------------------


def a_long_file(directory: Path, count: int = 5) -> Path:
    registry, _ = open_registry(directory)
    for number in range(count):
        task = registry.save(a_task(f"ghost_{number}").having(outcome=Outcome.COMPLETED, target=f"vm-{number}"))
        registry.save(task.having(state=State.DONE))
    return registry.path


def test_settled_tasks_are_not_read_until_they_are_asked_for(tmp_path: Path) -> None:
    path = a_long_file(tmp_path)
    found = list(read_tasks(path, Reading()))
    assert [isinstance(task, UnreadTask) for task in found] == [True] * 9 + [False]
    registry, warnings = open_registry(tmp_path, "s2")
    assert (registry.unsettled(), warnings) == ([], [])
    task = registry.get("ghost_2")
    assert task is not None
    assert (task.state, task.target, task.revision) == (State.DONE, "vm-2", 2)
    assert registry.holds("GHOST_3")


@pytest.mark.parametrize(
    "kept",
    [
        {"cleanup_status": CleanupStatus.PARTIAL},
        {"cleanup_plan": (CleanupStep(command="rm /captures/x.cap"),)},
    ],
)
@pytest.mark.parametrize("followed", [True, False], ids=["read later", "read at once"])
def test_a_task_that_is_done_and_kept_something_is_not_settled(
    tmp_path: Path, kept: dict[str, Any], followed: bool
) -> None:
    """As tools write it whose partial cleanups end in DONE."""
    registry, _ = open_registry(tmp_path)
    registry.save(a_task(state=State.DONE).having(outcome=Outcome.COMPLETED, **kept))
    if followed:
        registry.save(a_task("ghost_b", State.DONE))
    again, _ = open_registry(tmp_path, "s2")
    assert [task.task_id for task in again.unsettled()] == ["ghost_a"]


def test_what_is_read_later_is_what_would_have_been_read_at_once(tmp_path: Path) -> None:
    path = a_long_file(tmp_path)
    at_once = list(read_tasks(path, Reading(), at_once=True))
    later = [task.read() if isinstance(task, UnreadTask) else task for task in read_tasks(path, Reading())]
    assert later == at_once


@pytest.mark.parametrize("line", range(10))
@pytest.mark.parametrize(
    ("was", "becomes"),
    [(b'"target": "vm-', b'"target": 5, "x": "'), (b'"state": "', b'"state": "NO_'), (b"{", b"["), (b"}\n", b"\n")],
)
def test_a_changed_line_hides_no_other_line_and_is_never_trusted(
    tmp_path: Path, line: int, was: bytes, becomes: bytes
) -> None:
    path = a_long_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = becomes.join(lines[line].split(was, 1)) if was != b"}\n" else lines[line][:-2] + b"\n"
    path.write_bytes(b"".join(lines))
    registry, warnings = open_registry(tmp_path, "s2")
    states = {task.task_id: task.state for task in registry.all()}
    assert len(states) == 5
    assert len(warnings) == 1
    changed = f"ghost_{line // 2}"
    assert states.pop(changed) is (State.WAITING if line % 2 else State.DONE)
    assert set(states.values()) == {State.DONE}


def test_a_whole_chain_of_what_is_no_task_gives_way_to_the_last_record_that_is_one(tmp_path: Path) -> None:
    """Another version may write records that this one cannot use; their chain is sound."""
    registry, _ = open_registry(tmp_path)
    task = registry.save(a_task())
    log = ChainedLog(registry.path)
    record = task.having(revision=2).model_dump(mode="json")
    for number in (2, 3):
        log.append({**record, "poll_count": "many", "revision": number})
    log.append({**record, "task_id": "ghost_b"})
    again, warnings = open_registry(tmp_path, "s2")
    assert again.get("ghost_a") == task
    assert {t.task_id for t in again.all()} == {"ghost_a", "ghost_b"}
    assert any("2 records skipped" in warning for warning in warnings)
