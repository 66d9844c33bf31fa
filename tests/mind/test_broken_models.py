"""A server whose model always cuts or breaks its JSON costs decisions and summaries, never a cycle or what was told."""

from __future__ import annotations

import json

import pytest

from ghost.mind import Memory
from ghost.mind.decisions import SCHEMA as DECISION
from ghost.mind.summaries import SCHEMA as SUMMARY
from tests.mind.minds import START, Naming, SteppedClock, mind, stimulus
from tests.providers.dialects import OPENAI
from tests.providers.servers import ModelServerScript, WaitingClock, answer

BROKEN = {
    "cut": OPENAI.text('{"should_store": true, "type": "episodic", "reason": "it is', cut=True),
    "prose": OPENAI.text("I would rather keep this."),
    "empty": OPENAI.text(""),
    "list": OPENAI.text("[1, 2, 3]"),
    "other": OPENAI.text('{"should_store": "perhaps"}'),
}
CYCLES = 16


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_no_cycle_fails_though_every_decision_is_broken(tmp_path, broken):
    def play(connection) -> None:
        asked = server.requests[-1].json
        is_decision = "STORE_DECIDER" in json.dumps(asked["messages"])
        said = OPENAI.text(f"#insight v{len(server.requests)} waits")
        answer(200, broken if is_decision else said)(connection)

    with ModelServerScript([play]) as server:
        clock = SteppedClock()
        engine = mind(tmp_path, OPENAI.model(server.url, WaitingClock(), 5.0), clock, [Naming()])
        for number in range(CYCLES):
            clock.passes(30)
            result = engine.cycle([stimulus(f"Ana moved shop-vm{number} to 10.4.0.{number + 1}", number)])
            assert result.thought is not None
            assert result.stored is None
    told = {memory.content for memory in engine.store.memories()}
    assert len(told) == CYCLES
    numbers = engine.observe()
    assert (numbers["cycle_failures"], numbers["thoughts"]) == (0, CYCLES)
    assert numbers["decisions_malformed"] >= CYCLES


def test_a_summary_that_is_cut_is_written_from_the_episodes(tmp_path):
    with ModelServerScript([answer(200, OPENAI.text('{"summary": "the fire', cut=True))]) as server:
        engine = mind(tmp_path, OPENAI.model(server.url, WaitingClock(), 5.0))
        for day in range(2):
            text = f"shop-vm{day} was cut off. Cause: rule deny-all of hub-nsg denies port 443"
            engine.ltm.keep([_episode(text, day)])
        assert engine.consolidate().summaries == 1
        assert server.requests


def _episode(text: str, day: int) -> Memory:
    at = START + day * 100_000.0
    return Memory(id=f"mem:{day}", type="episodic", content=text, created_at=at, last_access=at)


def test_every_string_and_list_of_a_schema_is_bounded():
    def check(schema: dict, path: str) -> None:
        if schema.get("type") == "string":
            assert "maxLength" in schema or "enum" in schema, path
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
            check(schema["items"], f"{path}[]")
        for name, inner in schema.get("properties", {}).items():
            check(inner, f"{path}.{name}")

    check(DECISION, "decision")
    check(SUMMARY, "summary")
