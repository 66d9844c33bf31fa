"""What every store promises to several at once, and that it behaves as a dictionary does."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ghost.errors import StoreError
from ghost.mind import (
    Changes,
    Filter,
    Memory,
    MemoryStore,
    MemoryType,
)
from tests.exhaustive import examples
from tests.mind.made_memories import (
    EPISODIC,
    SPACE,
    Open,
    Opened,
    in_threads,
    memory,
    names,
    unit,
)


class TogetherPromises(Opened):
    # --- together ---

    def test_two_openings_see_what_the_other_wrote(self, store: MemoryStore, open_one: Open):
        other = open_one()
        for n in range(5):
            store.apply(Changes(memories=[memory(f"a{n}", f"alpha{n}", embedding=unit(1, n))]))
            assert other.keyword_ids(f"alpha{n}", 5) == [f"a{n}"]
            assert other.vector_ids(unit(1, n), 1)[0][0] == f"a{n}"
            other.apply(Changes(memories=[memory(f"b{n}", f"beta{n}", embedding=unit(1, 0, 1 + n))]))
            assert store.keyword_ids(f"beta{n}", 5) == [f"b{n}"]
            assert store.vector_ids(unit(1, 0, 1 + n), 1)[0][0] == f"b{n}"
        other.apply(Changes(forgotten=["a0"]))
        assert "a0" not in [name for name, _ in store.vector_ids(unit(1), 20)]
        assert store.keyword_ids("alpha0", 5) == []

    def test_readers_go_on_while_a_writer_writes(self, store: MemoryStore):
        stop, wrong = threading.Event(), list[str]()
        store.apply(Changes(memories=[memory("first", "anchor", embedding=unit(1))]))

        def read() -> None:
            while not stop.is_set():
                if "first" not in store.keyword_ids("anchor", 100):
                    wrong.append("words")
                found = store.vector_ids(unit(1), 5)
                if found[0][0] != "first" or [name for name, _ in found[1:] if name not in store.get([name])]:
                    wrong.append("vectors")
                batches = {one.metadata["batch"] for one in store.memories() if one.metadata}
                for batch in batches:
                    if len(list(store.memories(Filter(tags=frozenset({f"batch{batch}"}))))) != 10:
                        wrong.append("half a batch")

        def write() -> None:
            try:
                for batch in range(25):
                    new = [
                        memory(
                            f"m{batch}-{n}",
                            "filler anchor",
                            tags=(f"batch{batch}",),
                            metadata={"batch": batch},
                            embedding=unit(1, 1 + n, batch),
                        )
                        for n in range(10)
                    ]
                    store.apply(Changes(memories=new))
            finally:
                stop.set()

        in_threads([read, read, read, write])
        assert wrong == []
        assert sum(store.counts().values()) == 251

    def test_a_closed_store_says_so(self, store: MemoryStore):
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.counts()
        with pytest.raises(StoreError, match="closed"):
            store.apply(Changes(memories=[memory("a")]))
        store.close()

    # --- against a plain model ---

    @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.deferred(lambda: STEPS), min_size=1, max_size=14))
    def test_it_behaves_as_a_dictionary_does(self, open_one: Open, steps: list[tuple[str, Any]]):
        store = open_one()
        store.apply(Changes(forgotten=names(store.memories())))
        model: dict[str, Memory] = {}
        for verb, value in steps:
            if verb == "put":
                store.apply(Changes(memories=value))
                model |= {one.id: one for one in value}
            elif verb == "forget":
                store.apply(Changes(forgotten=value))
                model = {name: one for name, one in model.items() if name not in value}
            elif verb == "touch":
                store.touch(value, 77.0)
                model |= {n: model[n].model_copy(update={"last_access": 77.0}) for n in value if n in model}
            elif verb == "embed":
                store.set_embeddings(value)
                change = {n: {"embedding": v, "embedding_model": SPACE} for n, v in value.items()}
                model |= {n: model[n].model_copy(update=fields) for n, fields in change.items() if n in model}
            elif verb == "open":
                store.close()
                store = open_one()
            self._agrees(store, model)
        store.close()

    def _agrees(self, store: MemoryStore, model: dict[str, Memory]) -> None:
        by_age = sorted(model.values(), key=lambda one: (one.created_at, one.id))
        assert list(store.memories()) == by_age
        assert store.counts() == {kind: sum(one.type is kind for one in by_age) for kind in MemoryType}
        assert names(store.without_embedding(99)) == [one.id for one in by_age if not one.embedding]
        for word in WORDS:
            assert sorted(store.keyword_ids(word, 99)) == sorted(n for n, one in model.items() if word in one.content)
        for where in (Filter(), Filter(types=frozenset({EPISODIC})), Filter(tags=frozenset({"x"})), Filter(since=2.0)):
            meant = [
                one
                for one in by_age
                if (not where.types or one.type in where.types)
                and where.tags <= set(one.tags)
                and one.created_at >= (where.since or 0.0)
            ]
            assert list(store.memories(where)) == meant
            found = store.vector_ids(unit(1, 1), 99, where)
            assert sorted(name for name, _ in found) == sorted(one.id for one in meant if one.embedding)
            cosines = {one.id: float(np.dot(one.embedding, unit(1, 1))) for one in meant if one.embedding}
            assert dict(found) == pytest.approx(cosines, abs=1e-5)


WORDS = ("alpha", "beta", "gamma")
IDS = st.sampled_from([f"m{n}" for n in range(6)])
VECTORS = st.sampled_from([unit(1), unit(0, 1), unit(1, 2, 3), unit(-1, 0.5)])
MEMORIES = st.builds(
    lambda name, kind, words, tags, vector, at: memory(
        name,
        " ".join(words),
        type=kind,
        tags=tags,
        created_at=at,
        **({"embedding": vector} if vector else {}),
    ),
    IDS,
    st.sampled_from(list(MemoryType)),
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.sampled_from([(), ("x",), ("x", "y"), ("y", "x", "x")]),
    st.none() | VECTORS,
    st.sampled_from([1.0, 2.0, 3.5]),
)
STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(MEMORIES, min_size=1, max_size=4)),
    st.tuples(st.just("forget"), st.lists(IDS, max_size=3)),
    st.tuples(st.just("touch"), st.lists(IDS, max_size=3)),
    st.tuples(st.just("embed"), st.dictionaries(IDS, VECTORS, max_size=3)),
    st.tuples(st.just("open"), st.none()),
)
