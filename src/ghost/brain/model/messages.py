"""The conversation as the messages of `pydantic_ai`, and a model's response as a `Turn`.

What the provider must see again (thought signatures, the order of parts) is the turn's `state`; text and arguments are
the turn's own, so that they are stored once, redacted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import ModelRequest, ModelResponse
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ghost.brain.conversation import MemoryNote, Message, ResumeNote, ToolCall, ToolResults, Turn, Usage, UserMessage
from ghost.brain.opening import BY_CODE
from ghost.redaction import redact
from ghost.text import map_text

MAX_CALLS = 16
"""Tool calls of one turn; more are dropped."""
MAX_TEXT = 20_000
MAX_ARGUMENTS = 40_000
"""Characters of one call's arguments, several times those of any call that is accepted."""
MAX_STATE = 60_000
"""Characters of a provider's state; without it a turn is sent again as it was said."""
CHECKED = "Checked before your first turn (data, not the engineer's words)"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")

_KEPT = ("kind", "provider_name", "canonical_system", "timestamp")
"""Of a response: what decides whether its thought signatures may be sent again."""

Change = Callable[[str], str]


def to_messages(conversation: Sequence[Message], system: str, change: Change) -> list[ModelMessage]:
    """Return the conversation as requests and responses in turn. `change` is applied to every text in it."""
    messages: list[ModelMessage] = []
    of_code: dict[str, ToolCall] = {}
    for message in conversation:
        if isinstance(message, Turn) and _is_of_code(message):
            of_code |= {call.id: call for call in message.tool_calls}
            continue
        if isinstance(message, Turn):
            messages.append(_response(message, change))
            continue
        parts = list(_request_parts(message, change, of_code))
        if messages and isinstance(messages[-1], ModelRequest):
            # Results come first: after a kill, the note of the resumption stands before those of the open calls.
            parts = sorted([*messages[-1].parts, *parts], key=lambda part: not isinstance(part, ToolReturnPart))
            messages[-1] = replace(messages[-1], parts=parts)
        else:
            messages.append(ModelRequest(parts=parts, instructions=system))
    return messages


def _is_of_code(turn: Turn) -> bool:
    return turn.state is not None and BY_CODE.items() <= turn.state.items()


def _request_parts(message: Message, change: Change, of_code: Mapping[str, ToolCall]) -> Iterator[ModelRequestPart]:
    match message:
        case ToolResults(results):
            for result in results:
                content = map_text(_readable(result.result), change)
                if (call := of_code.get(result.call_id)) is not None:
                    asked = json.dumps(map_text(call.arguments, change), ensure_ascii=False)
                    told = json.dumps(content, ensure_ascii=False)
                    yield UserPromptPart(f"{CHECKED}, {result.name} {asked}:\n{told}")
                    continue
                yield ToolReturnPart(
                    tool_name=_name(change(result.name)), content=content, tool_call_id=_wire_id(result.call_id)
                )
        case MemoryNote(text):
            yield UserPromptPart(change(f"Hints from earlier investigations (where to look; never evidence):\n{text}"))
        case UserMessage(text, stated):
            ends = str(stated)
            yield UserPromptPart(change(f"{text}\n\nStated: {ends}" if ends not in text else text))
        case ResumeNote(text):
            yield UserPromptPart(change(text))


