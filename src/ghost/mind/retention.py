"""Memories that are told twice become one; memories that nobody asks for fade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.episodes import is_told_twice, network_of
from ghost.mind.page_memories import DOCUMENT
from ghost.mind.summaries import SUMMARY, united

DAY: Final = 86_400.0
NEAR: Final = 0.85
"""Cosine similarity below which two memories are not one told twice, whatever their words."""
MOST_TAGS: Final = 32
UNASKED_SECONDS: Final = 30 * DAY
"""How long a memory keeps its importance without being asked for."""
HALF_LIFE_SECONDS: Final = 90 * DAY
LEAST: Final = 0.05
"""No memory fades below."""


def may_merge(one: Memory, other: Memory) -> bool:
    """Whether two memories are one told twice. Two incidents told in the same words are two: what happened merges
    only within one session, or, where no session is known, within a day."""
    if one.id == other.id or one.type is not other.type or _stands_alone(one) or _stands_alone(other):
        return False
    if network_of(one) != network_of(other):
        return False
    if one.type is MemoryType.EPISODIC:
        sessions = one.metadata.get("session_id"), other.metadata.get("session_id")
        if sessions[0] != sessions[1]:
            return False
        if sessions[0] is None and abs(one.created_at - other.created_at) > DAY:
            return False
    return is_told_twice(one, other)


def merged(memories: Sequence[Memory]) -> tuple[Memory, list[str]]:
    """The one that stays, and the ids of those that go.

    It stays that matters most, then that was asked for last, then the oldest. It takes over their tags, audit ids and
    sources, the earliest time of making and the latest of access.
    """
    survivor, *others = sorted(
        memories, key=lambda memory: (-memory.importance, -memory.last_access, memory.created_at, memory.id)
    )
    everything = [survivor, *others]
    lists = {name: found for name in ("audit_ids", "sources", "stimuli") if (found := united(everything, name))}
    gone = [memory.id for memory in others]
    told = list(dict.fromkeys([*united(everything, "merged"), *gone]))
    kept = survivor.model_copy(
        update={
            "tags": tuple(dict.fromkeys(tag for memory in everything for tag in memory.tags))[:MOST_TAGS],
            "created_at": min(memory.created_at for memory in everything),
            "last_access": max(memory.last_access for memory in everything),
            "metadata": {**survivor.metadata, **lists, "merged": told},
        }
    )
    return kept, gone


def faded(memory: Memory, now: float) -> Memory | None:
    """The memory with what is left of its importance; None where it was asked for lately, or faded already today."""
    aged_at = memory.metadata.get("aged_at")
    since = max(memory.last_access, aged_at if isinstance(aged_at, int | float) else 0.0)
    if now - memory.last_access < UNASKED_SECONDS or now - since < DAY or memory.importance <= LEAST:
        return None
    left = memory.importance * 0.5 ** ((now - since) / HALF_LIFE_SECONDS)
    return memory.model_copy(update={"importance": max(left, LEAST), "metadata": {**memory.metadata, "aged_at": now}})


def _stands_alone(memory: Memory) -> bool:
    """A page is what its address says, a summary what its sources say: neither is merged by its words."""
    return DOCUMENT in memory.tags or memory.metadata.get("kind") == SUMMARY
