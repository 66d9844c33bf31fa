"""The engine: one cycle turns stimuli and memories into a thought and its consequences.

A cycle is one transaction: thought, memory, tasks, question and consumed stimuli are written together and only then
visible. Cycles run one at a time; no other lock is held during model calls. Model output is stored as text and never
executed. Its only external effect: while no user is available, pages named in a question are read if the allowlist
permits them.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ghost.config import Settings
from ghost.errors import GhostError, ProviderError, ScrapeError, StoreError
from ghost.mind.admission import admitted, encodable
from ghost.mind.agenda import Agenda
from ghost.mind.agenda import Draft as AgendaDraft
from ghost.mind.attention import Attention, Weights
from ghost.mind.consolidation import Consolidation, Report
from ghost.mind.counters import Counts
from ghost.mind.cycle_draft import MALFORMED, Draft, Drafting
from ghost.mind.data_model import Memory, Query, SelfModel, Stimulus, Task, Thought
from ghost.mind.event_bus import Event, Events, Kind, Listener
from ghost.mind.inbox import Inbox, consumed
from ghost.mind.interrupts import Interrupts, asked
from ghost.mind.long_term_memory import SUPERSEDED, LongTermMemory
from ghost.mind.model_calls import Thinking
from ghost.mind.page_memories import PageReader, as_memory, as_stimuli
from ghost.mind.prompts import default_self
from ghost.mind.sources import DueConsolidation, TaskSource, UnansweredInterrupts
from ghost.mind.store import Changes, MemoryStore
from ghost.mind.thought_parsing import Redact
from ghost.mind.working_memory import WorkingMemory
from ghost.providers import EmbeddingsProvider, LLMProvider
from ghost.records import Clock
from ghost.scraper import ScrapePlan, ScrapeResult, plan_from, seeds_in

_log = logging.getLogger(__name__)

STIMULI_IN_A_CYCLE = 16
"""Maximum stimuli per cycle, oldest first; the others wait for the next cycle."""
MAX_TRIES = 3
"""Maximum cycles in which a stimulus waits for a thought of a failing model; then it is remembered without one."""
APART_SECONDS = 1e-6
"""Between stimuli of one list with equal times, so that their order is that of their times."""
MAX_OPEN_QUESTIONS = 20
"""Maximum open questions; further ones are stored only as thoughts."""

_SHOWN = {"id", "type", "content", "tags", "importance"}
"""Fields of a memory in the event that it was stored."""


class Abandoned(GhostError):  # noqa: N818  an outcome, not a fault
    """The caller cancelled the cycle before it was written; nothing was written."""


@dataclass(frozen=True)
class CycleResult:
    """`thought` is None if there was nothing new; `interrupts` are the questions opened by this cycle."""

    thought: Thought | None
    stored: Memory | None
    next_task: Task | None
    interrupts: tuple[Query, ...]
    stimuli: int = 0
    """Number of stimuli consumed."""
    seconds: float = 0.0

    @property
    def is_idle(self) -> bool:
        return self.stimuli == 0 and self.thought is None


class Engine:
    """The engine of one store. `redact` removes secrets and control characters from text. Thread-safe.

    `sources`: other sources of tasks. `scraper`: reads pages; None disables that.
    """

    def __init__(
        self,
        store: MemoryStore,
        llm: LLMProvider,
        embeddings: EmbeddingsProvider,
        clock: Clock,
        redact: Redact,
        settings: Settings,
        sources: Sequence[TaskSource] = (),
        scraper: PageReader | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self._redact = redact = encodable(redact)
        self._scraper = scraper
        self._events = Events()
        self._counts = Counts()
        self._turn = threading.Lock()
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self.wm = WorkingMemory(
            settings.wm_max_thoughts, settings.wm_max_chars, settings.wm_max_tokens, settings.wm_half_life_seconds
        )
        self.ltm = LongTermMemory(store, embeddings, clock)
        self.interrupts = Interrupts(
            store, clock, settings.interrupt_expiry_seconds, redact=redact, announce=self._announce
        )
        self.attention = Attention(Weights.of(settings), clock)
        self.consolidation = Consolidation(self.ltm, llm, clock, redact)
        self._inbox = Inbox(store)
        preferences = store.preferences()
        self._user_available = preferences.get("user_available") is not False
        self.self_model = _self_model(preferences.get("self_model"))
        self._agenda = Agenda(
            self.attention,
            [UnansweredInterrupts(self.interrupts), DueConsolidation(self.consolidation.due_since), *sources],
            embeddings,
            self.self_model.long_term_goals,
            redact,
        )
        self.wm.restore(store.thoughts(settings.wm_max_thoughts))
        self._agenda.restore(store.tasks())
        self._drafting = Drafting(Thinking(llm, redact), self.ltm, self.wm, self.attention, self._counts, clock, redact)
        self._tries: Counter[str] = Counter()
        """Failed cycles by stimulus."""
        self._refused: set[str] = set()
        """Stimuli of requests that the model refused: they are processed last and one at a time."""
        self._next_task_id = ""

    # --- what a person, or the server, asks ---

    @property
    def user_available(self) -> bool:
        return self._user_available

    def set_user_available(self, available: bool) -> None:
        """Set the user's availability, persistently. Raises `StoreError`."""
        self.store.apply(Changes(preferences={"user_available": bool(available)}))
        self._user_available = bool(available)

    def ingest(self, stimuli: Sequence[Stimulus]) -> None:
        """Store stimuli for the next cycle, durable on return; at most `inbox.MAX_WAITING` wait.

        Raises `InboxFull` and `StoreError`; then none was stored.
        """
        if not stimuli:
            return
        admitted_stimuli = [self._with_id(admitted(stimulus, self._redact), stimulus.id) for stimulus in stimuli]
        admitted_stimuli = list(_in_order(admitted_stimuli))
        self._inbox.put(admitted_stimuli)
        self._counts.add("stimuli_ingested", len(admitted_stimuli))
        for stimulus in admitted_stimuli:
            self._tell(Kind.STIMULUS, id=stimulus.id, source=stimulus.source, content=stimulus.content)

    @property
    def waiting(self) -> int:
        """Return stimuli not yet processed by a cycle."""
        return len(self._inbox)

    @property
    def blocking(self) -> list[Query]:
        """Return the open questions asked by the mind itself."""
        return [query for query in self.interrupts.list_open() if "thought_id" in query.metadata]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, on its own thread; call the returned function to stop."""
        return self._events.subscribe(listener)

    def observe(self) -> dict[str, float]:
        """Return the counters since the start (`counts.NAMES`) and current sizes."""
        sizes = {"stimuli_waiting": len(self._inbox), "thoughts_held": len(self.wm), "tasks_held": len(self.attention)}
        return self._counts.numbers() | sizes

    def take_next_task(self) -> Task | None:
        """Take the next task and mark it `doing`, in the store too. Raises `StoreError`."""
        with self._writing:
            best = self.attention.peek()
            if best is None:
                return None
            fit = self.attention.goal_fit(best.id)
            taken = self.attention.next_task()
            try:
                self.store.apply(Changes(tasks=[taken] if taken else []))
            except StoreError:
                self.attention.add_or_update(best, fit)
                raise
            return taken

    # --- cycles ---

    def cycle(self, stimuli: Sequence[Stimulus] = (), *, abandoned: Callable[[], bool] = lambda: False) -> CycleResult:
        """Think once about these and the waiting stimuli, and write the results in one transaction.

        Raises `ProviderError`, `StoreError`, and `Abandoned` if `abandoned()` is true before the write; then nothing
        was written and waiting stimuli still wait.
        """
        with self._turn:
            started = self.clock.monotonic()
            try:
                draft = self._draft([admitted(stimulus, self._redact) for stimulus in stimuli])
                result = self._write(draft, abandoned)
            except (ProviderError, StoreError) as error:
                self._failed(error)
                raise
            result = replace(result, stimuli=len(draft.stimuli), seconds=self.clock.monotonic() - started)
            self._counts.add("cycles")
            self._counts.cycle_took(result.seconds)
        for query in result.interrupts:
            self._escalate(query, abandoned)
        return result

    def tend(self) -> None:
        """Do a cycle's other work: expire questions, query the sources, and load stimuli stored by other processes.
        Raises `StoreError`.
        """
        self._inbox.waiting()
        named = self._agenda.ask(self._now())
        with self._writing, self.interrupts.lock:
            now = self._now()
            expired = self.interrupts.overdue(now)
            agenda = self._agenda.draft(named, now)
            if expired or agenda.tasks:
                self.store.apply(Changes(queries=expired, tasks=agenda.tasks))
            self._took(agenda, expired)

    def scrape(self, plan: ScrapePlan, *, stop: Callable[[], bool] = lambda: False) -> ScrapeResult:
        """Read pages and store each as a semantic memory. Raises `ScrapeError`, `ProviderError`, `StoreError`."""
        if self._scraper is None:
            raise ScrapeError("page reading is not available: install the extra `mind`")
        try:
            result = self._scraper.execute(plan, stop=lambda: stop() or self._closed.is_set())
            memories = [as_memory(page, plan.question, self.ltm, self._redact) for page in result.documents]
            memories = self.ltm.prepare_all(memories)
            if memories:
                self.store.apply(Changes(memories=memories))
        except GhostError as error:
            self._counts.add("scrape_failures")
            self._tell(Kind.ERROR, where="scrape", message=self._redact(str(error)))
            raise
        self._counts.add("scrapes")
        self._counts.add("scrape_documents", len(memories))
        self._counts.add("scrape_refusals", len(result.refusals))
        pages = [{"id": memory.id, "url": memory.metadata["url"]} for memory in memories]
        refusals = [{"url": each.url, "reason": each.reason} for each in result.refusals]
        self._tell(Kind.SCRAPE, question=self._redact(plan.question), documents=pages, refusals=refusals)
        return result

    def consolidate(self, *, stop: Callable[[], bool] = lambda: False) -> Report:
        """Consolidate a bounded part of memory. Raises `ProviderError` and `StoreError`."""
        try:
            report = self.consolidation.run(lambda: stop() or self._closed.is_set())
        except GhostError as error:
            self._tell(Kind.ERROR, where="consolidation", message=self._redact(str(error)))
            raise
        self._counts.add("consolidations")
        self._counts.add("summaries_made", report.summaries)
        self._counts.add("memories_merged", report.merged)
        return report

    def close(self) -> None:
        """Stop page reading and event threads; a running cycle writes nothing more. The caller closes the store."""
        self._closed.set()
        self._events.close()

    # --- the steps of a cycle, in order ---

    def _draft(self, given: Sequence[Stimulus]) -> Draft:
        waiting = self._inbox.waiting()
        fresh = [stimulus for stimulus in waiting if stimulus.id not in self._refused]
        free_slots = max(STIMULI_IN_A_CYCLE - len(given), 0)
        taken = fresh[:free_slots]
        if not taken and not given:
            taken = sorted(waiting, key=lambda stimulus: self._tries[stimulus.id])[:1]
        stimuli, named = [*given, *taken], self._agenda.ask(self._now())
        try:
            return self._drafting.draft(self.self_model, stimuli, named)
        except ProviderError as error:
            if not error.transient:
                self._refused.update(stimulus.id for stimulus in taken)
            self._tries.update({stimulus.id for stimulus in stimuli})
            tried = [stimulus for stimulus in stimuli if self._tries[stimulus.id] >= MAX_TRIES]
            if not tried:
                raise
            return self._drafting.without_thought(tried, named)

    def _with_id(self, stimulus: Stimulus, given_id: str) -> Stimulus:
        """Return the stimulus with a new id if its own was empty or contained a secret."""
        if stimulus.id.strip() and stimulus.id == given_id:
            return stimulus
        return stimulus.model_copy(update={"id": self.store.new_ids("stim", self._now())[0]})

    def _write(self, draft: Draft, abandoned: Callable[[], bool]) -> CycleResult:
        """Write the draft in one transaction, then update the state in memory."""
        with self._writing, self.interrupts.lock:
            now = self._now()
            agenda = self._agenda.draft(draft.named, now)
            expired = self.interrupts.overdue(now)
            query = self._query(draft)
            changes = Changes(
                thoughts=[draft.thought] if draft.thought else [],
                memories=[*draft.told, *([draft.stored] if draft.stored else [])],
                tasks=agenda.tasks,
                queries=[*expired, *([query] if query else [])],
                preferences=consumed(draft.stimuli),
                dropped_thoughts=[old.id for old in self.wm.pushed_out_by(draft.thought)] if draft.thought else [],
            )
            if abandoned() or self._closed.is_set():
                raise Abandoned("the cycle was abandoned: nothing was written")
            if draft.thought or draft.stimuli or changes.tasks or changes.queries:
                self.store.apply(changes)
            self._thought(draft)
            if query is not None:
                self._announce(asked(query))
            self._took(agenda, expired)
        return CycleResult(draft.thought, draft.stored, self.attention.peek(), (query,) if query else ())

    def _query(self, draft: Draft) -> Query | None:
        """Return the interrupt for a question; None if it is open, was answered, or too many are open."""
        if draft.thought is None or draft.said is None or draft.said.tag != "question":
            return None
        question = draft.said.content.removeprefix("#question").strip()
        if (
            len(self.interrupts.list_open()) >= MAX_OPEN_QUESTIONS
            or self.interrupts.answered_before(question) is not None
        ):
            return None
        query, is_new = self.interrupts.drafted(
            question, draft.rationale, draft.said.required_fields, thought_id=draft.thought.id
        )
        return query if is_new else None

    def _thought(self, draft: Draft) -> None:
        """Publish a written thought; cannot fail."""
        self._drafting.written(draft)
        self._inbox.forget(stimulus.id for stimulus in draft.stimuli)
        for memory in draft.told:
            if SUPERSEDED not in memory.metadata:
                self._tell(
                    Kind.STORED, **memory.model_dump(mode="json", include=_SHOWN), thought_id="", reason="as told"
                )
        for stimulus in draft.stimuli:
            self._tries.pop(stimulus.id, None)
            self._refused.discard(stimulus.id)
        self._counts.add("stimuli_consumed", len(draft.stimuli))
        if draft.dropped:
            self._counts.add("stimuli_dropped", len(draft.stimuli))
            ids = [stimulus.id for stimulus in draft.stimuli]
            message = "the model gave no usable thought: stimuli were remembered without one"
            self._tell(Kind.ERROR, where="thought", message=message, ids=ids)
        if draft.repeats:
            self._counts.add("thoughts_repeated")
        if draft.ungrounded:
            self._counts.add("thoughts_ungrounded")
        if draft.thought is not None:
            self.wm.add(draft.thought)
            self._counts.add("thoughts")
            self._tell(Kind.THOUGHT, **draft.thought.model_dump(mode="json"))
            self._tell_whether_stored(draft, draft.thought)

    def _tell_whether_stored(self, draft: Draft, thought: Thought) -> None:
        self._counts.add("memories_stored" if draft.stored else "memories_refused")
        if draft.stored is not None:
            memory = draft.stored.model_dump(mode="json", include=_SHOWN)
            self._tell(Kind.STORED, **memory, thought_id=thought.id, reason=draft.reason)
        elif draft.reason == MALFORMED:
            self._tell(Kind.ERROR, where="store decision", message=MALFORMED, thought_id=thought.id)

    def _took(self, agenda: AgendaDraft, expired: Sequence[Query]) -> None:
        self._counts.add("interrupts_expired", len(expired))
        self._agenda.take(agenda)
        for failure in agenda.named.failures:
            self._counts.add("source_failures")
            self._tell(Kind.ERROR, where="task source", message=self._redact(failure))
        best = self.attention.peek()
        if best is not None and best.id != self._next_task_id:
            self._tell(Kind.TASK, id=best.id, title=best.title)
        self._next_task_id = best.id if best else ""

    def _escalate(self, query: Query, stop: Callable[[], bool]) -> None:
        """Read the allowed pages that the question names, without an available user, and ingest them for the next
        cycle.
        """
        seeds = seeds_in(query.question, self.settings) if self._scraper and not self._user_available else []
        if not seeds or stop():
            return
        try:
            result = self.scrape(plan_from(self.settings, query.question, seeds), stop=stop)
            if result.documents:
                self.ingest(as_stimuli(result.documents, query))
        except GhostError as error:
            _log.warning("the pages of %s were not read: %s", query.id, error)

    # --- telling ---

    def _failed(self, error: ProviderError | StoreError) -> None:
        self._counts.add("cycle_failures")
        self._counts.add("provider_errors" if isinstance(error, ProviderError) else "store_errors")
        self._tell(Kind.ERROR, where="cycle", message=self._redact(str(error)))

    def _announce(self, event: Event) -> None:
        counted = {Kind.INTERRUPT: "interrupts_created", Kind.ANSWER: "interrupts_answered"}.get(event.kind)
        if counted:
            self._counts.add(counted)
        self._events.publish(event)

    def _tell(self, kind: Kind, **data: object) -> None:
        self._events.publish(Event(kind, self._now(), data))

    def _now(self) -> float:
        return self.clock.now().timestamp()


def _in_order(stimuli: Sequence[Stimulus]) -> Iterator[Stimulus]:
    """Yield the stimuli of a list, each with equal times later than the one before."""
    last: dict[float, float] = {}
    for stimulus in stimuli:
        at = last[stimulus.ts] + APART_SECONDS if stimulus.ts in last else stimulus.ts
        last[stimulus.ts] = at
        yield stimulus if at == stimulus.ts else stimulus.model_copy(update={"ts": at})


def _self_model(kept: object) -> SelfModel:
    try:
        return SelfModel.model_validate(kept) if kept is not None else default_self()
    except ValueError:
        return default_self()
