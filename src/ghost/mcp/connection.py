"""One client: its session, the shell that answers it, and what it may be sent.

Commands run one after another in a thread. A call that is cancelled ends the command that runs for it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from ghost.agent import AZURE, SessionPaths, Workspace
from ghost.config import Settings
from ghost.errors import GhostError
from ghost.lab import lab_behind_az, lab_programs, load_case, start
from ghost.mcp import MCP
from ghost.mcp.call_log import CallLog
from ghost.mcp.capture_access import CaptureAccess
from ghost.records import SystemClock, new_command_id
from ghost.redaction import Placeholders, for_outside
from ghost.shell import SafeExecShell
from ghost.text import map_text

T = TypeVar("T")
Tell = Callable[[str], None]
"""Tells the client how far a call is."""
MAX_CHARACTERS: Final = 60_000
"""Of what one call answers."""


class Connection:
    """The shell is made without anybody to ask, and read-only: what is not SAFE is refused."""

    def __init__(self, settings: Settings, lab: str | None, captures: Sequence[Path]) -> None:
        clock = SystemClock()
        self.session_id = new_command_id(MCP, clock.now())
        self.settings = settings
        self.workspace = Workspace(settings.workspace)
        self.lab = lab
        self.captures = CaptureAccess(settings.capture_dir, captures)
        self.calls = CallLog(SessionPaths(settings.audit_dir, self.session_id).calls, clock)
        self._audit_ids: list[str] = []
        self._case = load_case(lab) if lab else None
        self._placeholders = Placeholders()
        self._turn = anyio.Lock()
        self._cancelled, self._cancel = os.pipe()
        os.set_blocking(self._cancelled, False)

    @cached_property
    def network(self) -> str:
        """The network that is asked, as investigations name it."""
        if self._case is not None:
            return self._case.briefing.network
        behind = lab_behind_az()
        return behind.briefing.network_of_az if behind else AZURE

    @cached_property
    def _shell(self) -> SafeExecShell:
        settings = self.settings
        directory = settings.workspace / "lab" / self.session_id
        lab = start(self._case, directory, speed=settings.lab_speed) if self._case else lab_behind_az()
        return SafeExecShell(
            self.session_id,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            anonymization_enabled=False,
            roots=self.captures.places,
            reads_only=self.captures.places,
            placeholders=self._placeholders,
            read_only=True,
            cancelled=self._cancelled,
            **lab_programs(lab, own_az=self._case is None),
        )

    def execute(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run a command in the turn of a call, if it is SAFE."""
        response = self._shell.execute(request)
        self._audit_ids.append(str(response["audit_id"]))
        return response

    def run(self, argv: Sequence[str], reasoning: str) -> dict[str, Any]:
        return self.execute({"command": shlex.join(argv), "reasoning": reasoning})

    async def in_turn(self, work: Callable[[], T], audit_ids: list[str]) -> T:
        """Do work that may run commands, in a thread, when the calls before it are done. `audit_ids`: gets those of the
        records that it makes."""
        async with self._turn:
            self._audit_ids = audit_ids
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._end_command_when_cancelled)
                    result, failure = await anyio.to_thread.run_sync(_outcome_of, work)
                    group.cancel_scope.cancel()
            finally:
                with suppress(BlockingIOError):
                    os.read(self._cancelled, 64)
        if isinstance(failure, Exception):
            raise failure
        if failure is not None or result is None:
            await anyio.lowlevel.checkpoint()  # where the call was cancelled it ends here
            raise GhostError("the call was interrupted: make it again")
        return result

    async def _end_command_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            os.write(self._cancel, b"x")

    def outside(self, value: Any) -> Any:
        """Return a value as it may leave this machine: without secrets, with placeholders for what looks like one."""
        return map_text(value, lambda text: for_outside(text, self._placeholders))


def _outcome_of(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """An interrupt must not reach the loop, where it would end the server."""
    try:
        return work(), None
    except BaseException as failure:  # noqa: BLE001 - handed over, as it is
        return None, failure
