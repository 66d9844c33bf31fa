"""Where the mind keeps what it holds: one protocol, implemented on SQLite and on PostgreSQL.

A store is safe to use from several threads, and several processes may have the same one open. Everything that is
acknowledged survives a `kill -9`. A store compares only vectors of the one space it was opened with; memories of
another space are found by keyword until they are embedded anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ghost.mind.data_model import Memory, MemoryType, Query, Task, Thought


@dataclass(frozen=True)
class Filter:
    """Which memories are meant: of one of these types, with all of these tags, created in `[since, until)`."""

    types: frozenset[MemoryType] = frozenset()
    tags: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None


EVERYTHING = Filter()

OPEN_QUERY = b'"status":"open"'
"""In the JSON of every open question, where stores keep them so: answered ones are many, and need not be read whole."""


@dataclass(frozen=True)
class Changes:
    """What one cycle, or one request, changes. Each replaces what has its id; all or nothing is written."""

    thoughts: Sequence[Thought] = ()
    memories: Sequence[Memory] = ()
    tasks: Sequence[Task] = ()
    queries: Sequence[Query] = ()
    preferences: Mapping[str, Any] = field(default_factory=dict)
    """JSON values by name: whether a person is there, the self-model, when memory was last consolidated, and each
    stimulus that waits. None takes a name away: its row too, for such names come and go by the thousand."""
    forgotten: Sequence[str] = ()
    """Ids of memories that go: content, keywords and vector, from the file as well as from search."""
    dropped_thoughts: Sequence[str] = ()


class MemoryStore(Protocol):
    # --- writing ---
    def apply(self, changes: Changes) -> None:
        """In one transaction, durable when it returns. Raises `StoreError` and changes nothing where it cannot."""
        ...

    def touch(self, ids: Sequence[str], at: float) -> None:
        """Sets `last_access`."""
        ...

    # --- memories ---
    def get(self, ids: Sequence[str]) -> dict[str, Memory]: ...

    def memories(self, where: Filter = EVERYTHING, *, with_embeddings: bool = True) -> Iterator[Memory]:
        """Oldest first."""
        ...

    def counts(self) -> dict[MemoryType, int]: ...

    def keyword_ids(self, query: str, limit: int, where: Filter = EVERYTHING) -> list[str]:
        """Best first by BM25 or its like. Any text is a query; one without a usable word finds nothing."""
        ...

    def vector_ids(self, vector: Sequence[float], limit: int, where: Filter = EVERYTHING) -> list[tuple[str, float]]:
        """Ids with their cosine similarity, most similar first."""
        ...

    def without_embedding(self, limit: int) -> list[Memory]:
        """Memories whose embedding is missing or of another space, oldest first."""
        ...

    def set_embeddings(self, vectors: Mapping[str, Sequence[float]], of: Mapping[str, str] | None = None) -> None:
        """Embeddings of this store's space; ids that are gone are passed over.

        `of`: the content that each was made of; a memory whose content is another by now is passed over too.
        """
        ...

    def new_ids(self, kind: str, at: float, count: int = 1) -> list[str]:
        """`kind:<ms>` of the epoch seconds `at`, with `_2`, `_3`, ... where it was given out or is held already.

        No other caller, of any process, gets the same ones.
        """
        ...

    # --- the rest of the mind ---
    def thoughts(self, limit: int) -> list[Thought]:
        """The newest, oldest of them first."""
        ...

    def tasks(self) -> list[Task]: ...

    def queries(self, *, open_only: bool = False) -> list[Query]: ...

    def preferences(self) -> dict[str, Any]: ...

    # --- files ---
    def export_jsonl(self, path: Path) -> int:
        """One memory a line, oldest first; the file appears whole or not at all. Returns how many."""
        ...

    def import_jsonl(self, path: Path) -> int:
        """Upserts by id, all or nothing; an export of the result equals the file. Raises `StoreError` with the line."""
        ...

    def close(self) -> None: ...
