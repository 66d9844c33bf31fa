"""Long-term memory: writing, hybrid search, forgetting, re-embedding.

Search combines keywords and embeddings by reciprocal rank fusion: a memory scores the sum of 1 / (5 + rank) over the
lists that contain it (Cormack, Clarke and Buettcher, SIGIR 2009). The embedding rank counts only by the share of
similarity above chance: among thousands of memories some are always similar by chance and would outrank keyword
matches. What is close neither by words and meaning together (`CLOSE`) nor by a name is not returned at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import inf, sqrt
from pathlib import Path

import numpy as np

from ghost.errors import StoreError
from ghost.mind.data_model import Memory, MemoryType
from ghost.mind.facts_in_text import Mentions, mentions
from ghost.mind.similarity_floor import MEASURE, measured_floor
from ghost.mind.store import EVERYTHING, Changes, Filter, HeldWord, MemoryStore
from ghost.providers import EmbeddingsProvider
from ghost.records import Clock

RANK_CONSTANT = 5
"""Small, since few results are requested: the top of either list precedes the middle of both."""
_DEPTH = 50
"""Entries of each list that are fused, at least three times the requested number."""
CLOSE = 0.2
"""What is close reaches this sum: the share that it holds of the query's words, by rarity, and its closeness.
One word of three or more needs a similarity above chance: everyday words occur in every memory."""
RARE_NAME = 50
"""Number of memories below which a name or number that query and memory share is close by itself; that of a resource
is so in any number of memories that is not common."""
CATCH_UP_SECONDS = 2.0
_FETCHED = 20
"""Memories that are read at a time while a search looks for close ones."""
_EMBED_BATCH = 64
SUPERSEDED = "superseded_by"
"""In the metadata of a memory whose statement a newer one replaces: its id. Search puts such memories last."""
_FLOOR = "similarity floor"
"""The preference that keeps what chance gives, with the space it was measured in."""


@dataclass(frozen=True)
class Hit:
    """A search result. `keyword_rank` and `vector_rank` start at 1 and are None if that list does not contain it;
    `similarity` is None if the memory has no embedding of this space.
    """

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
        self._floor: float | None = None

    # --- chance ---

    @property
    def floor(self) -> float:
        """The cosine that chance gives in this space, measured once and kept in the store. Raises `ProviderError`,
        `StoreError`.
        """
        if self._floor is None:
            space = [self.embeddings.name, MEASURE]
            known = self.store.preferences().get(_FLOOR)
            if isinstance(known, dict) and known.get("space") == space:
                self._floor = float(known["floor"])
            else:
                self._floor = measured_floor(self.embeddings)
                with suppress(StoreError):  # it is measured again next time
                    self.store.apply(Changes(preferences={_FLOOR: {"space": space, "floor": self._floor}}))
        return self._floor

    def closeness(self, similarity: float) -> float:
        """Return the share of a similarity above chance: 0 at chance or below, 1 for equal vectors."""
        return max(0.0, (similarity - self.floor) / (1 - self.floor))

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
        vectors = self.embeddings.embed([memory.content for memory in bare], "document") if bare else []
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
        """Return memories with cosine similarity, most similar first, however little that is."""
        nearest = self.store.vector_ids(vector, top_k, where)
        found = self.store.get([name for name, _ in nearest])
        return [(found[name], similarity) for name, similarity in nearest if name in found]

    def search(
        self, query: str, top_k: int = 10, where: Filter = EVERYTHING, *, counts_as_access: bool = True
    ) -> list[Hit]:
        """Return the best of both lists, none if nothing is close; they count as accessed unless that is off. Raises
        `ProviderError`, `StoreError`.
        """
        if top_k <= 0 or not query.strip():
            return []
        depth = max(_DEPTH, 3 * top_k)
        words = self.store.keyword_ids(query, depth, where)
        vector = self.embeddings.embed([query], "query")[0]
        nearest = [
            (name, similarity)
            for name, similarity in self.store.vector_ids(vector, depth, where)
            if similarity > self.floor
        ]
        close = islice(self._close(query, vector, words, dict(nearest)), 2 * top_k)
        hits = sorted(close, key=lambda hit: SUPERSEDED in hit.memory.metadata)[:top_k]
        if hits and counts_as_access:
            with suppress(StoreError):  # a search does not fail because nobody can write down that it was made
                self.store.touch([hit.memory.id for hit in hits], self._clock.now().timestamp())
        return hits

    def _close(
        self, query: str, vector: Sequence[float], words: Sequence[str], nearest: Mapping[str, float]
    ) -> Iterator[Hit]:
        """Yield hits, best first. `words`: ids by keywords; `nearest`: ids and similarities above chance."""
        word_ranks = {name: rank for rank, name in enumerate(words, start=1)}
        vector_ranks = {name: rank for rank, name in enumerate(nearest, start=1)}
        scores = {name: 1 / (RANK_CONSTANT + rank) for name, rank in word_ranks.items()}
        for name, rank in vector_ranks.items():
            vote = sqrt(self.closeness(nearest[name]))
            scores[name] = scores.get(name, 0.0) + vote / (RANK_CONSTANT + rank)
        best = sorted(
            scores,
            key=lambda name: (-scores[name], word_ranks.get(name, inf), vector_ranks.get(name, inf)),
        )
        weighed = self.store.rarer_words(query, best)
        asked = mentions(query)
        only_common = word_ranks if not weighed else ()
        naming = [word for word in weighed if word.count < RARE_NAME or word.term in asked.resources]
        farthest = min(nearest.values(), default=0.0)
        best = [  # what cannot be close need not be read
            name
            for name in best
            if name in only_common
            or _is_close(name, self.closeness(nearest.get(name, farthest)), weighed)
            or _held_by(name, naming)
        ]
        for start in range(0, len(best), _FETCHED):
            found = self.store.get(names := best[start : start + _FETCHED])
            for memory in (found[name] for name in names if name in found):
                similarity = nearest.get(memory.id, self._similarity(vector, memory))
                if (
                    memory.id in only_common
                    or _is_close(memory.id, self.closeness(similarity or 0.0), weighed)
                    or _is_named(asked, memory, _held_by(memory.id, naming))
                ):
                    ranks = word_ranks.get(memory.id), vector_ranks.get(memory.id)
                    yield Hit(memory, scores[memory.id], *ranks, similarity)

    def _similarity(self, vector: Sequence[float], memory: Memory) -> float | None:
        if memory.embedding_model != self.embeddings.name or len(memory.embedding) != len(vector):
            return None
        lengths = np.linalg.norm(vector) * np.linalg.norm(memory.embedding)
        return float(np.dot(vector, memory.embedding) / lengths) if lengths else 0.0

    def counts(self) -> dict[MemoryType, int]:
        return self.store.counts()

    # --- files ---

    def export_jsonl(self, path: Path) -> int:
        return self.store.export_jsonl(path)

    def import_jsonl(self, path: Path) -> int:
        return self.store.import_jsonl(path)

    # --- a change of space ---

    def catch_up(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """Embed anew for about so long: for commands that end soon. Raises `ProviderError`, `StoreError`."""
        deadline = self._clock.monotonic() + seconds
        self.embed_anew(lambda: self._clock.monotonic() >= deadline)

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
            vectors = self.embeddings.embed([memory.content for memory in memories], "document")
            ids = [memory.id for memory in memories]
            of = {memory.id: memory.content for memory in memories}
            self.store.set_embeddings(dict(zip(ids, vectors, strict=True)), of)
            done += len(memories)
        return done


def _is_close(name: str, closeness: float, words: Sequence[HeldWord]) -> bool:
    """Return whether words and meaning together are no chance match. `words`: the query's, without common ones."""
    held = [word for word in words if name in word.holders]
    share = sum(word.rarity for word in held) / sum(word.rarity for word in words) if held else 0.0
    return share + closeness >= CLOSE and (closeness > 0 or len(held) >= min(2, (len(words) + 1) // 2))


def _held_by(name: str, words: Sequence[HeldWord]) -> set[str]:
    return {word.term for word in words if name in word.holders}


def _is_named(asked: Mentions, memory: Memory, words: set[str]) -> bool:
    """Return whether one of these words is a name for the query or the memory.

    For the memory alone it is one only where it is capitalised there, which is seen quicker than what a text mentions.
    """
    text = memory.content
    names = {word for word in words if word in asked.named or text.casefold().count(word) > text.count(word)}
    return bool(names) and not names.isdisjoint(asked.shared_with(mentions(text)))
