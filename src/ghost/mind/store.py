"""The store protocol, implemented on SQLite and on PostgreSQL.

A store is thread-safe and may be open in several processes. Acknowledged writes survive a `kill -9`. It compares only
vectors of the space it was opened with; other memories are found by keyword until re-embedded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ghost.mind.data_model import Memory, MemoryType, Query, Task, Thought


@dataclass(frozen=True)
class Filter:
    """A filter: any of these types, all of these tags, created in `[since, until)`."""

    types: frozenset[MemoryType] = frozenset()
    tags: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None


EVERYTHING = Filter()


@dataclass(frozen=True)
class HeldWord:
    """A word of a query."""

    term: str
    count: int
    """Number of memories that hold it; 0 if none does."""
    rarity: float
    """BM25's idf: the more, the fewer hold it."""
    holders: frozenset[str]
    """Ids of those asked about whose text holds it; a tag is no text."""


OPEN_QUERY = b'"status":"open"'
"""In the JSON of every open question, where stores keep them so: answered ones are many, and need not be read whole."""


@dataclass(frozen=True)
class Changes:
    """The changes of one cycle or request, written atomically. Each record replaces the one with its id."""

    thoughts: Sequence[Thought] = ()
    memories: Sequence[Memory] = ()
    tasks: Sequence[Task] = ()
    queries: Sequence[Query] = ()
    preferences: Mapping[str, Any] = field(default_factory=dict)
    """JSON values by name: whether a person is there, the self-model, when memory was last consolidated, and each
    stimulus that waits. None takes a name away: its row too, for such names come and go by the thousand."""
    forgotten: Sequence[str] = ()
    """Ids of memories to delete: content, keywords and vector, from file and search."""
    dropped_thoughts: Sequence[str] = ()


class MemoryStore(Protocol):
    # --- writing ---
    def apply(self, changes: Changes) -> None:
        """Write the changes in one transaction, durable on return. Raises `StoreError` and changes nothing on
        failure.
        """
        ...

    def touch(self, ids: Sequence[str], at: float) -> None:
        """Set `last_access`."""
        ...

    # --- memories ---
    def get(self, ids: Sequence[str]) -> dict[str, Memory]: ...

    def memories(self, where: Filter = EVERYTHING, *, with_embeddings: bool = True) -> Iterator[Memory]:
        """Yield memories, oldest first."""
        ...

    def counts(self) -> dict[MemoryType, int]: ...

    def keyword_ids(self, query: str, limit: int, where: Filter = EVERYTHING) -> list[str]:
        """Return ids by keyword relevance, best first. Any text is a query; without a usable word, no results."""
        ...

    def rarer_words(self, query: str, ids: Sequence[str]) -> list[HeldWord]:
        """Return the words of the query that fewer than `keywords.COMMON` memories hold."""
        ...

    def vector_ids(self, vector: Sequence[float], limit: int, where: Filter = EVERYTHING) -> list[tuple[str, float]]:
        """Return ids with cosine similarity, most similar first."""
        ...

    def without_embedding(self, limit: int) -> list[Memory]:
        """Return memories without an embedding of this space, oldest first."""
        ...

    def set_embeddings(self, vectors: Mapping[str, Sequence[float]], of: Mapping[str, str] | None = None) -> None:
        """Set embeddings of this store's space; deleted ids are skipped.

        `of`: the content of each embedding; memories with other content are skipped too.
        """
        ...

    def new_ids(self, kind: str, at: float, count: int = 1) -> list[str]:
        """Return ids `kind:<ms>` of the epoch seconds `at`, with `_2`, `_3`, ... if already issued or stored.

        No other caller, of any process, gets the same ones.
        """
        ...

    # --- the rest of the mind ---
    def thoughts(self, limit: int) -> list[Thought]:
        """Return the newest thoughts, oldest of them first."""
        ...

    def tasks(self) -> list[Task]: ...

    def queries(self, *, open_only: bool = False) -> list[Query]: ...

    def preferences(self) -> dict[str, Any]: ...

    # --- files ---
    def export_jsonl(self, path: Path) -> int:
        """Write one memory per line, oldest first, atomically. Returns their number."""
        ...

    def import_jsonl(self, path: Path) -> int:
        """Upsert by id, all or none; an export of the result equals the file. Raises `StoreError` with the line."""
        ...

    def close(self) -> None: ...
