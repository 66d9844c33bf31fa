"""The steps an investigation yields: tool calls or a question. It receives results or an answer."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return key_of(self.name, self.arguments)


@dataclass(frozen=True)
class Step:
    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Question:
    text: str


Steps = Generator[Step | Question, Any, T]
"""A `Step` is answered by its results, one dict a call; a `Question` by the engineer's words."""

_COMMENTARY = {"reasoning", "hypothesis_ids", "investigation_context"}


def key_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the identity of a call; its reason, the wording of a hypothesis and the case of letters are ignored.

    A name that is read back through the mapping of private mode has the case in which it was seen first.
    """
    if name == "manage_hypotheses":
        identity = {key: arguments.get(key) for key in ("action", "id")}
    elif name == "complete_investigation":
        identity = {}
    else:
        identity = {key: value for key, value in arguments.items() if key not in _COMMENTARY}
    return json.dumps([name, identity], sort_keys=True, default=str).casefold()
