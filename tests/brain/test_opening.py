"""The turns that code makes before a model's first: ends, then walks; told to the model as data."""

from __future__ import annotations

from pydantic_ai import ModelRequest

from ghost.brain import (
    Message,
    OpenedBrain,
    ScriptedBrain,
    StatedEnds,
    ToolResult,
    ToolResults,
    Turn,
    UserMessage,
)
from ghost.brain.model.messages import CHECKED, to_messages

SAID = UserMessage("a cannot reach b", StatedEnds(port=443))
FLOW = {"source": "10.0.0.4", "destination": "10.0.1.4", "protocol": "Tcp", "port": 443, "source_name": "a"}
MINE = Turn("My own turn.")


class Model(ScriptedBrain):
    def __init__(self) -> None:
        super().__init__([lambda conversation: MINE] * 3)


def opened(*flows: dict[str, object]) -> list[Message]:
    """Return a conversation up to the model's first turn."""
    brain, told = OpenedBrain(Model()), list[Message]([SAID])
    while told[-1] is not MINE:
        turn = brain.next_turn(told)
        told.append(turn)
        results = (ToolResult(c.id, c.name, {"flows": [*flows], "audit_id": "g_1"}) for c in turn.tool_calls)
        told += [ToolResults(tuple(results))] if turn.tool_calls else []
    return told


def test_the_ends_are_found_with_what_is_stated_and_each_flow_is_walked() -> None:
    turns = [message for message in opened(FLOW, FLOW, FLOW, FLOW) if isinstance(message, Turn)]
    calls = [[(call.id, call.name, call.arguments) for call in turn.tool_calls] for turn in turns]
    walked = {name: FLOW[name] for name in ("source", "destination", "protocol", "port")}
    assert calls[0] == [("t1.1", "find_ends", {"text": "a cannot reach b", "port": 443})]
    assert calls[1] == [(f"t2.{place}", "check_path", walked) for place in (1, 2, 3)]
    assert turns[2:] == [MINE]


def test_without_a_flow_and_in_a_session_that_has_begun_the_model_goes_on_at_once() -> None:
    assert [m for m in opened() if isinstance(m, Turn)][1:] == [MINE]
    assert OpenedBrain(Model()).next_turn([SAID, Turn("Of another brain."), UserMessage("Go on.")]) is MINE


def test_a_model_is_told_them_as_data_and_not_as_calls_of_its_own() -> None:
    (request,) = to_messages(opened(FLOW)[:-1], "system", str)
    assert isinstance(request, ModelRequest)
    texts = [str(part.content) for part in request.parts]
    assert [text.startswith(CHECKED) for text in texts] == [False, True, True]
    assert '"source": "10.0.0.4"' in texts[2]
