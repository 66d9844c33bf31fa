"""Records of the mind. Times are epoch seconds. Ids are `thought:<ms>`, `mem:<ms>`, `doc:<ms>`, `q:<ms>`.

All are frozen: a change is a new record with the same id, written by the store.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Tags = tuple[str, ...]


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MemoryType(StrEnum):
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class TaskStatus(StrEnum):
    OPEN = "open"
    DOING = "doing"
    DONE = "done"
    BLOCKED = "blocked"


class QueryStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Stimulus(_Kept):
    """An input of the mind: typed, posted, or a record of an investigation."""

    id: str
    source: str
    content: str
    metadata: dict[str, Any] = {}
    ts: float


class Thought(_Kept):
    """At most 60 words, beginning with a tag: `#plan`, `#question` or `#insight`."""

    id: str
    content: str
    tags: Tags = ()
    sources: Tags = ()
    """Ids of the stimuli, memories and the task that it rests on."""
    importance: Unit = 0.5
    uncertainty: Unit = 0.5
    ts: float


class Memory(_Kept):
    id: str
    type: MemoryType
    content: str
    tags: Tags = ()
    embedding: tuple[float, ...] = ()
    """Empty until embedded."""
    embedding_model: str = ""
    """The `EmbeddingsProvider.name` that made the embedding."""
    importance: Unit = 0.5
    created_at: float
    last_access: float
    metadata: dict[str, Any] = {}
    """`audit_ids`, `session_id`, `url`, `sources` (ids of the memories that a summary was made of), ..."""


class Task(_Kept):
    id: str
    title: str
    goal: str = ""
    context: str = ""
    deadline_ts: float | None = None
    importance: Unit = 0.5
    uncertainty: Unit = 0.5
    status: TaskStatus = TaskStatus.OPEN
    created_ts: float
    last_update_ts: float
    metadata: dict[str, Any] = {}


class Query(_Kept):
    """An interrupt: a question to a person."""

    id: str
    question: str
    rationale: str = ""
    required_fields: tuple[str, ...] = ()
    status: QueryStatus = QueryStatus.OPEN
    created_ts: float
    expires_ts: float
    answer: str | None = None
    """Of a withdrawn question: why it was withdrawn."""
    answered_ts: float | None = None
    metadata: dict[str, Any] = {}


class SelfModel(_Kept):
    id: str
    name: str
    principles: tuple[str, ...] = ()
    long_term_goals: tuple[str, ...] = ()
    preferences: dict[str, Any] = {}
    last_review_ts: float
