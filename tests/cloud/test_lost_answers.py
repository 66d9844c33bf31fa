"""A creation whose answer was lost, in each way and with each thing that may follow: what is left is listed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from .scripted import TASK, Desk, broken, failed, ran, task_of
from .small_azure import Killed, SmallAzure
from .test_faults import assert_sound

Reply = dict[str, Any] | type[BaseException]
DROPPED = failed("ERROR: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))")
UNAVAILABLE = failed("ERROR: (ServiceUnavailable) The service is temporarily unavailable.")
CONFLICT = failed("ERROR: (Conflict) A packet capture with this name already exists.")
REFUSED = failed("ERROR: (PacketCaptureCountLimitReached) The limit of packet captures in the region is reached.")

# What the creation is answered, and after how many seconds the capture exists in Azure; None is never.
CREATIONS: dict[str, tuple[Reply, float | None]] = {
    "the connection dropped, applied": (DROPPED, 0),
    "the connection dropped, applied later": (DROPPED, 120),
    "the connection dropped, not applied": (DROPPED, None),
    "503, applied": (UNAVAILABLE, 0),
    "503, applied later": (UNAVAILABLE, 120),
    "409 for its own capture": (CONFLICT, 0),
    "timeout, applied later": (broken("timeout"), 120),
    "refused": (REFUSED, None),
    "killed, applied": (Killed, 0),
    "killed, applied later": (Killed, 120),
    "killed, not applied": (Killed, None),
}


class LateAzure(SmallAzure):
    """Creates a capture when its time has come; counts how often it must say that a deletion cannot begin yet."""

    def __init__(self, directory: Path, answer: Reply, after: float | None) -> None:
        super().__init__(directory)
        self.answer, self.after = answer, after
        self.now: Callable[[], datetime]
        self.due: list[tuple[datetime, str]] = []
        self.busy = 0

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        for moment, command in [*self.due]:
            if moment <= self.now():
                self.due.remove((moment, command))
                super()._answer(command)
        return super().execute(request)

    def _answer(self, command: str) -> dict[str, Any]:
        if "packet-capture create" in command:
            if self.after is not None:
                self.due.append((self.now() + timedelta(seconds=self.after), command))
                self.after = None
            if not isinstance(self.answer, dict):
                self.answer, killed = ran({}), self.answer
                raise killed
            return self.answer
        if " delete " in command and self.busy:
            self.busy -= 1
            return failed("ERROR: (AnotherOperationInProgress) Another operation on this resource is in progress.")
        return super()._answer(command)


def _nothing(desk: Desk, azure: LateAzure) -> None: ...


def _deleted_capture(desk: Desk, azure: LateAzure) -> None:
    azure.captures.clear()


def _deleted_blob(desk: Desk, azure: LateAzure) -> None:
    azure.blobs.clear()


def _busy_for_a_moment(desk: Desk, azure: LateAzure) -> None:
    azure.busy = 2


def _busy(desk: Desk, azure: LateAzure) -> None:
    azure.busy = 4


def _registry_lost(desk: Desk, azure: LateAzure) -> None:
    """Of the capture, and with it the record of its container, unless a later task used that too."""
    desk.orchestrator.registry_path.unlink()
    desk.restarted("s2")


def _another_session(desk: Desk, azure: LateAzure) -> None:
    desk.restarted("s2")


THEN = (_nothing, _deleted_capture, _deleted_blob, _busy_for_a_moment, _busy, _registry_lost, _another_session)


def test_whatever_answer_is_lost_nothing_is_left_or_what_is_left_is_listed(tmp_path: Path) -> None:
    cases = list(product(CREATIONS, THEN))
    assert len(cases) >= 40
    for number, (name, then) in enumerate(cases):
        _assert_listed(tmp_path / str(number), name, then)


def _assert_listed(directory: Path, name: str, then: Callable[[Desk, LateAzure], None]) -> None:
    directory.mkdir()
    case = f"{name}; {then.__name__}"
    azure = LateAzure(directory, *CREATIONS[name])
    desk = Desk(directory, azure)
    azure.now = desk.clock.now
    with suppress(Killed):
        desk.capture()
    azure.execute({"command": "az network watcher list", "reasoning": "Left-overs: time passes"})
    then(desk, azure)
    if then is not _registry_lost:
        live_on(desk)
        assert_sound(desk, azure)
    desk.clock.sleep(180)
    desk.restarted("s3")
    orphans = desk.ask("list_tasks")["orphans"]
    listed = {orphan["task_id"] or task_of(orphan["resource"].rpartition("/")[2]) for orphan in orphans}
    # Without a record, nothing names the container of a blob.
    known = azure.captures if then is _registry_lost else azure.left
    assert set(map(task_of, known)) <= listed, case
    for orphan in orphans:
        if orphan["command"]:
            azure.execute({"command": orphan["command"], "reasoning": "clean-up"})
        else:
            desk.ask("cleanup_task", task_id=orphan["task_id"])
    desk.clock.sleep(180)
    for orphan in (orphan for orphan in orphans if orphan["task_id"]):
        answer = desk.ask("cleanup_task", task_id=orphan["task_id"])
        assert (answer["state"], answer["not_cleaned"]) == ("DONE", []), case
    assert azure.captures == set(), case
    assert then is _registry_lost or azure.left == set(), case
    assert not azure.due, case


def live_on(desk: Desk) -> None:
    for _ in range(6):
        if desk.ask("check_task", task_id=TASK)["status"] != "task_pending":
            break
    desk.ask("cleanup_task", task_id=TASK)
