"""What is told is remembered as told, whatever the model makes of it; a correction replaces what it corrects."""

from __future__ import annotations

import time

import pytest

from ghost.errors import ProviderError
from ghost.mind import Engine, Memory, Stimulus
from ghost.mind.facts_in_text import is_fact, mentions, statements, tells_change
from tests.mind.minds import START, SpeakingModel, SteppedClock, mind, open_sqlite

SESSION = "ghost_20260101_093537"
ROUTINE = f"Investigation {SESSION} ran a command that ended with exit status 0: az (safe), record {SESSION}_004."
FAILED = f"Investigation {SESSION} had a command refused: az vm delete (destructive), record {SESSION}_005."


def tell(engine: Engine, *texts: str, source: str = "cli", at: float = START) -> None:
    ids = engine.store.new_ids("stim", at, len(texts))
    engine.ingest(
        [Stimulus(id=name, source=source, content=text, ts=at) for name, text in zip(ids, texts, strict=True)]
    )
    while engine.waiting:
        engine.cycle()


def told(engine: Engine) -> list[Memory]:
    return [memory for memory in engine.store.memories() if "told" in memory.tags]


def test_each_fact_of_a_list_is_a_memory_as_told_in_the_order_of_the_list(tmp_path):
    texts = [f"rule allow-{letter} of web-nsg was added by Ana" for letter in "zyxwvutsrqponmlkjihg"]
    engine = mind(tmp_path, SpeakingModel(["#insight web-nsg was changed"] * 9))
    tell(engine, *texts)
    kept = [memory for memory in open_sqlite(tmp_path).memories() if "told" in memory.tags]
    assert [memory.content for memory in kept] == texts
    assert all(START <= memory.created_at < START + 0.001 for memory in kept)
    assert len({memory.metadata["stimuli"][0] for memory in kept}) == len(texts)
    assert all("web-nsg" in memory.metadata["resources"] for memory in kept)
    assert all("change" in memory.tags and memory.embedding for memory in kept)


def test_routine_successes_and_small_talk_are_not_remembered_and_failures_are(tmp_path):
    engine = mind(tmp_path)
    tell(engine, ROUTINE, FAILED, source="audit")
    tell(engine, "thanks", "good morning", "ok", "looking into it", at=START + 1)
    assert [memory.content for memory in told(engine)] == [FAILED]
    assert engine.wm.view(9) == []
    tell(engine, ROUTINE, at=START + 2)
    assert len(told(engine)) == 2, "a person's words are kept"


def test_a_memory_that_cannot_be_embedded_is_kept_once_the_tries_are_used_up(tmp_path):
    engine = mind(tmp_path)
    engine.ltm.embeddings.embed = lambda _texts, _kind="document": (_ for _ in ()).throw(
        ProviderError("gone", transient=True)
    )
    engine.ingest([Stimulus(id="stim:1", source="cli", content="Lena owns hub-fw", ts=START)])
    for _ in range(2):
        with pytest.raises(ProviderError):
            engine.cycle()
    engine.cycle()
    (kept,) = told(engine)
    assert (kept.content, kept.embedding) == ("Lena owns hub-fw", ())


CORRECTIONS = [
    ("pay-db moved to 10.4.0.6", "Ana moved pay-db to 10.4.0.7", "what is the address of pay-db"),
    ("cache-vm listens on port 6379", "Correction: cache-vm listens on 6380, not on 6379", "port of cache-vm"),
    ("hub-fw belongs to the platform team", "Lena took over hub-fw", "who owns hub-fw"),
    (
        "The DNS forwarder has the address 10.9.0.4",
        "we switched the DNS forwarder to 10.9.0.5",
        "dns forwarder address",
    ),
]


@pytest.mark.parametrize(("old", "new", "asked"), CORRECTIONS)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_told_fact_that_contradicts_comes_before_the_one_it_corrects(tmp_path, old, new, asked, at_once):
    engine = mind(tmp_path, clock=SteppedClock(START + 9))
    if at_once:
        tell(engine, old, new)
    else:
        tell(engine, new, at=START + 5)
        tell(engine, old)  # told before, and heard after
    tell(engine, "web-vm listens on port 22 at 10.1.1.1 and Omar owns web-nsg", at=START + 6)
    by_text = {memory.content: memory for memory in told(engine)}
    assert by_text[old].metadata["superseded_by"] == by_text[new].id
    assert "superseded_by" not in by_text[new].metadata
    found = [hit.memory.content for hit in engine.ltm.search(asked, 5)]
    assert found.index(new) < found.index(old) == len(found) - 1


def test_a_second_answer_replaces_the_first(tmp_path):
    clock = SteppedClock()
    engine = mind(tmp_path, clock=clock)
    for answer in ("443", "8443"):
        query = engine.interrupts.create("Which port does web-vm use?", required_fields=["port"])
        engine.interrupts.answer(query, answer)
        engine.cycle()
        clock.passes(60)
    first, second = told(engine)
    assert (first.metadata["values"], second.metadata["values"]) == ({"web-vm|port": "443"}, {"web-vm|port": "8443"})
    assert first.metadata["superseded_by"] == second.id
    assert engine.ltm.search("port of web-vm", 1)[0].memory.id == second.id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("web-vm cannot reach db-vm on port 5432", "web-vm cannot reach db-vm on port 443"),
        ("pay-db moved to 10.4.0.6", "pay-db listens on port 5433"),
        ("pay-db moved to 10.4.0.6", "cart-db moved to 10.4.0.7"),
        ("Ana moved pay-db to 10.4.0.7 and pay-db listens on port 5433", "pay-db moved to 10.4.0.8"),
    ],
)
def test_what_contradicts_nothing_or_only_a_part_replaces_nothing(tmp_path, one, other):
    engine = mind(tmp_path)
    tell(engine, one, other)
    assert not any("superseded_by" in memory.metadata for memory in told(engine))


def test_what_a_text_mentions_is_told_apart():
    found = mentions("Ask Ana: pay-db (10.4.0.7:5432) is up-to-date since 14:00, p95 300ms, see mem:17 and CHG-42.")
    assert found.identifiers == {"pay-db", "chg-42"}
    assert found.addresses == {"10.4.0.7"}
    assert found.numbers == {"5432", "95", "300"}
    assert found.times == {"14:00"}
    assert found.proper == {"ana"}
    for fact in (
        "the firewall change is done",
        "Lena looks after the backups",
        "standup is on Friday",
        "10.0.0.1 is up",
    ):
        assert is_fact(fact), fact
    for idle in ("thanks", "ok, will do", "lunch was cold", ""):
        assert not is_fact(idle), idle
    assert tells_change("the peering was removed")
    assert not tells_change("the peering is fine")


@pytest.mark.parametrize(
    "bit", ["the a ", "a-", "1.", "::", "web-vm is ", "moved a-b from 1.1.1.1 ", "Aa ", "now has "]
)
def test_no_text_takes_long(bit):
    text = bit * (4000 // len(bit))
    began = time.process_time()
    mentions(text)
    statements(text)
    is_fact(text)
    assert time.process_time() - began < 2