def _readable(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without empty fields, its JSON output as JSON: half the tokens of JSON inside a string.

    The file with the whole output is for code and for people, so it is not named.
    """
    kept = {key: value for key, value in result.items() if value not in (None, "", [], {})}
    told = kept.get("output_metadata") or {}
    told = {key: value for key, value in told.items() if value and not key.startswith("full_output")}
    kept = {**kept, "output_metadata": told} if told else {k: v for k, v in kept.items() if k != "output_metadata"}
    output = kept.get("output")
    if isinstance(output, str) and output.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            kept["output"] = json.loads(output)
    return kept


def _response(turn: Turn, change: Change) -> ModelResponse:
    calls = {_wire_id(call.id): call for call in turn.tool_calls}
    state = _read_state(turn.state)
    if state is None or [p.tool_call_id for p in state.parts if isinstance(p, ToolCallPart)] != list(calls):
        text = [TextPart(turn.text)] if turn.text else []
        state = ModelResponse(parts=[*text, *(ToolCallPart(_name(c.name), tool_call_id=i) for i, c in calls.items())])
    parts = [part for part in (_filled(part, turn, calls, change) for part in state.parts) if part is not None]
    return replace(state, parts=parts or [TextPart("(nothing)")])


def _filled(
    part: ModelResponsePart, turn: Turn, calls: dict[str, ToolCall], change: Change
) -> ModelResponsePart | None:
    match part:
        case TextPart():
            return replace(part, content=change(turn.text)) if turn.text else None
        case ToolCallPart():
            call = calls[part.tool_call_id]
            said: dict[str, Any] = {"tool_name": _name(change(call.name)), "args": map_text(call.arguments, change)}
            return replace(part, **said)
        case ThinkingPart():
            # A changed thought no longer fits its signature: it is left out.
            return part if change(part.content) == part.content else None
        case _:
            return None


def to_turn(response: ModelResponse, number: int, cost: float | None) -> Turn:
    """Return the response as turn `number`: call ids of our own (`t3.1`), at most `MAX_CALLS` calls."""
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)][:MAX_CALLS]
    ids = [f"t{number}.{index}" for index in range(1, len(calls) + 1)]
    # Half a surrogate pair cannot be stored.
    text = (response.text or "")[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8").strip()
    tool_calls = tuple(
        ToolCall(call_id, _name(call.tool_name), _arguments(call)) for call_id, call in zip(ids, calls, strict=True)
    )
    usage = Usage(response.usage.input_tokens, response.usage.output_tokens, cost)
    state = _state(response, text, dict(zip(map(id, calls), ids, strict=True)))
    return Turn(text, tool_calls, usage, state if len(json.dumps(state)) <= MAX_STATE else None)


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    """Return a call's arguments; of those no tool accepts, what is wrong."""
    arguments: dict[str, Any] = map_text(call.args_as_dict(), _storable)
    size = len(json.dumps(arguments))
    if size > MAX_ARGUMENTS:
        return {"too_long": f"{size} characters of arguments, at most {MAX_ARGUMENTS}"}
    return arguments


def _state(response: ModelResponse, text: str, ids: dict[int, str]) -> dict[str, Any]:
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, TextPart) and text and not any(isinstance(p, TextPart) for p in parts):
            parts.append(replace(part, content=""))
        elif isinstance(part, ToolCallPart) and id(part) in ids:
            call = ToolCallPart(_name(part.tool_name), tool_call_id=_wire_id(ids[id(part)]))
            parts.append(replace(call, provider_name=part.provider_name, provider_details=part.provider_details))
        elif isinstance(part, ThinkingPart) and redact(part.content)[0] == part.content:
            parts.append(part)
    said = ModelResponse(parts, provider_name=response.provider_name)
    said.canonical_system = response.canonical_system
    (state,) = ModelMessagesTypeAdapter.dump_python([said], mode="json")
    return {**{key: state[key] for key in _KEPT}, "parts": [_without_empty(part) for part in state["parts"]]}


def _without_empty(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if value not in (None, {}) or key == "content"}


def _read_state(state: dict[str, Any] | None) -> ModelResponse | None:
    if state is None:
        return None
    try:
        (read,) = ModelMessagesTypeAdapter.validate_python([state])
    except ValidationError:  # of another version
        return None
    return read if isinstance(read, ModelResponse) else None


def _wire_id(call_id: str) -> str:
    """Return a call id as every provider accepts it."""
    return _NOT_IN_A_NAME.sub("_", call_id)[:64]


def _name(name: str) -> str:
    """Return a tool's name as every provider accepts it, also one that a model made up."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "unnamed"


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
