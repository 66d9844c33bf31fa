"""What a model server is told to answer and what it understood, in one form for every API."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ghost.brain import Message, ToolCall, Turn, Usage
from tests.providers.servers import Step

MODEL = "model-x"
USAGE = Usage(1200, 60)
KEY = "key-0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    finish: Literal["stop", "length", "safety", "malformed_call"] = "stop"
    usage: Usage = USAGE


ErrorKind = Literal["bad_request", "wrong_key", "unknown_model", "rate", "quota", "server", "overloaded"]


@dataclass(frozen=True)
class ApiError:
    kind: ErrorKind
    message: str = ""
    retry_after_seconds: int | None = None


Answer = Turn | Reply | ApiError | Step
"""A step writes to the connection what is no answer, head included."""
Script = Callable[[Sequence[Message]], Answer]
"""Chooses an answer from the conversation that the request holds."""


class RefusedRequest(Exception):  # noqa: N818 - the vendors' answer 400, not a failure of the server
    """The vendor would answer 400 with this message."""


@dataclass(frozen=True)
class Understood:
    """A request as its API reads it."""

    model: str
    key: str
    system: str
    tools: dict[str, Any]
    messages: list[Message]


@dataclass
class Memory:
    """The opaque states that a server gave with its calls, and expects to see again unchanged."""

    states: list[Any] = field(default_factory=list)
    issued: int = 0

    def next_id(self, prefix: str) -> str:
        self.issued += 1
        return f"{prefix}{self.issued:06}"

    def check(self, given: Sequence[Any]) -> None:
        """The states of the calls in a request, in their order."""
        issued = [state for state in self.states if state in given]
        refuse_unless(not self.states or issued == given, "a tool call is missing the state that it came with")


class Dialect(Protocol):
    name: str

    def understand(self, path: str, headers: dict[str, str], body: Any, memory: Memory) -> Understood:
        """Raises `RefusedRequest`, `KeyError` or `TypeError` for what the API does not accept."""
        ...

    def body(self, reply: Reply, memory: Memory) -> dict[str, Any]: ...

    def error(self, error: ApiError) -> tuple[int, dict[str, Any]]: ...


def refuse_unless(condition: object, message: str) -> None:
    if not condition:
        raise RefusedRequest(message)


TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def check_schema(schema: Any, where: str, known: frozenset[str] | None = None) -> None:
    """Refuse what one of the vendors refuses in a tool's parameters; `known` names all keywords that there are."""
    refuse_unless(isinstance(schema, dict), f"{where}: not a schema")
    for keyword, value in schema.items():
        refuse_unless(keyword not in {"$defs", "$ref", "$schema"}, f'Unknown name "{keyword}" at {where}')
        refuse_unless(known is None or keyword in known, f'Unknown name "{keyword}" at {where}: Cannot find field.')
        if keyword == "properties":
            for name, inner in value.items():
                check_schema(inner, f"{where}.{name}", known)
        elif keyword == "items":
            check_schema(value, f"{where}.items", known)
        elif keyword in {"anyOf", "oneOf", "allOf"}:
            refuse_unless({"type": "null"} not in value, f"{where}.{keyword}: null")
    is_object = str(schema.get("type", "")).lower() == "object"
    refuse_unless(not is_object or schema.get("properties"), f"{where}.properties: should be non-empty for OBJECT type")
    absent = set(schema.get("required", ())) - set(schema.get("properties", ()))
    refuse_unless(not absent, f"{where}.required: {absent}: property is not defined")


def check_tool(name: str, schema: Any, known: frozenset[str] | None = None) -> None:
    refuse_unless(TOOL_NAME.fullmatch(name), f"tools.{name}: invalid function name")
    check_schema(schema, f"tools.{name}.parameters", known)


def check_answers(asked: Sequence[str], answered: Sequence[str]) -> None:
    refuse_unless(
        sorted(asked) == sorted(answered),
        f"each tool call needs one result immediately after: calls {list(asked)}, results {list(answered)}",
    )
