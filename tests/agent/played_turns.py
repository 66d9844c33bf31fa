"""Recorded turns of a model, played against a lab: what they took from results is taken from the results of the day.

A turn is a list of calls, `[tool, arguments]`. `"{t2.1 causes.0.audit_ids}"` stands for that part of the result of call
`t2.1`, and a list of such parts is one list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ghost.brain import Message, ToolCall, ToolResults, Turn

_PART = re.compile(r"\{(t\d+\.\d+) ([\w.]+)\}")


class PlayedModel:
    """A model of recorded turns, which begin behind those that code makes."""

    name = "scripted expert"
    prompt_hash = "0" * 64

    def __init__(self, turns: Sequence[Sequence[Any]]) -> None:
        self._turns = turns
        self.asked = 0
        """Turns that were asked for."""

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        number = 1 + sum(isinstance(message, Turn) for message in conversation)
        results = {r.call_id: r.result for m in conversation if isinstance(m, ToolResults) for r in m.results}
        calls = self._turns[min(self.asked, len(self._turns) - 1)]
        self.asked += 1
        made = ((tool, _filled(arguments, results)) for tool, arguments in calls)
        return Turn("I go on.", tuple(ToolCall(f"t{number}.{place}", *call) for place, call in enumerate(made, 1)))


def _filled(value: Any, results: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, results) for name, each in value.items()}
    if isinstance(value, list):
        found = [(each, _filled(each, results)) for each in value]
        return [item for each, put in found for item in (put if _is_part(each) and isinstance(put, list) else [put])]
    if not _is_part(value):
        return value
    part = _PART.fullmatch(value)
    assert part is not None
    found = results[part[1]]
    for step in part[2].split("."):
        found = found[int(step)] if step.isdigit() else found[step]
    return found


def _is_part(value: Any) -> bool:
    return isinstance(value, str) and _PART.fullmatch(value) is not None
