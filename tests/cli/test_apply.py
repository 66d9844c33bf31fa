"""`ghost apply` in the lab: only a walked fix runs, after an approval, and a second read says whether it mends."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import UncheckedFixes, Workspace
from ghost.cli.apply_command import Request, apply
from ghost.cli.approvals import Gate
from ghost.cli.session_records import recorded
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.mind import Task
from ghost.records import read_valid_records
from ghost.shell import ApprovalRequest, HitlDecision, SafeExecShell
from tests.cli.test_commands import ghost
from tests.lab import in_process

FAST = {"GHOST_LAB_SPEED": "1000"}
DELETE = "az network nsg rule delete -g prod-rg --nsg-name cache-nsg -n close-legacy-ports"
CREATE = "az network nsg rule create -g prod-rg --nsg-name cache-nsg"


class Person(Gate):
    """Approves everything, or denies it; `meanwhile` happens in the lab while the first question waits."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None, answer: str = "approve") -> None:
        self.asked: list[ApprovalRequest] = []
        self._meanwhile = meanwhile
        self._answer = answer

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        if not self.asked:
            self._meanwhile()
        self.asked.append(request)
        return HitlDecision(self._answer)


class Desk:
    """A workspace with a finished investigation of a lab."""

    def __init__(self, root: Path, made: Path) -> None:
        shutil.copytree(made, root)
        self.root = root
        (self.lab,) = (root / "lab").iterdir()

    def az(self, command: str) -> Any:
        done = in_process.run_main("ghost.lab.programs.az", shlex.split(command)[1:], {"GHOST_LAB_DIR": str(self.lab)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or b"null")

    def rules(self) -> set[str]:
        return {rule["name"] for rule in self.az("az network nsg rule list -g prod-rg --nsg-name cache-nsg")}

    def apply(self, capsys: pytest.CaptureFixture[str], person: Gate, **more: Any) -> tuple[int, dict[str, Any]]:
        status = apply(Request("last", as_json=True, **more), self.root, person)
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert all(check.ok for check in recorded(told["session_id"], self.root, Settings()).checks())
        assert all(check.ok for check in recorded(told["investigation"], self.root, Settings()).checks())
        return status, told

    def records(self, told: dict[str, Any], kind: str = "shell_audit") -> list[dict[str, Any]]:
        lines = (self.root / "audit" / f"{kind}_{told['session_id']}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def investigated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    known: dict[str, Path] = {}

    def of(scenario: str) -> Path:
        if scenario not in known:
            known[scenario] = tmp_path_factory.mktemp(scenario)
            words = ("investigate", "--lab", scenario, "--brain", "offline")
            done = ghost(*words, cwd=known[scenario], in_process=True, **FAST)
            assert done.returncode == 0, done.stderr
        return known[scenario]

    return of


@pytest.fixture
def desk(investigated: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Desk]:
    monkeypatch.setitem(SafeExecShell.__init__.__kwdefaults__, "runner", in_process.run)
    return lambda scenario="blocked-port": Desk(tmp_path / "desk", investigated(scenario))


def test_one_approval_mends_the_path_and_the_way_back_is_told(
    desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]
) -> None:
    at, person = desk(), Person()
    before = at.az("az network nsg rule show -g prod-rg --nsg-name cache-nsg -n close-legacy-ports")
    status, told = at.apply(capsys, person)
    assert (status, told["outcome"], [row["outcome"] for row in told["flows"]]) == (0, "mended", ["passes"])
    assert [(request.kind, request.lines) for request in person.asked] == [("plan", (DELETE,))]
    assert "close-legacy-ports" not in at.rules()

    (plan,) = at.records(told, "approvals")
    risky = [record for record in at.records(told) if record["classification"] != "SAFE"]
    assert [(r["command"], r["approval_id"], r["exit_code"]) for r in risky] == [(DELETE, plan["id"], 0)]
    assert at.records(told)[-1]["classification"] == "SAFE", "it is judged by what is read after the change"

    (undo,) = told["undo"]
    at.az(undo)
    after = at.az("az network nsg rule show -g prod-rg --nsg-name cache-nsg -n close-legacy-ports")
    assert {**after, "etag": ""} == {**before, "etag": ""}
    assert at.apply(capsys, Person())[0] == 0, "as it was in the session"
    status, told = at.apply(capsys, again := Person())
    assert (status, told["outcome"], told["why"], again.asked) == (1, "drifted", "it passes already", [])


def test_whether_it_was_mended_is_a_task_until_a_check_by_safe_commands_says_so(
    desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]
) -> None:
    at, nobody = desk(), Person()
    source = UncheckedFixes(Workspace(at.root))

    def open_tasks(days: float = 0.0) -> list[Task]:
        return list(source.tasks(time.time() + days * 86_400))

    (task,) = open_tasks()
    assert task.title == "Was it mended? security rule at cache-nsg"
    assert task.context.endswith(f"ghost apply {task.metadata['session_id']} --check")
    assert task.deadline_ts is not None
    assert task.deadline_ts > time.time()
    assert open_tasks(days=30) == [], "nobody is asked for ever"

    assert at.apply(capsys, nobody, check=True)[0] == 4
    assert "not mended" in open_tasks()[0].context

    assert at.apply(capsys, Person())[0] == 0
    assert "applied" in open_tasks()[0].context, "it may not last"

    status, told = at.apply(capsys, nobody, check=True)
    assert (status, told["outcome"], nobody.asked, open_tasks()) == (0, "mended", [], [])
    assert {record["classification"] for record in at.records(told)} == {"SAFE"}
    records, broken = read_valid_records(Workspace(at.root).fix_checks)
    assert ([(each["kind"], each["outcome"]) for each in records], broken) == (
        [("checked", "not_mended"), ("applied", "mended"), ("checked", "mended")], []
    )  # fmt: skip


