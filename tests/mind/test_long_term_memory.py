"""Long-term memory: written with embeddings, found by words and meaning together, forgotten, embedded anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ghost.errors import ProviderError, StoreError
from ghost.mind import Changes, Filter, LongTermMemory, MemoryType
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers import TextKind
from ghost.providers.stub import StubEmbeddings
from tests.mind.minds import Lopsided
from tests.mind.store_promises import memory, names

NOTES = {
    "nsg": "NSG prod-subnet-nsg denies TCP 443 from 10.0.1.4 to the web tier",
    "dns": "The resolver 168.63.129.16 timed out for storage names of the private endpoint",
    "route": "A user defined route sends 10.7.0.0/16 to a firewall that is stopped",
    "peering": "The peering from spoke-3 to the hub is disconnected since the hub was made anew",
    "mtu": "Large packets are lost in the tunnel; the path MTU is 1400",
}


class FixedClock:
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class Failing(StubEmbeddings):
    """Answers `good` calls and refuses the next."""

    def __init__(self, dim: int, good: int) -> None:
        super().__init__(dim)
        self.good = good

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        if self.good == 0:
            raise ProviderError("no answer", transient=True)
        self.good -= 1
        return super().embed(texts, kind)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    embeddings = StubEmbeddings(128)
    store = SqliteStore(tmp_path / "ghost.sqlite3", embeddings.name, embeddings.dim)
    yield store
    store.close()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_800_000_000.0)


@pytest.fixture
def ltm(store: SqliteStore, clock: FixedClock) -> LongTermMemory:
    made = LongTermMemory(store, StubEmbeddings(128), clock)
    made.keep([memory(name, text, type=MemoryType.SEMANTIC, tags=("note",)) for name, text in NOTES.items()])
    return made


def test_a_memory_is_embedded_written_and_replaced_by_its_id(ltm: LongTermMemory) -> None:
    ltm.upsert_memory(memory("new", "BGP session flaps"))
    kept = ltm.get_memory("new")
    assert kept is not None
    assert (kept.embedding_model, len(kept.embedding)) == (StubEmbeddings(128).name, 128)
    ltm.upsert_memory(memory("new", "VPN gateway restarts"))
    assert names(ltm.keyword_search("bgp", 5)) == []
    assert names(ltm.keyword_search("vpn gateway", 5)) == ["new"]
    assert ltm.get_memory("none") is None
    assert ltm.counts()[MemoryType.SEMANTIC] == len(NOTES) + 1


def test_what_has_an_embedding_of_the_space_keeps_it(ltm: LongTermMemory) -> None:
    ready = ltm.prepare(memory("x", "one text"))
    assert ltm.prepare(ready.model_copy(update={"content": "another"})).embedding == ready.embedding
    foreign = ready.model_copy(update={"embedding_model": "another/128", "embedding": (1.0,)})
    assert ltm.prepare(foreign).embedding == ready.embedding


def test_ids_name_the_moment_and_differ_within_it(ltm: LongTermMemory) -> None:
    assert [ltm.new_id() for _ in range(3)] == ["mem:1800000000000", "mem:1800000000000_2", "mem:1800000000000_3"]
    assert ltm.new_id("doc") == "doc:1800000000000"
    assert ltm.new_id("mem", 5.0) == "mem:5000"


def test_both_lists_are_fused_by_reciprocal_rank(ltm: LongTermMemory, store: SqliteStore) -> None:
    query = "resolver timed out behind the peering"
    words = store.keyword_ids(query, 50)
    nearest = store.vector_ids(StubEmbeddings(128).embed([query])[0], 50)
    near = {name: similarity for name, similarity in nearest if similarity > ltm.floor}
    hits = ltm.search(query, 5)
    assert {hit.memory.id for hit in hits} == near.keys() | set(words) == {"dns", "peering"}
    for hit in hits:
        name = hit.memory.id
        by_word = words.index(name) + 1 if name in words else None
        by_vector = list(near).index(name) + 1 if name in near else None
        assert (hit.keyword_rank, hit.vector_rank) == (by_word, by_vector)
        assert hit.similarity == pytest.approx(dict(nearest)[name], abs=1e-6)
        vote = ((hit.similarity - ltm.floor) / (1 - ltm.floor)) ** 0.5 / (5 + by_vector) if by_vector else 0
        assert hit.score == pytest.approx((1 / (5 + by_word) if by_word else 0) + vote, abs=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].memory.id in ("dns", "peering")


def test_what_is_near_only_by_chance_does_not_go_before_words(ltm: LongTermMemory, store: SqliteStore) -> None:
    """Among thousands some always were the nearest, and stood before what held the words that were asked for."""
    ltm.keep([memory(f"noise-{n}", f"zq{n} wv{n * 7} xk{n * 13} jj{n * 17}") for n in range(1500)])
    ltm.upsert_memory(memory("held", "quorn frobnicates " + " ".join(f"pad{n}" for n in range(60))))
    nearest = store.vector_ids(StubEmbeddings(128).embed(["quorn blivet"])[0], 50)
    assert nearest[0][0] != "held"
    hits = ltm.search("quorn blivet", 5)
    assert hits[0].memory.id == "held"
    assert [hit.score for hit in hits[1:]] == sorted((hit.score for hit in hits[1:]), reverse=True)
    assert all(hit.score < hits[0].score / 2 for hit in hits[1:])


def test_a_search_for_what_no_memory_is_about_finds_nothing(ltm: LongTermMemory) -> None:
    assert ltm.search("chocolate cake", 10) == []
    assert ltm.search("recipe for lasagne, and a red wine", 10) == []
    ltm.keep([memory(f"m{n}", f"{NOTES['mtu']} in region {n}") for n in range(60)])
    assert ltm.search("chocolate cake in that region", 10) == []  # a word that many hold is a chance match
    ltm.upsert_memory(memory("party", "In the server room Jonas keeps coffee, plates, a kettle and chocolate"))
    assert ltm.search("how do I bake a chocolate cake", 10) == []  # one word of three
    for asked in ("coffee and chocolate for the visitors of today", "what does Jonas look after these days, and why"):
        assert [hit.memory.id for hit in ltm.search(asked, 10)] == ["party"], asked


def test_the_name_of_a_resource_finds_its_memories_however_many_there_are(ltm: LongTermMemory) -> None:
    ltm.store.apply(Changes(memories=[memory(f"m{n}", f"redis-cache-01 got part {n} at last") for n in range(60)]))
    for query in ("what happened to redis-cache-01?", "customers lose baskets in the storefront since redis-cache-01"):
        assert len(ltm.search(query, 5)) == 5, query
    assert ltm.search("what happened to redis-cache-02?", 5) == []


def test_a_tag_is_no_word_of_the_text(ltm: LongTermMemory) -> None:
    tags = ("told", "change")
    ltm.keep([memory(f"m{n}", f"Ana moved shop-vm{n} to 10.4.0.{n}", tags=tags) for n in range(9)])
    assert ltm.search("a change of the weather", 10) == []
    ltm.upsert_memory(memory("done", "The change of the partner's weather feed is finished", tags=tags))
    assert [hit.memory.id for hit in ltm.search("a change of the weather", 10)] == ["done"]


def test_chance_is_measured_once_for_each_space_and_kept(ltm: LongTermMemory, clock: FixedClock) -> None:
    measured = ltm.floor
    assert 0.2 < measured < 0.5
    assert (ltm.closeness(0.0), ltm.closeness(measured), ltm.closeness(1.0)) == (0.0, 0.0, 1.0)
    assert LongTermMemory(ltm.store, Failing(128, good=0), clock).floor == measured
    with pytest.raises(ProviderError):
        _ = LongTermMemory(ltm.store, Failing(64, good=0), clock).floor
    assert LongTermMemory(ltm.store, StubEmbeddings(384), clock).floor < measured


def test_in_a_space_where_all_texts_are_similar_nothing_is_close_either(tmp_path: Path, clock: FixedClock) -> None:
    embeddings = Lopsided()
    store = SqliteStore(tmp_path / "other.sqlite3", embeddings.name, embeddings.dim)
    made = LongTermMemory(store, embeddings, clock)
    made.keep([memory(name, text) for name, text in NOTES.items()])
    assert made.floor > 0.8
    assert made.search("chocolate cake", 10) == []
    assert made.search("lost packets and MTU", 10)[0].memory.id == "mtu"
    store.close()


def test_search_obeys_the_filter_and_the_number_asked_for(ltm: LongTermMemory) -> None:
    ltm.upsert_memory(memory("other", "NSG denies 443", type=MemoryType.EPISODIC))
    where = Filter(types=frozenset({MemoryType.SEMANTIC}), tags=frozenset({"note"}))
    assert [hit.memory.id for hit in ltm.search("NSG denies 443", 10, where)] == ["nsg"]
    assert {hit.memory.id for hit in ltm.search("NSG denies 443", 10)} == {"nsg", "other"}
    assert len(ltm.search("NSG denies 443", 1)) == 1
    assert ltm.search("  ", 5) == ltm.search("nsg", 0) == []
    assert names(one for one, _ in ltm.vector_search(StubEmbeddings(128).embed(["route 10.7.0.0/16"])[0], 1)) == [
        "route"
    ]


def test_what_search_returns_counts_as_accessed_unless_nobody_asked(ltm: LongTermMemory, clock: FixedClock) -> None:
    (hit,) = ltm.search("tunnel MTU", 1, counts_as_access=False)
    assert ltm.get_memory(hit.memory.id) == hit.memory
    clock.at = 1_900_000_000.0
    (hit,) = ltm.search("tunnel MTU", 1)
    accessed = ltm.get_memory(hit.memory.id)
    assert accessed is not None
    assert accessed.last_access == 1_900_000_000.0


class Unwritable(SqliteStore):
    def touch(self, ids: Sequence[str], at: float) -> None:
        raise StoreError("the disk is full")


def test_search_works_where_nothing_can_be_written(tmp_path: Path, clock: FixedClock) -> None:
    store = Unwritable(tmp_path / "other.sqlite3", StubEmbeddings(128).name, 128)
    made = LongTermMemory(store, StubEmbeddings(128), clock)
    made.upsert_memory(memory("a", "alpha"))
    assert [hit.memory.id for hit in made.search("alpha")] == ["a"]
    store.close()


def test_forget_says_how_many_there_were(ltm: LongTermMemory) -> None:
    assert ltm.forget(["nsg", "none", "dns"]) == 2
    assert ltm.forget(["nsg"]) == 0
    assert ltm.search("NSG resolver", 10) == []


def test_an_export_comes_back(ltm: LongTermMemory, tmp_path: Path, clock: FixedClock) -> None:
    assert ltm.export_jsonl(tmp_path / "out.jsonl") == len(NOTES)
    store = SqliteStore(tmp_path / "other.sqlite3", StubEmbeddings(128).name, 128)
    other = LongTermMemory(store, StubEmbeddings(128), clock)
    assert other.import_jsonl(tmp_path / "out.jsonl") == len(NOTES)
    assert other.search("resolver", 1)[0].memory == ltm.search("resolver", 1, counts_as_access=False)[0].memory
    store.close()


# --- another space ---


def _other_space(tmp_path: Path, clock: FixedClock, embeddings: StubEmbeddings) -> LongTermMemory:
    """The store of `store` and `ltm`, opened for embeddings of another size."""
    return LongTermMemory(SqliteStore(tmp_path / "ghost.sqlite3", embeddings.name, embeddings.dim), embeddings, clock)


def test_after_a_change_of_space_words_find_until_all_is_embedded_anew(
    ltm: LongTermMemory, tmp_path: Path, clock: FixedClock
) -> None:
    ltm.store.close()
    changed = _other_space(tmp_path, clock, StubEmbeddings(64))
    (hit,) = changed.search("resolver", 10)
    assert (hit.memory.id, hit.keyword_rank, hit.vector_rank, hit.similarity) == ("dns", 1, None, None)
    changed.upsert_memory(memory("late", "resolver late"))
    found = {hit.memory.id: hit.vector_rank for hit in changed.search("resolver", 10)}
    assert found == {"late": 1, "dns": None}
    assert changed.embed_anew(lambda: True) == 0
    assert changed.embed_anew() == len(NOTES)
    assert changed.embed_anew() == 0
    hits = changed.search("resolver", 10)
    assert {hit.memory.id for hit in hits} == {"dns", "late"}
    assert all(hit.similarity is not None for hit in hits)
    kept = changed.get_memory("dns")
    assert kept is not None
    assert (len(kept.embedding), kept.embedding_model) == (64, StubEmbeddings(64).name)
    changed.store.close()


def test_embedding_anew_stops_between_batches_and_goes_on_later(
    ltm: LongTermMemory, tmp_path: Path, clock: FixedClock
) -> None:
    ltm.keep([memory(f"m{n}", f"note number {n}") for n in range(150)])
    ltm.store.close()
    failing = Failing(64, good=1)
    changed = _other_space(tmp_path, clock, failing)
    with pytest.raises(ProviderError):
        changed.embed_anew()
    left = len(changed.store.without_embedding(1000))
    assert 0 < left < 150 + len(NOTES)
    failing.good = 1000
    asked = iter([False, True])
    done = changed.embed_anew(lambda: next(asked))
    assert 0 < done < left
    assert changed.embed_anew() == left - done
    assert changed.store.without_embedding(1) == []
    changed.store.close()


def test_embedding_anew_goes_on_after_a_kill_in_the_middle(
    ltm: LongTermMemory, tmp_path: Path, clock: FixedClock
) -> None:
    """Another size of the stub, and 40 ms for each text, so that the kill meets a batch; words are found meanwhile."""
    ltm.keep([memory(f"m{n}", f"note number {n}") for n in range(250)])
    ltm.store.close()
    program = """
