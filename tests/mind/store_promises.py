"""What every `MemoryStore` promises. A store's tests subclass `StorePromises` and say how one is opened."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
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
    Query,
    QueryStatus,
    Task,
    TaskStatus,
    Thought,
)

SPACE, DIM = "one/8", 8
Open = Callable[..., MemoryStore]
"""`open_one()`, `open_one(space=..., dim=...)`: opens the test's store, the same one each time."""

EPISODIC, SEMANTIC, PROCEDURAL = MemoryType


def unit(*numbers: float) -> tuple[float, ...]:
    """A vector of `DIM` float32 numbers and length 1."""
    vector = np.zeros(DIM, dtype=np.float64)
    vector[: len(numbers)] = numbers
    return tuple(np.asarray(vector / np.linalg.norm(vector), dtype=np.float32).tolist())


def memory(name: str, content: str = "something", **fields: Any) -> Memory:
    at = fields.pop("created_at", 1_700_000_000.0)
    if "embedding" in fields:
        fields.setdefault("embedding_model", SPACE)
    return Memory(
        id=name, type=fields.pop("type", SEMANTIC), content=content, created_at=at, **{"last_access": at, **fields}
    )


def names(memories: Iterable[Memory]) -> list[str]:
    return [one.id for one in memories]


FULL = memory(
    "mem:1700000000123",
    "NSG prod-subnet-nsg denies 10.0.1.4:443 – „Grüße“ 🙂\nsecond\0line",
    type=PROCEDURAL,
    tags=("#insight", "prüfung", "a b"),
    embedding=unit(0.1, -0.2, 0.3),
    importance=0.1 + 0.2,
    created_at=1_700_000_000.123456,
    last_access=1_700_000_001.5,
    metadata={"audit_ids": ["s_1", "s_2"], "n": 2**60, "x": 0.1, "none": None, "deep": {"ü": [True, {}]}},
)


