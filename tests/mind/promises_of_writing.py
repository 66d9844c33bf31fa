"""What every store promises of writing: all or nothing, and back as it was."""

from __future__ import annotations

from contextlib import suppress

import pytest

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
from tests.mind.made_memories import (
    EPISODIC,
    FULL,
    PROCEDURAL,
    SEMANTIC,
    Open,
    Opened,
    in_threads,
    memory,
    names,
    unit,
)


class WritingPromises(Opened):
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
            memory("bad", created_at=1e20),
            memory("bad", last_access=-1.0),
            memory(""),
            memory("x" * 201),
            memory("mem:1\x1b[2J"),
            memory("bad", metadata={"x": float("nan")}),
            memory("bad", metadata={"x": object()}),
            memory("bad", "lone \ud800 surrogate"),
        ],
        ids=[
            "dim",
            "nan",
            "unnamed",
            "no time",
            "late",
            "early",
            "no id",
            "long id",
            "control in id",
            "nan in metadata",
            "object in metadata",
            "surrogate",
        ],
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

    @pytest.mark.parametrize(
        "changes",
        [
            Changes(thoughts=[Thought(id="thought:1", content="\ud800", ts=1.0)]),
            Changes(tasks=[Task(id="t", title="\ud800", created_ts=1.0, last_update_ts=1.0)]),
            Changes(queries=[Query(id="q:1", question="\ud800", created_ts=1.0, expires_ts=2.0)]),
            Changes(preferences={"a": "\ud800"}),
        ],
        ids=["thought", "task", "query", "preference"],
    )
    def test_text_that_is_no_unicode_is_named_and_not_taken_for_damage(self, store: MemoryStore, changes: Changes):
        with pytest.raises(StoreError, match=r"'(thought:1|t|q:1|a)' cannot be kept as JSON"):
            store.apply(changes)

    def test_a_name_that_is_no_unicode_is_a_store_error_or_names_nothing(self, store: MemoryStore):
        store.apply(Changes(memories=[memory("m", "alpha", embedding=unit(1))]))
        name, tagged = "\ud800", Filter(tags=frozenset({"\ud800"}))
        for ask in (
            lambda: store.get([name]),
            lambda: list(store.memories(tagged)),
            lambda: store.keyword_ids("alpha", 5, tagged),
            lambda: store.vector_ids(unit(1), 5, tagged),
            lambda: store.keyword_ids(name, 5),
            lambda: store.touch([name], 1.0),
            lambda: store.apply(Changes(forgotten=[name])),
            lambda: store.apply(Changes(preferences={name: None})),
            lambda: store.set_embeddings({name: unit(1)}),
        ):
            with suppress(StoreError):
                assert not ask()
        assert names(store.memories()) == store.keyword_ids("alpha", 5) == ["m"]

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
        assert store.new_ids("mem", 1.5) == ["mem:1500_5"]  # an earlier moment again
        given_out: list[str] = []

        def take() -> None:
            one = open_one()
            for _ in range(25):
                given_out.extend(one.new_ids("mem", 3.0))
            one.close()

        in_threads([take] * 4)
        assert len(given_out) == len(set(given_out)) == 100
        with pytest.raises(StoreError):
            store.new_ids("No Kind", 1.0)
