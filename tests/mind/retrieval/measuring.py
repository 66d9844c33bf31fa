"""How well each way of searching finds the notes that answer a question, on the real store."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ghost.mind import LongTermMemory, Memory, MemoryType
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers import EmbeddingsProvider
from ghost.records import SystemClock
from tests.mind.retrieval.labelled import SEED, Question, made_notes, notes

TOP, ASKED = 5, 10
WAYS = ("keyword", "vector", "hybrid")


@dataclass(frozen=True)
class Quality:
    """Means over questions. `recall`: the share of its notes among the first five; `mrr`: one over the rank of the
    first of its notes, 0 beyond the tenth; `any_hit`, `all_hit`: whether one of them, or all, are among the first five.
    """

    recall: float
    mrr: float
    any_hit: float
    all_hit: float


@contextmanager
def filled(
    folder: Path, embeddings: EmbeddingsProvider, texts: Mapping[str, str] | None = None
) -> Iterator[LongTermMemory]:
    """All texts (else the labelled notes) in one store, in an order that tells nothing."""
    store = SqliteStore(Path(tempfile.mkdtemp(dir=folder)) / "retrieval.sqlite3", embeddings.name, embeddings.dim)
    try:
        ltm = LongTermMemory(store, embeddings, SystemClock())
        rows = sorted((texts or notes() | made_notes()).items())
        random.Random(SEED).shuffle(rows)
        ltm.keep([_memory(name, text, 1_700_000_000.0 + at) for at, (name, text) in enumerate(rows)])
        yield ltm
    finally:
        store.close()


def _memory(name: str, text: str, at: float) -> Memory:
    return Memory(id=name, type=MemoryType.EPISODIC, content=text, created_at=at, last_access=at)


def found_by(ltm: LongTermMemory) -> dict[str, Callable[[str], list[str]]]:
    """For each way, from a question to the ids of the first ten."""
    return {
        "keyword": lambda text: [memory.id for memory in ltm.keyword_search(text, ASKED)],
        "vector": lambda text: [
            memory.id for memory, _ in ltm.vector_search(ltm.embeddings.embed([text], "query")[0], ASKED)
        ],
        "hybrid": lambda text: [hit.memory.id for hit in ltm.search(text, ASKED, counts_as_access=False)],
    }


def quality(search: Callable[[str], list[str]], questions: Sequence[Question]) -> Quality:
    recalls, ranks = list[float](), list[float]()
    for question in questions:
        found = search(question.text)
        recalls.append(len(question.relevant.intersection(found[:TOP])) / len(question.relevant))
        ranks.append(next((1 / rank for rank, name in enumerate(found, 1) if name in question.relevant), 0.0))
    return Quality(
        recall=statistics.mean(recalls),
        mrr=statistics.mean(ranks),
        any_hit=statistics.mean(recall > 0 for recall in recalls),
        all_hit=statistics.mean(recall == 1 for recall in recalls),
    )
