"""What every store promises of search: words, vectors, filters, and nothing that was forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ghost.errors import StoreError
from ghost.mind import (
    Changes,
    Filter,
    MemoryStore,
    MemoryType,
)
from tests.exhaustive import examples
from tests.mind.made_memories import (
    DIM,
    EPISODIC,
    PROCEDURAL,
    SEMANTIC,
    SPACE,
    Open,
    Opened,
    memory,
    names,
    unit,
)


class SearchPromises(Opened):
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

    @settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        query=st.text(max_size=60) | st.sampled_from(['a" OR "b', "NEAR(a b)", "content:x", "a*", "(", "a AND", "^a"])
    )
    def test_any_text_is_a_query(self, store: MemoryStore, query: str):
        store.apply(Changes(memories=[memory("m", "some words OR others NEAR content AND x")]))
        for where in (Filter(), Filter(types=frozenset({SEMANTIC})), Filter(tags=frozenset({query}))):
            assert set(store.keyword_ids(query, 5, where)) <= {"m"}

    def test_the_memory_with_the_rarer_words_comes_first(self, store: MemoryStore):
        memories = [memory(f"m{n}", "gateway timeout in region west") for n in range(30)]
        store.apply(Changes(memories=[*memories, memory("rare", "gateway firmware region")]))
        assert store.keyword_ids("gateway timeout firmware", 3)[0] == "rare"

    def test_how_rare_the_words_of_a_query_are_and_whose_text_holds_them(self, store: MemoryStore):
        memories = [memory(f"m{n}", "gateway timeout in region west of 10.0.0.1") for n in range(60)]
        rare = [memory("rare", "gateway with new firmwares", tags=("timeout",)), memory("name", "web-7 at 10.0.0.17")]
        store.apply(Changes(memories=[*memories, *rare]))
        words = store.rarer_words("is firmware of the gateway web-7 at 10.0.0.17 cake", ["m1", "rare", "name", "gone"])
        assert {word.term: (word.count, set(word.holders)) for word in words} == {
            "firmware": (1, {"rare"}),
            "gateway": (61, {"m1", "rare"}),
            "web-7": (1, {"name"}),
            "10.0.0.17": (1, {"name"}),
            "cake": (0, set()),
        }
        rarity = {word.term: word.rarity for word in words}
        assert 0 < rarity["gateway"] < rarity["firmware"] == rarity["web-7"] < rarity["cake"]
        (tagged,) = store.rarer_words("timeout", ["m1", "rare"])
        assert tagged.holders == {"m1"}, "a tag is no text"
        assert store.rarer_words("", ["m1"]) == []

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
