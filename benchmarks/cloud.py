"""How long a session waits for the registry of the sessions before it, with thousands of capture tasks on the disk.

Once 10,000 with one record each; once 2,000 with every record of a life, as Ghost writes them. The bound is for the
first. Each is loaded several times from the page cache and the median told, and beside it the time to read every task
that is not settled, which looking for orphans does.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from ghost.cloud.capture_commands import cloud_cleanup, local_cleanup
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.task import CaptureTask, CleanupStatus, Outcome, State, Timestamps

TASKS, LIVES = 10_000, 2_000
LOADS = 7
UNSETTLED_EVERY = 100
BOUND_MS = 300.0
AT = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
LIFE = (
    *(State.CREATED, *[State.DETECTING] * 7, State.APPROVED, State.PROVISIONING, *[State.WAITING] * 4),
    *(State.DOWNLOADING, State.ANALYZING, State.COMPLETED, *[State.CLEANING_UP] * 4, State.DONE),
)
"""The state of each record that one capture of a minute leaves."""


def a_task(number: int) -> CaptureTask:
    name = f"ghost_web-vm-{number:05d}_20250115T143200"
    task = CaptureTask(
        task_id=name,
        session_id="bench",
        target=f"web-vm-{number:05d}",
        target_type="vm",
        state=State.COMPLETED if number % UNSETTLED_EVERY == 0 else State.DONE,
        outcome=Outcome.COMPLETED,
        investigation_context="Intermittent 502 errors from the web tier to the cache since the last deployment",
        resource_group="prod-rg",
        location="eastus",
        azure_operation_id=name,
        storage_account="forensics",
        storage_blob_name=f"{name}.cap",
        capture_dir="/work/captures",
        local_pcap_path=f"/work/captures/{name}.cap",
        local_pcap_sha256="0" * 64,
        shell_audit_ids=tuple(f"bench_{n:03d}" for n in range(14)),
        cleanup_status=CleanupStatus.COMPLETED,
        timestamps=Timestamps(created=AT, completed=AT),
    )
    plan = (*cloud_cleanup(task), *local_cleanup([task.download_path]))
    return task.having(cleanup_plan=tuple(step.having(executed=task.state is State.DONE) for step in plan))


def write(directory: Path, tasks: int, states: tuple[State, ...]) -> float:
    """The registry's size in MB; `states` come before the state in which a task stands."""
    registry = TaskRegistry(directory, "bench", print)
    for number in range(tasks):
        last = a_task(number)
        task = last.having(state=State.CREATED)
        for state in states:
            task = registry.save(task.having(state=state, poll_count=task.poll_count + 1))
        registry.save(last.having(revision=task.revision))
    return registry.path.stat().st_size / 1e6


def measure(directory: Path, tasks: int) -> tuple[float, float]:
    loads, scans = [], []
    for _ in range(LOADS):
        started = time.perf_counter()
        registry = TaskRegistry(directory, "next", print)
        loaded = time.perf_counter()
        unsettled = registry.unsettled()
        scans.append((time.perf_counter() - loaded) * 1000)
        loads.append((loaded - started) * 1000)
        if len(unsettled) != tasks // UNSETTLED_EVERY:
            sys.exit(f"{len(unsettled)} unsettled tasks were read")
    return statistics.median(loads), statistics.median(scans)


def main() -> int:
    held = True
    for tasks, what, states, bound in (
        (TASKS, "one record each", (), BOUND_MS),
        (LIVES, "whole lives", LIFE[:-1], None),
    ):
        with tempfile.TemporaryDirectory() as name:
            size = write(Path(name), tasks, states)
            load, scan = measure(Path(name), tasks)
        told = f", bound {bound:.0f} ms" if bound else ""
        print(f"{tasks} tasks, {what} ({size:.0f} MB): load {load:.0f} ms{told}; the unsettled ones {scan:.0f} ms more")
        held = held and (bound is None or load < bound)
    return 0 if held else 1
