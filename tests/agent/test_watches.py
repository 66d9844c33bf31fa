"""Watches in the lab: a change of the path is found by the next run, nothing else is, and "no drift" can be checked."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ghost.agent import DriftTasks, SessionPaths, Watch, WatchResult, WatchRuns, Workspace, verify_commands
from ghost.cli.watch_schedule import scheduled
from ghost.lab import lab_programs, load_case, scenario_names, start
from ghost.mind import Query, QueryStatus
from ghost.records import SystemClock, workspace_lock
from ghost.shell import SafeExecShell
from tests.exhaustive import sample
from tests.lab import in_process

RULE = "az network nsg rule create -g prod-rg --nsg-name cache-nsg --access Deny --destination-port-ranges"
BLOCK = f"{RULE} 443 -n new-block --priority 150"
DEALLOCATE = "az vm deallocate -g prod-rg -n redis-cache-01"
START = "az vm start -g prod-rg -n redis-cache-01"
UNBLOCK = "az network nsg rule delete -g prod-rg --nsg-name cache-nsg -n new-block"
WEB_TO_CACHE = ("blocked-port", "web-vm-01", "redis-cache-01", 443)
TO_DATABASES = ("lb-orders-half", "app-01", "10.50.3.100", 5432)
TO_SEARCH = ("dns-search-host", "orders", "search-new.retail.internal", 9200)
CHANGES = [
    (WEB_TO_CACHE, BLOCK, "new-block (priority 150"),
    (WEB_TO_CACHE, DEALLOCATE, "is deallocated"),
    (
        WEB_TO_CACHE,
        "az network route-table route create -g prod-rg --route-table-name prod-routes -n away --next-hop-type None "
        "--address-prefix 10.20.2.0/24",
        "dropped by 10.20.2.0/24",
    ),
    (TO_DATABASES, "az network lb probe update -g shop-rg --lb-name db-lb -n probe --port 81", "probe tcp port 81"),
    (
        TO_DATABASES,
        "az network nsg rule create -g shop-rg --nsg-name data-nsg -n no-probe --priority 101 --access Deny "
        "--source-address-prefixes AzureLoadBalancer --destination-port-ranges 22",
        "no member for postgres is healthy",
    ),
    (TO_DATABASES, "az network lb rule delete -g shop-rg --lb-name db-lb -n postgres", "no rule of db-lb accepts"),
    (
        TO_SEARCH,
        "az network private-dns record-set a add-record -g hub-rg -z retail.internal -n search-new -a 10.2.1.9",
        "10.2.1.9",
    ),
    (
        ("dns-search-host", "orders", "search", 9200),
        "az network vnet peering delete -g shop-rg --vnet-name shop-vnet -n shop-to-hub",
        "peering",
    ),
]
"""What is watched, a change in the lab by its own az, and words of what is there now."""


class Bench:
    """A workspace with a watch over a lab; words of an az command: `failing`, and `emptied`, which lists nothing."""

    def __init__(self, root: Path, watched: tuple[str, str, str, int | None], every: float = 900.0) -> None:
        name, source, destination, port = watched
        self.root, self.failing, self.emptied = root, "", ""
        root.mkdir(parents=True, exist_ok=True)
        self.lab = start(load_case(name), root / "lab", speed=1000.0)
        self.asked: list[tuple[str, str]] = []
        self.answered: set[str] = set()
        self.refused: set[str] = set()
        self.withdrawn: dict[str, str] = {}
        self.runs = WatchRuns(Workspace(root), self.open_shell, SystemClock(), self)
        protocol = "Tcp" if port else "Icmp"
        self.ends = {"source": source, "destination": destination, "port": port, "protocol": protocol}
        self.watch, self.first = self.runs.add_ends(self.ends, name, "a lab", every)

    def open_shell(self, lab_of: str, network: str, session_id: str) -> SafeExecShell:
        return SafeExecShell(
            session_id,
            audit_dir=self.root / "audit",
            roots=[self.root],
            read_only=True,
            runner=self._program,
            **lab_programs(self.lab),
        )

    def _program(self, words: Sequence[str], *, env: Mapping[str, str], **more: Any) -> Any:
        if self.failing and self.failing in " ".join(words):
            denied = b"ERROR: (AuthorizationFailed) The client does not have authorization to perform this action.\n"
            return subprocess.CompletedProcess(words, 1, b"", denied)
        if self.emptied and self.emptied in " ".join(words):
            return subprocess.CompletedProcess(words, 0, b"[]", b"")
        return in_process.run(words, env=env, **more)

    def ask(self, question: str, reason: str) -> str:
        self.asked.append((question, reason))
        return f"q:{len(self.asked)}"

    def withdraw(self, query_id: str, why: str) -> bool:
        if query_id not in self.answered:
            self.withdrawn[query_id] = why
        return query_id not in self.answered

    def is_refused(self, query_id: str) -> bool:
        return query_id in self.refused

    def az(self, command: str) -> None:
        words = shlex.split(command)[1:]
        done = in_process.run_main("ghost.lab.programs.az", words, {"GHOST_LAB_DIR": str(self.root / "lab")})
        assert done.returncode == 0, done.stderr

    def run(self) -> WatchResult:
        return self.runs.run(self.watch.id)

    def stored(self) -> Watch:
        return self.runs.watches.get(self.watch.id)

    def problems(self, result: WatchResult) -> list[str]:
        checks = verify_commands(SessionPaths(self.root / "audit", result.session_id))
        return [problem for check in checks for problem in check.problems]

    def sessions(self) -> set[str]:
        return {path.stem.removeprefix("shell_audit_") for path in (self.root / "audit").glob("shell_audit_*.jsonl")}


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    return lambda watched=WEB_TO_CACHE, **more: Bench(tmp_path / "room", watched, **more)


@pytest.mark.parametrize(("watched", "change", "words"), CHANGES)
def test_a_change_of_the_path_is_found_and_asked_about_once(
    watched: tuple[str, str, str, int], change: str, words: str, bench: Callable[..., Bench]
) -> None:
    at = bench(watched)
    at.az(change)
    found = at.run()
    assert (found.outcome, at.problems(found)) == ("drift", [])
    assert words in " ".join(each["now"] for each in found.changes)
    assert found.changes[0]["before"] != found.changes[0]["now"]
    ((question, reason),) = at.asked
    assert question.endswith("Was this intended?")
    assert found.changes[0]["before"] in question
    resource = (change.partition(" -n ")[2] or change).split()[0]
    assert f" of {resource}" in reason, "the activity log says what was changed"
    again = at.run()
    assert (again.outcome, again.compared_with, len(at.asked)) == ("no_drift", found.session_id, 1)


def test_no_drift_is_a_certificate_that_its_records_give_again(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(f"{RULE} 9999 -n elsewhere --priority 4000")
    found = at.run()
    assert (found.outcome, found.noted) == ("no_drift", ["security group cache-nsg: changed"])
    assert at.problems(found) == []
    assert at.asked == []
    paths = SessionPaths(at.root / "audit", found.session_id)
    stated = paths.watch_result.read_text()
    for forged in (
        {"outcome": "drift"},
        {"compared_with": found.session_id},
        {"records": ["watch_other_001"]},
        {"walks": [{**found.walks[0], "outcome": "blocked"}]},
        {"head": {"count": 1, "sha256": "0" * 64}},
    ):
        paths.watch_result.write_text(json.dumps({**json.loads(stated), **forged}))
        assert at.problems(found) != [], forged
    paths.watch_result.unlink()
    assert any("it was removed" in problem for problem in at.problems(found))
    paths.watch_result.write_text(stated)
    kept = next(paths.outputs.glob(f"{found.session_id}_*.txt"))
    kept.write_text(kept.read_text().replace("cache", "cashe", 1))
    assert any("watch result" in check.name for check in verify_commands(paths) if not check.ok)


def test_a_drift_is_no_other_result_by_the_same_records(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(BLOCK)
    found = at.run()
    paths = SessionPaths(at.root / "audit", found.session_id)
    stated = json.loads(paths.watch_result.read_text())
    none: dict[str, Any] = {"outcome": "no_drift", "changes": [], "changed_by": []}
    for forged in (
        none | {"compared_with": found.session_id, "compared_head": stated["head"], "noted": []},
        none | {"outcome": "started", "compared_with": None, "compared_head": None, "noted": []},
        none | {"flows": [], "walks": [], "records": []},
        {"outcome": "not_known"},
        {"watch": "w99"},
        {"changed_by": ["somebody else"]},
        {"not_known": ["x"]},
    ):
        paths.watch_result.write_text(json.dumps(stated | forged))
        assert at.problems(found) != [], forged


def test_what_cannot_be_read_is_not_known_and_waits_longer(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.failing = "network nsg"
    waits = []
    for _ in range(3):
        found = at.run()
        assert found.outcome == "not_known"
        assert found.why.startswith("security group prod-nsg was not read (")
        assert "AuthorizationFailed" in found.why
        waits.append(at.stored().due_at - at.stored().runs[-1].at)
    assert (waits, at.asked) == ([1800.0, 3600.0, 7200.0], [])
    at.az(DEALLOCATE)
    drifts = [at.run() for _ in range(4)]
    assert {each.outcome for each in drifts} == {"drift"}, "what was read shows it for certain"
    kept = {each.session_id for each in (at.first, drifts[0], *drifts[-2:])}
    assert at.sessions() == kept, "each run that lacks a part is no snapshot"
    at.az(BLOCK)
    at.failing = ""
    found = at.run()
    assert (found.outcome, found.compared_with, at.stored().failures) == ("drift", at.first.session_id, 0)
    assert len(found.changes) == 2, "the rule that could not be read is not lost"
    assert at.run().outcome == "no_drift"


def test_a_reader_that_sees_nothing_any_more_is_never_told_no_drift(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.emptied = "network nic list"
    for _ in range(2):
        found = at.run()
        assert (found.outcome, found.is_whole, found.compared_with) == ("drift", False, at.first.session_id)
    at.emptied = ""
    assert at.run().outcome == "no_drift"


def test_a_drift_that_went_back_withdraws_its_question_by_its_record(bench: Callable[..., Bench]) -> None:
    at = bench()
    before = at.first
    for number in (1, 2):
        at.az(BLOCK)
        drift = at.run()
        at.az(DEALLOCATE)
        assert (drift.outcome, at.run().outcome, len(at.asked)) == ("drift", "drift", 2 * number)
        at.az(START)
        at.az(UNBLOCK)
        back = at.run()
        assert (back.outcome, len(at.asked), at.stored().drifts) == ("drift", 2 * number, [])
        assert len(at.withdrawn) == 2 * number, "of all that changed since"
        assert at.withdrawn[f"q:{2 * number - 1}"] == (
            f"The path is again as it was before, in {before.session_id}: {back.session_id}."
        )
        before = back


def test_who_said_that_a_drift_was_intended_is_asked_when_it_goes_back(bench: Callable[..., Bench]) -> None:
    at = bench()
    for change in (BLOCK, UNBLOCK):
        at.az(change)
        assert at.run().outcome == "drift"
        at.answered.add("q:1")
    assert (len(at.asked), at.withdrawn) == (2, {})
    at.az(BLOCK)
    assert at.run().outcome == "drift"
    assert (len(at.asked), list(at.withdrawn)) == (2, ["q:2"])


def test_what_was_not_intended_and_comes_back_is_asked_about_again(bench: Callable[..., Bench]) -> None:
    at = bench()
    for change in (BLOCK, UNBLOCK, BLOCK):
        at.az(change)
        assert at.run().outcome == "drift"
        at.answered.add("q:1")
        at.refused.add("q:1")
    assert (len(at.asked), list(at.withdrawn)) == (3, ["q:2"])
    assert [drift.query_id for drift in at.stored().drifts] == ["q:1", "q:3"]


def test_traffic_that_was_stopped_at_first_and_is_stopped_again_is_asked_about(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(BLOCK)
    at.watch, _ = at.runs.add_ends(at.ends, "blocked at first", "a lab", 60)
    for change in (UNBLOCK, BLOCK):
        at.az(change)
        assert at.run().outcome == "drift"
    assert (len(at.asked), list(at.withdrawn)) == (2, ["q:1"])
    assert "now security group cache-nsg, drop" in at.asked[1][0]


def test_a_drift_is_one_task(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(BLOCK)
    at.run()
    asked = Query(id="q:1", question="?", created_ts=0, expires_ts=10)
    source = DriftTasks(Workspace(at.root), lambda: [asked])
    assert list(source.tasks(5)) == [], "to answer its question is one"
    assert [task.metadata["query_id"] for task in source.tasks(11)] == ["q:1"]
    asked = asked.model_copy(update={"status": QueryStatus.ANSWERED})
    assert list(source.tasks(11)) == []


def test_the_questions_of_a_removed_watch_are_withdrawn(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(BLOCK)
    at.run()
    assert at.runs.remove(at.watch.id)[1] == ["q:1"]
    assert (at.withdrawn, at.runs.watches.all()) == ({"q:1": "The watch was removed."}, [])


def test_two_snapshots_and_those_that_differed_are_kept(bench: Callable[..., Bench]) -> None:
    at = bench()
    quiet = [at.run().session_id for _ in range(3)]
    at.az(BLOCK)
    drift = at.run()
    later = [at.run() for _ in range(4)]
    assert at.sessions() == {at.first.session_id, drift.session_id, later[-2].session_id, later[-1].session_id}
    assert not list((at.root / "audit").rglob(f"*{quiet[0]}*"))
    assert [at.problems(each) for each in (at.first, drift, *later[-2:])] == [[]] * 4
    (at.root / "audit" / "ghost_rca_ghost_1.json").write_text(json.dumps({"cites": later[-1].session_id}))
    for _ in range(3):
        at.run()
    assert later[-1].session_id in at.sessions(), "a report cites it"


def test_nothing_is_lost_where_a_run_is_cut_off(bench: Callable[..., Bench]) -> None:
    at = bench()
    at.az(BLOCK)
    at.failing = "network nic list"

    def cut_off(*_: Any) -> Any:
        raise KeyboardInterrupt

    interrupted = WatchRuns(Workspace(at.root), cut_off, SystemClock(), None)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(at.watch.id)
    assert at.stored().running is not None
    at.failing = ""
    unasked = WatchRuns(Workspace(at.root), at.open_shell, SystemClock(), None).run(at.watch.id)
    assert [run.why for run in at.stored().runs][1] == "it was interrupted"
    assert (unasked.outcome, at.asked) == ("drift", [])
    at.runs.ask_open()
    at.runs.ask_open()
    assert len(at.asked) == 1


def test_the_schedule_runs_what_is_due_and_waits_for_an_investigation(bench: Callable[..., Bench]) -> None:
    at, ended = bench(every=0.2), threading.Event()
    at.az(BLOCK)
    with ExitStack() as investigation, ExitStack() as server:
        investigation.enter_context(workspace_lock(at.root))
        server.enter_context(scheduled((at.runs.run_due,), ended.set, look_seconds=0.02))
        time.sleep(0.5)
        assert (at.asked, at.stored().running) == ([], None)
        investigation.close()
        deadline = time.monotonic() + 60
        while not at.asked and time.monotonic() < deadline:
            time.sleep(0.02)
    assert len(at.asked) == 1
    assert ended.is_set()


def test_an_unchanged_network_shows_no_drift(tmp_path: Path) -> None:
    for name in sample(scenario_names(), 4, seed=1):
        case = load_case(name)
        for flow in case.flows:
            at = Bench(tmp_path / name / flow.name, (name, flow.source, flow.destination, flow.port))
            found = [at.run() for _ in range(2)]
            assert {each.outcome for each in found} <= {"no_drift", "not_known"}, (name, flow.name, found)
            assert [at.problems(each) for each in found] == [[], []]
