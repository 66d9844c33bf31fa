"""The decision to store a thought: a model's JSON, used only if valid."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ghost.mind.data_model import MemoryType, Tags, Unit
from ghost.mind.thought_parsing import READ_CHARS

MAX_TAGS = 8
_TAG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_FENCE = re.compile(r"^```[a-zA-Z]{0,20}|```$")


class StoreDecision(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    should_store: Annotated[bool, Field(strict=True)]
    type: MemoryType
    importance: Unit
    tags: Tags = ()
    reason: Annotated[str, Field(max_length=2000)] = ""

    @field_validator("tags", mode="before")
    @classmethod
    def usable(cls, proposed: Any) -> Any:
        return cleaned_tags(proposed) if isinstance(proposed, list) else proposed


def cleaned_tags(proposed: list[Any]) -> Tags:
    """Return the first eight valid tags; invalid ones are dropped, since they do not invalidate the decision."""
    tags = dict.fromkeys(tag.strip().lower() for tag in proposed if isinstance(tag, str))
    return tuple(tag for tag in tags if _TAG.fullmatch(tag))[:MAX_TAGS]


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "should_store": {"type": "boolean"},
        "type": {"type": "string", "enum": [kind.value for kind in MemoryType]},
        "importance": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": MAX_TAGS},
        "reason": {"type": "string", "maxLength": 200},
    },
    "required": ["should_store", "type", "importance", "tags", "reason"],
}


def decision(text: str) -> StoreDecision | None:
    """Parse the decision; None if the text is not the required JSON."""
    try:
        return StoreDecision.model_validate(json_object(text))
    except (ValidationError, ValueError):
        return None


def json_object(text: str) -> Any:
    """Return the single JSON object in a text, with or without a code fence. Raises `ValueError`."""
    try:
        return json.loads(_FENCE.sub("", text[:READ_CHARS].strip()))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
