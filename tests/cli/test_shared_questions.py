"""An approval asked at a real terminal, answered there or on the dashboard: whoever is first."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select

from ghost.agent import Waiting, WaitingRoom
from ghost.records import SystemClock
from ghost.shell import HitlDecision

PATIENCE = 300.0
GHOST = str(Path(sys.executable).with_name("ghost"))


class Terminal:
    def __init__(self, descriptor: int, process: int) -> None:
        self._descriptor = descriptor
        self.process = process
        self.shown = ""

    def until(self, *words: str) -> str:
        """Return what was shown once one of them was."""
        end = time.monotonic() + PATIENCE
        while not any(each in self.shown for each in words):
            assert time.monotonic() < end, self.shown[-2000:]
            if select([self._descriptor], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self._descriptor, 65536).decode("utf-8", "replace")
                except OSError:  # the other side is closed
                    assert any(each in self.shown for each in words), self.shown[-2000:]
        return self.shown

    def type(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())


@contextmanager
def investigating(workspace: Path, *program: str, resume: str = "") -> Iterator[Terminal]:
    """`ghost investigate` of a lab that asks for a capture, on a terminal of its own; killed at the end."""
    words = [*(program or [GHOST]), "investigate", "--brain", "offline", "--workspace", str(workspace)]
    words += ["--resume", resume] if resume else ["--lab", "wire-loss"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "GEMINI_"))}
    process, descriptor = pty.fork()
    if process == 0:
        os.execvpe(words[0], words, {**clean, "GHOST_LAB_SPEED": "500", "TERM": "xterm", "COLUMNS": "100"})
    try:
        yield Terminal(descriptor, process)
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(descriptor)


def waiting_in(room: WaitingRoom) -> Waiting:
    end = time.monotonic() + PATIENCE
    while not room.open():
        assert time.monotonic() < end
        time.sleep(0.05)
    return room.open()[0]


def test_the_dashboard_answers_what_the_terminal_asks(tmp_path: Path) -> None:
    room = WaitingRoom(tmp_path, SystemClock())
    with investigating(tmp_path) as terminal:
        terminal.until("Your choice: ")
        asked = waiting_in(room)
        assert asked.asked.kind == "plan"
        assert room.answer(asked.id, asked.sha256, HitlDecision("deny", reason="not tonight", by="dashboard"))
        terminal.until("Answered on the dashboard: deny")
        terminal.until("RCA REPORT WRITTEN")
    (approvals,) = tmp_path.glob("audit/approvals_*.jsonl")
    assert '"by": "dashboard"' in approvals.read_text()
    assert "not tonight" in approvals.read_text()


def test_what_the_terminal_answered_the_dashboard_cannot(tmp_path: Path) -> None:
    room = WaitingRoom(tmp_path, SystemClock())
    with investigating(tmp_path) as terminal:
        terminal.until("Your choice: ")
        asked = waiting_in(room)
        terminal.type("d")
        terminal.until("Denial reason")
        terminal.type("")
        terminal.until("RCA REPORT WRITTEN")
        assert not room.answer(asked.id, asked.sha256, HitlDecision("approve", by="dashboard"))
        assert room.closed(asked.id).by == "terminal"
