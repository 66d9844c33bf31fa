"""Memory hints for an investigation at its start, and what it stores at its end.

Memory helps and is never needed: where it cannot be opened or asked, one line says so and the investigation goes on.
A private session neither asks nor leaves anything: what it knows are placeholders, which mean nothing in another one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ghost.agent import finished
from ghost.brain import EarlierSession, MemoryNote
from ghost.cli.command_words import shortened
from ghost.cli.narration import Narration
from ghost.config import Settings
from ghost.errors import GhostError
from ghost.mind import Hint, ResourceChange, changed_before, opened_memory, recall, remember
from ghost.records import SystemClock
from ghost.text import one_line, visible

NOT_EVIDENCE = (
    "Memory of earlier investigations follows. It says where to look first; it is not evidence, the network may differ "
    "now, and an id of a memory cannot be cited."
)


LONGEST_CHANGE = 300
CHANGED = "Changed in the 24 h before, on these resources"
Earlier = Callable[[str], EarlierSession | None]


class SessionMemory:
    """Reads and stores the memories of one investigation. `narration` shows hints, or why there are none."""

    def __init__(
        self, settings: Settings, root: Path, narration: Narration, option: str, earlier: Earlier = lambda _: None
    ) -> None:
        """`root`: of the workspace that is worked in, where memory lives. `option`: how a command names it. `earlier`:
        how a session that a hint names is taken up, if its records hold.
        """
        self._earlier = earlier
        self._settings = replace(settings, workspace=root)
        self._narration = narration
        self._option = option

    def hints(self, symptom: str, network: str) -> MemoryNote | None:
        """Show similar earlier investigations; return the note for the brain, None without any."""
        hints = self._hints(symptom, network)
        changes = self._changes(symptom, network)
        if not hints:
            return MemoryNote(changes) if changes else None
        earlier = sum(hint.times for hint in hints)
        self._narration.line(
            f"Memory ({earlier} earlier, not evidence: the report uses the records of this session only):"
        )
        for line in (line for hint in hints for line in shown(hint)):
            self._narration.line(f"  {line}", style="dim")
        said = [f"[memory {hint.memory_id}] {hint.text}" for hint in hints]
        layers = dict.fromkeys(layer for hint in hints for layer in hint.layers)
        note = "\n\n".join([NOT_EVIDENCE, *said, *([changes] if changes else [])])
        found = filter(None, (self._earlier(hint.session_id) for hint in hints))
        sessions = {session.session_id: session for session in found}
        return MemoryNote(note, tuple(layers), tuple(sessions.values()))

    def keep(self, report: Mapping[str, Any]) -> None:
        try:
            with opened_memory(self._settings) as memory:
                remember(memory, finished(report))
        except GhostError as error:
            self._warn(f"This investigation was not remembered: {error}")
        else:
            self._narration.detail(f"Remembered: ghost search {shlex.quote(str(report['symptom']))}{self._option}")

    def _hints(self, symptom: str, network: str) -> list[Hint]:
        if not (self._settings.database_url or self._settings.database.exists()):
            return []
        try:
            with opened_memory(self._settings) as memory:
                return recall(memory, symptom, network)
        except GhostError as error:
            self._warn(f"Memory was not asked: {error}")
            return []

    def _changes(self, symptom: str, network: str) -> str:
        """Show what was changed on the symptom's resources in the 24 h before; return it for the brain."""
        if not (self._settings.database_url or self._settings.database.exists()):
            return ""
        try:
            with opened_memory(self._settings) as memory:
                changes = changed_before(memory, symptom, network, SystemClock().now().timestamp())
        except GhostError as error:
            self._warn(f"Memory was not asked for changes: {error}")
            return ""
        if not changes:
            return ""
        lines = [change_line(change) for change in changes]
        self._narration.line(f"{CHANGED} (not evidence):")
        for line in lines:
            self._narration.line(f"  {line}", style="dim")
        return "\n".join([f"{CHANGED}. Data, not evidence; nothing of it can be cited:", *lines])

    def _warn(self, text: str) -> None:
        self._narration.line(f"  [WARN] {text}", style="yellow")


def change_line(change: ResourceChange) -> str:
    """One change: time, or when it was told, resource, what, source."""
    time = datetime.fromtimestamp(change.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    time = f"told at {time}" if change.is_told_at else time
    what = one_line(visible(change.what), LONGEST_CHANGE)
    return f"{time}  {visible(change.resource)}  {what}  ({visible(change.source)})"


def shown(hint: Hint) -> list[str]:
    """One hint: date and symptom, the conclusion, and the command that confirms it."""
    day = datetime.fromtimestamp(hint.created_at, UTC).date().isoformat()
    often = f", the last of {hint.times} with this result" if hint.times > 1 else ""
    lines = [
        f"{day}  {visible(hint.symptom)}  ({visible(hint.session_id) or 'a summary'}{often})",
        f"    {visible(hint.conclusion)}",
    ]
    return [*lines, f"    settled by: {visible(shortened(hint.settled_by))}"] if hint.settled_by else lines
