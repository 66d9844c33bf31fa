"""Consolidation of long-term memory in bounded runs: merges duplicates, summarises recurring causes, fades unused
memories.

Visits memories oldest first from the end of the previous run and restarts after a week. Every step is a transaction and
idempotent. Originals stay, with half their importance, below their summary. What a newer memory supersedes is neither
merged nor summarised: it would be told as true again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.episodes import Episode, episode, network_of
from ghost.mind.long_term_memory import SUPERSEDED, LongTermMemory
from ghost.mind.retention import DAY, DUPLICATE_CLOSENESS, UNASKED_SECONDS, faded, may_merge, merged
from ghost.mind.store import Changes, Filter
from ghost.mind.summaries import SUMMARY, summarised, united
from ghost.mind.thought_parsing import Redact
from ghost.providers import LLMProvider
from ghost.records import Clock

MAX_PER_RUN = 200
"""Memories visited."""
MAX_FADED = 1000
NEIGHBOURS = 32
MAX_COMPARED = 8
"""Maximum sources of a summary that a new episode is compared with."""
MAX_SOURCES = 200
DUE_EPISODES = 20
"""New memories that make a run due; after a day, one is enough."""
SWEEP_SECONDS = 7 * DAY
_ASKED_EVERY_SECONDS = 30.0
_PREFERENCE = "consolidation"


@dataclass
class Report:
    """Counts of a run; `complete` if it reached the end of memory."""

    looked_at: int = 0
    merged: int = 0
    summaries: int = 0
    """Summaries created or extended."""
    faded: int = 0
    complete: bool = True

    @property
    def changed(self) -> int:
        return self.merged + self.summaries + self.faded


class Consolidation:
    def __init__(self, ltm: LongTermMemory, llm: LLMProvider, clock: Clock, redact: Redact) -> None:
        self._ltm = ltm
        self._store = ltm.store
        self._llm = llm
        self._clock = clock
        self._redact = redact
        self._running = threading.Lock()
        self._started_at = clock.now().timestamp()
        self._answered: tuple[float, float | None] | None = None

    # --- when ---

    def due_since(self, now: float) -> float | None:
        """Return since when a run is due; None if none is. Queries the store at most every 30 seconds."""
        if self._answered is None or not 0 <= now - self._answered[0] < _ASKED_EVERY_SECONDS:
            before = self._answered[1] if self._answered else None
            due = self._due(now)
            self._answered = (now, min(before, due) if before is not None and due is not None else due)
        return self._answered[1]

    def _due(self, now: float) -> float | None:
        state = self._state()
        if not state["complete"]:
            return float(state["at"])
        episodes = self._store.counts()[MemoryType.EPISODIC]
        new = episodes - state["episodes"]
        if new >= DUE_EPISODES:
            return now
        since = (state["at"] or self._started_at) + DAY
        return since if episodes and now >= since else None

    # --- what ---

    def run(self, stop: Callable[[], bool] = lambda: False) -> Report:
        """Do one bounded run. Raises `ProviderError` and `StoreError`; finished steps remain."""
        with self._running:
            now = self._clock.now().timestamp()
            state = self._state()
            if state["complete"] and now - state["swept_at"] >= SWEEP_SECONDS:
                state |= {"cursor": [0.0, ""], "swept_at": now}
            report = Report()
            try:
                for memory in self._ahead(state["cursor"]):
                    if stop() or report.looked_at >= MAX_PER_RUN:
                        report.complete = False
                        break
                    self._consolidate(memory.id, now, report)
                    report.looked_at += 1
                    state["cursor"] = [memory.created_at, memory.id]
                if report.complete:
                    self._fade(now, report, stop)
            except BaseException:
                report.complete = False
                raise
            finally:
                self._remember(state, now, report)
            return report

    def _ahead(self, cursor: Sequence[Any]) -> Iterator[Memory]:
        after, last = float(cursor[0]), str(cursor[1])
        found = self._store.memories(Filter(since=after), with_embeddings=False)
        new = (memory for memory in found if (memory.created_at, memory.id) > (after, last))
        yield from list(islice(new, MAX_PER_RUN + 1))

    def _consolidate(self, memory_id: str, now: float, report: Report) -> None:
        """Handle one memory: merge it with a duplicate, else summarise it with those of the same cause."""
        memory = self._store.get([memory_id]).get(memory_id)
        if memory is None or not memory.embedding or memory.metadata.get("kind") == SUMMARY or _is_superseded(memory):
            return
        near = self._neighbours(memory)
        duplicates = [
            other
            for other, similarity in near
            if self._ltm.closeness(similarity) >= DUPLICATE_CLOSENESS and may_merge(memory, other)
        ]
        if duplicates:
            memory = self._merge([memory, *duplicates])
            report.merged += len(duplicates)
            near = [
                (other, similarity)
                for other, similarity in near
                if other.id not in {duplicate.id for duplicate in duplicates}
            ]
        if memory.type is MemoryType.EPISODIC and "summary" not in memory.metadata:
            report.summaries += self._sum_up(episode(memory), near, now)

    def _neighbours(self, memory: Memory) -> list[tuple[Memory, float]]:
        near = self._ltm.vector_search(memory.embedding, NEIGHBOURS, Filter(types=frozenset({memory.type})))
        return [
            (other, similarity) for other, similarity in near if other.id != memory.id and not _is_superseded(other)
        ]

    # --- merging ---

    def _merge(self, memories: Sequence[Memory]) -> Memory:
        survivor, absorbed = merged(memories)
        summaries = united(memories, "summary")
        if summaries:
            survivor = survivor.model_copy(update={"metadata": {**survivor.metadata, "summary": summaries[0]}})
        rewritten = [_with_source(summary, absorbed, survivor.id) for summary in self._store.get(summaries).values()]
        self._store.apply(Changes(memories=[survivor, *rewritten], forgotten=absorbed))
        return survivor

    # --- summing up ---

    def _sum_up(self, new: Episode, near: Sequence[tuple[Memory, float]], now: float) -> int:
        alike = [
            found
            for other, similarity in near
            if similarity > self._ltm.floor and _belongs(new, found := episode(other))
        ]
        for summary_id in dict.fromkeys(str(each.memory.metadata["summary"]) for each in alike if _is_summed(each)):
            if self._extend(summary_id, new, now):
                return 1
        cluster = [new]
        for each in alike:
            if not _is_summed(each) and all(_belongs(each, member) for member in cluster[1:]):
                cluster.append(each)
        if len(cluster) < 2:
            return 0
        self._write(cluster, cluster, self._store.new_ids("mem", now)[0], None, now)
        return 1

    def _extend(self, summary_id: str, new: Episode, now: float) -> bool:
        """Add an episode to a summary if it shares the cause of all its sources."""
        summary = self._store.get([summary_id]).get(summary_id)
        if summary is None:
            return False
        ids = [str(source) for source in summary.metadata.get("sources", [])]
        found = self._store.get(ids[-MAX_SOURCES:]).values()
        sources = [episode(memory) for memory in found if not _is_superseded(memory)]
        if not sources or len(sources) >= MAX_SOURCES:
            return False
        if not all(_belongs(new, source) for source in sources[:MAX_COMPARED]):
            return False
        self._write([*sources, new], [new], summary_id, summary, now)
        return True

    def _write(
        self, episodes: Sequence[Episode], new: Sequence[Episode], summary_id: str, before: Memory | None, now: float
    ) -> None:
        summary = self._ltm.prepare(summarised(episodes, summary_id, before, now, self._llm, self._redact))
        originals = [
            memory.model_copy(
                update={"importance": memory.importance / 2, "metadata": {**memory.metadata, "summary": summary_id}}
            )
            for memory in self._store.get(
                [each.memory.id for each in new]
            ).values()  # as they are after the model wrote
        ]
        self._store.apply(Changes(memories=[summary, *originals]))

    # --- fading ---

    def _fade(self, now: float, report: Report, stop: Callable[[], bool]) -> None:
        old = self._store.memories(Filter(until=now - UNASKED_SECONDS), with_embeddings=False)
        ids = [memory.id for memory in islice((each for each in old if faded(each, now)), MAX_FADED)]
        for start in range(0, len(ids), MAX_PER_RUN):
            if stop():
                report.complete = False
                return
            found = self._store.get(ids[start : start + MAX_PER_RUN]).values()
            changed = [less for memory in found if (less := faded(memory, now)) is not None]
            self._store.apply(Changes(memories=changed))
            report.faded += len(changed)
        report.complete = report.complete and len(ids) < MAX_FADED

    # --- where it stands ---

    def _state(self) -> dict[str, Any]:
        kept = self._store.preferences().get(_PREFERENCE)
        state = {"at": 0.0, "swept_at": 0.0, "episodes": 0, "cursor": [0.0, ""], "complete": True}
        return state | kept if isinstance(kept, dict) else state

    def _remember(self, state: dict[str, Any], now: float, report: Report) -> None:
        episodes = self._store.counts()[MemoryType.EPISODIC]
        reached = {**state, "at": now, "episodes": episodes, "complete": report.complete}
        self._store.apply(Changes(preferences={_PREFERENCE: reached}))
        self._answered = None


def _belongs(one: Episode, other: Episode) -> bool:
    if network_of(one.memory) != network_of(other.memory):
        return False
    return bool(one.resources & other.resources) and one.has_same_cause(other)


def _is_superseded(memory: Memory) -> bool:
    return SUPERSEDED in memory.metadata


def _is_summed(each: Episode) -> bool:
    return "summary" in each.memory.metadata


def _with_source(summary: Memory, absorbed: Sequence[str], survivor: str) -> Memory:
    sources = [survivor if source in absorbed else source for source in summary.metadata.get("sources", [])]
    return summary.model_copy(update={"metadata": {**summary.metadata, "sources": list(dict.fromkeys(sources))}})
