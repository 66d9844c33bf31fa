"""A thought rests on texts that it names and shares names with; a question on one that lacks what it asks."""

from __future__ import annotations

import numpy as np
import pytest

from ghost.mind import Kind, Thought
from ghost.mind.distinct_thoughts import DistinctThoughts
from ghost.mind.grounding import sources_of
from ghost.mind.thought_parsing import spoken
from ghost.providers import Item
from ghost.providers.stub import StubEmbeddings
from tests.mind.minds import START, Lopsided, SpeakingModel, SteppedClock, keep, mind, stimulus
from tests.mind.mixed_stimuli import mixed

ITEMS = [
    Item("stim:1", "Ana moved pay-db to 10.4.0.7 on Tuesday"),
    Item("stim:2", "shop-vm cannot reach pay-db"),
    Item("stim:3", "app-2 times out to ledger-db since 9:40"),
    Item("mem:1", "cache-vm listens on port 6380"),
]

GROUNDED = [
    ("#insight pay-db is at 10.4.0.7 now. Sources: stim:1", "stim:1"),
    ("#insight pay-db is at 10.4.0.7 now.", "stim:1"),
    ("#plan Ask Ana about shop-vm and pay-db (Sources: stim:1, stim:2)", "stim:1 stim:2"),
    ("#plan Ask Ana about shop-vm", "stim:1 stim:2"),
    ("#insight port 6380 is open. Sources: mem:1, mem:99", "mem:1"),
    ("#question On which port does shop-vm fail to reach pay-db? Needed: port. Sources: stim:2", "stim:2"),
    ("#question Since when does shop-vm fail to reach pay-db?", "stim:2"),
    ("#question On which port does app-2 time out to ledger-db? Needed: port.", "stim:3"),
    ("#question Who owns pay-db? Needed: reason.", "stim:1"),
]
INVENTED = [
    "#insight Nothing new: all is quiet.",
    "#insight The printer is on fire.",
    "#insight mail-vm was moved to 10.9.9.9.",
    "#insight pay-db was moved to 10.9.9.9.",
    "#insight pay-db is down since 14:00.",
    "#insight pay-db answers on port 5432.",
    "#insight pay-db is at 10.4.0.7 now. Sources: mem:1",
    "#insight cache-vm and pay-db. Sources: stim:1",
    "#question Is the weather fine?",
    "#question Which port does cache-vm listen on? Needed: port.",
    "#question To which address was pay-db moved? Needed: address. Sources: stim:1",
    "#question When was pay-db moved? Needed: when.",
    "#question Who moved pay-db to 10.4.0.7, and when? Needed: time.",
    "#question Can shop-vm not reach pay-db? Needed: is_unreachable.",
    "#question Which port do pay-db and cache-vm share?",
    "#question What does shop-vm fail to reach? Needed: destination.",
]


@pytest.mark.parametrize(("said", "sources"), GROUNDED)
def test_a_thought_that_rests_on_texts_names_them(said, sources):
    assert sources_of(spoken(said, str), ITEMS) == tuple(sources.split())


@pytest.mark.parametrize("said", INVENTED)
def test_what_rests_on_nothing_is_no_thought(said):
    assert sources_of(spoken(said, str), ITEMS) == ()


def test_the_sources_are_no_part_of_the_thought():
    for ending in (" Sources: stim:1, mem:2", " (Source: stim:1, mem:2).", " Sources: [stim:1], [mem:2]"):
        found = spoken(f"#question Which port? Needed: port.{ending}", str)
        assert (found.content, found.sources) == ("#question Which port? Needed: port.", ("stim:1", "mem:2"))
        assert found.required_fields == ("port",)


@pytest.mark.parametrize("said", ["#insight mail-vm is down", "#question Which port does mail-vm use? Needed: port."])
def test_an_invention_is_kept_nowhere_whoever_made_it(tmp_path, said):
    engine = mind(tmp_path, SpeakingModel([said], [keep()]))
    events: list = []
    engine.subscribe(events.append)
    result = engine.cycle([stimulus("web-vm is slow")])
    assert (result.thought, result.stored, result.interrupts, result.stimuli) == (None, None, (), 1)
    assert engine.store.thoughts(9) == engine.interrupts.list_open() == []
    assert [memory.content for memory in engine.store.memories()] == ["web-vm is slow"]
    assert engine.observe()["thoughts_ungrounded"] == 1
    assert not any(event.kind is Kind.THOUGHT for event in events)


