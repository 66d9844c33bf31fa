"""`ghost watch` on a finished investigation of the lab: from the command line, and by the schedule beside a server."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest

from ghost.agent import Session, Workspace, save_session
from ghost.cli.watch_commands import add, run, seconds_of, watching
from ghost.config import Settings
from ghost.errors import SessionError, UsageError
from ghost.mind import Event, Kind
from ghost.server import opened_engine
from ghost.shell import SafeExecShell
from tests.cli.ready_ghost import SIGNAL_AT
from tests.cli.test_commands import ghost
from tests.exhaustive import sample
from tests.lab import in_process

BLOCK = (
    "az network nsg rule create -g prod-rg --nsg-name cache-nsg -n other --priority 150 --access Deny "
    "--destination-port-ranges 6379"
)

MOMENTS = 30
"""Changes of files in a run that finds a drift, at the least."""


def change(root: Path, command: str) -> None:
    lab = max((root / "lab").iterdir())  # of the last session
    done = in_process.run_main("ghost.lab.programs.az", shlex.split(command)[1:], {"GHOST_LAB_DIR": str(lab)})
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("finished")
    words = ("investigate", "--lab", "blocked-port", "--brain", "offline")
    done = ghost(*words, cwd=root, in_process=True, GHOST_LAB_SPEED="1000")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def investigated(finished: Path, tmp_path: Path) -> Path:
    """The workspace of a finished investigation, for one test."""
    return shutil.copytree(finished, tmp_path / "investigated")


def test_of_a_second_run_only_what_was_changed_since_is_drift(investigated: Path, tmp_path: Path) -> None:
    """It read what its cause rests on, and no more: the rest is not known from it."""
    root = shutil.copytree(investigated, tmp_path / "room")
    words = ("investigate", "--lab", "blocked-port", "--brain", "offline")
    assert ghost(*words, cwd=root, in_process=True, GHOST_LAB_SPEED="1000").returncode == 0
    assert ghost("watch", "add", "last", cwd=root, in_process=True).returncode == 0
    unchanged = shutil.copytree(root, tmp_path / "unchanged")
    done = ghost("watch", "run", cwd=unchanged, in_process=True)
    assert (done.returncode, "READ: later runs" in done.stdout) == (0, True), done.stdout
    change(root, BLOCK)
    done = ghost("watch", "run", cwd=root, in_process=True)
    assert (done.returncode, "now:    security group cache-nsg, drop: other (priority 150" in done.stdout) == (4, True)


def test_a_drift_is_shown_asked_about_and_checked(investigated: Path) -> None:
    def told(*words: str, status: int = 0) -> str:
        done = ghost(*words, cwd=investigated, in_process=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    watch = json.loads(told("watch", "add", "last", "--every", "1h", "--json"))
    assert (watch["id"], watch["every_seconds"]) == ("w1", 3600)
    assert re.search(
        r"NO DRIFT: the path is as it was\.\n  TCP .*: (blocked: close-legacy|passes)", told("watch", "run", "w1")
    )
    change(investigated, BLOCK)
    (found,) = json.loads(told("watch", "run", "--json", status=4))
    shown = told("watch", "list")
    assert "drift at " in shown
    (question,) = json.loads(told("interrupts", "--json"))
    assert question["question"].endswith("Was this intended?")
    assert "other (priority 150" in question["question"]
    tasks = told("tasks")
    assert (f"task:{question['id']}" in tasks, "drift:" in tasks) == (True, False), "one drift is one task"
    assert "watch result" in told("audit", "verify", found["session_id"])
    assert re.search(f"{found['session_id']} .* drift\\n", told("sessions"))
    assert found["session_id"] not in told("audit", "show", "last"), "a run of a watch is not the last session"
    told("answer", question["id"], "yes, ticket 4711")
    assert question["id"] not in told("tasks")
    told("watch", "run")
    change(investigated, BLOCK.replace("create", "update").replace("6379", "6378"))
    assert "Asked whether" in told("watch", "run", status=4)
    change(investigated, BLOCK.replace("create", "update"))
    assert "is withdrawn" in told("watch", "run", status=4)
    change(investigated, BLOCK.replace("create", "delete").partition(" --priority")[0])
    again = re.search(r"Asked whether it was intended: ghost answer (\S+) yes", told("watch", "run", status=4))
    told("answer", again[1], "no")
    change(investigated, BLOCK)
    assert f"intended: {question['id']} is answered: yes, ticket 4711" in told("watch", "run", status=4)
    change(investigated, BLOCK.replace("create", "update").replace("6379", "6378"))
    assert "Asked whether" in told("watch", "run", status=4), "again, since no was the answer before"
    (question,) = json.loads(told("interrupts", "--json"))
    removed = told("watch", "remove", "w1")
    assert "w1 is removed" in removed
    assert f"Its question {question['id']} is withdrawn." in removed
    assert json.loads(told("interrupts", "--json")) == []
    assert told("watch", "list").startswith("No path is watched")
    assert "no watch 'w1'" in ghost("watch", "run", "w1", cwd=investigated).stderr


def test_the_schedule_asks_beside_the_background_loop(investigated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SafeExecShell.__init__.__kwdefaults__, "runner", in_process.run)
    settings = Settings(workspace=investigated)
    add(["last"], None, "tcp", "15m", investigated, as_json=True)
    change(investigated, BLOCK.replace("150", "140").replace("other", "third"))
    events: list[Event] = []
    with opened_engine(settings, investigated) as engine:
        engine.subscribe(events.append)
        with watching(settings, investigated, engine):
            deadline = time.monotonic() + 60
            while not any(event.kind is Kind.INTERRUPT for event in events) and time.monotonic() < deadline:
                time.sleep(0.05)
        engine.tend()
        (asks,) = [query.id for query in engine.interrupts.list_open()]
        of_drift = [task.id for task, _ in engine.attention.top_k(9) if task.id.startswith(("drift:", "task:q:"))]
        assert of_drift == [f"task:{asks}"]
    (asked,) = [event for event in events if event.kind is Kind.INTERRUPT]
    assert "third (priority 140" in asked.data["question"]
    records = (investigated / "audit").glob("shell_audit_watch_*.jsonl")
    lines = [line for file in records for line in file.read_text().splitlines()]
    assert {json.loads(line)["classification"] for line in lines} == {"SAFE"}


def test_the_schedule_checks_a_fix_and_the_mind_is_told(
    investigated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SafeExecShell.__init__.__kwdefaults__, "runner", in_process.run)
    root = shutil.copytree(investigated, tmp_path / "room", ignore=shutil.ignore_patterns("data"))
    hours_ago = time.time() - 7200
    os.utime(root / "ghost_session.json", (hours_ago, hours_ago))
    settings, events = Settings(workspace=root), list[Event]()
    with opened_engine(settings, root) as engine:
        engine.subscribe(events.append)
        with watching(settings, root, engine):
            deadline = time.monotonic() + 60
            while not any(event.kind is Kind.STIMULUS for event in events) and time.monotonic() < deadline:
                time.sleep(0.05)
        engine.cycle()
        (heard,) = [event.data["content"] for event in events if event.kind is Kind.STIMULUS]
        assert heard.startswith("Was it mended? security rule at cache-nsg: NOT MENDED, ")
        told = [hit.memory for hit in engine.ltm.search(heard) if hit.memory.metadata.get("source") == "fix check"]
        assert [(memory.content, memory.tags) for memory in told] == [(heard, ("told",))], "which is no change"
        titles = [task.title for task, _ in engine.attention.top_k(9)]
        assert "NOT MENDED: security rule at cache-nsg" in titles


@pytest.mark.parametrize("moment", sample(range(1, MOMENTS), 3))
def test_a_run_that_is_killed_loses_no_drift_and_asks_once(moment: int, investigated: Path, tmp_path: Path) -> None:
    root = tmp_path / "killed"
    shutil.copytree(investigated, root, ignore=shutil.ignore_patterns("data"))
    add(["last"], None, "tcp", "15m", root, as_json=True)
    change(root, BLOCK.replace("150", f"{110 + moment}").replace("other", "killed"))
    killed = ghost("watch", "run", cwd=root, in_process=True, **{SIGNAL_AT: f"SIGKILL {moment}"})
    assert killed.returncode == -signal.SIGKILL, "there is a change of a file at this moment"
    for _ in range(2):
        done = ghost("watch", "run", "--json", cwd=root, in_process=True)
        (found,) = json.loads(done.stdout)
        verified = ghost("audit", "verify", found["session_id"], cwd=root)
        assert verified.returncode == 0, verified.stdout
    assert found["outcome"] == "no_drift"
    (question,) = json.loads(ghost("interrupts", "--json", cwd=root).stdout)
    assert "killed (priority" in question["question"]


def test_ends_are_watched_in_a_lab_of_their_own(tmp_path: Path) -> None:
    ends = ("web-vm-01", "redis-cache-01", "443")
    added = ghost("watch", "add", *ends, "--lab", "blocked-port", "--json", cwd=tmp_path, in_process=True)
    assert json.loads(added.stdout)["network"].endswith("(SIMULATED)"), added.stderr
    change(tmp_path, BLOCK.replace("6379", "443"))
    done = ghost("watch", "run", cwd=tmp_path, in_process=True)
    assert (done.returncode, "other (priority 150" in done.stdout) == (4, True), done.stdout


def test_what_cannot_be_watched_is_refused(investigated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("15", "0m", "30s", "40d", "m"):
        with pytest.raises(UsageError, match="from 1m to 30d"):
            seconds_of(wrong)
    with pytest.raises(UsageError, match="one destination port"):
        add(["web-vm-01", "redis-cache-01"], None, "tcp", "15m", investigated, as_json=False)
    with pytest.raises(UsageError, match="leave out --lab"):
        add(["last"], None, "tcp", "15m", investigated, "blocked-port", as_json=False)
    save_session(Workspace(tmp_path).session_file, Session(session_id="ghost_1", created_at="", model="", audit_dir=""))
    with pytest.raises(SessionError, match=r"ghost_1 is not finished: end it .ghost investigate --resume ghost_1"):
        add(["ghost_1"], None, "tcp", "15m", tmp_path, as_json=False)
    Workspace(tmp_path).session_file.unlink()
    with pytest.raises(UsageError, match="no path is watched"):
        run(None, tmp_path, as_json=False)
    with pytest.raises(SessionError, match="no session"):
        add(["last"], None, "tcp", "15m", tmp_path, as_json=False)
    monkeypatch.setenv("GHOST_PRIVATE", "1")
    with pytest.raises(UsageError, match="private mode hides"):
        run(None, investigated, as_json=False)


def test_an_answer_is_of_its_drift_and_not_of_the_way_back(investigated: Path, tmp_path: Path) -> None:
    """Both name the same rule; and what was not intended is asked about again when it comes back."""
    root, asked = shutil.copytree(investigated, tmp_path / "room"), list[str]()
    assert ghost("watch", "add", "last", cwd=root, in_process=True).returncode == 0
    unblock = "az network nsg rule delete -g prod-rg --nsg-name cache-nsg -n other"
    for command, answer in ((BLOCK, "no"), (unblock, "yes"), (BLOCK, "no")):
        change(root, command)
        told = ghost("watch", "run", cwd=root, in_process=True).stdout
        assert "ghost answer" in told, (asked, told)
        asked.append(told.partition("ghost answer ")[2].split()[0])
        assert ghost("answer", asked[-1], answer, cwd=root, in_process=True).returncode == 0
    assert len(set(asked)) == 3
