"""The first turns of a model's investigation, made by code: the symptom's ends are found and their traffic is walked.

The model begins with the facts in hand. Its own turns follow, and it may choose other flows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from ghost.brain.conversation import Brain, Message, ToolCall, ToolResults, Turn, UserMessage

MAX_WALKED: Final = 3
"""Flows that are walked at once."""
ENDS: Final = "I find the ends of the traffic that the symptom means."
WALK: Final = "I walk that traffic through what Azure decides."
BY_CODE: Final[Mapping[str, Any]] = {"made_by": "code"}
"""The state of these turns: a model is told their results as facts, not as calls of its own, which servers sign."""
_OF_A_FLOW: Final = ("source", "destination", "protocol", "port")


class OpenedBrain:
    """A model's brain whose first turns are the checks that every investigation begins with."""

    def __init__(self, model: Brain) -> None:
        self.name = model.name
        self._model = model

    @property
    def prompt_hash(self) -> str | None:
        return self._model.prompt_hash

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        turns = [message for message in conversation if isinstance(message, Turn)]
        said = next((message for message in conversation if isinstance(message, UserMessage)), None)
        if not turns and said is not None:
            stated = {name: value for name, value in asdict(said.stated).items() if value}
            call = ToolCall("t1.1", "find_ends", {"text": said.text[:4000], **stated})
            return Turn(ENDS, (call,), state=dict(BY_CODE))
        if [turn.text for turn in turns] == [ENDS] and (flows := _found(conversation)):
            named = [{name: flow[name] for name in _OF_A_FLOW if flow.get(name)} for flow in flows]
            calls = (ToolCall(f"t2.{place}", "check_path", flow) for place, flow in enumerate(named[:MAX_WALKED], 1))
            return Turn(WALK, tuple(calls), state=dict(BY_CODE))
        return self._model.next_turn(conversation)


def _found(conversation: Sequence[Message]) -> list[Mapping[str, Any]]:
    answers = [message for message in conversation if isinstance(message, ToolResults)]
    return list(answers[-1].results[0].result.get("flows") or ()) if answers else []
