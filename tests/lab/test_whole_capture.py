"""A capture from request to cleanup by the orchestrator, the real shell and the real az, the way a person runs them.

Once with the emulator's own storage and once with Azurite, each with tokens and with account keys. The emulator's log
tells what every command sent: what the shell called SAFE may send reads only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.cloud import CloudOrchestrator
from ghost.lab.arm.certificates import LabAuthority
from ghost.lab.arm.emulator import emulator
from ghost.lab.arm.request_log import read
from ghost.lab.directory import LabDirectory
from ghost.shell import HitlDecision, SafeExecShell
from tests.lab import azurite, real_az

REAL, AZURITE = real_az.find(), azurite.find()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(REAL is None, reason=real_az.why_not()),
]
READS = {"queryStatus", "effectiveRouteTable", "effectiveNetworkSecurityGroups"}
"""POST requests that only read."""


@dataclass
class Sent:
    command: str
    classification: str
    requests: list[dict[str, Any]]


@dataclass
class Watched:
    """The real shell, with what each of its commands sent to the emulator."""

    shell: SafeExecShell
    log: Path
    sent: list[Sent] = field(default_factory=list)

    def execute(self, request: dict[str, object]) -> dict[str, Any]:
        before = len(read(self.log))
        result = self.shell.execute(request)
        entry = Sent(str(request["command"]), str(result.get("classification")), read(self.log)[before:])
        self.sent.append(entry)
        return result


@dataclass
class Bench:
    orchestrator: CloudOrchestrator
    shell: Watched
    lab: LabDirectory
    captures: Path
    environment: dict[str, str]

    def blobs(self) -> Any:
        """What lies in the container, as the real az lists it."""
        assert REAL is not None
        words = "storage blob list --account-name prodforensics01 -c captures --auth-mode login --query [].name -o json"
        return real_az.run(REAL, words.split(), self.environment, self.lab.path).json


@pytest.fixture(params=["emulator", "azurite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    if request.param == "azurite" and AZURITE is None:
        pytest.skip(azurite.why_not())
    with ExitStack() as stack:
        lab.start(lab.load_scenario("blocked-port"), tmp_path / "lab", speed=20.0)
        directory, authority = LabDirectory.open(tmp_path / "lab"), LabAuthority()
        storage = None
        if request.param == "azurite":
            assert AZURITE is not None
            storage = stack.enter_context(azurite.azurite(AZURITE, directory, authority, tmp_path / "azurite"))
        up = stack.enter_context(emulator(directory, authority=authority, storage=storage))
        for name, value in {**up.environment, "GHOST_AZ": str(REAL)}.items():
            monkeypatch.setenv(name, value)
        captures, audit = tmp_path / "captures", tmp_path / "audit"
        shell = Watched(SafeExecShell("s1", _approve, audit, roots=[captures, audit]), up.log)
        orchestrator = CloudOrchestrator(
            shell, "s1", audit, clock=directory.clock, local_capture_dir=captures, announce=lambda _: None
        )
        yield Bench(orchestrator, shell, directory, captures, up.environment)


def _approve(command: str, reasoning: str, risk_explanation: str, tier: int) -> HitlDecision:
    return HitlDecision("approve")


@pytest.mark.parametrize("mode", ["login", "key"])
def test_a_capture_goes_from_request_to_cleanup(bench: Bench, mode: str) -> None:
    answer = bench.orchestrator.orchestrate(
        {
            "intent": "capture_traffic",
            "target": "web-vm-01",
            "parameters": {"resource_group": "prod-rg", "storage_account": "prodforensics01", "duration_seconds": 60},
            "storage_auth_mode": mode,
            "investigation_context": "the cache cannot be reached on port 6379",
        }
    )
    assert answer["status"] == "task_pending", answer
    task_id = answer["task_id"]
    for _ in range(20):
        if answer["status"] != "task_pending":
            break
        answer = bench.orchestrator.orchestrate({"intent": "check_task", "task_id": task_id})

    assert answer["status"] == "task_completed", answer
    result = answer["result"]
    assert Path(result["local_pcap_path"]).read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"
    assert json.loads(Path(result["semantic_json_path"]).read_text())["capture_summary"]["total_packets"] > 0
    assert "Executive Summary" in Path(result["report_path"]).read_text()
    assert len(bench.blobs()) == 1
    cleaned = bench.orchestrator.orchestrate({"intent": "cleanup_task", "task_id": task_id})
    assert (cleaned["status"], cleaned["state"], cleaned["cleanup_status"]) == ("task_completed", "DONE", "completed")
    state = bench.lab.state()
    assert (state["captures"], state.get("blobs", [])) == ([], []), "nothing is left in Azure"
    assert bench.blobs() == []
    assert bench.orchestrator.orchestrate({"intent": "list_tasks"})["orphans"] == []
    _check_what_was_sent(bench.shell.sent, mode)


def _check_what_was_sent(sent: list[Sent], mode: str) -> None:
    verbs = [entry.command.split(" -")[0] for entry in sent]
    for verb in ("packet-capture create", "packet-capture show-status", "blob download", "packet-capture delete"):
        assert any(verb in command for command in verbs), verbs
    safe = [entry for entry in sent if entry.classification == "SAFE" and entry.command.startswith("az ")]
    assert len(safe) >= 6
    allowed = READS | ({"listKeys"} if mode == "key" else set())
    for entry in safe:
        assert entry.requests, entry.command
        for asked in entry.requests:
            last = re.split(r"[/?]", asked["path"].partition("?")[0])[-1]
            assert asked["method"] in ("GET", "HEAD", "CONNECT") or last in allowed, (entry.command, asked)
            assert not asked["changed"], (entry.command, asked)
    changing = {entry.command.split(" -")[0] for entry in sent for asked in entry.requests if asked["changed"]}
    assert all(entry.classification != "SAFE" for entry in sent if entry.command.split(" -")[0] in changing)
    refused = [asked for entry in sent for asked in entry.requests if asked.get("refused")]
    assert {json.dumps(asked["path"]) for asked in refused} <= {'"azcliprod.blob.core.windows.net:443"'}
