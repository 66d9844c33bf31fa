"""Questions to a person: open until answered, withdrawn or expired, never asked twice while open.

No state in memory: the store holds the open questions, so they survive a restart and may be answered through another
process. An answer and its stimulus for the next cycle are one transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ghost.errors import UsageError
from ghost.mind.answer_fields import fields_of, fitted, type_of
from ghost.mind.data_model import Query, QueryStatus, Stimulus
from ghost.mind.event_bus import Event, Kind
from ghost.mind.inbox import kept
from ghost.mind.questions import is_same_question
from ghost.mind.store import Changes, MemoryStore
from ghost.mind.thought_parsing import Redact
from ghost.records import Clock

LONGEST_QUESTION = 2000
LONGEST_ANSWER = 8000


class MissingFields(UsageError):  # noqa: N818  a refusal, not a fault
    """An answer lacks required fields, or has values that do not fit; `fields` are the names of all of them."""

    def __init__(self, query: Query, lacking: Sequence[str], unfit: Sequence[str] = ()) -> None:
        self.fields = (*lacking, *unfit)
        template = "; ".join(f"{name}: ..." for name in query.required_fields)
        wanted = [f"{name} is to be {type_of(name).wanted}" for name in unfit]
        lacks = [f"the answer to {query.id} lacks {', '.join(lacking)}"] if lacking else []
        form = (
            f": write '{template}', a line for each, or a JSON object"
            if lacking or len(query.required_fields) > 1
            else ""
        )
        super().__init__("; ".join([*lacks, *wanted]) + form)


class Interrupts:
    """The questions of one store. `announce` is called with each answer after it was written. Thread-safe."""

    def __init__(
        self,
        store: MemoryStore,
        clock: Clock,
        expiry_seconds: float,
        *,
        redact: Redact = str,
        announce: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._redact = redact
        self._announce = announce
        self.lock = threading.RLock()
        """Held from reading the open questions until a change is written."""

    def create(self, question: str, rationale: str = "", required_fields: Sequence[str] = ()) -> str:
        """Return the id of a new question, or of the open one that asks the same. Raises `UsageError`, `StoreError`."""
        with self.lock:
            query, is_new = self.drafted(question, rationale, required_fields)
            if is_new:
                self._store.apply(Changes(queries=[query]))
        if is_new:
            self._announce(asked(query))
        return query.id

    def drafted(
        self, question: str, rationale: str = "", required_fields: Sequence[str] = (), **metadata: Any
    ) -> tuple[Query, bool]:
        """Return the open query that asks the same, or a new unwritten one, and whether it is new."""
        text = self._redact(question).strip()
        fields = tuple(dict.fromkeys(name.strip() for name in required_fields))
        if not text or not all(fields):
            raise UsageError("a question and its required fields need words: send the question, and names or none")
        text = text[:LONGEST_QUESTION]
        for query in self.list_open():
            if is_same_question(query.question, text):
                return query, False
        now = self._now()
        query = Query(
            id=self._store.new_ids("q", now, 1)[0],
            question=text,
            rationale=self._redact(rationale)[:LONGEST_QUESTION],
            required_fields=fields,
            created_ts=now,
            expires_ts=now + self._expiry_seconds,
            metadata=metadata,
        )
        return query, True

    def list_open(self) -> list[Query]:
        """Return open, unexpired questions, oldest first."""
        now = self._now()
        waiting = [query for query in self._store.queries(open_only=True) if query.expires_ts > now]
        return sorted(waiting, key=lambda query: (query.created_ts, query.id))

    def get(self, query_id: str) -> Query | None:
        return next((query for query in self._store.queries() if query.id == query_id), None)

    def answered_before(self, question: str) -> Query | None:
        """Return the newest answer to the same question within the lifetime of a question."""
        since = self._now() - self._expiry_seconds
        found = [
            query
            for query in self._store.queries()
            if query.status is QueryStatus.ANSWERED
            and (query.answered_ts or 0.0) >= since
            and is_same_question(query.question, question)
        ]
        return max(found, key=lambda query: query.answered_ts or 0.0, default=None)

    def answer(self, query_id: str, text: str) -> bool:
        """Answer a question and return whether it was open; the answer reaches the next cycle as a stimulus.

        Raises `MissingFields` for absent or unfit values, `UsageError` for an empty or too long answer, and
        `StoreError`. The question stays open then.
        """
        if len(text) > LONGEST_ANSWER:
            raise UsageError(f"the answer has {len(text)} characters, the maximum is {LONGEST_ANSWER}: shorten it")
        with self.lock:
            query = next((query for query in self.list_open() if query.id == query_id), None)
            if query is None:
                return False
            self._check(query, text)
            now = self._now()
            answer = self._redact(text).strip()
            fields, _ = fitted(fields_of(answer, query.required_fields))  # a value alone may hide what its name tells
            answered = query.model_copy(
                update={
                    "status": QueryStatus.ANSWERED,
                    "answer": answer,
                    "answered_ts": now,
                    "metadata": query.metadata | ({"fields": fields} if fields else {}),
                }
            )
            self._store.apply(Changes(queries=[answered], preferences=kept([as_stimulus(answered)])))
        self._announce(Event(Kind.ANSWER, now, {"id": query.id, "question": query.question, "answer": answer}))
        return True

    def withdraw(self, query_id: str, why: str) -> bool:
        """Close a question that needs no answer any more, and return whether nobody has answered it.

        Raises `StoreError`.
        """
        with self.lock:
            query = self.get(query_id)
            if query is None or query.status in (QueryStatus.ANSWERED, QueryStatus.WITHDRAWN):
                return query is not None and query.status is QueryStatus.WITHDRAWN
            now, reason = self._now(), self._redact(why)[:LONGEST_ANSWER]
            withdrawn = {"status": QueryStatus.WITHDRAWN, "answer": reason, "answered_ts": now}
            self._store.apply(Changes(queries=[query.model_copy(update=withdrawn)]))
        self._announce(Event(Kind.ANSWER, now, {"id": query.id, "question": query.question, "answer": reason}))
        return True

    def expire(self, now: float | None = None) -> list[Query]:
        """Close expired questions and return them."""
        with self.lock:
            over = self.overdue(self._now() if now is None else now)
            if over:
                self._store.apply(Changes(queries=over))
            return over

    def overdue(self, now: float) -> list[Query]:
        """Return expired questions as they would be written, while the caller holds `lock`."""
        return [
            query.model_copy(update={"status": QueryStatus.EXPIRED})
            for query in self._store.queries(open_only=True)
            if query.expires_ts <= now
        ]

    def _check(self, query: Query, text: str) -> None:
        if not text.strip():
            raise UsageError(f"the answer to {query.id} is empty: write an answer, or let the question expire")
        values = fields_of(text, query.required_fields)
        missing = [name for name in query.required_fields if name not in values]
        _, unfit = fitted(values)
        if missing or unfit:
            raise MissingFields(query, missing, unfit)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def as_stimulus(query: Query) -> Stimulus:
    """Return an answered query as a stimulus for the next cycle."""
    return Stimulus(
        id=f"answer:{query.id}",
        source="answer",
        content=f"Asked: {query.question} Answered: {query.answer}",
        metadata={"query_id": query.id, "question": query.question, "fields": query.metadata.get("fields", {})},
        ts=query.answered_ts or query.created_ts,
    )


def asked(query: Query) -> Event:
    data = {"id": query.id, "question": query.question, "required_fields": list(query.required_fields)}
    return Event(Kind.INTERRUPT, query.created_ts, data)
