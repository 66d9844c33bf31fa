"""Merging of duplicate memories and fading of unused ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.episodes import is_duplicate, network_of
from ghost.mind.page_memories import DOCUMENT
from ghost.mind.summaries import SUMMARY, united

DAY: Final = 86_400.0
DUPLICATE_CLOSENESS: Final = 0.78
"""Minimum closeness of duplicates: the share of their similarity above chance."""
MAX_TAGS: Final = 32
UNASKED_SECONDS: Final = 30 * DAY
"""Seconds without access before importance fades."""
HALF_LIFE_SECONDS: Final = 90 * DAY
LEAST: Final = 0.05
"""Minimum importance after fading."""


def may_merge(one: Memory, other: Memory) -> bool:
    """Return whether two memories are duplicates. Two incidents in the same words are separate: episodes merge only
    within one session, or within a day if no session is known.
    """
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
    return is_duplicate(one, other)


def merged(memories: Sequence[Memory]) -> tuple[Memory, list[str]]:
    """Return the remaining memory and the ids of the removed ones.

    The most important one remains, then the last accessed, then the oldest. It takes over tags, audit ids and sources,
    the earliest creation and the latest access.
    """
    survivor, *others = sorted(
        memories, key=lambda memory: (-memory.importance, -memory.last_access, memory.created_at, memory.id)
    )
    everything = [survivor, *others]
    lists = {name: found for name in ("audit_ids", "sources", "stimuli") if (found := united(everything, name))}
    removed = [memory.id for memory in others]
    merged_ids = list(dict.fromkeys([*united(everything, "merged"), *removed]))
    result = survivor.model_copy(
        update={
            "tags": tuple(dict.fromkeys(tag for memory in everything for tag in memory.tags))[:MAX_TAGS],
            "created_at": min(memory.created_at for memory in everything),
            "last_access": max(memory.last_access for memory in everything),
            "metadata": {**survivor.metadata, **lists, "merged": merged_ids},
        }
    )
    return result, removed


def faded(memory: Memory, now: float) -> Memory | None:
    """Return the memory with reduced importance; None if recently accessed or already faded today."""
    aged_at = memory.metadata.get("aged_at")
    since = max(memory.last_access, aged_at if isinstance(aged_at, int | float) else 0.0)
    if now - memory.last_access < UNASKED_SECONDS or now - since < DAY or memory.importance <= LEAST:
        return None
    importance = memory.importance * 0.5 ** ((now - since) / HALF_LIFE_SECONDS)
    return memory.model_copy(
        update={"importance": max(importance, LEAST), "metadata": {**memory.metadata, "aged_at": now}}
    )


def _stands_alone(memory: Memory) -> bool:
    """Return whether a memory is never merged by wording: a page is identified by its address, a summary by its
    sources.
    """
    return DOCUMENT in memory.tags or memory.metadata.get("kind") == SUMMARY
