"""Summaries of episodes with one cause: what they share and how they differ.

The model writes it; its text is used if valid and if it names nothing that the episodes do not. Otherwise the summary
is assembled from the episodes themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ghost.errors import UnusableAnswer
from ghost.mind.data_model import Memory, MemoryType, Tags, Unit
from ghost.mind.decisions import cleaned_tags, json_object
from ghost.mind.episodes import Episode, shared_cause, wording
from ghost.mind.prompts import system_prompt
from ghost.mind.thought_parsing import Redact
from ghost.providers import Item, LLMProvider, write_prompt

SUMMARY = "summary"
"""The tag of every summary, and the `kind` in its metadata."""
TOKENS = 1200
"""More than the longest answer that the schema allows."""
MAX_WORDS = 120
MAX_EPISODES = 32
"""Maximum episodes in the prompt, newest first."""
MAX_AUDIT_IDS = 200
MAX_TAGS = 16
_DIFFERENCE_CHARS = 200
_MEMORY_CHARS = 800


class _Difference(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    difference: Annotated[str, Field(max_length=1000)]


class Summary(BaseModel):
    """A model's answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    summary: Annotated[str, Field(min_length=1, max_length=4000)]
    cause: Annotated[str, Field(max_length=1000)] = ""
    resources: tuple[str, ...] = ()
    tags: Tags = ()
    importance: Unit = 0.6
    differences: tuple[_Difference, ...] = ()

    @field_validator("tags", mode="before")
    @classmethod
    def usable(cls, value: Any) -> Any:
        return cleaned_tags(value) if isinstance(value, list) else value


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "maxLength": 900},
        "cause": {"type": "string", "maxLength": 200},
        "resources": {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": 8},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 8},
        "importance": {"type": "number", "minimum": 0, "maximum": 1},
        "differences": {
            "type": "array",
            "maxItems": 12,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "maxLength": 60},
                    "difference": {"type": "string", "maxLength": 120},
                },
                "required": ["id", "difference"],
            },
        },
    },
    "required": ["summary", "cause", "resources", "tags", "importance", "differences"],
}


def summarised(
    episodes: Sequence[Episode], summary_id: str, before: Memory | None, now: float, llm: LLMProvider, redact: Redact
) -> Memory:
    """Return the summary of these episodes, oldest first, without embedding; `before` is the one it replaces. Raises
    `ProviderError`.
    """
    episodes = sorted(episodes, key=lambda each: (each.memory.created_at, each.memory.id))
    cause = shared_cause(episodes)
    resources = _named_by_several(episodes)
    answer = _model_summary(episodes, cause, llm, redact)
    differences = {each.id: each.difference for each in answer.differences} if answer else _own(episodes, resources)
    body = " ".join(answer.summary.split()[:MAX_WORDS]) if answer else _in_words(resources, differences)
    times = [each.memory.created_at for each in episodes]
    known = [before] if before else []
    tags = [
        SUMMARY,
        *(answer.tags if answer else ()),
        *(tag for each in episodes for tag in _common_tags(each, episodes)),
    ]
    return Memory(
        id=summary_id,
        type=MemoryType.SEMANTIC,
        content=f"Seen {len(episodes)} times, {_day(times[0])} to {_day(times[-1])}. Shared cause: {cause}.\n{body}",
        tags=tuple(dict.fromkeys(tags))[:MAX_TAGS],
        importance=max(
            before.importance if before else 0.0,
            answer.importance if answer else 0.6,
            *(each.memory.importance for each in episodes),
        ),
        created_at=before.created_at if before else now,
        last_access=before.last_access if before else now,
        metadata={
            "kind": SUMMARY,
            "cause": cause,
            "resources": resources,
            "differences": differences,
            "sources": [each.memory.id for each in episodes],
            "audit_ids": united([*known, *(each.memory for each in episodes)], "audit_ids")[:MAX_AUDIT_IDS],
            "layers_at_fault": sorted(frozenset().union(*(each.layers for each in episodes))),
            "sessions": united([each.memory for each in episodes], "session_id"),
        },
    )


def _model_summary(episodes: Sequence[Episode], cause: str, llm: LLMProvider, redact: Redact) -> Summary | None:
    prompted = episodes[-MAX_EPISODES:]
    items = [Item(each.memory.id, each.memory.content[:_MEMORY_CHARS]) for each in reversed(prompted)]
    prompt = write_prompt({"Memories": items})
    try:
        answer = llm.generate(system_prompt("consolidate"), prompt, TOKENS, json_schema=SCHEMA)
        told = Summary.model_validate(json_object(answer))
    except (UnusableAnswer, ValidationError, ValueError):
        return None
    answer_text = " ".join([told.summary, told.cause, *told.resources, *(each.difference for each in told.differences)])
    if not _is_supported(answer_text, prompted) or not wording(told.cause).mechanisms <= wording(cause).mechanisms:
        return None
    ids = {each.memory.id for each in prompted}
    return told.model_copy(
        update={
            "summary": redact(told.summary),
            "differences": tuple(
                _Difference(id=each.id, difference=redact(each.difference)[:_DIFFERENCE_CHARS])
                for each in told.differences
                if each.id in ids and each.difference.strip()
            ),
        }
    )


def _is_supported(answer_text: str, episodes: Sequence[Episode]) -> bool:
    """Return whether it names only resources, addresses and mechanisms of the episodes; numbers are not checked,
    since counts are allowed.
    """
    answer = wording(answer_text)
    known = wording("\n".join(f"{each.memory.content}\n{each.cause}" for each in episodes))
    resources = set().union(*(each.resources for each in episodes))
    return (
        set(answer.identifiers) <= {*known.identifiers, *resources}
        and answer.addresses <= {*known.addresses, *resources}
        and answer.mechanisms <= known.mechanisms
    )


def _named_by_several(episodes: Sequence[Episode]) -> list[str]:
    counted = Counter(name for each in episodes for name in each.resources)
    return sorted((name for name, times in counted.items() if times > 1), key=lambda name: (-counted[name], name))


def _own(episodes: Sequence[Episode], shared: Sequence[str]) -> dict[str, str]:
    """Return, by memory, the day and the names that no other has."""
    own = {}
    for each in episodes:
        names = sorted(each.resources - set(shared))
        day = _day(each.memory.created_at)
        own[each.memory.id] = f"{day}: {', '.join(names)}"[:_DIFFERENCE_CHARS] if names else day
    return own


def _in_words(shared: Sequence[str], differences: dict[str, str]) -> str:
    parts = [f"{name} {difference}" for name, difference in differences.items()]
    common = f"In common: {', '.join(shared)}. " if shared else ""
    return f"{common}They differ: {' | '.join(parts)}"


def _common_tags(each: Episode, episodes: Sequence[Episode]) -> list[str]:
    return [tag for tag in each.memory.tags if all(tag in other.memory.tags for other in episodes)]


def united(memories: Sequence[Memory], name: str) -> list[str]:
    """Return the distinct values that their metadata hold under `name`."""
    values = [memory.metadata.get(name) for memory in memories]
    listed = [value if isinstance(value, list) else [value] for value in values]
    return list(dict.fromkeys(item for found in listed for item in found if isinstance(item, str)))


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
