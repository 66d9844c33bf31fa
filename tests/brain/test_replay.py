"""What the brain keeps between turns is only a cache: resuming is reading the conversation again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.brain import Message, OfflineBrain, ResumeNote, ToolCall, ToolResults, Turn, UserMessage
from ghost.brain.offline.investigation import investigate
from ghost.brain.offline.revalidation import Rerun, compare
from ghost.brain.offline.steps import Call
from ghost.errors import BrainError
from tests.brain.lab_tenant import LabTenant, Played, deny, play
from tests.exhaustive import examples

SYMPTOM = "app-01 cannot reach cache-01 on port 6379"
DENIED = deny(6379)
NOTE = ResumeNote("interrupted")


WHOLE: dict[str, Callable[[], Played]] = {
    "denied": lambda: play(OfflineBrain(), SYMPTOM, LabTenant(DENIED)),
    "healthy": lambda: play(OfflineBrain(), SYMPTOM, LabTenant()),
    "asked": lambda: play(OfflineBrain(), "app-01 cannot reach the zeppelin", LabTenant(), lambda q: "cache-01"),
}


@cache
def played(name: str) -> Played:
    return WHOLE[name]()


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_every_turn_follows_from_the_conversation_before_it(name: str) -> None:
    conversation = played(name).conversation
    for place, message in enumerate(conversation):
        if isinstance(message, Turn):
            assert OfflineBrain().next_turn(conversation[:place]) == message


def test_the_same_conversation_gives_the_same_turn_from_the_same_brain_too() -> None:
    brain, conversation = OfflineBrain(), played("denied").conversation
    for place in (7, 3, 7, 5):
        assert brain.next_turn(conversation[:place]) == brain.next_turn(conversation[:place])


def test_the_investigation_waits_between_turns_and_starts_again_only_where_the_conversation_is_another() -> None:
    started = []

    def counted(*of: Any) -> Any:
        started.append(of)
        return investigate(*of)

    brain = OfflineBrain(counted)
    whole = play(brain, SYMPTOM, LabTenant(DENIED)).conversation
    assert len(started) == 1
    brain.next_turn(whole[:5])
    brain.next_turn(whole[:7])
    assert len(started) == 2
    brain.next_turn([*whole[:7], NOTE])
    assert brain.next_turn(whole[:7]) == whole[7]
    assert len(started) == 3


def test_a_call_whose_result_was_lost_is_made_again_and_only_that_one() -> None:
    conversation = list(played("denied").conversation[:3])
    results = conversation[2]
    assert isinstance(results, ToolResults)
    conversation[2] = ToolResults(results.results[:1])
    (call,) = OfflineBrain().next_turn(conversation).tool_calls
    assert (call.id, call.arguments["command"].split()[1:4]) == ("t2.1", ["network", "vnet", "list"])


def test_a_conversation_without_a_symptom_is_an_error() -> None:
    with pytest.raises(BrainError, match="no symptom"):
        OfflineBrain().next_turn([])


def test_an_investigation_that_has_concluded_does_not_go_on() -> None:
    with pytest.raises(BrainError, match="concluded"):
        OfflineBrain().next_turn(played("denied").conversation)


def test_a_conclusion_that_is_returned_is_drawn_again() -> None:
    *before, concluding, results = played("denied").conversation
    assert isinstance(results, ToolResults)
    returned = replace(results.results[-1], result={"status": "error", "error": "conclusion_incomplete"})
    (call,) = OfflineBrain().next_turn([*before, concluding, ToolResults((*results.results[:-1], returned))]).tool_calls
    assert call.arguments == concluding.tool_calls[-1].arguments


# Resume


def resumed(conversation: Sequence[Message], tenant: LabTenant) -> Played:
    return play(OfflineBrain(), SYMPTOM, tenant, conversation=[*conversation, NOTE])


def commands_in(conversation: Sequence[Message]) -> int:
    calls = [call for m in conversation if isinstance(m, Turn) for call in m.tool_calls]
    return sum(call.name == "run_shell_cmd" for call in calls)


@given(st.integers(1, 20))
@settings(max_examples=examples(12))
def test_wherever_it_was_cut_it_reaches_the_same_conclusion(place: int) -> None:
    conversation = played("denied").conversation[:place]
    again = resumed(conversation, LabTenant(DENIED, first=commands_in(conversation) + 1))
    assert again.completion["confirmed_hypotheses"] == ["H1"]
    assert again.coverage("nsg_inbound") == "at_fault"


def until_rules_are_judged(played: Played) -> list[Message]:
    """The conversation up to the turn that confirms or refutes H1, with its results."""
    for place, message in enumerate(played.conversation):
        if isinstance(message, Turn) and any(_resolves_h1(call) for call in message.tool_calls):
            return list(played.conversation[: place + 2])
    raise AssertionError("H1 was never judged")


def _resolves_h1(call: ToolCall) -> bool:
    return call.arguments.get("id") == "H1" and call.arguments.get("action") in ("confirm", "refute")


def test_after_an_interruption_the_critical_reads_run_again_first() -> None:
    conversation = until_rules_are_judged(played("denied"))
    turn = OfflineBrain().next_turn([*conversation, NOTE])
    commands = [call.arguments["command"] for call in turn.tool_calls]
    assert 2 <= len(commands) <= 3
    assert all(command.startswith("az ") for command in commands)
    assert any(" nsg " in command for command in commands), commands


def test_unchanged_facts_are_said_to_be_unchanged_with_both_records() -> None:
    conversation = until_rules_are_judged(played("denied"))
    again = resumed(conversation, LabTenant(DENIED, first=commands_in(conversation) + 1))
    after = again.turns[sum(isinstance(m, Turn) for m in conversation) + 1]
    assert "what it said in s_0" in after.text
    assert again.completion["confirmed_hypotheses"] == ["H1"]
    (cause,) = again.completion["causes"]
    judged = (
        call.arguments for m in conversation if isinstance(m, Turn) for call in m.tool_calls if _resolves_h1(call)
    )
    assert set(cause["audit_ids"]) & set(next(judged)["audit_ids"])


def test_a_deny_that_has_gone_reopens_its_hypothesis_and_the_wire_is_looked_at() -> None:
    conversation = until_rules_are_judged(played("denied"))
    again = resumed(conversation, LabTenant(first=commands_in(conversation) + 1))
    reopening = again.turns[sum(isinstance(m, Turn) for m in conversation) + 1]
    assert "gone" in reopening.text
    assert "deny-it" in reopening.text
    assert {"action": "activate", "id": "H1"} in [call.arguments for call in reopening.tool_calls]
    assert again.completion["root_cause_summary"].startswith("No cause found")
    assert "H1" in again.completion["refuted_hypotheses"]
    assert again.tenant.hypotheses["H1"] == "REFUTED"


def test_a_deny_that_has_come_is_found_after_resume() -> None:
    conversation = until_rules_are_judged(played("healthy"))
    again = resumed(conversation, LabTenant(DENIED, first=commands_in(conversation) + 1))
    assert again.completion["confirmed_hypotheses"] == ["H1"]


def test_a_read_that_cannot_run_again_leaves_the_earlier_answer() -> None:
    conversation = until_rules_are_judged(played("denied"))
    again = resumed(conversation, LabTenant(DENIED, denied=("nsg",), first=commands_in(conversation) + 1))
    assert "could not be run again" in again.text
    assert again.completion["confirmed_hypotheses"] == ["H1"]


def test_an_interruption_after_the_conclusion_leads_to_a_new_one() -> None:
    whole = played("denied").conversation
    again = resumed(whole, LabTenant(first=commands_in(whole) + 1))
    assert again.completion["root_cause_summary"].startswith("No cause found")


def test_an_interruption_before_anything_was_read_changes_nothing() -> None:
    start: list[Message] = [UserMessage(SYMPTOM)]
    assert OfflineBrain().next_turn([*start, NOTE]) == OfflineBrain().next_turn(start)


@given(st.lists(st.integers(0, 14), max_size=3, unique=True))
@settings(max_examples=examples(15))
def test_any_number_of_interruptions_is_survived(places: list[int]) -> None:
    tenant: Any = LabTenant(DENIED)
    told: list[Message] = [UserMessage(SYMPTOM)]
    brain = OfflineBrain()
    for number in range(60):
        if number in places:
            told.append(NOTE)
        turn = brain.next_turn(told)
        assert turn == OfflineBrain().next_turn(told)
        told.append(turn)
        told.append(ToolResults(tuple(tenant.call(call) for call in turn.tool_calls)))
        if turn.tool_calls[-1].name == "complete_investigation":
            assert turn.tool_calls[-1].arguments["confirmed_hypotheses"] == ["H1"]
            return
    raise AssertionError("no conclusion")


DIFFERENCES = [
    (
        [
            {
                "name": "g",
                "etag": "1",
                "rules": [{"name": "deny", "access": "Deny", "ports": ["1", "2"]}, {"name": "ok"}],
            }
        ],
        [{"name": "g", "etag": "2", "rules": [{"name": "ok"}], "subnets": [{"id": "/s/b"}]}],
        ["gone: g rules deny (access Deny, ports 1, ports 2)", "new: g subnets (b)"],
    ),
    ({"v": [{"p": ["10.0.0.0/8"]}, {"p": ["0.0.0.0/0"]}]}, {"v": [{"p": ["0.0.0.0/0"]}]}, ["gone: v p 10.0.0.0/8"]),
    ([{"name": "g", "access": "Allow"}], [{"name": "g", "access": "Deny"}], ["g access Allow became Deny"]),
    ([], ['{"name": "x", "open": true}'], ["new: x (open true)"]),
    ("one", "two", ["one became two"]),
    ([{"name": "g", "time": "1"}], [{"time": "2", "name": "g"}], []),
]


@pytest.mark.parametrize(("before", "after", "told"), DIFFERENCES)
def test_what_an_answer_says_otherwise_is_told_in_few_words(before: Any, after: Any, told: list[str]) -> None:
    def result(value: Any) -> dict[str, Any]:
        return {"status": "completed", "exit_code": 0, "audit_id": "s_001", "output": json.dumps(value)}

    change = compare(Rerun(Call("run_shell_cmd", {"command": "az network nsg list"}), result(before)), result(after))
    assert list(change.differences) == told
