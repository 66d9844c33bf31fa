"""A capture from request to cleanup by the orchestrator, the real shell and the real az, the way a person runs them.

With the emulator's own storage and with Azurite, with tokens and with account keys: two of the four, by an az that is
loaded once and forked for each command; in `make test-exhaustive` all four, by the program. What each command of
the audit sent is in the emulator's log of requests, and in Azurite's: what the shell called SAFE sent reads only.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from rich.console import Console

import ghost.shell
from ghost import lab
from ghost.cli.approvals import ScenarioGate
from ghost.cloud import CloudOrchestrator
from ghost.lab import UNSET_BESIDE_A_LAB, Scenario
from ghost.lab.arm.capture_filters import recorded
from ghost.lab.arm.capture_life import ends, limits, starts
from ghost.lab.arm.certificate_authority import LabAuthority
from ghost.lab.arm.local_emulator import emulator
from ghost.lab.arm.request_log import read
from ghost.lab.directory import LabDirectory
from ghost.records import read_records, verify
from ghost.shell import HitlDecision, SafeExecShell
from tests.exhaustive import EXHAUSTIVE
from tests.lab import azurite, in_process, real_az
from tests.lab.azurite import Asked, Azurite
from tests.lab.emulated import Client

REAL, AZURITE = real_az.find(), azurite.find()
needs_az = pytest.mark.skipif(REAL is None, reason=real_az.why_not())
needs_azurite = pytest.mark.skipif(AZURITE is None, reason=azurite.why_not())

SPEED = 20.0
SECONDS = 60
READING_POSTS = {
    "network nic list-effective-nsg": "effectiveNetworkSecurityGroups",
    "network nic show-effective-route-table": "effectiveRouteTable",
    "network watcher packet-capture show-status": "queryStatus",
}
"""Of the commands that the shell's reviewed table lets send a POST, those of a capture, and what each asks for."""
CHANGES = [
    ("network watcher packet-capture create", "PUT"),
    ("network watcher packet-capture delete", "DELETE"),
    ("storage blob delete", "DELETE"),
]
ASKED_OF_A_PERSON = [
    "az network watcher packet-capture create",
    "az storage blob download",
    "az network watcher packet-capture delete",
    "az storage blob delete",
    "rm",
]
UNASKED_ERRANDS = {"azcliprod.blob.core.windows.net:443"}
"""Where az goes by itself, for news of its own; the lab's proxy refuses it."""


# --- the desk of a person whose az talks to the lab ---


