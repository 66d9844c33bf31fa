"""Pages as semantic memories of low importance, with their address.

Reading a page again replaces its memory, which is found by a tag made from the address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol

from ghost.mind.data_model import Memory, MemoryType, Query, Stimulus
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.store import Filter
from ghost.mind.thought_parsing import Redact
from ghost.scraper import Document, ScrapePlan, ScrapeResult

DOCUMENT = "document"
"""The tag of every memory that a page left."""
IMPORTANCE = 0.2
TOLD_PAGES = 3
TOLD_CHARS = 600


class PageReader(Protocol):
    def execute(self, plan: ScrapePlan, *, stop: Callable[[], bool] = ...) -> ScrapeResult:
        """Read pages. Raises `ScrapeError`."""
        ...


def page_tag(url: str) -> str:
    return f"page:{sha256(url.encode()).hexdigest()[:16]}"


def as_memory(document: Document, question: str, memory: LongTermMemory, redact: Redact) -> Memory:
    """Return a page as a memory without embedding."""
    tag = page_tag(document.url)
    before = next(memory.store.memories(Filter(tags=frozenset({tag})), with_embeddings=False), None)
    title = redact(document.title).strip()
    return Memory(
        id=before.id if before else memory.new_id("doc"),
        type=MemoryType.SEMANTIC,
        content="\n".join(part for part in (title, redact(document.text)) if part),
        tags=(DOCUMENT, tag),
        importance=IMPORTANCE,
        created_at=before.created_at if before else document.fetched_at,
        last_access=document.fetched_at,
        metadata={
            "url": document.url,
            "final_url": document.final_url,
            "title": title,
            "question": redact(question),
            "fetched_at": document.fetched_at,
            "sha256": document.sha256,
            "truncated": document.truncated,
        },
    )


def as_stimuli(documents: Sequence[Document], query: Query) -> list[Stimulus]:
    """Return the first pages read for a question as stimuli for the next cycle."""
    return [
        Stimulus(
            id=f"read:{query.id}:{number}",
            source="scraper",
            content=f"Read for {query.id}, {page.title} ({page.url}): {page.text[:TOLD_CHARS]}",
            metadata={"query_id": query.id, "url": page.url},
            ts=page.fetched_at,
        )
        for number, page in enumerate(documents[:TOLD_PAGES], 1)
    ]
