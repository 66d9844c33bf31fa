"""An investigation as a process of Ghost's own, read-only and offline: told as it goes, ended when it is cancelled.

It takes the workspace's lock, has no terminal and nobody to ask, and writes to the session as `ghost investigate` does.
Once nobody reads its events it ends by itself, as after Ctrl-C.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from ghost.lab import GHOST
from ghost.text import one_line, visible

PATIENCE_SECONDS: Final = 10.0
"""For a process that was interrupted to save its session."""
MAX_EVENT: Final = 4 * 1024 * 1024


@dataclass
class Investigated:
    exit_status: int = 1
    session_id: str | None = None
    report: dict[str, Any] = field(default_factory=dict)
    """What the process told of its report; empty without one."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The questions that the words left open, each with the answer of a lab's scenario; None: nobody answered."""
    error: str = ""
    """Its last words, where it failed."""


async def run_investigation(
    options: Sequence[str], symptom: str, found: Investigated, tell: Callable[[str], Awaitable[None]]
) -> None:
    """Run one to its end, and put into `found` what is known as soon as it is. Cancelled, it interrupts the process and
    waits until that has saved its session."""
    words = (*GHOST, "investigate", "--brain", "offline", "--read-only", "--json-events", *options, "--", symptom)
    with tempfile.TemporaryFile() as errors:
        process = await anyio.open_process(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        try:
            await _follow(process, found, tell)
            found.exit_status = await process.wait()
        finally:
            await _end(process)
        if found.exit_status not in (0, 3):
            found.error = _last_line(errors)


async def _follow(process: Process, found: Investigated, tell: Callable[[str], Awaitable[None]]) -> None:
    assert process.stdout is not None
    events = BufferedByteReceiveStream(process.stdout)
    while True:
        try:
            event = json.loads(await events.receive_until(b"\n", MAX_EVENT))
        except anyio.IncompleteRead:
            return
        match event["event"]:
            case "session":
                found.session_id = event["session_id"]
                await tell(f"session {found.session_id}")
            case "turn" if event["text"].strip():
                await tell(event["text"])
            case "command":
                await tell(f"{event.get('audit_id')}: {event['command']}")
            case "question":
                found.asked.append({"question": event["text"], "answer": None})
            case "answer" if found.asked:
                found.asked[-1]["answer"] = event["text"]
            case "report":
                found.report = event


async def _end(process: Process) -> None:
    if process.returncode is None:
        with anyio.CancelScope(shield=True):
            process.send_signal(signal.SIGINT)
            with anyio.move_on_after(PATIENCE_SECONDS):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
    with anyio.CancelScope(shield=True):
        await process.aclose()


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = [line for line in errors.read().decode("utf-8", "replace").split("\n") if line.strip()]
    return one_line(visible(lines[-1]), 500).removeprefix("ghost: ") if lines else "it ended without a word."
