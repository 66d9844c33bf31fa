"""The events of an investigation as JSON on standard output, one line each, written as they happen (`--json-events`).

    {"event": "command", "time": "...", "audit_id": "...", "command": "az ...", "classification": "SAFE", ...}

`docs/architecture.md` lists events and fields. Texts have no secrets, in private mode placeholders, and are ASCII:
nothing in them ends a line or is obeyed by a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from ghost.agent import without_secrets
from ghost.records import Clock, SystemClock, isoformat
from ghost.text import map_text

OF_A_RESULT: Final = (
    "status",
    "error",
    "message",
    "audit_id",
    "shell_audit_ids",
    "classification",
    "action",
    "exit_code",
    "duration_seconds",
    "denial_reason",
    "task_id",
    "outcome",
    "confidence",
    "problems",
)
"""What is told of a result: all but what a command printed."""


class EventLines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.hide: Callable[[str], str] = str
        """Puts in the placeholders of private mode."""

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        """Raises `OSError` where nobody reads any more."""
        told = map_text(fields, lambda text: self.hide(without_secrets(text)))
        sys.stdout.write(json.dumps({"event": event, "time": isoformat(self._clock.now()), **told}) + "\n")
        sys.stdout.flush()


class ServedEvents(EventLines):
    """The events of an investigation that a server runs."""

    def __init__(self, take: Callable[[str, dict[str, Any]], None], is_stopped: Callable[[], bool]) -> None:
        super().__init__(SystemClock())
        self._take = take
        self._is_stopped = is_stopped

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        """Raises `KeyboardInterrupt` where the investigation is stopped, as Ctrl-C would."""
        if self._is_stopped() and event != "ended":
            raise KeyboardInterrupt
        self._take(event, map_text(fields, lambda text: self.hide(without_secrets(text))))


def told_of(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in OF_A_RESULT if result.get(name) is not None}
