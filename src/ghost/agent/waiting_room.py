"""What running investigations ask a person: rows that a terminal and a dashboard may both answer.

An answer is one conditional update, bound to the SHA-256 of what is shown: the first one counts, and who comes later is
told of it. Who asks holds a lock as long as it runs: what a killed one left is answered by nobody, and asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from ghost.errors import StoreError
from ghost.mind import transaction
from ghost.records import Clock, file_lock, is_held, private_dir
from ghost.shell import ApprovalRequest, HitlDecision

FILE: Final = Path("data", "waiting.sqlite3")
LOOK_SECONDS: Final = 0.2
"""How often who waits looks for an answer."""
BUSY_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 86_400.0
"""How long it is told who answered what; what was asked is deleted with its answer."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS waiting (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, symptom TEXT NOT NULL, asked TEXT NOT NULL, sha256 TEXT NOT NULL,
    asked_at REAL NOT NULL, expires_at REAL, state TEXT NOT NULL, answer TEXT, by TEXT, answered_at REAL)
"""
_OPEN: Final = """
SELECT * FROM waiting WHERE state = 'open' AND (expires_at IS NULL OR expires_at > ?) ORDER BY asked_at, id
"""
_CLOSED: Final = "SELECT * FROM waiting WHERE id = ? AND state != 'open'"
_ABANDON_ALL: Final = "UPDATE waiting SET state = 'abandoned', asked = '', answered_at = ? WHERE state = 'open'"
_ABANDON: Final = f"{_ABANDON_ALL} AND id = ?"
_ANSWER: Final = (
    "UPDATE waiting SET state = 'answered', asked = '', answer = ?, by = ?, answered_at = ? "
    "WHERE id = ? AND sha256 = ? AND state = 'open' AND (expires_at IS NULL OR expires_at > ?)"
)

_FORGET_ANSWERS: Final = """
UPDATE waiting SET answer = CASE
    WHEN json_valid(answer) AND json_type(answer) = 'object'
    THEN json_object('action', json_extract(answer, '$.action'), 'by', by) ELSE '"(in words)"' END
