"""The servers refuse what their vendors refuse: each mistake is made in a request that was accepted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from ghost.brain import ToolResult, ToolResults, UserMessage
from tests.model_servers.dialects import DIALECTS
from tests.model_servers.exchange import ApiError, Dialect
from tests.model_servers.server import serving
from tests.model_servers.test_answers import FINE, brain_of

Mistake = Callable[[Any], object]


def _schema(body: Any) -> Any:
    tool = (body["tools"][0].get("functionDeclarations") or body["tools"])[0]
    tool = tool.get("function", tool)
    return next(tool[key] for key in ("parameters", "parameters_json_schema", "input_schema") if key in tool)


def _as_own_schema(body: Any) -> None:
    declared = body["tools"][0]["functionDeclarations"][0]
    declared["parameters"] = {**declared.pop("parameters_json_schema"), "additionalProperties": False}


EVERYWHERE: dict[str, Mistake] = {
    "$defs": lambda body: _schema(body).update({"$defs": {}}),
    "anyOf null": lambda body: _schema(body)["properties"].update(x={"anyOf": [{"type": "string"}, {"type": "null"}]}),
    "an object of nothing": lambda body: _schema(body)["properties"].update(x={"type": "object"}),
    "required but not declared": lambda body: _schema(body)["required"].append("x"),
    "calls without results": lambda body: body.get("messages", body.get("contents")).pop(),
}
OF_ONE: dict[str, dict[str, Mistake]] = {
    "gemini": {
        "a signature lost": lambda body: body["contents"][1]["parts"][-1].pop("thoughtSignature"),
        "a signature changed": lambda body: body["contents"][1]["parts"][-1].update(thoughtSignature="AAAA"),
        "a result of another call": lambda body: body["contents"][2]["parts"][0]["functionResponse"].update(id="x"),
        "an unknown keyword": _as_own_schema,
        "an unknown field": lambda body: body.update(instructions="x"),
        "an empty content": lambda body: body["contents"][0].update(parts=[]),
    },
    "openai": {
        "a result of another call": lambda body: body["messages"][-1].update(tool_call_id="x"),
        "an unknown role": lambda body: body["messages"][1].update(role="engineer"),
    },
    "anthropic": {
        "a thought lost": lambda body: body["messages"][1]["content"].pop(0),
        "a thought changed": lambda body: body["messages"][1]["content"][0].update(thinking="x"),
        "a text before the results": lambda body: body["messages"][2]["content"].insert(
            0, {"type": "text", "text": "x"}
        ),
        "an empty text": lambda body: body["messages"][0].update(content=" "),
        "no limit of tokens": lambda body: body.pop("max_tokens"),
    },
}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_mistake_is_refused(dialect: Dialect) -> None:
    with serving(dialect, [FINE]) as server:
        brain = brain_of(dialect, server.url)
        turn = brain.next_turn([UserMessage("it fails")])
        (call,) = turn.tool_calls
        brain.next_turn([UserMessage("it fails"), turn, ToolResults((ToolResult(call.id, call.name, {"a": 1}),))])
    head, _, sent = server.received[-1].partition(b"\n\n")
    path = head.decode().split(" ")[1]
    headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in head.decode().splitlines()[1:])}
    accepted = json.loads(sent)
    assert server.answer(path, headers, json.dumps(accepted).encode()) == FINE
    for name, make in {**EVERYWHERE, **OF_ONE[dialect.name]}.items():
        body = copy.deepcopy(accepted)
        make(body)
        answer = server.answer(path, headers, json.dumps(body).encode())
        assert isinstance(answer, ApiError), f"{name} was accepted"
        assert answer.kind == "bad_request", name
