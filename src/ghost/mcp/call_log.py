"""The calls of one connection on record: one line when a call begins, one when it ends, chained by hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ghost.agent import without_secrets
from ghost.records import ChainedLog, Clock, head_path, isoformat, write_json
from ghost.text import map_text

MAX_TEXT: Final = 2_000
"""Characters of a text on record."""
MAX_ARGUMENTS: Final = 12_000
"""Characters of all arguments of a call on record."""


class CallLog:
    """Raises `RecordError` where a call cannot be written down: it is then not made."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._log = ChainedLog(path)
        self._clock = clock
        self._calls = 0

    def begin(self, client: str, tool: str, arguments: Mapping[str, Any]) -> int:
        """Write down that a call begins. Returns its number."""
        self._calls += 1
        self._append(call=self._calls, client=client, tool=_written(tool), arguments=_bounded(arguments))
        return self._calls

    def end(self, call: int, status: str, **told: Any) -> None:
        """Write down how a call ended, and the records and the session that it made."""
        self._append(call=call, status=status, **map_text(told, _written, keys=False))

    def _append(self, **record: Any) -> None:
        self._log.append({"time": isoformat(self._clock.now()), **record})
        write_json(head_path(self._log.path), self._log.head.as_dict())


def _bounded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for the record; in their place the beginning of them where they are too long."""
    given = json.dumps(arguments, ensure_ascii=False, default=str)
    if len(given) > MAX_ARGUMENTS:
        return {"shortened": _written(given)}
    written: dict[str, Any] = map_text(dict(arguments), _written)
    return written


def _written(text: str) -> str:
    clean = without_secrets(text[: 4 * MAX_TEXT])
    return clean if len(clean) <= MAX_TEXT else f"{clean[:MAX_TEXT]}[truncated: {len(text)} characters in total]"
