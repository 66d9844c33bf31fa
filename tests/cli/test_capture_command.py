"""`ghost capture`: from start to clean-up with one question, each step a command of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ghost.cli.leftovers import tell_what_is_left
from ghost.cloud.capture_commands import cloud_cleanup
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.task import CaptureTask, State
from ghost.config import Settings
from ghost.records import private_dir
from tests.cli.test_commands import ghost as run_ghost


@pytest.fixture
def ghost(tmp_path: Path) -> Any:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_ghost("capture", *words, cwd=tmp_path, in_process=True, GHOST_LAB_SPEED="40", COLUMNS="400")

    return run


def approvals(directory: Path) -> list[dict[str, Any]]:
    (path,) = (directory / "audit").glob("approvals_capture_*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_pair_is_started_fetched_compared_and_deleted_with_one_question(ghost: Any, tmp_path: Path) -> None:
    words = ("start", "app-vm-01", "--pair", "db-vm-01", "--lab", "wire-loss", "--capture-filter", "tcp * * * 5432")
    started = ghost(*words, "--capture-seconds", "300")  # long enough for both to overlap on a slow machine
    assert started.returncode == 0, started.stderr
    assert """--filters '[{"protocol":"TCP","localPort":"5432"}]'""" in " ".join(started.stdout.split())
    assert "Next: ghost capture fetch ghost_app-vm-01_" in started.stdout

    fetched = ghost("fetch", "last")
    assert fetched.returncode == 0, fetched.stderr
    assert "lost between A and B" in fetched.stdout
    assert fetched.stdout.count("executive summary: ") == 1

    (source, far) = json.loads(ghost("list", "--json").stdout)["captures"]
    assert (source["outcome"], source["paired_task_id"], len(source["left"])) == ("completed", far["task_id"], 2)
    too_late = ghost("cancel", source["task_id"])
    assert (too_late.returncode, "ghost capture cleanup" in too_late.stderr) == (2, True)

    cleaned = ghost("cleanup", "last")
    assert cleaned.returncode == 0, cleaned.stderr
    rows = json.loads(ghost("list", "--json").stdout)["captures"]
    assert [row["left"] for row in rows] == [[], []]
    assert all(Path(row["local_pcap_path"]).stat().st_size for row in rows)
    assert [(one["kind"], one["answer"]) for one in approvals(tmp_path)] == [("plan", "approve")]
    assert run_ghost("audit", "verify", "last", cwd=tmp_path, in_process=True).returncode == 0


def test_a_running_capture_is_not_cleaned_up_but_cancelled_and_its_local_copy_is_not_kept_if_told(
    ghost: Any, tmp_path: Path
) -> None:
    ghost("start", "app-vm-01", "--lab", "wire-loss", "--no-keep-capture", "--capture-seconds", "300")
    assert f" rm {tmp_path}" in str(approvals(tmp_path)[0]["shown"]).replace("'", " ")
    running = ghost("cleanup", "last")
    assert (running.returncode, "ghost capture cancel" in running.stderr) == (2, True)
    cancelled = ghost("cancel", "last", "--json")
    (answer,) = json.loads(cancelled.stdout)["captures"]
    assert (cancelled.returncode, answer["status"], answer["cleanup_status"]) == (0, "task_cancelled", "completed")
    assert [one["kind"] for one in approvals(tmp_path)] == ["plan"]


def test_what_cannot_be_captured_is_said_before_anything_is_asked(ghost: Any, tmp_path: Path) -> None:
    for words, said in (
        (["start", "nothing-vm", "--lab", "wire-loss"], "no virtual machine 'nothing-vm'"),
        (["start", "x;id", "--lab", "wire-loss"], "is neither a resource name"),
        (["start", "@/etc/passwd", "--lab", "wire-loss"], "is neither a resource name"),
        (["start", "app-vm-1", "--lab", "wire-loss"], "no virtual machine 'app-vm-1': did you mean app-vm-01?"),
        (
            ["start", "app-vm-01", "-g", "other-rg", "--lab", "wire-loss"],
            "is not in group other-rg: say where with -g:",
        ),
        (
            ["start", "app-vm-01", "--lab", "wire-loss", "--capture-filter", "tcp * * * x"],
            "capture filter is not usable",
        ),
        (["start", "app-vm-01", "--lab", "wire-loss", "--storage-account", "No"], "--storage-account is not usable"),
        (["fetch", "last"], "ghost capture list"),
    ):
        run = ghost(*words)
        assert (run.returncode, said in run.stderr) == (2, True), run.stderr
    assert not list((tmp_path / "audit").glob("orchestrator_tasks_*"))


def test_an_interrupted_capture_is_told_as_running_only_if_azure_confirmed_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = TaskRegistry(private_dir(tmp_path / "audit"), "s1", print)
    task = CaptureTask(task_id="ghost_a_20250115T143200", session_id="s1", target="a", state=State.APPROVED)
    task = task.having(location="eastus", storage_account="logs01", storage_blob_name="b.cap")
    task = registry.save(task.having(cleanup_plan=cloud_cleanup(task)))
    settings = Settings(workspace=tmp_path)
    tell_what_is_left(settings, "s1")
    registry.save(task.stamped(provisioned=datetime.now(UTC)))
    tell_what_is_left(settings, "s1")
    unsure, sure = capsys.readouterr().err.splitlines()
    assert "20250115T143200 may run for up to 60 s and is stored in logs01/captures" in unsure
    assert "20250115T143200 runs for up to 60 s" in sure
    assert sure.endswith(f"ghost capture cancel {task.task_id} --workspace {tmp_path}")


def test_a_capture_of_a_lab_that_is_gone_never_reaches_az(ghost: Any, tmp_path: Path) -> None:
    assert ghost("start", "app-vm-01", "--lab", "wire-loss").returncode == 0
    shutil.rmtree(tmp_path / "lab")
    for words in ("cancel", "fetch", "check"):
        refused = ghost(words, "last")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "there is no lab in" in refused.stderr