def test_near_duplicates_of_a_day_are_not_kept(tmp_path):
    clock = SteppedClock()
    said = ["#insight v1 waits for the link", "#plan V1  waits for THE link.", "#insight v1 waits for this link"]
    engine = mind(tmp_path, SpeakingModel([*said, said[0]]), clock)
    for number in range(3):
        engine.cycle([stimulus("v1 waits", number)])
    assert engine.observe()["thoughts_repeated"] == 2
    assert len(mind(tmp_path).wm.view(9)) == 1
    clock.passes(90_000)
    assert engine.cycle([stimulus("v1 waits", 5)]).thought is not None, "a day later it is news again"


@pytest.mark.parametrize("embeddings", [None, Lopsided()])
def test_of_its_own_thoughts_it_remembers_one_about_another_port_and_none_twice(tmp_path, embeddings):
    clock = SteppedClock()
    said = [f"#insight web-vm1 listens on port {port} since the patch" for port in (443, 443, 8443)]
    engine = mind(tmp_path, SpeakingModel(said, [keep()] * 3), clock, embeddings=embeddings)
    engine.cycle([stimulus("since the patch web-vm1 listens on port 443 and on port 8443")])
    for _ in range(2):
        clock.passes(90_000)
        engine.cycle()
    thoughts = [memory.content for memory in engine.store.memories() if "told" not in memory.tags]
    assert thoughts == [said[0], said[2]]


def test_of_many_mixed_stimuli_few_thoughts_are_near_duplicates_and_none_is_about_a_routine_success(tmp_path):
    clock = SteppedClock()
    engine = mind(tmp_path, clock=clock, wm_max_thoughts=10_000, wm_max_chars=10**7, wm_max_tokens=10**7)
    rows = mixed(400)
    for start in range(0, len(rows), 3):
        clock.passes(30)
        engine.ingest([each.model_copy(update={"ts": clock.at}) for each in rows[start : start + 3]])
        engine.cycle()
    thoughts = [thought.content for thought in engine.wm.view(10_000)]
    vectors = np.array(StubEmbeddings(384).embed(thoughts))
    near = sum(float((vectors[:n] @ vectors[n]).max()) >= 0.9 for n in range(1, len(thoughts)))
    assert len(thoughts) > 60
    assert near <= len(thoughts) / 10
    assert len({" ".join(thought.split()[:3]) for thought in thoughts}) > 20, "not one template"
    assert not any("exit status 0" in thought for thought in thoughts)
    kept = {memory.content for memory in engine.store.memories()}
    assert kept >= {each.content for each in rows if each.source != "audit" and len(each.content.split()) > 3}


def test_routine_successes_are_consumed_without_asking_the_model(tmp_path):
    """A success whose words name something, as `activity-log` here, is no news either."""
    text = "Investigation ghost_1 ran a command that ended with exit status 0: az monitor activity-log list (safe), r"
    routine = stimulus(text).model_copy(update={"source": "audit"})
    model = SpeakingModel()
    engine = mind(tmp_path, model)
    assert engine.cycle([routine]).thought is None
    assert model.asked == []
    engine.cycle([routine.model_copy(update={"id": "stim:2"}), stimulus("pay-db moved to 10.4.0.9", 3)])
    assert "exit status 0" not in model.prompts("SOC")[0]
    assert engine.waiting == 0


def test_questions_about_two_machines_are_two(tmp_path):
    held = DistinctThoughts([], mind(tmp_path).ltm)
    engine_thought = spoken("#question Which port does vm-1 use? Needed: port.", str).content
    held.add(Thought(id="thought:1", content=engine_thought, ts=START))
    assert held.holds("#question Which ports does vm-1 use?", START)
    assert not held.holds("#question Which port does vm-2 use? Needed: port.", START)
