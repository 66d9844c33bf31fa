"""Questions of an investigation that wait in the workspace's waiting room: whoever answers first decides.

SharedTerminal  asks at this terminal, while the dashboard may answer
RoomOnly        of an investigation that a server started: nobody is at a terminal
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import Final, TypeVar

from rich.console import Console as Rich

from ghost.agent import LOOK_SECONDS, Closed, Session, Waiting, WaitingRoom
from ghost.cli.approvals import Gate, TerminalGate
from ghost.errors import StoreError
from ghost.shell import ApprovalRequest, HitlDecision
from ghost.text import visible

Answer = TypeVar("Answer", HitlDecision, str)
YOUR_ANSWER: Final = "Your answer (Enter alone ends the investigation) > "


class _ElsewhereError(Exception):
    """Somebody else has answered."""

    def __init__(self, closed: Closed) -> None:
        self.closed = closed


class SharedTerminal(Gate):
    """A gate at this terminal. Without the room, where its file cannot be used, the terminal alone is asked."""

    def __init__(self, rich: Rich, room: WaitingRoom, session: Session) -> None:
        self._rich = rich
        self._room = room
        self._session = session

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        answer = self._asked(request, lambda read: TerminalGate(self._rich, read, edit=input).approve(request))
        assert isinstance(answer, HitlDecision)
        return answer

    def answer(self, question: str) -> str | None:
        """Ask a question in words; None at the end of input."""
        try:
            answer = self._asked(question, lambda read: read(YOUR_ANSWER))
        except EOFError:
            return None
        assert isinstance(answer, str)
        return answer

    def _asked(
        self, asked: ApprovalRequest | str, at_terminal: Callable[[Callable[[str], str]], Answer]
    ) -> HitlDecision | str:
        try:
            waiting = self._room.ask(self._session.session_id, self._session.symptom or "", asked)
        except StoreError as error:
            self._rich.print(f"The dashboard cannot answer: {error}", style="yellow", markup=False)
            return at_terminal(input)
        try:
            typed = at_terminal(lambda prompt: self._line(prompt, waiting))
            closed = None if self._room.answer(waiting.id, waiting.sha256, typed) else self._room.outcome(waiting)
        except _ElsewhereError as elsewhere:
            closed = elsewhere.closed
        except BaseException:
            self._room.give_up(waiting.id)
            raise
        return typed if closed is None else self._told(closed)

    def _told(self, closed: Closed) -> HitlDecision | str:
        if closed.answer is None:
            raise EOFError("the question was closed before it was answered")
        answer = closed.answer if isinstance(closed.answer, str) else closed.answer.action
        self._rich.print(f"\nAnswered on the {closed.by}: {visible(answer)}", markup=False)
        return closed.answer

    def _line(self, prompt: str, waiting: Waiting) -> str:
        """Read a line from the terminal, which hands over whole ones. Raises `_ElsewhereError`, `EOFError`."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            if (closed := self._room.outcome(waiting)) is not None:
                raise _ElsewhereError(closed)
        line = sys.stdin.readline()
        if not line:
            raise EOFError("the input ended before the question was answered")
        return line.rstrip("\n")


class RoomOnly(Gate):
    """A gate that waits for the dashboard. `seconds`: how long; then it is a denial, as when `is_stopped()`."""

    def __init__(self, room: WaitingRoom, session: Session, seconds: float, is_stopped: Callable[[], bool]) -> None:
        self._room = room
        self._session = session
        self._seconds = seconds
        self._is_stopped = is_stopped

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        answer = self._asked(request)
        if not isinstance(answer, HitlDecision):
            raise TimeoutError(f"nobody answered within {self._seconds:g} s")
        return answer

    def answer(self, question: str) -> str | None:
        answer = self._asked(question)
        return answer if isinstance(answer, str) else None

    def _asked(self, asked: ApprovalRequest | str) -> HitlDecision | str | None:
        """Raises `KeyboardInterrupt` where the investigation is stopped meanwhile."""
        session = self._session
        waiting = self._room.ask(session.session_id, session.symptom or "", asked, self._seconds)
        closed = self._room.wait(waiting, self._is_stopped)
        if self._is_stopped():
            raise KeyboardInterrupt
        return closed.answer
