"""The Gemini, OpenAI chat and Anthropic messages APIs, as their documentation and their SDKs' types have them.

https://ai.google.dev/api/generate-content, https://platform.openai.com/docs/api-reference/chat,
https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from ghost.brain import Message, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from tests.model_servers.exchange import (
    ApiError,
    Dialect,
    ErrorKind,
    Memory,
    Reply,
    Understood,
    check_answers,
    check_tool,
    refuse_unless,
)

CUT_ARGUMENTS = '{"command": "az vm li'

GEMINI_SCHEMA = frozenset(
    re.findall(
        r"\w+",
        "type format title description nullable default items minItems maxItems enum properties propertyOrdering "
        "required minProperties maxProperties minimum maximum minLength maxLength pattern example anyOf",
    )
)
FINISH = {
    "gemini": {"length": "MAX_TOKENS", "safety": "SAFETY", "malformed_call": "MALFORMED_FUNCTION_CALL"},
    "openai": {"length": "length", "safety": "content_filter"},
    "anthropic": {"length": "max_tokens", "safety": "refusal"},
}
ERRORS: dict[str, dict[ErrorKind, tuple[int, str, str]]] = {
    "gemini": {
        "bad_request": (400, "INVALID_ARGUMENT", "{}"),
        "wrong_key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        "unknown_model": (404, "NOT_FOUND", "models/{} is not found for API version v1beta"),
        "rate": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        "quota": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing."),
        "server": (500, "INTERNAL", "An internal error has occurred. Please retry."),
        "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    },
    "openai": {
        "bad_request": (400, "invalid_request_error", "{}"),
        "wrong_key": (401, "invalid_api_key", "Incorrect API key provided: key-****wxyz."),
        "unknown_model": (404, "model_not_found", "The model `{}` does not exist or you do not have access to it."),
        "rate": (429, "rate_limit_exceeded", "Rate limit reached for requests."),
        "quota": (429, "insufficient_quota", "You exceeded your current quota, please check your plan."),
        "server": (500, "server_error", "The server had an error while processing your request."),
        "overloaded": (503, "server_error", "The engine is currently overloaded, please try again later."),
    },
    "anthropic": {
        "bad_request": (400, "invalid_request_error", "{}"),
        "wrong_key": (401, "authentication_error", "invalid x-api-key"),
        "unknown_model": (404, "not_found_error", "model: {}"),
        "rate": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
        "quota": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        "server": (500, "api_error", "Internal server error"),
        "overloaded": (529, "overloaded_error", "Overloaded"),
    },
}


def _result(call_id: str, content: Any) -> ToolResult:
    """A tool's result as a model reads it: JSON, or a text that holds JSON."""
    if isinstance(content, list):
        content = "".join(str(block.get("text", "")) for block in content)
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except ValueError:
            content = {"text": content}
    return ToolResult(call_id, "", content if isinstance(content, dict) else {"result": content})


