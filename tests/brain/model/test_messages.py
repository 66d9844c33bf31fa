"""A conversation as a model's messages, and back: nothing is lost by a kill, nothing leaves that should not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import ModelRequest, ModelResponse
from pydantic_ai.messages import ModelMessagesTypeAdapter, TextPart, ThinkingPart, ToolCallPart

from ghost.agent import Evidence, TurnLog, read_conversation
from ghost.brain import MemoryNote, ResumeNote, StatedEnds, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.brain.model.messages import MAX_CALLS, to_messages, to_turn


def messages_of(conversation: Any, change: Any = str) -> list[Any]:
    messages = ModelMessagesTypeAdapter.dump_python(to_messages(conversation, "SYSTEM", change), mode="json")
    for part in (part for message in messages for part in message["parts"]):
        part.pop("timestamp", None)
    return messages


def a_response() -> ModelResponse:
    """Thought, text and two calls, each with what its provider wants to see again."""
    response = ModelResponse(
        [
            ThinkingPart("The rules first.", signature="c2lnbmF0dXJl", provider_name="anthropic"),
            TextPart("I read the rules."),
            ToolCallPart(
                "run_shell_cmd",
                {"command": "az vm list", "reasoning": "Which VMs?"},
                tool_call_id="provider-1",
                provider_name="anthropic",
                provider_details={"thought_signature": "YWJj"},
            ),
            ToolCallPart("check_task", '{"task_id": "t-1"}', tool_call_id="provider-1"),
        ],
        provider_name="anthropic",
    )
    response.canonical_system = "anthropic"
    return response


def test_a_turn_survives_the_file_of_turns_with_the_state_of_its_provider(tmp_path):
    conversation = [UserMessage("vm-a cannot reach vm-b"), turn := to_turn(a_response(), 1, 0.5)]
    log = TurnLog(tmp_path / "turns.jsonl")
    log.user(conversation[0])
    log.turn(1, turn)
    results = ToolResults(
        (ToolResult("t1.1", "run_shell_cmd", {"status": "error"}), ToolResult("t1.2", "check_task", {}))
    )
    for result in results.results:
        log.result(result)
    read, unanswered, turns = read_conversation(tmp_path / "turns.jsonl", Evidence(tmp_path / "none"))
    assert (read, unanswered, turns) == ([*conversation, results], [], 1)
    assert messages_of(read) == messages_of([*conversation, results])
    parts = messages_of(read)[1]["parts"]
    assert [part["part_kind"] for part in parts] == ["thinking", "text", "tool-call", "tool-call"]
    assert parts[0]["signature"] == "c2lnbmF0dXJl"
    assert parts[2]["provider_details"] == {"thought_signature": "YWJj"}
    assert parts[2]["args"] == {"command": "az vm list", "reasoning": "Which VMs?"}
    answered = [part["tool_call_id"] for part in messages_of(read)[2]["parts"]]
    assert answered == [part["tool_call_id"] for part in parts[2:]] == ["t1_1", "t1_2"]


def test_state_that_cannot_be_read_or_does_not_fit_is_replaced_by_what_was_said():
    call = ToolCall("t1.1", "check_task", {"task_id": "x"})
    for state in (None, {}, {"kind": "response"}, {"kind": "nonsense"}, to_turn(a_response(), 2, None).state):
        (said,) = messages_of([Turn("text", (call,), state=state)])
        assert [part["part_kind"] for part in said["parts"]] == ["text", "tool-call"]
        assert said["parts"][1]["args"] == {"task_id": "x"}


def test_notes_results_and_instructions_become_one_request():
    conversation = [
        UserMessage("symptom", StatedEnds("a", "b", 443)),
        MemoryNote("DNS last time"), Turn("", (ToolCall("t1.1", "x", {}),)),
        ToolResults((ToolResult("t1.1", "x", {"status": "ok", "output": '[{"a": 1}]', "stderr": "", "error": None}),)),
        ResumeNote("resumed"), UserMessage("go on"),
    ]  # fmt: skip
    first, _, last = to_messages(conversation, "SYSTEM", str)
    assert isinstance(first, ModelRequest)
    assert first.instructions == "SYSTEM"
    assert first.parts[0].content == "symptom\n\nStated: a to b tcp/443"
    assert [part.part_kind for part in last.parts] == ["tool-return", "user-prompt", "user-prompt"]
    assert last.parts[0].content == {"status": "ok", "output": [{"a": 1}]}


def test_each_text_that_leaves_is_changed_and_a_changed_thought_is_left_out():
    response = ModelResponse([ThinkingPart("about hush", signature="s", provider_name="p"), *a_response().parts[1:]])
    conversation = [
        UserMessage("hush"), MemoryNote("hush"), to_turn(response, 1, None),
        ToolResults((ToolResult("t1.1", "hush", {"hush": ["hush", {"a": "hush"}], "output": '{"b": "hush"}'}),)),
        Turn("hush", (ToolCall("t2.1", "hush", {"command": "echo hush", "hush": 1}),)), ResumeNote("hush"),
    ]  # fmt: skip
    sent = json.dumps(messages_of(conversation, lambda text: text.replace("hush", "[T]")))
    assert "hush" not in sent
    assert sent.count("[T]") >= 9


def test_a_secret_in_a_thought_is_not_stored():
    secret = "AccountKey=" + "A1b2C3d4" * 10 + "Zz9876=="
    turn = to_turn(ModelResponse([ThinkingPart(f"use {secret}", signature="s"), TextPart("ok")]), 1, None)
    assert secret not in json.dumps(turn.state)


@pytest.mark.parametrize("args", ["", "{half", "[1]", "null", None, '{"a": "\\ud800"}'])
def test_arguments_that_are_no_object_reach_the_tools_which_refuse_them(args):
    turn = to_turn(ModelResponse([ToolCallPart("run shell/cmd", args, tool_call_id="")]), 3, None)
    (call,) = turn.tool_calls
    assert (call.id, call.name) == ("t3.1", "run_shell_cmd")
    json.dumps(call.arguments).encode()
    messages_of([turn])


def test_a_turn_keeps_no_huge_arguments_and_no_huge_state():
    huge = ToolCallPart("run_shell_cmd", {"command": "x" * 16_000_000}, tool_call_id="1")
    turn = to_turn(ModelResponse([ThinkingPart("x" * 16_000_000), huge]), 1, None)
    assert turn.tool_calls[0].arguments == {"too_long": "16000015 characters of arguments, at most 40000"}
    assert turn.state is None
    assert len(messages_of([turn])[0]["parts"]) == 1


def test_a_turn_has_at_most_so_many_calls():
    many = ModelResponse([ToolCallPart("x", {}, tool_call_id=str(n)) for n in range(1000)])
    turn = to_turn(many, 1, None)
    assert len(turn.tool_calls) == MAX_CALLS
    assert len(messages_of([turn])[0]["parts"]) == MAX_CALLS


@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3), st.integers(1, 99))
def test_any_response_becomes_a_turn_that_can_be_stored_and_sent_again(text, calls, number):
    response = ModelResponse([TextPart(text), *(ToolCallPart(name, args) for name, args in calls)])
    turn = to_turn(response, number, None)
    assert json.loads(json.dumps(turn.state)) == turn.state
    (said,) = to_messages([turn], "", str)
    sent = [part for part in said.parts if isinstance(part, ToolCallPart)]
    assert [part.args for part in sent] == [call.arguments for call in turn.tool_calls]
