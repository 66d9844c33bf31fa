"""How fast memories are written and found, and whether the nearest are the nearest; the curve that a million lies on.

python -m benchmarks mind_search                 10,000 to 300,000 memories, 384 dimensions: minutes, 2 GB of disk
python -m benchmarks.mind_search --sizes 10000   a short look; the bounds are those of 100,000
python -m benchmarks.mind_search --sealed        the same, encrypted at rest
python -m benchmarks.mind_search --postgres --sizes 1000000 --dim 128
                                                 on PostgreSQL with pgvector (pgserver): a quarter of an hour, 5 GB

Times are of one caller, the embedding of the query (stub) and the note of the access among them. Medians are the figure
to compare: on a machine that does other things the 95th percentile is theirs, and the processor's own time tells more.
The million is a line through the curve.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ghost.mind import Changes, Filter, LongTermMemory, Memory, MemoryStore, MemoryType
from ghost.mind.encryption import KeySeal, NoSeal, Seal
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers.stub import StubEmbeddings
from ghost.records import SystemClock

ASKED_ONLY = True
SIZES = (10_000, 30_000, 100_000, 300_000)
DIM = 384
BATCH = 1000
QUERIES = 60
BOUND_SIZE = 100_000
P50_MS, P95_MS, RECALL, INSERTS = 25.0, 60.0, 0.99, 3000.0

COMMON = (
    *("network", "gateway", "timeout", "connection", "subnet", "traffic", "route", "rule", "port", "virtual"),
    *("machine", "packet", "capture", "blocked", "inbound", "outbound", "address", "resolved", "region", "peering"),
)
"""Each in a quarter to two thirds of all memories."""
WORDS = [f"term{n}" for n in range(20_000)]
SITES = [f"spoke-{n}" for n in range(3000)]
TAGS = [f"team-{n}" for n in range(40)]
TYPES = list(MemoryType)


class Corpus:
    """Memories of about 45 words, with a vector near one of 500 centres; queries of five kinds."""

    def __init__(self, seed: int, dim: int) -> None:
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._dim = dim
        self._centres = self._numbers.standard_normal((500, dim)).astype(np.float32)
        rank = 1 / np.arange(1, len(WORDS) + 1)
        self._often = np.cumsum(rank / rank.sum())

    def vectors(self, count: int) -> np.ndarray:
        near = self._centres[self._numbers.integers(0, len(self._centres), count)]
        vectors = near + 0.8 * self._numbers.standard_normal((count, self._dim)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _words(self, count: int) -> list[str]:
        return [WORDS[n] for n in np.searchsorted(self._often, self._numbers.random(count))]

    def memories(self, first: int, vectors: np.ndarray, space: str) -> list[Memory]:
        return [
            Memory(
                id=f"mem:{number}",
                type=TYPES[number % 3],
                content=self._text(number),
                tags=(TAGS[number % len(TAGS)], "network"),
                embedding=tuple(vector),
                embedding_model=space,
                created_at=1_700_000_000.0 + number,
                last_access=1_700_000_000.0 + number,
                metadata={"session_id": f"ghost_{number}"},
            )
            for number, vector in enumerate(vectors.tolist(), start=first)
        ]

    def _text(self, number: int) -> str:
        names = (f"{self._random.choice(SITES)}-nsg", f"10.0.{number >> 8}.4")
        return " ".join((*self._random.choices(COMMON, k=12), *names, *self._words(30)))

    def queries(self) -> dict[str, list[str]]:
        pick = self._random.sample
        return {
            "identifiers": [f"why does {pick(SITES, 1)[0]}-nsg block 10.0.{n % 40}.4" for n in range(QUERIES)],
            "rarer words": [" ".join(pick(WORDS[2000:], 6)) for _ in range(QUERIES)],
            "frequent words": [" ".join(pick(WORDS[:200], 6)) for _ in range(QUERIES)],
            "common words": [" ".join(pick(COMMON, 6)) for _ in range(QUERIES)],
            "a sentence": [
                f"the {' '.join(pick(COMMON, 5))} of {pick(SITES, 1)[0]} and {' '.join(pick(WORDS[:2000], 3))}"
                for _ in range(QUERIES)
            ],
        }


FILTERS = {
    "of one type": Filter(types=frozenset({MemoryType.SEMANTIC})),
    "of one tag": Filter(tags=frozenset({TAGS[7]})),
    "with a tag that all have": Filter(tags=frozenset({"network"})),
    "of the first hundred": Filter(until=1_700_000_100.0),
}


@dataclass
class Times:
    """Milliseconds of each job: by the clock, and of the processor alone."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def __add__(self, other: Times) -> Times:
        return Times(self.clock + other.clock, self.processor + other.processor)

    def __str__(self) -> str:
        p50, p95 = statistics.median(self.clock), np.percentile(self.clock, 95)
        return f"{p50:7.1f} {p95:7.1f}   processor {statistics.median(self.processor):6.1f}"


def timed(jobs: Sequence[Callable[[], object]]) -> Times:
    times = Times()
    for job in jobs:
        began, used = time.perf_counter(), time.thread_time()
        job()
        times.clock.append((time.perf_counter() - began) * 1000)
        times.processor.append((time.thread_time() - used) * 1000)
    return times


Open = Callable[[StubEmbeddings], MemoryStore]


def fill(store: MemoryStore, space: str, corpus: Corpus, vectors: np.ndarray) -> float:
    """Write a memory for each vector; return how many were written in a second."""
    written = 0.0
    for first in range(0, len(vectors), BATCH):
        batch = corpus.memories(first, vectors[first : first + BATCH], space)
        began = time.perf_counter()
        store.apply(Changes(memories=batch))
        written += time.perf_counter() - began
    return len(vectors) / written