WHERE answer IS NOT NULL
"""
"""Of earlier answers, which who asked has by now, only what who comes later is told: nothing that was typed."""

Row = TypeVar("Row")


@dataclass(frozen=True)
class Waiting:
    """A question that is open."""

    id: str
    session_id: str
    symptom: str
    asked: ApprovalRequest | str
    """Commands to approve, or a question in words."""
    sha256: str
    """Of all that is shown; an answer names it."""
    asked_at: float
    """Epoch seconds, as the others."""
    expires_at: float | None


@dataclass(frozen=True)
class Closed:
    """What became of a question. `answer` is None where it was abandoned."""

    state: Literal["answered", "abandoned"]
    """`abandoned`: nobody answered in time, or the investigation ended first."""
    answer: HitlDecision | str | None
    by: str | None
    answered_at: float
    sha256: str

    @property
    def told(self) -> str:
        """What became of it, in words."""
        if self.answer is None:
            return "was closed without an answer: the investigation ended, or the time was over"
        said = self.answer if isinstance(self.answer, str) else self.answer.action
        return f"was answered before, on the {self.by}: {said[:200]}"


class WaitingRoom:
    """The questions of one workspace. Each method raises `StoreError` where the file cannot be used."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._path = root / FILE
        self._lock = self._path.with_suffix(".lock")
        self._clock = clock

    # --- who asks ---

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """Be the one who asks: what another left open is closed before, what this one leaves after.

        Raises `RecordError` where the lock cannot be made.
        """
        with file_lock(self._lock):
            with suppress(StoreError):  # told at the first question
                self._close_all()
            try:
                yield
            finally:
                with suppress(StoreError):
                    self._close_all()

    def ask(self, session_id: str, symptom: str, asked: ApprovalRequest | str, seconds: float | None = None) -> Waiting:
        """Put a question; it waits `seconds`, None without limit. `wait` or `give_up` closes it."""
        now = self._now()
        text = json.dumps(asdict(asked) if isinstance(asked, ApprovalRequest) else asked)
        sha256 = _digest(session_id, symptom, text)
        expires_at = None if seconds is None else now + seconds
        with self._written() as rows:
            rows.execute(_FORGET_ANSWERS)
            taken = {row[0] for row in rows.execute("SELECT id FROM waiting")}
            moment = int(now * 1000)
            while (row_id := f"a:{moment}") in taken:
                moment += 1
            row = (row_id, session_id, symptom, text, sha256, now, expires_at)
            rows.execute("INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, 'open', NULL, NULL, NULL)", row)
        return Waiting(row_id, session_id, symptom, asked, sha256, now, expires_at)

    def wait(self, waiting: Waiting, is_stopped: Callable[[], bool]) -> Closed:
        """Wait for the answer; abandon the question when its time is over, or when `is_stopped()`."""
        while (closed := self.outcome(waiting)) is None:
            if is_stopped() or (waiting.expires_at is not None and self._now() >= waiting.expires_at):
                self.give_up(waiting.id)
            else:
                self._clock.sleep(LOOK_SECONDS)
        return closed

    def outcome(self, waiting: Waiting) -> Closed | None:
        """Return what became of a question as it was put: an answer to anything else is none."""
        closed = self.closed(waiting.id)
        if closed is not None and closed.sha256 != waiting.sha256:
            return replace(closed, state="abandoned", answer=None)
        return closed

    def give_up(self, row_id: str) -> bool:
        """Abandon a question; False where it was closed before."""
        with self._written() as rows:
            return rows.execute(_ABANDON, (self._now(), row_id)).rowcount == 1

    # --- who answers ---

    def answer(self, row_id: str, sha256: str, answer: HitlDecision | str, by: str = "terminal") -> bool:
        """Answer a question as it was shown; False where it is closed, asks something else, or nobody waits any more.

        `by`: where an answer in words was given; a decision says so itself. Whether an approval may be answered like
        that is for the shell to say, as for any answer.
        """
        if not self._is_occupied():
            return False
        by = answer.by if isinstance(answer, HitlDecision) else by
        text = json.dumps(asdict(answer) if isinstance(answer, HitlDecision) else answer)
        now = self._now()
        with self._written() as rows:
            return rows.execute(_ANSWER, (text, by, now, row_id, sha256, now)).rowcount == 1

    def open(self) -> list[Waiting]:
        """Return the questions that somebody waits for, oldest first."""
        if not self._is_occupied():
            return []
        return self._rows(_waiting, _OPEN, self._now())

    def find(self, row_id: str) -> Waiting | None:
        """Return a question that is open."""
        return next((waiting for waiting in self.open() if waiting.id == row_id), None)

    def closed(self, row_id: str) -> Closed | None:
        """Return what became of a question; None while it is open, and for one that is not known."""
        return next(iter(self._rows(_closed, _CLOSED, row_id)), None)

    # --- the file ---

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _is_occupied(self) -> bool:
        return self._path.exists() and is_held(self._lock)

    def _close_all(self) -> None:
        if self._path.exists():
            now = self._now()
            with self._written() as rows:
                rows.execute(_ABANDON_ALL, (now,))
                rows.execute(_FORGET_ANSWERS)
                rows.execute("DELETE FROM waiting WHERE state != 'open' AND answered_at < ?", (now - KEPT_SECONDS,))

    def _rows(self, read: Callable[[sqlite3.Row], Row], select: str, *values: object) -> list[Row]:
        if not self._path.exists():
            return []
        with self._connection() as connection:
            return [read(row) for row in connection.execute(select, values)]

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection, transaction(connection):
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._path.is_symlink():
                raise OSError("it is a symbolic link")
            if not self._path.exists():
                private_dir(self._path.parent)
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA secure_delete = ON")  # a command may hold what no record shows
                connection.execute(_TABLE)
                yield connection
        except (OSError, sqlite3.Error, LookupError, TypeError, ValueError) as error:  # or a row that is not ours
            raise StoreError(f"cannot use {self._path} ({error}): move it aside and ask again") from error


def _digest(session_id: str, symptom: str, asked: str) -> str:
    return hashlib.sha256(json.dumps([session_id, symptom, asked]).encode()).hexdigest()


def _waiting(row: sqlite3.Row) -> Waiting:
    """Return a row with the digest of what it shows: an answer to a row that was changed finds none."""
    asked: Any = json.loads(row["asked"])
    if isinstance(asked, dict):
        asked = ApprovalRequest(**asked | {"lines": tuple(asked["lines"]), "times": tuple(asked["times"])})
    sha256 = _digest(row["session_id"], row["symptom"], row["asked"])
    return Waiting(row["id"], row["session_id"], row["symptom"], asked, sha256, row["asked_at"], row["expires_at"])


def _closed(row: sqlite3.Row) -> Closed:
    answer: Any = json.loads(row["answer"]) if row["answer"] is not None else None
    answer = HitlDecision(**answer) if isinstance(answer, dict) else answer
    return Closed(row["state"], answer, row["by"], row["answered_at"], row["sha256"])
