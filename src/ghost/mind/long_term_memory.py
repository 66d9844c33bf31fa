"""Long-term memory: writing, hybrid search, forgetting, re-embedding.

Search combines keywords and embeddings by reciprocal rank fusion: a memory scores the sum of 1 / (5 + rank) over the
lists that contain it (Cormack, Clarke and Buettcher, SIGIR 2009). The embedding rank counts only by the share of
similarity above chance: among thousands of memories some are always similar by chance and would outrank keyword
matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path

from ghost.errors import StoreError
from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.store import EVERYTHING, Changes, Filter, MemoryStore
from ghost.providers import EmbeddingsProvider
from ghost.records import Clock

RANK_CONSTANT = 5
"""Small, since few results are requested: the top of either list precedes the middle of both."""
_DEPTH = 50
"""Entries of each list that are fused, at least three times the requested number."""
CHANCE = 3.5
"""Cosines of unrelated texts scatter by 1 / sqrt(dim), and the nearest of some thousands lies so many times that off.
Learnt embeddings lie far beyond it."""
_EMBED_BATCH = 64
SUPERSEDED = "superseded_by"
"""In the metadata of a memory whose statement a newer one replaces: its id. Search puts such memories last."""


@dataclass(frozen=True)
class Hit:
    """A search result. `keyword_rank` and `vector_rank` start at 1 and are None if that list does not contain it."""

    memory: Memory
    score: float
    keyword_rank: int | None
    vector_rank: int | None
    similarity: float | None


class LongTermMemory:
    def __init__(self, store: MemoryStore, embeddings: EmbeddingsProvider, clock: Clock) -> None:
        self.store = store
        self.embeddings = embeddings
        self._clock = clock

    # --- writing ---

    def new_id(self, kind: str = "mem", at: float | None = None) -> str:
        """Return `mem:<ms>` of the epoch seconds `at`, or of now, with a suffix if it is in use."""
        return self.store.new_ids(kind, self._clock.now().timestamp() if at is None else at)[0]

    def prepare(self, memory: Memory) -> Memory:
        """Return the memory with its embedding, unwritten; unchanged if it has one of this space."""
        return self.prepare_all([memory])[0]

    def prepare_all(self, memories: Sequence[Memory]) -> list[Memory]:
        """Like `prepare` for several, with one provider call. Raises `ProviderError`."""
        name = self.embeddings.name
        bare = [memory for memory in memories if not memory.embedding or memory.embedding_model != name]
        vectors = self.embeddings.embed([memory.content for memory in bare]) if bare else []
        made = {
            memory.id: memory.model_copy(update={"embedding": tuple(vector), "embedding_model": name})
            for memory, vector in zip(bare, vectors, strict=True)
        }
        return [made.get(memory.id, memory) for memory in memories]

    def keep(self, memories: Sequence[Memory]) -> list[Memory]:
        """Embed and write memories in one transaction; return them as written. Raises `ProviderError`."""
        prepared = self.prepare_all(memories)
        self.store.apply(Changes(memories=prepared))
        return prepared

    def upsert_memory(self, memory: Memory) -> None:
        self.keep([memory])

    def forget(self, ids: Sequence[str]) -> int:
        """Remove memories from the store's files; return how many existed."""
        present = list(self.store.get(ids))
        self.store.apply(Changes(forgotten=present))
        return len(present)

    # --- reading ---

    def get_memory(self, name: str) -> Memory | None:
        return self.store.get([name]).get(name)

    def keyword_search(self, query: str, top_k: int, where: Filter = EVERYTHING) -> list[Memory]:
        ids = self.store.keyword_ids(query, top_k, where)
        found = self.store.get(ids)
        return [found[name] for name in ids if name in found]

    def vector_search(
        self, vector: Sequence[float], top_k: int, where: Filter = EVERYTHING
    ) -> list[tuple[Memory, float]]:
        """Return memories with cosine similarity, most similar first."""
        nearest = self.store.vector_ids(vector, top_k, where)
        found = self.store.get([name for name, _ in nearest])
        return [(found[name], similarity) for name, similarity in nearest if name in found]

    def search(
        self, query: str, top_k: int = 10, where: Filter = EVERYTHING, *, counts_as_access: bool = True
    ) -> list[Hit]:
        """Return the best of both lists; results count as accessed unless `touch` is off. Raises `ProviderError`,
        `StoreError`.
        """
        if top_k <= 0 or not query.strip():
            return []
        depth = max(_DEPTH, 3 * top_k)
        words = self.store.keyword_ids(query, depth, where)
        nearest = self.store.vector_ids(self.embeddings.embed([query])[0], depth, where)
        hits = self._fused(words, nearest, top_k)
        if hits and counts_as_access:
            with suppress(StoreError):  # a search does not fail because nobody can write down that it was made
                self.store.touch([hit.memory.id for hit in hits], self._clock.now().timestamp())
        return hits

    def _fused(self, words: Sequence[str], nearest: Sequence[tuple[str, float]], top_k: int) -> list[Hit]:
        word_ranks = {name: rank for rank, name in enumerate(words, start=1)}
        vector_ranks = {name: rank for rank, (name, _) in enumerate(nearest, start=1)}
        similarities = dict(nearest)
        by_chance = CHANCE / sqrt(self.embeddings.dim)
        scores = {name: 1 / (RANK_CONSTANT + rank) for name, rank in word_ranks.items()}
        for name, rank in vector_ranks.items():
            vote = _above_chance(by_chance, similarities[name]) / (RANK_CONSTANT + rank)
            scores[name] = scores.get(name, 0.0) + vote
        best = sorted(
            scores,
            key=lambda name: (-scores[name], word_ranks.get(name, inf), vector_ranks.get(name, inf)),
        )[: 2 * top_k]
        found = self.store.get(best)
        hits = [
            Hit(found[name], scores[name], word_ranks.get(name), vector_ranks.get(name), similarities.get(name))
            for name in best
            if name in found
        ]
        return sorted(hits, key=lambda hit: SUPERSEDED in hit.memory.metadata)[:top_k]

    def counts(self) -> dict[MemoryType, int]:
        return self.store.counts()

    # --- files ---

    def export_jsonl(self, path: Path) -> int:
        return self.store.export_jsonl(path)

    def import_jsonl(self, path: Path) -> int:
        return self.store.import_jsonl(path)

    # --- a change of space ---

    def embed_anew(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Embed memories without an embedding of this provider's space, oldest first, until `stop()`; return how
        many.

        Search works meanwhile: memories without embedding are found by keywords. Raises `ProviderError`; finished
        embeddings remain and the next call continues.
        """
        done = 0
        while not stop():
            memories = self.store.without_embedding(_EMBED_BATCH)
            if not memories:
                break
            vectors = self.embeddings.embed([memory.content for memory in memories])
            ids = [memory.id for memory in memories]
            of = {memory.id: memory.content for memory in memories}
            self.store.set_embeddings(dict(zip(ids, vectors, strict=True)), of)
            done += len(memories)
        return done


def _above_chance(by_chance: float, similarity: float) -> float:
    """Return the share of a similarity above chance, 0 to 1."""
    return 1 - by_chance / similarity if similarity > by_chance else 0.0