def measure(size: int, dim: int, directory: Path, open_store: Open) -> Iterator[str]:
    """Lines to print; the last begins with `!` and holds p50, p95, recall and inserts a second."""
    embeddings = StubEmbeddings(dim)
    store = open_store(embeddings)
    corpus = Corpus(size, dim)
    vectors = np.concatenate([corpus.vectors(BATCH) for _ in range(0, size, BATCH)])[:size]
    inserts = fill(store, embeddings.name, corpus, vectors)
    yield f"{size:>9,} memories: {inserts:,.0f} inserts/s in batches of {BATCH}"
    queries = corpus.queries()
    store.close()
    store = open_store(embeddings)
    memory = LongTermMemory(store, embeddings, SystemClock())
    (first_ms,) = timed([lambda: memory.search("warm up", 10)]).clock
    yield f"          first search {first_ms:,.0f} ms;                     p50     p95 ms"
    everything = Times()
    for kind, texts in queries.items():
        times = timed([lambda text=text: memory.search(text, 10) for text in texts])  # type: ignore[misc]
        everything = everything + times
        yield f"          hybrid, {kind:<26} {times}"
    for kind, where in FILTERS.items():
        mixed = [texts[n] for n in range(QUERIES // 5) for texts in queries.values()]
        times = timed([lambda text=text, where=where: memory.search(text, 10, where) for text in mixed])  # type: ignore[misc]
        yield f"          hybrid, {kind:<26} {times}"
    asked = corpus.vectors(QUERIES).astype(np.float64)
    found: list[set[str]] = []
    times = timed([lambda v=v: found.append({name for name, _ in store.vector_ids(v, 10)}) for v in asked])  # type: ignore[misc]
    recall = statistics.fmean(
        len(got & exact) / 10 for got, exact in zip(found, exact_ids(vectors, asked), strict=True)
    )
    yield f"          vectors alone                      {times}   recall@10 {recall:.4f}"
    (forget_ms,) = timed([lambda: memory.forget(["mem:5"])]).clock
    store.close()
    began = time.perf_counter()
    store = open_store(embeddings)
    LongTermMemory(store, embeddings, SystemClock()).search("term5", 10)
    opened_ms = (time.perf_counter() - began) * 1000
    store.close()
    sizes = ", ".join(f"{one.name} {_bytes(one) / 1e6:,.0f} MB" for one in sorted(directory.iterdir()))
    yield f"          forget one {forget_ms:,.0f} ms; open again and search {opened_ms:,.0f} ms; {sizes}"
    p50, p95 = statistics.median(everything.clock), np.percentile(everything.clock, 95)
    yield f"          hybrid, all                        {everything}"
    yield f"!{p50} {p95} {recall} {inserts}"


def _bytes(place: Path) -> int:
    return sum(file.lstat().st_size for file in [place, *place.rglob("*")] if file.is_file())


@contextmanager
def opening(directory: Path, seal: Seal, *, postgres: bool) -> Iterator[Open]:
    """How the store of a directory is opened, as often as one likes."""
    if not postgres:
        yield lambda embeddings: SqliteStore(directory / "ghost.sqlite3", embeddings.name, embeddings.dim, seal)
        return
    import pgserver

    from ghost.mind.postgres_store import PostgresStore

    directory.chmod(0o755)  # a server that root starts runs as another user
    server = pgserver.get_server(directory / "data", cleanup_mode="stop")
    try:
        yield lambda embeddings: PostgresStore(server.get_uri(), embeddings.name, embeddings.dim)
    finally:
        server.cleanup()


def exact_ids(vectors: np.ndarray, asked: np.ndarray) -> list[set[str]]:
    scores = np.zeros((len(asked), 0))
    for first in range(0, len(vectors), 50_000):
        scores = np.concatenate([scores, asked @ vectors[first : first + 50_000].astype(np.float64).T], axis=1)
    return [{f"mem:{n}" for n in np.argpartition(row, -10)[-10:]} for row in scores]


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mind_search")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--dim", type=int, default=DIM)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--sealed", action="store_true")
    kinds.add_argument("--postgres", action="store_true")
    options = parser.parse_args(list(arguments))
    seal: Seal = KeySeal(bytes(range(32))) if options.sealed else NoSeal()
    curve: dict[int, float] = {}
    held = True
    for size in options.sizes:
        with (
            tempfile.TemporaryDirectory(prefix="ghost-bench-", ignore_cleanup_errors=True) as made,
            opening(Path(made), seal, postgres=options.postgres) as open_store,
        ):
            for line in measure(size, options.dim, Path(made), open_store):
                if not line.startswith("!"):
                    print(line, flush=True)
                    continue
                p50, p95, recall, inserts = map(float, line[1:].split())
        curve[size] = p50
        if size <= BOUND_SIZE:
            held &= p50 < P50_MS and p95 < P95_MS and recall >= RECALL and inserts >= INSERTS
    if len(curve) > 1:
        slope, base = np.polyfit(list(curve), list(curve.values()), 1)
        print(f"1,000,000 memories on paper: p50 {base + slope * 1e6:.0f} ms ({slope * 1e5:.1f} ms for each 100,000)")
    print(
        f"bounds at {BOUND_SIZE:,}: p50 < {P50_MS:.0f} ms, p95 < {P95_MS:.0f} ms, recall@10 >= {RECALL}, "
        f"{INSERTS:,.0f} inserts/s: {'held' if held else 'NOT HELD'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
