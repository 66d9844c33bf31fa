"""Resuming an interrupted investigation: which call to repeat for one that was cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ghost.agent.tools import Orchestrator
from ghost.brain import Message, ToolCall, ToolResults


def reissue(
    call: ToolCall, recorded: Mapping[str, Any], conversation: Sequence[Message], orchestrator: Orchestrator
) -> ToolCall:
    """Return the call to make in place of one that was cut off.

    Reads, checks and clean-ups are repeated. A capture that was already started, or denied, is continued instead of
    starting a second one: its task is the one for this target that no earlier result mentions. `recorded`: its
    arguments as they are on record.
    """
    if call.name != "capture_traffic":
        return call
    spoken_of = {
        result.result.get("task_id")
        for message in conversation
        if isinstance(message, ToolResults)
        for result in message.results
    }
    response = orchestrator.orchestrate({"intent": "list_tasks"})
    for task in reversed(response.get("tasks") or []):
        if task.get("task_id") not in spoken_of and _same_capture(task, recorded):
            return ToolCall(call.id, "check_task", {"task_id": task["task_id"]})
    return call


def _same_capture(task: dict[str, Any], recorded: Mapping[str, Any]) -> bool:
    source = str(recorded.get("target")).split(" to ")[0].strip()  # of a pair, the first task speaks for both
    return task.get("target") == source and task.get("state") != "ABANDONED"