def test_a_check_does_not_say_what_is_inside_a_machine(
    desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = desk("guest-broker-queue").apply(capsys, Person(), check=True)
    assert (status, told["outcome"]) == (3, "not_known")
    assert "inside a machine" in told["why"]


def test_a_second_block_that_came_meanwhile_is_not_called_mended(
    desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]
) -> None:
    at = desk()
    person = Person(lambda: at.az(f"{CREATE} -n new-block --priority 150 --access Deny --destination-port-ranges 6379"))
    status, told = at.apply(capsys, person)
    assert (status, told["outcome"]) == (4, "not_mended")
    assert "new-block" in told["why"]
    assert told["undo"]


def test_without_an_approval_nothing_changes(desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]) -> None:
    at = desk()
    for person, more in ((Person(answer="deny"), {}), (Person(answer="deny"), {"approve_each": True})):
        status, told = at.apply(capsys, person, **more)
        assert (status, told["outcome"], told["undo"], len(person.asked)) == (1, "denied", [], 1)
        assert person.asked[0].kind == ("once" if more else "plan")
    assert at.apply(capsys, Person(), read_only=True)[1]["outcome"] == "denied"
    piped = ghost("apply", "last", "-w", str(at.root), cwd=at.root, stdin="A\nA\n", in_process=True)
    assert piped.returncode == 1
    assert "DENIED: no terminal to ask on.\nNothing was changed." in piped.stdout
    assert f"undone by: {CREATE} -n close-legacy-ports --priority 200" in piped.stdout
    assert "close-legacy-ports" in at.rules()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (f"{CREATE} -n close-legacy-ports --priority 200 --access Deny --destination-port-ranges 1-9999", "*:1-9999"),
        (f"{CREATE} -n other --priority 150 --access Deny --destination-port-ranges 6379", "other (priority 150"),
        ("az vm deallocate -g prod-rg -n redis-cache-01", "deallocated"),
    ],
)
def test_what_drifted_since_the_session_is_not_changed(
    change: str, words: str, desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]
) -> None:
    at, person = desk(), Person()
    at.az(change)
    status, told = at.apply(capsys, person)
    assert (status, person.asked, told["undo"]) == (1, [], [])
    assert told["outcome"] == "drifted"
    assert words in told["why"].partition("now: ")[2]
    assert "close-legacy-ports" in at.rules()


def test_a_failed_command_stops_the_rest(desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]) -> None:
    at = desk("two-report-replica")
    content = json.loads((at.lab / "world.json").read_text())
    content["tenant"]["locked"] = ["/resourceGroups/shop-rg/providers/Microsoft.Network/networkSecurityGroups"]
    content["tenant"]["locked"][0] += "/ir-2291-nsg"
    (at.lab / "world.json").write_text(json.dumps(content))
    status, told = at.apply(capsys, Person())
    assert (status, told["outcome"], [run["state"] for run in told["commands"]]) == (1, "failed", ["done", "failed"])
    assert "ScopeLocked" in told["commands"][1]["why"]
    assert [row["outcome"] for row in told["flows"]] == ["blocked"]
    assert [command.partition(" -g ")[0] for command in told["undo"]] == ["az network route-table route create"]


def test_a_session_without_a_walked_fix_says_so(desk: Callable[..., Desk], capsys: pytest.CaptureFixture[str]) -> None:
    at = desk("two-portal-erp")
    with pytest.raises(SessionError, match=r"has no walked fix: no command is known against vm-fw-01 forwards nothing"):
        apply(Request("last"), at.root, Person())
    damaged = next((at.root / "audit").glob("shell_audit_ghost_*.jsonl"))
    damaged.write_text(damaged.read_text().replace("vm-fw-01", "vm-fw-02", 1))
    with pytest.raises(SessionError, match="do not hold"):
        apply(Request("last"), at.root, Person())
