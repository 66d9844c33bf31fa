"""`ghost apply` in the lab: only a walked fix runs, after an approval, and a second read says whether it mends."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import FixCheckRuns, Session, UncheckedFixes, Workspace
from ghost.cli.apply_command import Request, apply
from ghost.cli.approvals import Gate
from ghost.cli.session_records import recorded
from ghost.config import Settings
from ghost.errors import SessionError, WorkspaceError
from ghost.lab import lab_programs, reopen
from ghost.mind import InboxFull, Task
from ghost.records import ChainedLog, read_valid_records, workspace_lock
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

    unfixed = ghost("apply", "last", "--check", "-w", str(at.root), cwd=at.root, in_process=True)
    listed = ghost("sessions", "-w", str(at.root), cwd=at.root, in_process=True).stdout
    assert re.search(r"apply_\S+ .* not mended\n", listed)
    assert (unfixed.returncode, f"Run the fix: ghost apply {task.metadata['session_id']}" in unfixed.stdout) == (
        4,
        True,
    )
    assert "not mended" in open_tasks()[0].context
    assert open_tasks()[0].metadata["check_due_ts"] < time.time() + 3600, "a person's check makes no wait longer"

    assert at.apply(capsys, Person())[0] == 0
    assert "applied" in open_tasks()[0].context, "it may not last"

    status, told = at.apply(capsys, nobody, check=True)
    assert (status, told["outcome"], nobody.asked, open_tasks()) == (0, "mended", [], [])
    assert {record["classification"] for record in at.records(told)} == {"SAFE"}
    records, broken = read_valid_records(Workspace(at.root).fix_checks)
    results = [(each["kind"], each["outcome"]) for each in records if each["kind"] != "begun"]
    assert (results, broken) == ([("checked", "not_mended"), ("applied", "mended"), ("checked", "mended")], [])


class Schedule:
    """Checks of a desk's fixes by a clock that is `hours` ahead; what is told of them."""

    def __init__(self, at: Desk) -> None:
        self.at, self.hours, self.told, self.is_full = at, 0.0, list[str](), False
        self.runs = FixCheckRuns(Workspace(at.root), self.open_shell, self, self.tell)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(hours=self.hours)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def open_shell(self, lab_of: str, network: str, session_id: str) -> SafeExecShell:
        programs = lab_programs(reopen(self.at.root / "lab" / lab_of))
        return SafeExecShell(session_id, audit_dir=self.at.root / "audit", read_only=True, **programs)

    def tell(self, session: Session, record: Mapping[str, Any]) -> None:
        if self.is_full:
            raise InboxFull("1000 stimuli are waiting")
        self.told.append(str(record["outcome"]))

    def after(self, hours: float) -> list[str]:
        """Return all that was told, after so many further hours and a turn of the schedule."""
        self.hours += hours
        self.runs.run_due()
        return self.told

    @property
    def sessions(self) -> list[str]:
        found = (self.at.root / "audit").glob("shell_audit_check_*.jsonl")
        return [path.stem.removeprefix("shell_audit_") for path in found]


def test_the_schedule_checks_a_fix_until_it_is_mended_and_tells(desk: Callable[..., Desk]) -> None:
    at = desk()
    schedule = Schedule(at)
    (task,) = UncheckedFixes(Workspace(at.root)).tasks(time.time())
    assert schedule.after(0.5) == []
    assert schedule.after(0.6) == ["not_mended"]
    (left,) = UncheckedFixes(Workspace(at.root)).tasks(time.time())
    assert (left.title, left.deadline_ts) == ("NOT MENDED: security rule at cache-nsg", task.deadline_ts)
    assert schedule.after(1.5) == ["not_mended"], "it waits twice as long"
    assert schedule.after(0.6) == ["not_mended"] * 2
    at.az(DELETE)
    assert schedule.after(4.1) == ["not_mended", "not_mended", "mended"]
    assert list(UncheckedFixes(Workspace(at.root)).tasks(time.time())) == []
    assert schedule.after(30) == ["not_mended", "not_mended", "mended"]
    assert len(schedule.sessions) == 3
    for session_id in schedule.sessions:
        records = recorded(session_id, at.root, Settings())
        assert all(check.ok for check in records.checks())
        assert {each["classification"] for each in at.records({"session_id": session_id})} == {"SAFE"}
    assert recorded("last", at.root, Settings()).paths.session_id.startswith("ghost_")


def test_no_check_of_a_fix_and_no_word_of_it_is_lost(desk: Callable[..., Desk]) -> None:
    at = desk()
    schedule = Schedule(at)
    with workspace_lock(at.root), pytest.raises(WorkspaceError):
        schedule.after(1.1)

    def cut_off(*_: str) -> Any:
        raise KeyboardInterrupt

    interrupted = FixCheckRuns(Workspace(at.root), cut_off, schedule, schedule.tell)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run_due()
    schedule.is_full = True
    with pytest.raises(InboxFull):
        schedule.after(0)
    assert schedule.after(0) == [], "it was made again, and nobody was told yet"
    schedule.is_full = False
    for _ in range(2):
        schedule.runs.tell_open()
    assert schedule.told == ["not_mended"]
    damaged = next((at.root / "audit").glob("shell_audit_ghost_*.jsonl"))
    damaged.write_text(damaged.read_text().replace("cache-nsg", "other-nsg", 1))
    assert schedule.after(2.1) == ["not_mended", "not_known"]
    (task,) = UncheckedFixes(Workspace(at.root)).tasks(time.time())
    assert (task.title.partition(":")[0], task.context.endswith(": not known)")) == ("NOT MENDED", True)


def test_what_is_changed_or_removed_in_the_log_of_fixes_shows(desk: Callable[..., Desk]) -> None:
    at = desk()
    Schedule(at).after(1.1)
    log, head = at.root / "audit" / "fix_checks.jsonl", at.root / "audit" / "fix_checks.jsonl.head"
    (check,), whole, kept = Schedule(at).sessions, log.read_text(), head.read_text()
    begun, result = whole.splitlines()[:2]

    def is_sound(session: str) -> bool:
        return all(check.ok for check in recorded(session, at.root, Settings()).checks())

    def written(*lines: str) -> None:
        """Write a log whose chain and head hold."""
        log.unlink()
        chain = ChainedLog(log)
        for line in lines:
            chain.append({name: value for name, value in json.loads(line).items() if name != "prev"})
        head.write_text(json.dumps(chain.head.as_dict()))

    assert is_sound(check)
    assert is_sound("last")
    written(begun, result.replace("not_mended", "mended"))
    assert not is_sound(check), "its reads say otherwise"
    assert not is_sound("last"), "its check's reads say otherwise"
    never_ran = json.loads(result) | {"records": "check_20990101_000000", "outcome": "mended"}
    written(begun, result, json.dumps(never_ran))
    assert not is_sound("last"), "no check says so"
    for content in (whole.replace("not_mended", "mended"), f"{begun}\n", None):
        log.unlink()
        head.write_text(kept)
        if content is not None:
            log.write_text(content)
        assert not is_sound(check), content
        assert not is_sound("last"), content
    log.unlink(missing_ok=True)
    head.unlink()
    assert not is_sound(check)
    assert not is_sound("last")


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
