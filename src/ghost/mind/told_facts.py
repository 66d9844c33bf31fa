"""What is told becomes memory: each stimulus with a fact is an episode by itself, as told; no model decides that.

A newer value of a resource (`facts_in_text.statements`, or an answer to the same question) supersedes the older memory:
search puts that one last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ghost.errors import ProviderError
from ghost.mind.data_model import Memory, MemoryType, Stimulus
from ghost.mind.facts_in_text import is_fact, is_routine, mentions, statements, tells_change
from ghost.mind.long_term_memory import SUPERSEDED, LongTermMemory
from ghost.mind.store import Filter

TOLD = "told"
"""The tag of every told memory."""
CHANGE = "change"
"""The tag of every memory that tells of changes."""
MAX_RESOURCES = 24
_EARLIER = 50
"""Maximum memories of a resource that are compared with a new statement."""
FIX_CHECK = "fix check"
"""The source of stimuli that say whether a fix lasts: they tell of a state, not of a change."""
_PAGE = "scraper"
"""The source of stimuli whose page is a memory already."""


def told_memories(
    stimuli: Sequence[Stimulus], ltm: LongTermMemory, now: float, *, all_of_them: bool = False
) -> list[Memory]:
    """Return the memories to write: of each stimulus with a fact, and earlier ones that they supersede.

    `all_of_them`: of each stimulus without a thought too, so that nothing acknowledged is lost; then also without
    embeddings if the provider fails. Raises `ProviderError`, `StoreError`.
    """
    told = [
        each for each in stimuli if each.content.strip() and each.source != _PAGE and (all_of_them or _is_kept(each))
    ]
    if not told:
        return []
    ids = ltm.store.new_ids("mem", now, len(told))
    memories = [_memory(stimulus, name, now) for stimulus, name in zip(told, ids, strict=True)]
    try:
        memories = ltm.prepare_all(memories)
    except ProviderError:
        if not all_of_them:
            raise
    return _with_superseded(memories, ltm)


def _is_kept(stimulus: Stimulus) -> bool:
    return not is_routine(stimulus.source, stimulus.content) and is_fact(stimulus.content)


def _memory(stimulus: Stimulus, name: str, now: float) -> Memory:
    resources = sorted(mentions(stimulus.content).resources)[:MAX_RESOURCES]
    is_change = stimulus.source != FIX_CHECK and tells_change(stimulus.content)
    metadata: dict[str, Any] = {
        "stimuli": [stimulus.id],
        "source": stimulus.source,
        "ts": stimulus.ts,
        "resources": resources,
        **{
            name: stimulus.metadata[name]
            for name in ("audit_id", "audit_ids", "session_id")
            if name in stimulus.metadata
        },
    }
    if values := _values(stimulus):
        metadata["values"] = values
    return Memory(
        id=name,
        type=MemoryType.EPISODIC,
        content=stimulus.content,
        tags=(TOLD, *([CHANGE] if is_change else [])),
        importance=0.7 if is_change else 0.5,
        created_at=stimulus.ts,
        last_access=now,
        metadata=metadata,
    )


def _values(stimulus: Stimulus) -> dict[str, str]:
    """Return the values of resources that it states; of an answer, its fields by the names in the question."""
    fields, question = stimulus.metadata.get("fields"), stimulus.metadata.get("question")
    if not stimulus.id.startswith("answer:") or not isinstance(fields, dict) or not isinstance(question, str):
        return statements(stimulus.content)
    about = " ".join(sorted(mentions(question).resources))
    return {f"{about}|{field}": str(value).casefold() for field, value in fields.items() if about}


# --- corrections ---


def _with_superseded(memories: Sequence[Memory], ltm: LongTermMemory) -> list[Memory]:
    """Return the memories and those of the store that they supersede; the older of two is marked."""
    changed: dict[str, Memory] = {}
    for memory in memories:
        changed[memory.id] = memory
        if "values" not in memory.metadata:
            continue
        others = {each.id: each for each in _about_the_same(memory, ltm)} | changed
        for name in others.keys() - {memory.id}:
            pair = changed.get(name, others[name]), changed[memory.id]
            older, newer = sorted(pair, key=lambda each: each.created_at)
            if _is_superseded(older, newer):
                # Its summary too, until consolidation writes that anew without it.
                for each in (older, *ltm.store.get([str(older.metadata.get("summary"))]).values()):
                    metadata = {**each.metadata, SUPERSEDED: newer.id}
                    changed[each.id] = each.model_copy(update={"metadata": metadata})
    return list(changed.values())


def _about_the_same(memory: Memory, ltm: LongTermMemory) -> list[Memory]:
    where = Filter(tags=frozenset({TOLD}))
    about = " ".join(key.partition("|")[0] for key in memory.metadata["values"])
    return ltm.keyword_search(about, _EARLIER, where)


def _is_superseded(older: Memory, newer: Memory) -> bool:
    """Return whether the newer one gives a value for all that the older one states, and another one for some."""
    old, new = older.metadata.get("values") or {}, newer.metadata.get("values") or {}
    return bool(old) and set(old) <= set(new) and any(new[key] != value for key, value in old.items())