import sys, time
from pathlib import Path
from ghost.mind import LongTermMemory
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers.stub import StubEmbeddings
from ghost.records import SystemClock
class Slow(StubEmbeddings):
    def embed(self, texts, kind="document"):
        print(len(texts), flush=True)
        time.sleep(0.2)
        return super().embed(texts, kind)
embeddings = Slow(64)
LongTermMemory(SqliteStore(Path(sys.argv[1]), embeddings.name, 64), embeddings, SystemClock()).embed_anew()
"""
    command = [sys.executable, "-c", program, str(tmp_path / "ghost.sqlite3")]
    left = 250 + len(NOTES)
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert [int(child.stdout.readline()) for _ in range(2)] == [64, 64]  # the first batch is written
            child.kill()
        changed = _other_space(tmp_path, clock, StubEmbeddings(64))
        before, left = left, len(changed.store.without_embedding(1000))
        assert left == before - 64
        assert "dns" in {hit.memory.id for hit in changed.search("resolver", 10)}
        changed.store.close()
    changed = _other_space(tmp_path, clock, StubEmbeddings(64))
    assert changed.embed_anew() == left
    changed.store.close()


def test_what_changes_while_it_is_embedded_is_embedded_again(
    ltm: LongTermMemory, tmp_path: Path, clock: FixedClock
) -> None:
    """A text that is replaced between being read and being embedded does not keep the old text's embedding."""
    ltm.store.close()

    class Meddling(StubEmbeddings):
        def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
            vectors = super().embed(texts, kind)
            if len(texts) == len(NOTES):
                changed.store.apply(Changes(memories=[memory("dns", "something else entirely")]))
            return vectors

    changed = _other_space(tmp_path, clock, Meddling(64))
    changed.embed_anew()
    kept = changed.get_memory("dns")
    assert kept is not None
    assert kept.content == "something else entirely"
    assert kept.embedding == pytest.approx(StubEmbeddings(64).embed([kept.content])[0], abs=1e-6)
    changed.store.close()
