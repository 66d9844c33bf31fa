"""The draft of a cycle: the thought, whether it is stored, and its question. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ghost.errors import ProviderError
from ghost.mind.agenda import Named
from ghost.mind.attention import Attention
from ghost.mind.counters import Counts
from ghost.mind.data_model import Memory, SelfModel, Stimulus, Thought
from ghost.mind.decisions import StoreDecision
from ghost.mind.distinct_thoughts import DistinctThoughts
from ghost.mind.episodes import is_duplicate
from ghost.mind.facts_in_text import is_routine
from ghost.mind.grounding import sources_of
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.model_calls import Context, Thinking
from ghost.mind.retention import DUPLICATE_CLOSENESS
from ghost.mind.thought_parsing import ParsedThought, Redact
from ghost.mind.told_facts import told_memories
from ghost.mind.working_memory import WorkingMemory
from ghost.records import Clock

THOUGHTS_IN_CONTEXT = 12
MEMORIES_IN_CONTEXT = 6
ABOUT_CHARS = 2000
"""Maximum characters of the memory query."""
MALFORMED = "the store decision was malformed each time"
QUIET_MEMORIES = 8
"""Maximum memories stored from thoughts without new input."""
_NEAREST = 8
"""Memories that a thought without new input is compared with: it may be known."""
_BY_TAG = {"question": (0.6, 0.8), "plan": (0.5, 0.5), "insight": (0.5, 0.3)}
"""Default importance and uncertainty of a thought; a store decision overrides importance."""


@dataclass(frozen=True)
class Draft:
    named: Named
    stimuli: Sequence[Stimulus]
    """Stimuli that the cycle consumes."""
    told: Sequence[Memory] = ()
    """What is remembered of the stimuli as told, and earlier memories that it supersedes."""
    dropped: bool = False
    """True if the stimuli get no thought, since the model gave none."""
    thought: Thought | None = None
    repeats: bool = False
    ungrounded: bool = False
    """True if what the model wrote rests on nothing that it was given, and is not kept."""
    stored: Memory | None = None
    reason: str = ""
    """Reason for storing the thought in long-term memory, or not."""
    said: ParsedThought | None = None
    rationale: str = ""
    """Reason for the question, if it is one."""


class Drafting:
    def __init__(
        self,
        thinking: Thinking,
        ltm: LongTermMemory,
        wm: WorkingMemory,
        attention: Attention,
        counts: Counts,
        clock: Clock,
        redact: Redact,
    ) -> None:
        self._thinking = thinking
        self._ltm = ltm
        self._store = ltm.store
        self._wm = wm
        self._attention = attention
        self._counts = counts
        self._clock = clock
        self._redact = redact
        self._quiet_memories = 0
        self._distinct = DistinctThoughts(wm.view(wm.max_thoughts), ltm)

    def draft(self, self_model: SelfModel, stimuli: Sequence[Stimulus], named: Named) -> Draft:
        """Remember what is told, then ask the model for a thought and a store decision. Raises `ProviderError`,
        `StoreError`.
        """
        now = self._clock.now().timestamp()
        told = told_memories(stimuli, self._ltm, now)
        news = _without_routine(stimuli)
        if stimuli and not news:
            return Draft(named, stimuli, told)
        context = self._context(self_model, news, named)
        said = self._thinking.thought(context)
        if said is None:
            self._counts.add("thoughts_refused")
            raise ProviderError(
                "the language model gave an empty answer: choose another in GHOST_LLM_MODEL", transient=True
            )
        sources = sources_of(said, context.sources)
        if not sources:
            return Draft(named, stimuli, told, ungrounded=True)
        if self._distinct.holds(said.content, now):
            return Draft(named, stimuli, told, repeats=True)
        decided, malformed = self._thinking.decision(said, context)
        if malformed:
            self._counts.add("decisions_malformed", malformed)
        thought = self._thought(said, sources, decided, now)
        stored, reason = self._memory(thought, decided, news, now)
        return Draft(
            named,
            stimuli,
            told,
            thought=thought,
            stored=stored,
            reason=reason,
            said=said,
            rationale=_rationale(context),
        )

    def without_thought(self, stimuli: Sequence[Stimulus], named: Named) -> Draft:
        """Remember stimuli for which the model gave no thought, whatever they say. Raises `StoreError`."""
        told = told_memories(stimuli, self._ltm, self._clock.now().timestamp(), all_of_them=True)
        return Draft(named, stimuli, told, dropped=True)

    def written(self, draft: Draft) -> None:
        """Update what is known of earlier cycles after the draft was written."""
        if draft.thought is not None:
            self._distinct.add(draft.thought)
        if _without_routine(draft.stimuli):
            self._quiet_memories = 0
        elif draft.stored is not None:
            self._quiet_memories += 1

    # --- steps ---

    def _context(self, self_model: SelfModel, stimuli: Sequence[Stimulus], named: Named) -> Context:
        thoughts = self._wm.view(THOUGHTS_IN_CONTEXT)[::-1]
        task = self._attention.peek() or named.most_important
        about = [stimulus.content for stimulus in stimuli] or [thought.content for thought in thoughts[:2]]
        if task is not None and not stimuli:
            about.append(task.title)
        hits = self._ltm.search(" ".join(about)[:ABOUT_CHARS], MEMORIES_IN_CONTEXT, counts_as_access=bool(stimuli))
        newest_first = sorted(stimuli, key=lambda stimulus: stimulus.ts, reverse=True)
        return Context(self_model, newest_first, thoughts, hits, task)

    def _thought(
        self, said: ParsedThought, sources: tuple[str, ...], decided: StoreDecision | None, now: float
    ) -> Thought:
        importance, uncertainty = _BY_TAG[said.tag]
        return Thought(
            id=self._store.new_ids("thought", now)[0],
            content=said.content,
            tags=(said.tag,),
            sources=sources,
            importance=decided.importance if decided and decided.should_store else importance,
            uncertainty=uncertainty,
            ts=now,
        )

    def _memory(
        self, thought: Thought, decided: StoreDecision | None, stimuli: Sequence[Stimulus], now: float
    ) -> tuple[Memory | None, str]:
        """Return the memory of the thought, with embedding, and the reason; None and the reason if it is not stored."""
        if decided is None:
            return None, MALFORMED
        reason = self._redact(decided.reason)
        if not decided.should_store:
            return None, reason
        if not stimuli and self._quiet_memories >= QUIET_MEMORIES:
            return None, "the storage limit without new input is reached"
        memory = self._ltm.prepare(
            Memory(
                id=self._store.new_ids("mem", now)[0],
                type=decided.type,
                content=thought.content,
                tags=decided.tags,
                importance=decided.importance,
                created_at=now,
                last_access=now,
                metadata=_provenance(thought, stimuli),
            )
        )
        if not stimuli:
            for known, similarity in self._ltm.vector_search(memory.embedding, _NEAREST):
                if self._ltm.closeness(similarity) >= DUPLICATE_CLOSENESS and is_duplicate(memory, known):
                    return None, f"{known.id} holds this already"
        return memory, reason


def _rationale(context: Context) -> str:
    about = context.stimuli[0].content if context.stimuli else context.task.title if context.task else ""
    return f"Written while considering: {about[:300]}" if about else "Written without new input"


def _without_routine(stimuli: Sequence[Stimulus]) -> list[Stimulus]:
    """Return the stimuli that a thought may be about: a success that a record holds is none."""
    return [stimulus for stimulus in stimuli if not is_routine(stimulus.source, stimulus.content)]


def _provenance(thought: Thought, stimuli: Sequence[Stimulus]) -> dict[str, object]:
    """Return the sources of a memory: the thought, its stimuli, and the audit records they cite."""
    audit_ids = [
        audit_id
        for stimulus in stimuli
        for audit_id in _listed(stimulus.metadata.get("audit_ids")) + _listed(stimulus.metadata.get("audit_id"))
    ]
    known: dict[str, object] = {"thought_id": thought.id, "rests_on": list(thought.sources)}
    if stimuli:
        known["stimuli"] = [stimulus.id for stimulus in stimuli]
    if audit_ids:
        known["audit_ids"] = list(dict.fromkeys(audit_ids))
    sessions = {session for each in stimuli if isinstance(session := each.metadata.get("session_id"), str)}
    if len(sessions) == 1:
        known["session_id"] = sessions.pop()
    return known


def _listed(value: object) -> list[str]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, str)]