class Gemini(Dialect):
    name = "gemini"

    def understand(self, path: str, headers: dict[str, str], body: Any, memory: Memory) -> Understood:
        found = re.fullmatch(r"/v1beta/models/([^/:]+):generateContent", path.partition("?")[0])
        refuse_unless(found, f"no such method: {path}")
        unknown = set(body) - {
            "contents",
            "systemInstruction",
            "tools",
            "toolConfig",
            "generationConfig",
            "safetySettings",
        }
        refuse_unless(not unknown, f'Invalid JSON payload received. Unknown name "{unknown}": Cannot find field.')
        tools = {}
        for declared in (tool for group in body.get("tools", ()) for tool in group["functionDeclarations"]):
            # The API reads camelCase and snake_case; a JSON schema may hold more keywords than its own Schema.
            free = declared.get("parametersJsonSchema") or declared.get("parameters_json_schema")
            tools[declared["name"]] = free or declared["parameters"]
            check_tool(declared["name"], tools[declared["name"]], None if free else GEMINI_SCHEMA)
        system = "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
        messages = self._messages(body["contents"], memory)
        return Understood(found[1] if found else "", headers.get("x-goog-api-key", ""), system, tools, messages)

    def _messages(self, contents: Sequence[Any], memory: Memory) -> list[Message]:
        messages: list[Message] = []
        open_ids, states = list[str](), list[str]()
        for content in contents:
            parts = content["parts"]
            refuse_unless(parts, "contents.parts must not be empty.")
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            check_answers(open_ids, [answer["id"] for answer in answers])
            text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
            open_ids = []
            if content["role"] == "model":
                calls = [part for part in parts if "functionCall" in part]
                open_ids = [part["functionCall"]["id"] for part in calls]
                for part in calls[:1]:  # of parallel calls only the first is signed
                    # The SDK writes bytes in the URL-safe alphabet; the API reads both.
                    states.append(part.get("thoughtSignature", "").translate(str.maketrans("-_", "+/")))
                asked = (part["functionCall"] for part in calls)
                messages.append(Turn(text, tuple(ToolCall(c["id"], c["name"], c.get("args", {})) for c in asked)))
                continue
            refuse_unless(content["role"] == "user", "Please use a valid role: user, model.")
            if answers:
                messages.append(ToolResults(tuple(_result(a["id"], a["response"]) for a in answers)))
            if text:
                messages.append(UserMessage(text))
        check_answers(open_ids, [])
        memory.check(states)
        return messages

    def body(self, reply: Reply, memory: Memory) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        if reply.thinking:
            parts.append({"text": reply.thinking, "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        for call in reply.calls:
            called = {"id": memory.next_id("gc-"), "name": call.name, "args": call.arguments}
            parts.append({"functionCall": called})
            if call is reply.calls[0]:
                memory.states.append(base64.b64encode(f"\xfb\xff state {memory.issued}".encode("latin-1")).decode())
                parts[-1]["thoughtSignature"] = memory.states[-1]
        usage = reply.usage
        metadata = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
        if reply.finish == "safety" and not parts:
            return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": metadata, "modelVersion": "x-001"}
        candidate: dict[str, Any] = {"finishReason": FINISH[self.name].get(reply.finish, "STOP"), "index": 0}
        if reply.finish != "malformed_call":
            candidate["content"] = {"role": "model", "parts": parts} if parts else {"role": "model"}
        return {"candidates": [candidate], "usageMetadata": metadata, "modelVersion": "x-001", "responseId": "r"}

    def error(self, error: ApiError) -> tuple[int, dict[str, Any]]:
        status, name, message = _error(self.name, error)
        details: list[dict[str, Any]] = []
        if error.kind == "wrong_key":
            details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"})
        if error.kind == "quota":
            violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
            details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
        if error.retry_after_seconds is not None:
            delay = f"{error.retry_after_seconds}s"
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
        return status, {"error": {"code": status, "message": message, "status": name, "details": details}}


class OpenAI(Dialect):
    name = "openai"

    def understand(self, path: str, headers: dict[str, str], body: Any, memory: Memory) -> Understood:
        refuse_unless(path == "/v1/chat/completions", f"Invalid URL (POST {path})")
        tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", ())}
        for name, schema in tools.items():
            check_tool(name, schema)
        system, messages, open_ids, answered = "", list[Message](), list[str](), list[ToolResult]()
        for message in [*body["messages"], {"role": "end"}]:
            role = message["role"]
            if role == "tool":
                answered.append(_result(message["tool_call_id"], message["content"]))
                continue
            check_answers(open_ids, [result.call_id for result in answered])
            if answered:
                messages.append(ToolResults(tuple(answered)))
            open_ids, answered = [], []
            if role in {"system", "developer"}:
                system += message["content"]
            elif role == "user":
                messages.append(UserMessage(_text(message["content"])))
            elif role == "assistant":
                calls = message.get("tool_calls") or []
                refuse_unless(message.get("content") or calls, "an assistant message needs content or tool_calls")
                open_ids = [call["id"] for call in calls]
                asked = tuple(ToolCall(c["id"], c["function"]["name"], _arguments(c["function"])) for c in calls)
                messages.append(Turn(_text(message.get("content")), asked))
            else:
                refuse_unless(role == "end", f"Invalid value: '{role}'")
        return Understood(body["model"], _bearer(headers), system, tools, messages)

    def body(self, reply: Reply, memory: Memory) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        cut = reply.finish == "malformed_call"
        calls = [
            {
                "id": memory.next_id("call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": CUT_ARGUMENTS if cut else json.dumps(call.arguments)},
            }
            for call in reply.calls
        ]
        if calls:
            message["tool_calls"] = calls
        finish = FINISH[self.name].get(reply.finish, "tool_calls" if calls else "stop")
        usage = {
            "prompt_tokens": reply.usage.input_tokens,
            "completion_tokens": reply.usage.output_tokens,
            "total_tokens": reply.usage.input_tokens + reply.usage.output_tokens,
        }
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1760000000, "model": "model-x-001"}
        return {**head, "choices": [choice], "usage": usage}

    def error(self, error: ApiError) -> tuple[int, dict[str, Any]]:
        status, code, message = _error(self.name, error)
        return status, {"error": {"message": message, "type": code, "param": None, "code": code}}


class Anthropic(Dialect):
    name = "anthropic"

    def understand(self, path: str, headers: dict[str, str], body: Any, memory: Memory) -> Understood:
        refuse_unless(path.partition("?")[0] == "/v1/messages", f"no such path: {path}")
        refuse_unless(headers.get("anthropic-version"), "anthropic-version: header is required")
        refuse_unless(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools", ())}
        for name, schema in tools.items():
            check_tool(name, schema)
        messages: list[Message] = []
        open_ids, states = list[str](), list[Any]()
        for message in [*body["messages"], {"role": "end", "content": [{"type": "end"}]}]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            refuse_unless(blocks, "messages: all messages must have non-empty content")
            refuse_unless(
                all(block["text"].strip() for block in blocks if block["type"] == "text"),
                "messages: text content blocks must contain non-whitespace text",
            )
            # Results stand before any text of the message that follows the calls.
            count = len(open_ids)
            check_answers(open_ids, [block.get("tool_use_id", "") for block in blocks[:count]])
            results = [_result(block["tool_use_id"], block["content"]) for block in blocks[:count]]
            stray = [block for block in blocks[count:] if block["type"] == "tool_result"]
            refuse_unless(not stray, "messages: unexpected `tool_use_id` found in `tool_result` blocks")
            if results:
                messages.append(ToolResults(tuple(results)))
            text = "".join(block["text"] for block in blocks[count:] if block["type"] == "text")
            uses = [block for block in blocks if block["type"] == "tool_use"]
            open_ids = [use["id"] for use in uses]
            if message["role"] == "assistant":
                states += blocks[:1] if uses else []
                messages.append(Turn(text, tuple(ToolCall(use["id"], use["name"], use["input"]) for use in uses)))
            elif text:
                messages.append(UserMessage(text))
        memory.check(states)
        return Understood(
            body["model"], headers.get("x-api-key") or _bearer(headers), _text(body.get("system")), tools, messages
        )

    def body(self, reply: Reply, memory: Memory) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        if reply.thinking:
            signature = base64.b64encode(f"state {memory.issued}".encode()).decode()
            blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
            memory.states += blocks if reply.calls else []
        if reply.text:
            blocks.append({"type": "text", "text": reply.text})
        for call in reply.calls:
            given = {} if reply.finish == "malformed_call" else call.arguments
            blocks.append({"type": "tool_use", "id": memory.next_id("toolu_"), "name": call.name, "input": given})
        usage = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
        finish = FINISH[self.name].get(reply.finish, "tool_use" if reply.calls else "end_turn")
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "model-x-001", "stop_sequence": None}
        return {**head, "content": blocks, "stop_reason": finish, "usage": usage}

    def error(self, error: ApiError) -> tuple[int, dict[str, Any]]:
        status, kind, message = _error(self.name, error)
        return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _error(dialect: str, error: ApiError) -> tuple[int, str, str]:
    """Status, name and message of an error."""
    status, name, message = ERRORS[dialect][error.kind]
    return status, name, message.format(error.message)


def _bearer(headers: dict[str, str]) -> str:
    return headers.get("authorization", "").removeprefix("Bearer ")


def _text(content: Any) -> str:
    """A text, or the text of its blocks."""
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


def _arguments(function: Any) -> dict[str, Any]:
    """OpenAI holds a call's arguments as text and takes back whatever text the model wrote."""
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


DIALECTS: tuple[Dialect, ...] = (Gemini(), OpenAI(), Anthropic())
