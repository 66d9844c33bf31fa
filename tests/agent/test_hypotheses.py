"""A hypothesis changes its state only as the table allows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.agent.hypotheses import (
    MAX_ACTIVE,
    TRANSITIONS,
    DenialEvent,
    Hypothesis,
    HypothesisLog,
    IllegalHypothesisChange,
    State,
)

AT = "2026-01-01T00:00:00.000Z"
EVENT, SECOND, THIRD, FOURTH = (
    DenialEvent(turn=1, command="az x", denial_reason=None, audit_id=f"s_00{number}") for number in (1, 2, 3, 4)
)


def log_with(*ids: str) -> HypothesisLog:
    log = HypothesisLog([], [], [])
    for identity in ids:
        log.register(identity, f"about {identity}", "the opposite is seen", at=AT)
    return log


def test_a_hypothesis_needs_what_would_refute_it():
    with pytest.raises(IllegalHypothesisChange, match="refute"):
        log_with().register("h1", "an NSG denies 6379", " ", at=AT)


def test_at_most_three_are_tested_at_a_time():
    log = log_with("h1", "h2", "h3", "h4")
    assert [row["active"] for row in log.summary()] == [True, True, True, False]
    with pytest.raises(IllegalHypothesisChange, match="the maximum is three"):
        log.activate("h4")
    log.resolve("h1", State.REFUTED, ["s_001"], at=AT)
    log.activate("h4")
    assert [row["active"] for row in log.summary()] == [False, True, True, True]


def test_registering_the_same_again_is_harmless_and_another_under_its_id_is_not():
    log = log_with("h1")
    log.register("h1", "about h1", "the opposite is seen", at=AT)
    assert len(log.summary()) == 1
    with pytest.raises(IllegalHypothesisChange, match="another hypothesis"):
        log.register("h1", "something else", "x", at=AT)


def test_a_resolution_needs_evidence():
    with pytest.raises(IllegalHypothesisChange, match="audit_ids"):
        log_with("h1").resolve("h1", State.CONFIRMED, [], at=AT)


def test_three_denials_make_it_unverifiable_and_success_in_between_does_not_wipe_the_count():
    log = log_with("h1")
    assert log.denied("h1", EVENT, 3, at=AT).state == State.DENIED_ONCE
    log.succeeded(["h1"])
    assert log.get("h1").state == State.ACTIVE
    assert log.denied("h1", EVENT, 3, at=AT) is None, "counted before the session was interrupted"
    assert log.denied("h1", SECOND, 3, at=AT).state == State.DENIED_TWICE
    assert log.denied("h1", THIRD, 3, at=AT).state == State.UNVERIFIABLE
    assert not log.summary()[0]["active"]
    assert log.denied("h1", FOURTH, 3, at=AT) is None
    with pytest.raises(IllegalHypothesisChange, match="cannot become CONFIRMED"):
        log.resolve("h1", State.CONFIRMED, ["s_002"], at=AT)


def test_a_contradiction_is_open_until_the_better_source_settles_it():
    log = log_with("h1")
    with pytest.raises(IllegalHypothesisChange, match="two audit_ids"):
        log.contradict("h1", ["s_001"], None, "")
    conflicts = log._conflicts
    log.contradict("h1", ["s_001", "s_002"], "capture (tier 1)", "ping timed out, the capture shows the reply")
    assert log.get("h1").state == State.CONTRADICTED
    assert conflicts[0].resolution is None
    log.resolve("h1", State.REFUTED, ["s_002"], at=AT)
    assert conflicts[0].resolution == "REFUTED"


def test_new_evidence_reopens_a_resolved_hypothesis():
    log = log_with("h1")
    log.resolve("h1", State.CONFIRMED, ["s_001"], at=AT)
    log.activate("h1")
    assert log.get("h1").state == State.ACTIVE
    assert log.get("h1").resolving_audit_id is None
    log.resolve("h1", State.REFUTED, ["s_009"], at=AT)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(State, State)))
def test_only_listed_transitions_happen(old, new):
    hypothesis = Hypothesis(id="h", description="d", refuted_by="r", state=old, created_at=AT)
    if new in TRANSITIONS[old]:
        HypothesisLog._move(hypothesis, new)
        assert hypothesis.state == new
    else:
        with pytest.raises(IllegalHypothesisChange):
            HypothesisLog._move(hypothesis, new)
        assert hypothesis.state == old


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["register", "activate", "confirm", "refute", "contradict", "deny", "succeed"]),
        st.sampled_from(["h1", "h2", "h3", "h4", "h5"]),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_whatever_is_asked_the_log_stays_sound(operations):
    log = HypothesisLog([], [], [])
    for number, (name, identity) in enumerate(operations):
        try:
            match name:
                case "register":
                    log.register(identity, "d", "r", at=AT)
                case "activate":
                    log.activate(identity)
                case "confirm":
                    log.resolve(identity, State.CONFIRMED, ["s_001"], at=AT)
                case "refute":
                    log.resolve(identity, State.REFUTED, ["s_001"], at=AT)
                case "contradict":
                    log.contradict(identity, ["s_001", "s_002"], None, "")
                case "deny":
                    log.denied(identity, EVENT.model_copy(update={"audit_id": f"s_{number}"}), 3, at=AT)
                case "succeed":
                    log.succeeded([identity])
        except IllegalHypothesisChange:
            pass
        active = [row for row in log.summary() if row["active"]]
        assert len(active) <= MAX_ACTIVE
        assert not any(row["state"] in {"CONFIRMED", "REFUTED", "UNVERIFIABLE"} for row in active)
        for row in log.summary():
            hypothesis = log.get(row["id"])
            assert (hypothesis.state in {State.CONFIRMED, State.REFUTED}) <= bool(hypothesis.audit_ids)