@dataclass
class Witness:
    """The real shell, and by audit id what each of its commands asked of the lab and of Azurite."""

    shell: SafeExecShell
    log: Path
    storage: Azurite | None
    sent: dict[str, list[Asked]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        before, stored_before = len(read(self.log)), len(self._stored())
        response = self.shell.execute(request)
        entries = read(self.log)[before:]
        self.refused |= {entry["path"] for entry in entries if entry.get("refused")}
        answered = [Asked(entry["method"], entry["path"], "az") for entry in entries if not entry.get("refused")]
        self.sent[response["audit_id"]] = answered + self._stored()[stored_before:]
        return response

    def _stored(self) -> list[Asked]:
        return self.storage.asked() if self.storage is not None else []


class Engineer:
    """Answers as the scenario says that a person does, denies what that does not name, and notes the questions."""

    def __init__(self, scenario: Scenario, own: list[Path]) -> None:
        self._gate = ScenarioGate(Console(file=io.StringIO()), scenario.approvals, own)
        self.asked: list[str] = []

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        self.asked.append(command)
        return self._gate(command, reasoning, risk, tier)


@dataclass
class Desk:
    orchestrator: CloudOrchestrator
    witness: Witness
    engineer: Engineer
    scenario: Scenario
    lab: LabDirectory
    client: Client

    @property
    def account(self) -> str:
        return self.scenario.world.storage_accounts[0].name

    def stored(self, task_id: str) -> bytes | None:
        """The blob of a capture as any client of storage gets it, from wherever the lab's blobs lie."""
        answer = self.client.blob("GET", f"/captures/{task_id}.cap", self.account)
        assert answer.status in (200, 404), answer
        return answer.body if answer.status == 200 else None

    def stored_names(self) -> list[str]:
        listed = self.client.blob("GET", "/captures?restype=container&comp=list", self.account)
        assert listed.status == 200, listed
        return re.findall(r"<Blob><Name>(.*?)</Name>", listed.body.decode())


def _run_forked(words: list[str], *, env: Mapping[str, str], **options: Any) -> CompletedProcess[bytes]:
    if words[0] != "az":
        return in_process.run(words, env=env, **options)
    assert REAL is not None
    ran = real_az.run_ready(REAL, words[1:], env, Path.cwd())
    return CompletedProcess(words, ran.status, ran.out.encode(), ran.err.encode())


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    scenario = lab.load_scenario("wire-loss")
    lab.start(scenario, tmp_path / "lab", speed=SPEED)
    directory, authority = LabDirectory.open(tmp_path / "lab"), LabAuthority()
    audit, captures = tmp_path / "audit", tmp_path / "captures"
    with ExitStack() as stack:
        elsewhere = None
        if request.param == "azurite":
            assert AZURITE is not None
            elsewhere = stack.enter_context(azurite.azurite(AZURITE, directory, authority, tmp_path / "azurite"))
        storage = elsewhere.storage if elsewhere is not None else None
        up = stack.enter_context(emulator(directory, authority=authority, storage=storage))
        for name in UNSET_BESIDE_A_LAB:
            monkeypatch.delenv(name, raising=False)
        for name, value in {**up.environment, "GHOST_AZ": str(REAL)}.items():
            monkeypatch.setenv(name, value)
        engineer = Engineer(scenario, [captures])
        shell = SafeExecShell(
            "s1", engineer, audit, roots=[captures, audit], runner=None if EXHAUSTIVE else _run_forked
        )
        witness = Witness(shell, up.log, elsewhere)
        orchestrator = CloudOrchestrator(
            witness, "s1", audit, clock=directory.clock, local_capture_dir=captures, announce=lambda _: None
        )
        yield Desk(orchestrator, witness, engineer, scenario, directory, Client(up))


# --- the capture ---


KINDS = [
    ("emulator", "key"),
    pytest.param("azurite", "login", marks=needs_azurite),
    *([("emulator", "login"), pytest.param("azurite", "key", marks=needs_azurite)] if EXHAUSTIVE else []),
]


@needs_az
@pytest.mark.parametrize(("desk", "mode"), KINDS, indirect=["desk"])
def test_a_capture_goes_from_request_to_cleanup(desk: Desk, mode: str) -> None:
    started = desk.orchestrator.orchestrate(_wanted(desk, mode))
    assert started["status"] == "task_pending", started
    not_passed = {check["check"] for check in started["preflight"] if check["passed"] is not True}
    assert not_passed == ({"identity", "role"} if mode == "login" else set()), "az shows no name of the lab's identity"
    done = _until_it_ended(desk, started["task_id"])

    assert (done["status"], done["state"], done["stop_reason"]) == ("task_completed", "COMPLETED", "TimeExceeded"), done
    _check_bytes(desk, done)
    _check_finding(desk, done["result"])
    _check_cleanup(desk, done)
    _check_requests(desk.witness, mode)


def _wanted(desk: Desk, mode: str) -> dict[str, Any]:
    world, source = desk.scenario.world, desk.scenario.flows[0].source
    (machine,) = (vm for vm in world.machines if vm.name == source)
    return {
        "intent": "capture_traffic",
        "target": source,
        "parameters": {
            "resource_group": machine.resource_group,
            "storage_account": desk.account,
            "duration_seconds": SECONDS,
        },
        "storage_auth_mode": mode,
        "investigation_context": desk.scenario.symptom,
    }


def _until_it_ended(desk: Desk, task_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for _ in range(10):
        answer = desk.orchestrator.orchestrate({"intent": "check_task", "task_id": task_id})
        if answer["status"] != "task_pending":
            break
    return answer


def _check_bytes(desk: Desk, done: dict[str, Any]) -> None:
    """What was recorded, what is stored, what was downloaded and what is on record are the same bytes."""
    (capture,) = desk.lab.state()["captures"]
    length = (ends(capture) - starts(capture)).total_seconds()
    assert length == SECONDS
    made = recorded(desk.lab.world, capture["machine"], starts(capture), length, limits(capture))
    expected = sha256(made).hexdigest()
    (blob,) = desk.stored_names()
    assert re.fullmatch(rf"{re.escape(done['task_id'])}_[a-z0-9]{{4}}\.cap", blob), blob
    assert sha256(desk.stored(blob.removesuffix(".cap")) or b"").hexdigest() == expected
    assert sha256(Path(done["result"]["local_pcap_path"]).read_bytes()).hexdigest() == expected
    assert (done["local_pcap_sha256"], done["local_pcap_bytes"]) == (expected, len(made))


def _check_finding(desk: Desk, result: dict[str, Any]) -> None:
    world, flow, (cause,) = desk.scenario.world, desk.scenario.flows[0], desk.scenario.truth.faults
    assert (cause.kind, cause.resource) == ("packet_loss", f"virtualMachines/{flow.source}")
    first = json.loads(Path(result["semantic_json_path"]).read_text())["findings"][0]
    sender, receiver = world.address_of(flow.source), world.address_of(flow.destination)
    assert (first["kind"], first["blame"]) == ("loss", "network")
    assert first["who"] == {"src": sender, "dst": receiver, "port": flow.port}
    (fault,) = world.faults
    assert first["measured"]["loss_pct"] == pytest.approx(100 * fault.loss, rel=0.5)
    told = re.search(r"^### (.+)$", Path(result["report_path"]).read_text(), re.MULTILINE)
    assert told is not None
    assert told[1] == f"{first['severity']}: {first['title']}"


def _check_cleanup(desk: Desk, done: dict[str, Any]) -> None:
    task_id = done["task_id"]
    cleaned = desk.orchestrator.orchestrate({"intent": "cleanup_task", "task_id": task_id})
    assert (cleaned["status"], cleaned["state"], cleaned["cleanup_status"]) == ("task_completed", "DONE", "completed")
    assert (desk.lab.state()["captures"], desk.lab.state().get("blobs", [])) == ([], [])
    assert desk.stored_names() == []
    assert not Path(done["result"]["local_pcap_path"]).exists()
    assert desk.orchestrator.orchestrate({"intent": "list_tasks"})["orphans"] == []
    asked = [next(known for known in ASKED_OF_A_PERSON if c.startswith(f"{known} ")) for c in desk.engineer.asked]
    assert asked == ASKED_OF_A_PERSON
    assert verify(desk.orchestrator.registry_path, desk.orchestrator.registry_head).ok
    assert verify(desk.witness.shell.audit_path, desk.witness.shell.audit_head).ok


# --- what each command sent ---


def _check_requests(witness: Witness, mode: str) -> None:
    records = list(read_records(witness.shell.audit_path))
    assert [record["audit_id"] for record in records] == list(witness.sent)
    posted: set[str] = set()
    changes: list[tuple[str, str]] = []
    for record in records:
        requests = witness.sent[record["audit_id"]]
        command = _path_of(record["command"])
        if not record["command"].startswith("az ") or command == "account show":  # which az answers from a file
            assert requests == [], record["command"]
            continue
        assert (record["environment"], record["exit_code"]) == ("azure", 0), record
        assert len(requests) >= 2, f"no token and no request: {record['command']}"
        for request in (request for request in requests if request.client):
            if request.method in ("GET", "HEAD"):
                continue
            if request.method == "POST":
                what = request.target.partition("?")[0].rpartition("/")[2]
                assert what in _posts_of(record["command"], mode), (record["command"], request)
                posted.add(what)
            else:
                assert record["classification"] == "RISKY", (record["command"], request)
                changes.append((command, request.method))
    assert posted == {*READING_POSTS.values(), *(["listKeys"] if mode == "key" else [])}
    assert changes == CHANGES
    assert witness.refused <= UNASKED_ERRANDS
    carried = [request for sent in witness.sent.values() for request in sent if not request.client]
    assert {request.method for request in carried} <= {"PUT"}, carried
    blobs = [request for request in carried if "restype=container" not in request.target]
    assert len(blobs) == (0 if witness.storage is None else 1), "the lab itself brings Azurite the capture, once"


def _posts_of(command: str, mode: str) -> set[str]:
    """What a command may send a POST for."""
    posts = {READING_POSTS[_path_of(command)]} if _path_of(command) in READING_POSTS else set()
    return posts | ({"listKeys"} if mode == "key" and "--auth-mode key" in command else set())


def _path_of(command: str) -> str:
    """`network nic show` of `az network nic show -g ...`."""
    words = shlex.split(command)
    return " ".join(words[1 : next(i for i, word in enumerate([*words, "-"]) if word.startswith("-"))])


def test_every_post_that_is_allowed_here_was_reviewed_by_the_shell() -> None:
    policy = Path(ghost.shell.__file__).parent / "policy" / "az_post_reads.toml"
    assert READING_POSTS.keys() <= tomllib.loads(policy.read_text(encoding="utf-8"))["post_reads"].keys()
