"""The whole life through the real shell and the real capture engine, on the lab's programs.

Once as processes in the shell's sandbox, else in the process of the test.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ghost.cloud import CloudOrchestrator
from ghost.lab import RunningLab, load_scenario, start
from ghost.records import verify
from ghost.shell import HitlDecision, SafeExecShell
from tests.lab import in_process

Runner = Callable[..., CompletedProcess[bytes]]
PCAP_MAGICS = {b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a"}


@pytest.fixture
def lab(tmp_path: Path) -> RunningLab:
    return start(load_scenario("blocked-port"), tmp_path / "lab", speed=60.0)


class Engineer:
    """Approves everything but what it was told to deny, and remembers what it was asked."""

    def __init__(self, deny: str = "no such command") -> None:
        self.deny = deny
        self.asked: list[str] = []

    def __call__(self, command: str, reasoning: str, risk_explanation: str, tier: int) -> HitlDecision:
        self.asked.append(command)
        return HitlDecision("deny", reason="not now") if self.deny in command else HitlDecision("approve")


def at_work(
    tmp_path: Path, lab: RunningLab, engineer: Engineer, runner: Runner | None = in_process.run
) -> CloudOrchestrator:
    captures = tmp_path / "captures"
    shell = SafeExecShell(
        "s1",
        engineer,
        tmp_path / "audit",
        roots=[captures, tmp_path / "audit"],
        program_dirs=[lab.program_dir],
        environment=lab.environment,
        resolver=lab.resolver,
        runner=runner,
    )
    return CloudOrchestrator(
        shell, "s1", tmp_path / "audit", clock=lab.clock, local_capture_dir=captures, announce=lambda _: None
    )


def capture_request(lab: RunningLab) -> dict[str, object]:
    world = load_scenario("blocked-port").world
    return {
        "intent": "capture_traffic",
        "target": "web-vm-01",
        "parameters": {
            "resource_group": "prod-rg",
            "storage_account": world.storage_accounts[0].name,
            "duration_seconds": 20,
        },
        "investigation_context": lab.briefing.symptom,
    }


def held_in_azure(tmp_path: Path) -> tuple[list[object], list[object]]:
    """The captures and the blobs that the lab's Azure holds."""
    state = json.loads((tmp_path / "lab" / "state.json").read_text())
    return state["captures"], state["blobs"]


def test_a_capture_is_taken_analysed_and_removed(tmp_path: Path, lab: RunningLab) -> None:
    engineer = Engineer()
    orchestrator = at_work(tmp_path, lab, engineer, runner=None)
    started = orchestrator.orchestrate(capture_request(lab))
    assert (started["status"], started["state"]) == ("task_pending", "PROVISIONING"), started
    task_id = started["task_id"]
    response = started
    for _ in range(5):
        response = orchestrator.orchestrate({"intent": "check_task", "task_id": task_id})
        if response["status"] != "task_pending":
            break
    assert response["status"] == "task_completed", response
    captures, blobs = held_in_azure(tmp_path)
    assert (len(captures), len(blobs)) == (1, 1)

    result = response["result"]
    capture = Path(result["local_pcap_path"]).read_bytes()
    assert capture[:4] in PCAP_MAGICS
    semantic = json.loads(Path(result["semantic_json_path"]).read_text())
    assert semantic["capture_summary"]["total_packets"] > 0
    assert "Executive Summary" in Path(result["report_path"]).read_text()
    assert Path(result["executive_summary_path"]).read_text().strip()
    record = json.loads(orchestrator.registry_path.read_text().splitlines()[-1])
    assert record["local_pcap_sha256"] == hashlib.sha256(capture).hexdigest()
    assert record["stop_reason"] == "TimeExceeded"
    assert set(record["artifact_paths"]) == {str(p) for p in (tmp_path / "captures").iterdir() if p.suffix != ".cap"}

    cleaned = orchestrator.orchestrate({"intent": "cleanup_task", "task_id": task_id})
    assert (cleaned["status"], cleaned["state"], cleaned["cleanup_status"]) == ("task_completed", "DONE", "completed")
    assert not Path(result["local_pcap_path"]).exists()
    kinds = [r"packet-capture create", "blob download", "packet-capture delete", "blob delete", "^rm "]
    assert [next(kind for kind in kinds if re.search(kind, command)) for command in engineer.asked] == kinds
    assert held_in_azure(tmp_path) == ([], [])
    assert verify(orchestrator.registry_path, orchestrator.registry_head).ok
    assert orchestrator.orchestrate({"intent": "list_tasks"})["orphans"] == []


def test_a_denied_download_leaves_nothing_in_azure(tmp_path: Path, lab: RunningLab) -> None:
    orchestrator = at_work(tmp_path, lab, Engineer(deny="blob download"))
    task_id = orchestrator.orchestrate(capture_request(lab))["task_id"]
    response = orchestrator.orchestrate({"intent": "check_task", "task_id": task_id})
    assert (response["status"], response["user_denied"]) == ("task_cancelled", True), response
    assert (response["denial_reason"], response["cleanup_status"]) == ("not now", "completed")
    assert held_in_azure(tmp_path) == ([], [])
    assert orchestrator.orchestrate({"intent": "check_task", "task_id": task_id})["state"] == "DONE"


def test_a_machine_that_is_not_there_fails_before_anything_is_asked(tmp_path: Path, lab: RunningLab) -> None:
    engineer = Engineer()
    orchestrator = at_work(tmp_path, lab, engineer)
    response = orchestrator.orchestrate({**capture_request(lab), "target": "no-such-vm"})
    assert (response["status"], response["state"], engineer.asked) == ("task_failed", "FAILED", [])


def test_both_ends_of_a_closed_path_are_captured_and_compared(tmp_path: Path, lab: RunningLab) -> None:
    orchestrator = at_work(tmp_path, lab, Engineer())
    started = orchestrator.orchestrate({**capture_request(lab), "target": "web-vm-01 to redis-cache-01"})
    ends = [started["task_id"], started["paired_task"]["task_id"]]
    first, second = (orchestrator.orchestrate({"intent": "check_task", "task_id": end}) for end in ends)
    assert (first["status"], first["state"]) == ("task_pending", "COMPLETED"), first
    assert second["status"] == "task_completed", second
    first = orchestrator.orchestrate({"intent": "check_task", "task_id": ends[0]})
    for response in (first, second):
        mode, *files = response["result"].values()
        assert mode == "comparison"
        assert all(Path(file).stat().st_size > 0 for file in files)
