from __future__ import annotations

import pytest

from ghost.brain import ScriptedBrain, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.errors import BrainError


def test_a_script_is_played_in_order_and_its_end_is_an_error() -> None:
    first = Turn("look", (ToolCall("t1.1", "run_shell_cmd", {"command": "ss -an", "reasoning": "sockets"}),))
    brain = ScriptedBrain([first, lambda conversation: Turn(f"{len(conversation)} messages so far")])
    conversation = [UserMessage("it is slow")]
    assert brain.next_turn(conversation) == first
    conversation += [first, ToolResults((ToolResult("t1.1", "run_shell_cmd", {}),))]
    second = brain.next_turn(conversation)
    assert second.text == "3 messages so far"
    with pytest.raises(BrainError, match="at its end"):
        brain.next_turn([*conversation, second])


def test_a_resumed_script_goes_on_where_the_conversation_is() -> None:
    turns = [Turn("one"), Turn("two")]
    assert ScriptedBrain(turns).next_turn([UserMessage("x"), turns[0]]) == turns[1]
