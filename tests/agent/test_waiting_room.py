"""A question is answered once, by who read it, and never after nobody waits for it."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ghost.agent import Waiting, WaitingRoom
from ghost.errors import StoreError
from ghost.records import SystemClock, workspace_lock
from ghost.shell import ApprovalRequest, HitlDecision

COMMAND = "az network nsg rule delete -g rg -n only-this-test-names-it --nsg-name nsg"
REQUEST = ApprovalRequest("once", (COMMAND,), "to see", "It deletes a rule.", 2)
YES, NO = HitlDecision("approve", by="dashboard"), HitlDecision("deny", reason="not now")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A workspace that somebody works in."""
    with WaitingRoom(tmp_path, SystemClock()).occupied():
        yield tmp_path


@pytest.fixture
def room(root: Path) -> WaitingRoom:
    return WaitingRoom(root, SystemClock())


def ask(room: WaitingRoom, seconds: float | None = None) -> Waiting:
    return room.ask("ghost_1", "web-vm cannot reach db-vm", REQUEST, seconds)


def test_what_waits_is_listed_as_it_was_asked(room: WaitingRoom) -> None:
    asked, question = ask(room), room.ask("ghost_1", "symptom", "Which VM is meant?")
    assert room.open() == [asked, question]
    assert room.open()[0].asked == REQUEST
    assert room.answer(question.id, question.sha256, "web-vm")
    closed = room.closed(question.id)
    assert closed is not None
    assert (closed.answer, closed.by) == ("web-vm", "terminal")


def test_of_answers_at_once_one_counts_and_the_others_are_told(root: Path) -> None:
    for _ in range(20):
        asked = ask(WaitingRoom(root, SystemClock()))
        begin, counted = threading.Barrier(4), []

        def answer(decision: HitlDecision, asked: Waiting = asked, begin=begin, counted=counted) -> None:
            room = WaitingRoom(root, SystemClock())
            begin.wait()
            if room.answer(asked.id, asked.sha256, decision):
                counted.append(decision)

        threads = [threading.Thread(target=answer, args=(each,)) for each in (YES, NO, YES, NO)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(counted) == 1
        assert WaitingRoom(root, SystemClock()).closed(asked.id).answer == counted[0]


def test_an_answer_to_something_else_than_was_shown_does_not_count(room: WaitingRoom) -> None:
    asked, other = ask(room), room.ask("ghost_1", "", ApprovalRequest("once", ("az vm list",), "", "", 2))
    assert asked.sha256 != other.sha256
    assert not room.answer(asked.id, other.sha256, YES)
    assert room.closed(asked.id) is None


def test_nobody_answers_in_time_or_it_is_stopped(room: WaitingRoom) -> None:
    for asked, is_stopped in ((ask(room, 0.01), lambda: False), (ask(room), lambda: True)):
        closed = room.wait(asked, is_stopped)
        assert (closed.state, closed.answer) == ("abandoned", None)
        assert not room.answer(asked.id, asked.sha256, YES)


def test_what_a_killed_process_left_can_not_be_answered(tmp_path: Path) -> None:
    room = WaitingRoom(tmp_path, SystemClock())
    with suppress(MemoryError), room.occupied():
        asked = ask(room)
        room._close_all = lambda: None  # as after a kill
        raise MemoryError
    del room._close_all
    assert room.open() == []
    assert not room.answer(asked.id, asked.sha256, YES)
    with workspace_lock(tmp_path):  # somebody else works here: a watch
        assert room.open() == []
    with room.occupied():  # the next investigation begins
        again = ask(room)
        assert room.open() == [again]
        assert not room.answer(asked.id, asked.sha256, YES)
        assert room.closed(asked.id).state == "abandoned"


def test_what_was_asked_is_gone_once_it_is_answered(room: WaitingRoom, root: Path) -> None:
    asked = ask(room)
    file = root / "data" / "waiting.sqlite3"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"only-this-test-names-it" in file.read_bytes()
    assert room.answer(asked.id, asked.sha256, NO)
    assert b"only-this-test-names-it" not in b"".join(each.read_bytes() for each in root.glob("data/waiting*"))


def test_what_was_typed_is_gone_once_the_next_is_asked(room: WaitingRoom, root: Path) -> None:
    decided = HitlDecision(
        "modify", modified_command="az vm list --secret typed-words", reason="typed-words", by="terminal"
    )
    for answer, told in ((decided, HitlDecision("modify", by="terminal")), ("typed-words", "(in words)")):
        asked = ask(room)
        assert room.answer(asked.id, asked.sha256, answer)
        assert room.outcome(asked).answer == answer
        ask(room)
        assert room.closed(asked.id).answer == told
    assert b"typed-words" not in b"".join(each.read_bytes() for each in root.glob("data/waiting*"))


def test_a_row_that_was_changed_is_neither_approved_nor_taken_for_an_answer(room: WaitingRoom, root: Path) -> None:
    asked, other = ask(room), room.ask("ghost_1", "", ApprovalRequest("once", ("az vm list",), "", "", 2))

    def written(sql: str) -> None:
        with closing(sqlite3.connect(root / "data" / "waiting.sqlite3")) as file, file:
            file.execute(sql, (asked.id,))

    written(f"UPDATE waiting SET asked = (SELECT asked FROM waiting WHERE id = '{other.id}') WHERE id = ?")
    shown = room.find(asked.id)
    assert not room.answer(asked.id, shown.sha256, YES)
    written(f"UPDATE waiting SET sha256 = '{shown.sha256}' WHERE id = ?")
    assert room.answer(asked.id, shown.sha256, YES)
    assert room.wait(asked, lambda: False).answer is None
    written("INSERT INTO waiting VALUES (? || 'x', '', '', '{', '', 0, NULL, 'open', NULL, NULL, NULL)")
    with pytest.raises(StoreError, match="move it aside"):
        room.open()


def test_a_link_in_place_of_the_file_is_not_followed(room: WaitingRoom, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (root / "data").mkdir(exist_ok=True)
    (root / "data" / "waiting.sqlite3").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        ask(room)
    assert (tmp_path / "elsewhere").read_bytes() == b""