class StorePromises:
    @pytest.fixture
    def open_one(self, tmp_path: Path) -> Open:
        raise NotImplementedError

    @pytest.fixture
    def open_other(self, tmp_path: Path) -> Open:
        """Opens another store, empty at first."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_one: Open) -> MemoryStore:
        return open_one()

    # --- writing and reading ---

    def test_a_memory_comes_back_as_it_was_written_and_after_opening_again(self, store: MemoryStore, open_one: Open):
        store.apply(Changes(memories=[FULL]))
        assert store.get([FULL.id, "mem:none"]) == {FULL.id: FULL}
        store.close()
        assert open_one().get([FULL.id])[FULL.id].model_dump() == FULL.model_dump()

    def test_the_same_id_replaces_in_search_as_well(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("m", "peering broken", tags=("old",), embedding=unit(1))]))
        store.apply(Changes(memories=[memory("m", "resolver slow", tags=("new",), embedding=unit(0, 1))]))
        assert store.keyword_ids("peering", 5) == store.keyword_ids("old", 5) == []
        assert store.keyword_ids("resolver", 5) == ["m"]
        assert store.vector_ids(unit(0, 1), 5) == [("m", pytest.approx(1.0, abs=1e-6))]
        assert store.vector_ids(unit(0, 1), 5, Filter(tags=frozenset({"old"}))) == []
        store.apply(Changes(memories=[memory("m", "resolver slow")]))
        assert store.vector_ids(unit(0, 1), 5) == []
        assert sum(store.counts().values()) == 1

    @pytest.mark.parametrize(
        "bad",
        [
            memory("bad", embedding=(1.0, 2.0)),
            memory("bad", embedding=(*unit(1)[:-1], float("nan"))),
            memory("bad", embedding=unit(1), embedding_model=""),
            memory("bad", created_at=float("inf")),
            memory("bad", metadata={"x": float("nan")}),
            memory("bad", metadata={"x": object()}),
            memory("bad", "lone \ud800 surrogate"),
        ],
        ids=["dim", "nan", "unnamed", "time", "nan in metadata", "object in metadata", "surrogate"],
    )
    def test_what_cannot_be_kept_is_refused_and_nothing_is_written(self, store: MemoryStore, bad: Memory):
        thought = Thought(id="thought:1", content="#plan x", ts=1.0)
        with pytest.raises(StoreError):
            store.apply(Changes(memories=[memory("good"), bad], thoughts=[thought], preferences={"a": 1}))
        with pytest.raises(StoreError):
            store.apply(Changes(memories=[memory("good")], preferences={"a": object()}))
        assert store.get(["good", "bad"]) == {}
        assert store.thoughts(5) == []
        assert store.preferences() == {}
        store.apply(Changes(memories=[memory("good")]))
        assert names(store.memories()) == ["good"]

    def test_touch_sets_the_time_of_access_and_passes_over_what_is_gone(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("a"), memory("b")]))
        store.touch(["a", "gone"], 5.5)
        got = store.get(["a", "b"])
        assert (got["a"].last_access, got["b"].last_access) == (5.5, 1_700_000_000.0)

    def test_memories_come_oldest_first_by_type_tags_and_time(self, store: MemoryStore):
        kinds = list(MemoryType)
        store.apply(
            Changes(
                memories=[
                    memory(f"m{n}", type=kinds[n % 3], tags=("all", f"t{n % 2}"), created_at=float(100 - n))
                    for n in range(12)
                ]
            )
        )
        assert names(store.memories()) == [f"m{n}" for n in reversed(range(12))]
        assert names(store.memories(Filter(types=frozenset({EPISODIC, SEMANTIC})))) == [
            f"m{n}" for n in reversed(range(12)) if n % 3 != 2
        ]
        assert names(store.memories(Filter(tags=frozenset({"all", "t1"})))) == [f"m{n}" for n in (11, 9, 7, 5, 3, 1)]
        assert names(store.memories(Filter(since=95.0, until=98.0))) == ["m5", "m4", "m3"]
        both = Filter(types=frozenset({EPISODIC}), tags=frozenset({"t0"}), since=90.0)
        assert names(store.memories(both)) == ["m6", "m0"]
        assert store.counts() == {EPISODIC: 4, SEMANTIC: 4, PROCEDURAL: 4}

    def test_memories_without_embeddings_are_the_same_otherwise(self, store: MemoryStore):
        store.apply(Changes(memories=[FULL]))
        (bare,) = store.memories(with_embeddings=False)
        assert bare.model_copy(update={"embedding": FULL.embedding}) == FULL
        assert bare.embedding == ()

    def test_a_store_can_be_written_while_its_memories_are_read(self, store: MemoryStore):
        store.apply(Changes(memories=[memory(f"m{n}", created_at=float(n)) for n in range(20)]))
        seen = []
        for one in store.memories():
            seen.append(one.id)
            store.apply(Changes(memories=[memory(f"new{one.id}", created_at=1e6)]))
            if len(seen) == 40:
                break
        assert seen == [f"m{n}" for n in range(20)]
        assert sum(store.counts().values()) == 40

    # --- words ---

    def test_identifiers_and_words_in_any_form_are_found(self, store: MemoryStore):
        texts = {
            "nsg": "NSG of prod-subnet blocks 10.0.1.4 on port 443",
            "dns": "DNS timed out: resolver at 10.0.1.40 was timing out",
            "url": "read https://learn.example.com/azure/virtual-network/peering_overview",
            "tag": "nothing to see",
        }
        store.apply(
            Changes(
                memories=[
                    memory(name, text, tags=("network-watcher",) if name == "tag" else ())
                    for name, text in texts.items()
                ]
            )
        )
        expected = {
            "prod-subnet": "nsg",
            "10.0.1.4": "nsg",
            "nsg": "nsg",
            "blocking": "nsg",
            "10.0.1.40": "dns",
            "timeouts resolvers": "dns",
            "learn.example.com": "url",
            "network-watcher": "tag",
        }
        assert {query: store.keyword_ids(query, 5)[:1] for query in expected} == {q: [n] for q, n in expected.items()}
        assert "dns" not in store.keyword_ids("10.0.1.4", 5)

    def test_a_query_without_a_usable_word_finds_nothing(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("m", "the of and to")]))
        assert [store.keyword_ids(query, 5) for query in ("", "   ", "the of and", "?!", '"', "-", "*")] == [[]] * 7
        assert store.keyword_ids("the", 0) == []

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        query=st.text(max_size=60) | st.sampled_from(['a" OR "b', "NEAR(a b)", "content:x", "a*", "(", "a AND", "^a"])
    )
    def test_any_text_is_a_query(self, store: MemoryStore, query: str):
        store.apply(Changes(memories=[memory("m", "some words OR others NEAR content AND x")]))
        assert set(store.keyword_ids(query, 5)) <= {"m"}

    def test_the_memory_with_the_rarer_words_comes_first(self, store: MemoryStore):
        memories = [memory(f"m{n}", "gateway timeout in region west") for n in range(30)]
        store.apply(Changes(memories=[*memories, memory("rare", "gateway firmware region")]))
        assert store.keyword_ids("gateway timeout firmware", 3)[0] == "rare"

    def test_a_filter_loses_nothing_that_words_find(self, store: MemoryStore):
        memories = [memory(f"m{n}", "timeout", created_at=float(n), tags=("x",) * (n % 50 == 0)) for n in range(200)]
        store.apply(Changes(memories=[*memories, memory("e", "timeout", type=EPISODIC, created_at=500.0)]))
        assert sorted(store.keyword_ids("timeout", 10, Filter(tags=frozenset({"x"})))) == ["m0", "m100", "m150", "m50"]
        assert store.keyword_ids("timeout", 10, Filter(types=frozenset({EPISODIC}))) == ["e"]
        assert sorted(store.keyword_ids("timeout", 10, Filter(since=10.0, until=13.0))) == ["m10", "m11", "m12"]

    # --- vectors ---

    def test_nearest_vectors_are_the_exact_ones_with_their_cosine(self, store: MemoryStore):
        random = np.random.default_rng(7)
        vectors = random.standard_normal((500, DIM)).astype(np.float32)
        kinds = list(MemoryType)
        store.apply(
            Changes(
                memories=[
                    memory(f"m{n}", type=kinds[n % 3], tags=(f"t{n % 7}",), created_at=float(n), embedding=tuple(v))
                    for n, v in enumerate(vectors.tolist())
                ]
            )
        )
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        allowed = {
            Filter(): lambda n: True,
            Filter(types=frozenset({EPISODIC, PROCEDURAL})): lambda n: n % 3 != 1,
            Filter(tags=frozenset({"t3"})): lambda n: n % 7 == 3,
            Filter(tags=frozenset({"t3", "t4"})): lambda n: False,
            Filter(since=490.0): lambda n: n >= 490,
            Filter(types=frozenset({SEMANTIC}), tags=frozenset({"t1"}), until=100.0): lambda n: (
                n % 3 == 1 and n % 7 == 1 and n < 100
            ),
        }
        for _ in range(5):
            asked = random.standard_normal(DIM)
            scores = units @ (asked / np.linalg.norm(asked))
            for where, is_allowed in allowed.items():
                exact = sorted((n for n in range(500) if is_allowed(n)), key=lambda n: -scores[n])[:20]
                found = store.vector_ids(tuple(asked), 20, where)
                assert [name for name, _ in found] == [f"m{n}" for n in exact], where
                assert [score for _, score in found] == pytest.approx([scores[n] for n in exact], abs=1e-5)

    def test_vectors_of_many_equal_memories_are_each_found_once(self, store: MemoryStore):
        store.apply(Changes(memories=[memory(f"m{n}", embedding=unit(1)) for n in range(700)]))
        found = [name for name, _ in store.vector_ids(unit(1), 1000)]
        assert sorted(found) == sorted(f"m{n}" for n in range(700))

    def test_a_vector_that_cannot_be_compared_is_refused_or_finds_nothing(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("m", embedding=unit(1))]))
        assert store.vector_ids([0.0] * DIM, 5) == []
        assert store.vector_ids(unit(1), 0) == []
        for wrong in ([1.0] * (DIM + 1), [float("nan")] * DIM):
            with pytest.raises(StoreError):
                store.vector_ids(wrong, 5)

    def test_memories_of_another_space_are_found_by_words_until_they_are_embedded_anew(self, open_one: Open):
        old = open_one(space="old/4", dim=4)
        old.apply(
            Changes(
                memories=[
                    memory("a", "alpha", embedding=(1.0, 0.0, 0.0, 0.0), embedding_model="old/4", created_at=2.0),
                    memory("b", "beta", created_at=1.0),
                ]
            )
        )
        old.close()
        store = open_one()
        assert store.vector_ids(unit(1), 5) == []
        assert store.keyword_ids("alpha", 5) == ["a"]
        assert store.get(["a"])["a"].embedding == (1.0, 0.0, 0.0, 0.0)
        assert names(store.without_embedding(10)) == ["b", "a"]
        assert names(store.without_embedding(1)) == ["b"]
        store.set_embeddings({"a": unit(1), "b": unit(0, 1), "gone": unit(1)})
        assert store.without_embedding(10) == []
        assert [name for name, _ in store.vector_ids(unit(1), 5)] == ["a", "b"]
        assert (store.get(["a"])["a"].embedding_model, store.get(["a"])["a"].embedding) == (SPACE, unit(1))
        with pytest.raises(StoreError):
            store.set_embeddings({"a": (1.0,)})

    def test_an_embedding_of_a_text_that_was_replaced_meanwhile_is_passed_over(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("a", "alpha"), memory("b", "beta"), memory("c", "gamma")]))
        vectors = {name: unit(1) for name in "abc"}
        store.set_embeddings(vectors, {"a": "alpha", "b": "what it was"})
        assert sorted(name for name, _ in store.vector_ids(unit(1), 5)) == ["a", "c"]
        assert names(store.without_embedding(5)) == ["b"]

    # --- forgetting ---

    def test_what_is_forgotten_is_found_by_nothing_and_leaves_the_others(self, store: MemoryStore, open_one: Open):
        store.apply(
            Changes(memories=[memory(f"m{n}", f"word{n} common", embedding=unit(1, n / 10)) for n in range(10)])
        )
        store.apply(Changes(forgotten=["m3", "m9", "gone"]))
        left = [f"m{n}" for n in range(10) if n not in (3, 9)]
        assert names(store.memories()) == left
        assert store.get(["m3"]) == {}
        assert store.keyword_ids("word3", 5) == []
        assert sorted(store.keyword_ids("common", 20)) == left
        assert sorted(name for name, _ in store.vector_ids(unit(1), 20)) == left
        store.apply(Changes(memories=[memory("new", "word3 again", embedding=unit(1, 0.3))]))
        assert store.keyword_ids("word3", 5) == ["new"]
        assert "new" in [name for name, _ in store.vector_ids(unit(1, 0.3), 3)]
        store.close()
        assert sorted(names(open_one().memories())) == sorted([*left, "new"])

    # --- the rest of the mind ---

    def test_thoughts_tasks_queries_and_preferences_come_back(self, store: MemoryStore, open_one: Open):
        thoughts = [Thought(id=f"thought:{n}", content=f"#plan {n}", tags=("x",), ts=float(n)) for n in range(5)]
        task = Task(id="t", title="look", created_ts=1.0, last_update_ts=2.0, deadline_ts=3.0, metadata={"a": [1]})
        query = Query(id="q:1", question="which?", required_fields=("vm",), created_ts=1.0, expires_ts=2.0)
        store.apply(
            Changes(thoughts=thoughts[::-1], tasks=[task], queries=[query], preferences={"here": True, "x": {"y": [1]}})
        )
        store.close()
        store = open_one()
        assert store.thoughts(3) == thoughts[2:]
        assert store.thoughts(0) == []
        assert (store.tasks(), store.queries()) == ([task], [query])
        assert store.preferences() == {"here": True, "x": {"y": [1]}}
        answered = query.model_copy(update={"status": QueryStatus.ANSWERED, "answer": "vm-1", "answered_ts": 1.5})
        done = task.model_copy(update={"status": TaskStatus.DONE})
        store.apply(
            Changes(
                tasks=[done], queries=[answered], preferences={"here": False, "x": None}, dropped_thoughts=["thought:4"]
            )
        )
        assert store.queries(open_only=True) == []
        assert (store.queries(), store.tasks(), store.preferences()) == ([answered], [done], {"here": False})
        assert store.thoughts(2) == thoughts[2:4]

    def test_ids_are_given_out_once_whoever_asks(self, store: MemoryStore, open_one: Open):
        assert store.new_ids("mem", 1.5, 3) == ["mem:1500", "mem:1500_2", "mem:1500_3"]
        assert open_one().new_ids("mem", 1.5) == ["mem:1500_4"]
        assert store.new_ids("thought", 1.5) == ["thought:1500"]
        store.apply(Changes(memories=[memory("mem:2000")]))
        assert store.new_ids("mem", 2.0) == ["mem:2000_2"]
        given_out: list[str] = []

        def take() -> None:
            one = open_one()
            for _ in range(25):
                given_out.extend(one.new_ids("mem", 3.0))
            one.close()

        _in_threads([take] * 4)
        assert len(given_out) == len(set(given_out)) == 100
        with pytest.raises(StoreError):
            store.new_ids("No Kind", 1.0)

    # --- files ---

    def test_an_export_of_an_import_is_the_same_bytes(self, store: MemoryStore, open_other: Open, tmp_path: Path):
        random = np.random.default_rng(3)
        vectors = (random.standard_normal((40, DIM)) * 10.0 ** random.integers(-30, 30, (40, DIM))).astype(np.float32)
        store.apply(
            Changes(
                memories=[
                    FULL,
                    memory("other-space", embedding=(1e-45, -0.0, 3.0), embedding_model="other"),
                    memory("a", created_at=0.1),
                    *(memory(f"m{n}", created_at=5.0, embedding=tuple(v)) for n, v in enumerate(vectors.tolist())),
                ]
            )
        )
        first, second = tmp_path / "one" / "first.jsonl", tmp_path / "second.jsonl"
        assert store.export_jsonl(first) == 43
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
        other = open_other()
        assert other.import_jsonl(first) == 43
        assert list(other.memories()) == list(store.memories())
        assert other.export_jsonl(second) == 43
        assert second.read_bytes() == first.read_bytes()
        lines = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
        assert [line["id"] for line in lines][:1] == ["a"]
        assert [line["created_at"] for line in lines] == sorted(line["created_at"] for line in lines)
        assert other.import_jsonl(first) == 43
        assert sum(other.counts().values()) == 43

    def test_an_import_updates_by_id_and_leaves_the_rest(self, store: MemoryStore, tmp_path: Path):
        store.apply(Changes(memories=[memory("a", "old"), memory("b", "stays")]))
        path = tmp_path / "in.jsonl"
        path.write_text(json.dumps(memory("a", "new").model_dump(mode="json")) + "\n", encoding="utf-8")
        assert store.import_jsonl(path) == 1
        assert {one.id: one.content for one in store.memories()} == {"a": "new", "b": "stays"}
        assert store.keyword_ids("old", 5) == []

    @pytest.mark.parametrize(
        "line",
        [
            b"{",
            b"[]",
            b"",
            b"\xff",
            b'{"id": "x"}',
            b'{"id": "x", "type": "dream", "content": "", "created_at": 1, "last_access": 1}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": 1, "last_access": 1, "extra": 1}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": 1, "last_access": 1, "embedding": [1]}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": NaN, "last_access": 1}',
            b'{"id": "x", "type": "semantic", "content": "\\ud800", "created_at": 1, "last_access": 1}',
        ],
    )
    def test_an_import_that_fails_names_the_line_and_changes_nothing(
        self, store: MemoryStore, tmp_path: Path, line: bytes
    ):
        store.apply(Changes(memories=[memory("a", "old")]))
        good = json.dumps(memory("a", "new").model_dump(mode="json")).encode()
        path = tmp_path / "in.jsonl"
        path.write_bytes(b"\n".join([good, good, line, good]) + b"\n")
        with pytest.raises(StoreError, match="line 3"):
            store.import_jsonl(path)
        assert [one.content for one in store.memories()] == ["old"]

    def test_an_export_or_import_without_a_file_is_a_store_error(self, store: MemoryStore, tmp_path: Path):
        with pytest.raises(StoreError):
            store.import_jsonl(tmp_path / "none.jsonl")
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreError):
            store.export_jsonl(tmp_path / "file" / "x.jsonl")

    def test_an_export_that_fails_leaves_the_old_file(
        self, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        store.apply(Changes(memories=[memory("a"), memory("b")]))
        path = tmp_path / "out.jsonl"
        path.write_text("old")

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            store.export_jsonl(path)
        monkeypatch.undo()
        assert path.read_text() == "old"
        assert sorted(one.name for one in tmp_path.glob(".out.jsonl*")) == []

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

        _in_threads([read, read, read, write])
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

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
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


def _in_threads(jobs: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
