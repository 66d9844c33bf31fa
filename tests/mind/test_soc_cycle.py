"""The stream of consciousness: what counts as a thought, when the next one is due, and that it ends when told."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.errors import ProviderError
from ghost.mind import Memory, StreamOfConsciousness
from ghost.mind.answer_fields import fields_of
from ghost.mind.cadence import SLOWEST_SECONDS, Cadence
from ghost.mind.decisions import decision
from ghost.mind.episodes import episode
from ghost.mind.questions import essence
from ghost.mind.thought_parsing import MAX_CHARS, MAX_WORDS, spoken
from ghost.records import SystemClock
from tests.mind.minds import Naming, SpeakingModel, SteppedClock, keep, mind, open_sqlite, stimulus, without_secrets

TAGS = ("#plan ", "#question ", "#insight ")


# --- what a model says ---


@pytest.mark.parametrize(
    ("said", "thought"),
    [
        ("#plan Check db-nsg.", "#plan Check db-nsg."),
        ("#INSIGHT:  two\n lines\tof  text", "#insight two lines of text"),
        ("Sure! Here it is:\n#plan Check db-nsg.", "#plan Check db-nsg."),
        ('```\n#plan "Check db-nsg."\n```', "#plan Check db-nsg"),
        ("1. #plan Check db-nsg. #insight It denies.", "#plan Check db-nsg."),
        ("#plan #question Which port?", "#question Which port?"),
        ("#plan", None),
        ("#plan ... #insight", None),
        ("", None),
        (" \n\x00\x1b[31m\u202e", None),
        ("?!", None),
        ("The nsg denies it", "#insight The nsg denies it"),
        ("Which port is it?", "#question Which port is it?"),
        ("#planning is hard", "#insight #planning is hard"),
        ("issue#plan of it", "#insight issue#plan of it"),
        ("#plan look\x1b[2J at \u202edb-nsg\x07", "#plan look at db-nsg"),
    ],
)
def test_what_a_model_says_is_a_tagged_sentence_or_nothing(said, thought):
    found = spoken(said, without_secrets)
    assert (found and found.content.rstrip(".")) == (thought and thought.rstrip("."))


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("#question Which port? Needed: port.", ("port",)),
        ("#question Who? Needed: source, destination , port", ("source", "destination", "port")),
        ("#question Who? needed: Port, port.", ("port",)),
        ("#question Needed: is it?", ()),
        ("#plan Check. Needed: port.", ()),
        ("#question Who? Needed: " + ", ".join(f"f{n}" for n in range(20)), tuple(f"f{n}" for n in range(8))),
    ],
)
def test_a_question_says_what_its_answer_has_to_hold(said, fields):
    assert spoken(said, without_secrets).required_fields == fields


@given(st.text() | st.text(alphabet="#plan question insight\n `\"'?.:,Needed", max_size=400))
def test_whatever_is_said_a_thought_is_one_short_tagged_line(text):
    found = spoken(text, without_secrets)
    if found is not None:
        assert found.content.startswith(TAGS)
        assert found.content.startswith(f"#{found.tag} ")
        assert len(found.content.split()) <= MAX_WORDS
        assert len(found.content) <= MAX_CHARS
        assert found.content.isprintable()
        again = spoken(found.content, without_secrets)
        assert again is not None
        assert again.tag == found.tag


@pytest.mark.parametrize("said", ["#plan " + "word " * 500, "#question " + "x" * 5000 + "?", "#insight " + "漢" * 3000])
def test_a_long_thought_is_cut_and_says_so(said):
    found = spoken(said, without_secrets)
    assert found.content.endswith("…")
    assert len(found.content.split()) <= 60
    assert len(found.content) <= MAX_CHARS


def test_what_a_question_needs_is_kept_when_its_words_are_cut():
    found = spoken("#question " + "word " * 100 + "? Needed: source, port.", without_secrets)
    assert found.required_fields == ("source", "port")
    assert found.content.endswith("Needed: source, port.")
    assert len(found.content.split()) == 60


def test_secrets_are_taken_from_what_a_model_says():
    found = spoken("#plan Log in with password=Hunter2Hunter2! at db-vm", without_secrets)
    assert "Hunter2" not in found.content
    assert "db-vm" in found.content


GOOD = {"should_store": True, "type": "semantic", "importance": 0.5, "tags": ["nsg"], "reason": "so"}


@pytest.mark.parametrize("wrapped", ["{}", "```json\n{}\n```", "  {}\n"])
def test_a_decision_is_json_of_its_form(wrapped):
    found = decision(wrapped.replace("{}", keep(type="semantic", importance=0.5)))
    assert (found.should_store, found.type, found.importance, found.tags) == (True, "semantic", 0.5, ("nsg",))


@pytest.mark.parametrize(
    "said",
    [
        "",
        "yes",
        "null",
        "[]",
        "{",
        "[" * 5000,
        keep(type="dream"),
        keep(importance=1.5),
        keep(importance=-0.1),
        keep(importance="NaN"),
        '{"should_store": true, "type": "episodic", "importance": NaN, "tags": []}',
        keep(should_store="yes"),
        keep(should_store=1),
        keep(tags="nsg"),
        keep(tags=None),
        keep(reason=["a"]),
        '{"type": "episodic", "importance": 0.5}',
        "Sure: " + keep(),
    ],
)
def test_anything_else_is_no_decision(said):
    assert decision(said) is None


def test_tags_that_are_none_are_left_out():
    found = decision(keep(tags=["NSG ", "no blanks", "<b>", 7, "nsg", "x" * 50, *(f"t{n}" for n in range(20))]))
    assert found.tags == ("nsg", *(f"t{n}" for n in range(7)))


BITS = [
    "Needed: a, ",
    "#plan ",
    "#question ",
    "a,",
    "```",
    "[",
    "{",
    "cause is at ",
    "because ",
    "a: ",
    "- a b ",
    "a-",
    "1.",
]
BITS += ["::", "0:", "\\", "\u0301", "?", " \n", "\t", "Cause: not yet still ", "fault at x"]


@pytest.mark.parametrize("bit", BITS)
def test_no_text_takes_long_to_read(bit):
    text = bit * (16_000 // len(bit))
    memory = Memory(id="mem:1", type="episodic", content=text, created_at=0, last_access=0)
    begun = time.process_time()
    spoken(text, str)
    decision(text)
    essence(text)
    fields_of(text, ["a b", "c"])
    episode(memory)
    assert time.process_time() - begun < 5  # some 0.05 s is usual; what grows with the square takes a minute


# --- when the next thought is due ---


def test_the_cadence_varies_by_a_tenth_and_no_more():
    cadence = Cadence(10, 1000, Random(1))
    waits = [cadence.succeeded(0, is_idle=False) for _ in range(500)]
    assert 9.0 <= min(waits) < 9.2
    assert 10.8 < max(waits) <= 11.0


def test_it_slows_down_while_nothing_is_new_and_recovers_at_once():
    cadence = Cadence(5, 1000, Random(1))
    waits = [cadence.succeeded(0, is_idle=True) for _ in range(12)]
    assert all(1.6 < later / sooner < 2.5 for sooner, later in pairwise(waits[:6]))
    assert max(waits) <= SLOWEST_SECONDS * 1.1
    assert cadence.soonest(0) == 0, "what comes in is thought of at once"
    assert cadence.succeeded(0, is_idle=False) <= 5.5


def test_it_waits_longer_after_each_failure_and_as_long_as_the_provider_says():
    cadence = Cadence(5, 1000, Random(1))
    waits = [cadence.failed(0) for _ in range(12)]
    assert all(1.6 < later / sooner < 2.5 for sooner, later in pairwise(waits[:5]))
    assert SLOWEST_SECONDS * 0.9 <= waits[-1] <= SLOWEST_SECONDS * 1.1
    assert cadence.failures == 12
    assert cadence.failed(0, 1000.0) == 1000.0
    assert cadence.soonest(10) == 1000.0, "nothing that comes in breaks a back-off"
    assert cadence.succeeded(1000, is_idle=False) < 1006
    assert (cadence.failures, cadence.soonest(1001)) == (0, 1001)


@given(st.lists(st.floats(0, 20), min_size=20, max_size=120), st.integers(1, 10))
def test_no_minute_has_more_thoughts_than_the_limit(gaps, limit):
    cadence = Cadence(0.01, limit, Random(1))
    now, begun = 0.0, []
    for gap in gaps:
        now = max(now + gap, cadence.soonest(now + gap))
        cadence.begins(now)
        begun.append(now)
        cadence.succeeded(now, is_idle=False)
    for at in begun:
        assert sum(at <= other < at + 60 - 1e-6 for other in begun) <= limit


def test_a_slow_cadence_is_never_made_faster():
    cadence = Cadence(3600, 30, Random(1))
    assert cadence.succeeded(0, is_idle=True) >= 3240
    assert cadence.failed(0) >= 3240


# --- the loop ---


def stream(engine, **given):
    chosen = replace(engine.settings, **{"soc_cadence_seconds": 0.01, "thoughts_per_minute": 1000} | given)
    return StreamOfConsciousness(engine, chosen, SystemClock(), Random(1))


def asking(folder, model):
    """A mind that has a question to ask, and its stream."""
    engine = mind(folder, model, clock=SystemClock())
    engine.ingest([stimulus("web-vm cannot reach db-vm")])
    return engine, stream(engine)


async def until(true, seconds: float = 8.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "not so in time"
        await asyncio.sleep(0.01)


def thoughts_of(model: SpeakingModel) -> int:
    return len(model.prompts("SOC"))


def test_it_thinks_on_its_own_until_it_is_stopped(tmp_path):
    model = SpeakingModel(thoughts=[f"#insight v{n % 300} waits" for n in range(500)])
    engine = mind(tmp_path, model, sources=[Naming()])
    soc = stream(engine)

    async def run():
        await soc.start()
        await soc.start()  # a second time changes nothing
        await until(lambda: len(engine.wm) >= 3)
        assert soc.running
        assert soc.status()["failures_in_a_row"] == 0
        await soc.stop()
        held = thoughts_of(model)
        await asyncio.sleep(0.1)
        assert thoughts_of(model) == held
        assert not soc.running
        await soc.start()
        await until(lambda: thoughts_of(model) > held)
        await soc.stop()
        await soc.stop()

    asyncio.run(run())
    engine.store.close()


def test_switched_off_it_does_nothing(tmp_path):
    model = SpeakingModel()
    soc = stream(mind(tmp_path, model), soc_enabled=False)

    async def run():
        await soc.start()
        await asyncio.sleep(0.1)
        assert not soc.running
        await soc.stop()

    asyncio.run(run())
    assert model.asked == []
    assert not soc.status()["enabled"]


def test_a_stimulus_is_thought_of_at_once_though_the_cadence_is_slow(tmp_path):
    model = SpeakingModel()
    engine = mind(tmp_path, model)
    soc = stream(engine, soc_cadence_seconds=600.0)

    async def run():
        await soc.start()
        await until(lambda: thoughts_of(model) == 1)
        await until(lambda: soc.next_at is not None)
        engine.ingest([stimulus("db-nsg denies web-vm, because deny-all was added")])
        await until(lambda: engine.waiting == 0)
        await soc.stop()

    asyncio.run(run())
    assert [memory.content for memory in engine.store.memories()] == [
        "db-nsg denies web-vm, because deny-all was added"
    ]


def test_a_model_that_fails_is_asked_less_and_less_and_the_error_is_told(tmp_path):
    failures = [ProviderError("no quota: wait", transient=True) for _ in range(4)]
    model = SpeakingModel(thoughts=[*failures, "#insight v1 is back"])
    engine = mind(tmp_path, model, sources=[Naming()])
    soc = stream(engine)
    asked: list[float] = []
    say = model.generate
    model.generate = lambda *given, **more: asked.append(time.monotonic()) or say(*given, **more)

    async def run():
        await soc.start()
        await until(lambda: soc.last_error == "no quota: wait")
        assert soc.status()["failures_in_a_row"] >= 1
        await until(lambda: len(engine.wm) == 1)
        await until(lambda: soc.last_error == "")
        await soc.stop()

    asyncio.run(run())
    gaps = [later - sooner for sooner, later in pairwise(asked[:5])]
    assert gaps[3] > gaps[0]
    assert gaps[3] >= 0.01 * 16 * 0.9
    assert engine.observe()["provider_errors"] == 4


def test_what_the_provider_says_to_wait_is_waited(tmp_path):
    model = SpeakingModel(thoughts=[ProviderError("slow down", transient=True, retry_after_seconds=0.6), "#plan Go on"])
    engine = mind(tmp_path, model)
    soc = stream(engine)

    async def run():
        begun = time.monotonic()
        await soc.start()
        await until(lambda: thoughts_of(model) == 1)
        engine.ingest([stimulus("something new")])  # does not break the wait
        await until(lambda: thoughts_of(model) == 2)
        assert time.monotonic() - begun >= 0.6
        await soc.stop()

    asyncio.run(run())


def test_tasks_and_questions_are_kept_up_to_date_though_no_model_answers(tmp_path):
    model = SpeakingModel(thoughts=[ProviderError("the key was revoked") for _ in range(500)])
    engine = mind(tmp_path, model, clock=SystemClock(), interrupt_expiry_seconds=1.0)
    asked = engine.interrupts.create("Which port?")
    soc = stream(engine)

    async def run():
        await soc.start()
        await until(lambda: engine.attention.get(f"task:{asked}") is not None)
        await until(lambda: engine.observe()["interrupts_expired"] == 1)
        await until(lambda: len(engine.attention) == 0)
        assert soc.last_error == "the key was revoked"
        await soc.stop()

    asyncio.run(run())


def test_any_mistake_in_a_cycle_leaves_the_stream_running(tmp_path):
    model = SpeakingModel(thoughts=[ZeroDivisionError("a mistake"), "#insight v1 is here"])
    engine = mind(tmp_path, model, sources=[Naming()])
    soc = stream(engine)

    async def run():
        await soc.start()
        await until(lambda: len(engine.wm) == 1)
        await soc.stop()

    asyncio.run(run())
    assert engine.wm.view(1)[0].content == "#insight v1 is here"


def test_it_ends_without_waiting_for_a_model_that_hangs_and_nothing_half_is_written(tmp_path):
    hangs = threading.Event()
    entered = threading.Event()

    def hang(_prompt: str) -> str:
        entered.set()
        hangs.wait(20)
        return "#insight too late"

    model = SpeakingModel(thoughts=[hang])
    engine = mind(tmp_path, model)
    engine.ingest([stimulus("web-vm cannot reach db-vm on port 5432")])
    soc = stream(engine)

    async def run() -> float:
        await soc.start()
        await until(entered.is_set)
        begun = time.monotonic()
        await soc.stop()
        return time.monotonic() - begun

    begun = time.monotonic()
    stopped = asyncio.run(run())
    assert stopped < 10
    assert time.monotonic() - begun < 15, "the loop's own end does not wait either"
    hangs.set()
    for thread in threading.enumerate():
        if thread.name == "mind-cycle":
            thread.join(10)
    after = open_sqlite(tmp_path)
    assert after.thoughts(10) == []
    assert engine.wm.view(10) == []
    assert mind(tmp_path).waiting == 1, "what it was thinking of still waits"


def test_while_its_question_is_open_it_neither_repeats_it_nor_guesses_but_thinks_of_what_comes_in(tmp_path):
    model = SpeakingModel()
    engine, soc = asking(tmp_path, model)

    async def run():
        await soc.start()
        await until(lambda: soc.paused)
        asked = thoughts_of(model)
        await asyncio.sleep(0.15)
        assert thoughts_of(model) == asked
        (query,) = engine.interrupts.list_open()
        assert soc.status()["paused"]
        engine.ingest([stimulus("dns zone corp.example is not linked to spoke-vnet", 2)])
        await until(lambda: thoughts_of(model) == asked + 1)
        await until(lambda: engine.waiting == 0)
        assert [each.id for each in engine.interrupts.list_open()] == [query.id]
        engine.interrupts.answer(query.id, "5432")
        await until(lambda: thoughts_of(model) > asked + 1)
        await until(lambda: not soc.paused)
        await soc.stop()

    asyncio.run(run())
    questions = [each for each in engine.wm.view(100) if each.content.startswith("#question")]
    assert len(questions) == 1


def test_a_question_that_expires_lets_it_go_on(tmp_path):
    model = SpeakingModel(
        thoughts=["#question Which port does v1 use? Needed: port.", *(f"#insight v{n} waits" for n in range(90))]
    )
    engine = mind(tmp_path, model, SystemClock(), [Naming()], interrupt_expiry_seconds=0.4)
    soc = stream(engine)

    async def run():
        await soc.start()
        await until(lambda: soc.paused)
        await until(lambda: len(engine.wm) >= 3)
        await soc.stop()

    asyncio.run(run())
    assert engine.observe()["interrupts_expired"] == 1


def test_what_another_process_left_is_found_while_it_waits_for_an_answer(tmp_path):
    engine, soc = asking(tmp_path, SpeakingModel())

    async def run():
        await soc.start()
        await until(lambda: soc.paused)
        other = mind(tmp_path)
        other.ingest([stimulus("dns zone corp.example is not linked to spoke-vnet", 2)])
        await until(lambda: engine.observe()["stimuli_consumed"] == 2)
        (query,) = other.interrupts.list_open()
        other.interrupts.answer(query.id, "5432")
        await until(lambda: not soc.paused)
        await soc.stop()

    asyncio.run(run())
    assert engine.interrupts.list_open() == []


def test_an_idle_stream_repeats_nothing_and_fills_nothing(tmp_path):
    model = SpeakingModel()
    engine = mind(tmp_path, model)
    engine.ingest([stimulus("web-vm reached db-vm again, because rule deny-pg was removed from db-nsg")])
    for _ in range(60):
        engine.cycle()
    contents = [each.content for each in engine.wm.view(1000)]
    assert len(contents) == len(set(contents))
    numbers = engine.observe()
    assert numbers["thoughts_repeated"] + numbers["thoughts_ungrounded"] > 40
    assert sum(engine.ltm.counts().values()) <= 9


def test_a_talkative_model_leaves_a_bounded_number_of_memories_while_nothing_is_new(tmp_path):
    thoughts = [f"#insight v{n} waits for {chr(97 + n * 7 % 26) * 5}" for n in range(60)]
    model = SpeakingModel(thoughts=thoughts, decisions=[keep() for _ in range(60)])
    engine = mind(tmp_path, model, SteppedClock(), [Naming()])
    for _ in range(30):
        engine.cycle()
    assert sum(engine.ltm.counts().values()) == 8
    engine.ingest([stimulus("news")])
    engine.cycle()
    assert sum(engine.ltm.counts().values()) == 9
    for _ in range(29):
        engine.cycle()
    assert sum(engine.ltm.counts().values()) == 17
