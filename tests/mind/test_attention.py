"""Attention: the formula, and that the head of the heaps is the true maximum at any moment, whatever changed."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ghost.config import Settings
from ghost.mind import Attention, Task, TaskStatus, Weights
from ghost.mind.curves import RECENCY, URGENCY
from tests.exhaustive import examples
from tests.mind.minds import START, SteppedClock

HOUR = 3600.0
OFFERED = {TaskStatus.OPEN}


def task(name: str, **given) -> Task:
    return Task(**{"id": f"task:{name}", "title": name, "created_ts": START, "last_update_ts": START, **given})


def brute_force(each: Task, fit: float, weights: Weights, now: float) -> float:
    """The formula as the documents write it, without any heap."""
    left = None if each.deadline_ts is None else each.deadline_ts - now
    if left is None or left >= 24 * HOUR:
        urgency = 0.0
    elif left >= 4 * HOUR:
        urgency = 0.25 * (24 * HOUR - left) / (20 * HOUR)
    elif left >= HOUR:
        urgency = 0.25 + 0.25 * (4 * HOUR - left) / (3 * HOUR)
    elif left >= 0:
        urgency = 0.5 + 0.5 * (HOUR - left) / HOUR
    else:
        urgency = 1.0
    age = now - each.last_update_ts
    if age <= 0:
        recency = 1.0
    elif age <= HOUR:
        recency = 1 - 0.5 * age / HOUR
    elif age <= 24 * HOUR:
        recency = 0.5 * (24 * HOUR - age) / (23 * HOUR)
    else:
        recency = 0.0
    return (
        weights.urgency * urgency
        + weights.importance * each.importance
        + weights.uncertainty * each.uncertainty
        + weights.recency * recency
        + weights.goal_fit * fit
    )


unit = st.floats(0, 1)
moments = st.floats(-30 * HOUR, 30 * HOUR)


class AnyHistory(RuleBasedStateMachine):
    """Adds, updates, takes, removes and lets time pass in any order; compares with a plain list at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SteppedClock()
        self.weights = Weights(0.3, 0.25, 0.15, 0.1, 0.2)
        self.attention = Attention(self.weights, self.clock)
        self.known: dict[str, tuple[Task, float]] = {}

    @rule(
        name=st.integers(0, 12),
        due=st.none() | moments,
        updated=moments,
        importance=unit,
        uncertainty=unit,
        fit=unit,
        status=st.sampled_from([TaskStatus.OPEN] * 4 + list(TaskStatus)),
    )
    def add_or_update(self, name, due, updated, importance, uncertainty, fit, status):
        each = task(
            str(name),
            deadline_ts=None if due is None else self.clock.at + due,
            last_update_ts=self.clock.at + updated,
            importance=importance,
            uncertainty=uncertainty,
            status=status,
        )
        self.attention.add_or_update(each, fit)
        self.known[each.id] = (each, fit)

    @rule(seconds=st.sampled_from([0.0, 0.5, 60.0, 1800.0, HOUR, 4 * HOUR, 20 * HOUR, 24 * HOUR]) | st.floats(0, 1e5))
    def time_passes(self, seconds):
        self.clock.passes(seconds)

    @rule(seconds=st.floats(0, 30 * HOUR))
    def the_clock_is_set_back(self, seconds):
        self.clock.passes(-seconds)

    @rule(name=st.integers(0, 12))
    def remove(self, name):
        assert self.attention.remove(f"task:{name}") == (self.known.pop(f"task:{name}", None) is not None)

    @rule()
    def take(self):
        best = self.best_score()
        taken = self.attention.next_task()
        if taken is None:
            assert best is None
            return
        before, fit = self.known[taken.id]
        assert before.status in OFFERED
        assert brute_force(before, fit, self.weights, self.clock.at) == pytest.approx(best, abs=1e-9)
        assert taken.status is TaskStatus.DOING
        self.known[taken.id] = (taken, fit)

    @invariant()
    def the_head_is_the_true_maximum(self):
        best = self.best_score()
        head = self.attention.peek()
        if head is None:
            assert best is None
        else:
            assert self.score(head.id) == pytest.approx(best, abs=1e-9)

    @invariant()
    def the_best_k_are_the_best_k(self):
        scores = sorted((self.score(name) for name in self.offered()), reverse=True)
        found = self.attention.top_k(5)
        assert [score for _, score in found] == pytest.approx(scores[:5], abs=1e-9)
        assert len({each.id for each, _ in found}) == len(found)

    @invariant()
    def an_explanation_adds_up(self):
        for name in self.known:
            score = self.attention.explain(name)
            assert score.total == pytest.approx(self.score(name), abs=1e-9)
            assert score.total == pytest.approx(sum(part.contribution for part in score.components), abs=1e-9)

    def offered(self) -> list[str]:
        return [name for name, (each, _) in self.known.items() if each.status in OFFERED]

    def score(self, name: str) -> float:
        return brute_force(*self.known[name], self.weights, self.clock.at)

    def best_score(self) -> float | None:
        return max((self.score(name) for name in self.offered()), default=None)


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(
    ("left", "urgency"),
    [(48, 0.0), (24, 0.0), (14, 0.125), (4, 0.25), (2.5, 0.375), (1, 0.5), (0.5, 0.75), (0, 1.0), (-5, 1.0)],
)
def test_urgency_rises_with_the_deadline_and_an_overdue_task_has_all_of_it(left, urgency):
    assert URGENCY.at(-left * HOUR) == pytest.approx(urgency)


@pytest.mark.parametrize(("age", "recency"), [(-1, 1), (0, 1), (0.5, 0.75), (1, 0.5), (12.5, 0.25), (24, 0), (900, 0)])
def test_recency_falls_with_the_last_update(age, recency):
    assert RECENCY.at(age * HOUR) == pytest.approx(recency)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2))
def test_curves_never_turn_back(pair):
    earlier, later = sorted(pair)
    assert URGENCY.at(earlier) <= URGENCY.at(later) + 1e-12
    assert RECENCY.at(earlier) >= RECENCY.at(later) - 1e-12


def test_the_weights_are_those_of_the_settings():
    given = Settings(attention_urgency=1, attention_importance=0, attention_recency=0.5)
    assert Weights.of(given) == Weights(1, 0, 0.15, 0.5, 0.2)


def test_a_deadline_that_comes_near_overtakes_importance_without_any_update():
    clock = SteppedClock()
    attention = Attention(Weights(), clock)
    attention.add_or_update(task("weighty", importance=0.8), 0.5)
    attention.add_or_update(task("due", importance=0.3, deadline_ts=START + 20 * HOUR), 0.5)
    assert attention.peek().id == "task:weighty"
    clock.passes(19.5 * HOUR)
    assert attention.peek().id == "task:due"


def test_a_task_that_was_taken_is_not_offered_again_until_it_is_opened():
    clock = SteppedClock()
    attention = Attention(Weights(), clock)
    attention.add_or_update(task("one", importance=0.9))
    attention.add_or_update(task("two", importance=0.1))
    assert [attention.next_task().id, attention.next_task().id, attention.next_task()] == ["task:one", "task:two", None]
    assert attention.get("task:one").status is TaskStatus.DOING
    attention.add_or_update(attention.get("task:one").model_copy(update={"status": TaskStatus.OPEN}))
    assert attention.peek().id == "task:one"


@pytest.mark.parametrize("status", [TaskStatus.DONE, TaskStatus.BLOCKED])
def test_what_is_done_or_blocked_is_explained_and_never_offered(status):
    attention = Attention(Weights(), SteppedClock())
    attention.add_or_update(task("one", status=status, importance=1.0))
    assert attention.peek() is attention.next_task() is None
    assert attention.explain("task:one").total > 0
    assert attention.explain("task:other") is None


def test_an_explanation_says_each_part_in_words():
    attention = Attention(Weights(), SteppedClock())
    attention.add_or_update(task("one", deadline_ts=START + 1800, last_update_ts=START - 60, importance=0.4), 0.6)
    score = attention.explain("task:one")
    assert {part.name: round(part.value, 3) for part in score.components} == {
        "urgency": 0.75,
        "importance": 0.4,
        "uncertainty": 0.5,
        "recency": 0.992,
        "goal_fit": 0.6,
    }
    assert "urgency 0.75 x 0.30 = 0.225 (due in 30m 00s)" in str(score)
    assert "changed 1m 00s ago" in str(score)
    attention.add_or_update(task("late", deadline_ts=START - 60))
    assert "overdue for 1m 00s" in str(attention.explain("task:late"))


def test_of_equal_scores_the_older_task_comes_first():
    attention = Attention(Weights(), SteppedClock())
    attention.add_or_update(task("a", created_ts=START - 1))
    attention.add_or_update(task("b", created_ts=START - 2))
    assert attention.peek().id == "task:b"


@pytest.mark.parametrize("deadline", [float("inf"), float("-inf")])
def test_an_endless_deadline_breaks_nothing(deadline):
    attention = Attention(Weights(), SteppedClock())
    attention.add_or_update(task("endless", deadline_ts=deadline))
    attention.add_or_update(task("other", importance=0.1))
    assert {each.id for each, _ in attention.top_k(2)} == {"task:endless", "task:other"}


def test_updates_without_end_do_not_fill_the_heaps():
    attention = Attention(Weights(), SteppedClock())
    for number in range(5000):
        attention.add_or_update(task("one", importance=number / 5000))
    assert sum(len(heap) for heap in attention._heaps.values()) < 200
    assert len(attention._turns) < 200


def test_threads_add_and_take_at_once_and_no_task_is_taken_twice():
    attention = Attention(Weights(), SteppedClock())
    taken: list[str] = []

    def add(start: int) -> None:
        for number in range(200):
            attention.add_or_update(task(f"{start}-{number}", importance=number / 200))

    def take() -> None:
        for _ in range(300):
            if (each := attention.next_task()) is not None:
                taken.append(each.id)

    threads = [threading.Thread(target=add, args=(n,)) for n in range(3)] + [
        threading.Thread(target=take) for _ in "ab"
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    while (rest := attention.next_task()) is not None:
        taken.append(rest.id)
    assert len(taken) == len(set(taken)) == 600


def test_of_many_tasks_the_first_is_asked_for_at_any_time():
    clock = SteppedClock()
    attention = Attention(Weights(), clock)
    tasks = [
        task(
            str(n),
            importance=n % 997 / 997,
            deadline_ts=START + n * 4 if n % 3 else None,
            last_update_ts=START - n,
        )
        for n in range(5_000)
    ]
    for each in tasks:
        attention.add_or_update(each, 0.5)
    for _ in range(20):
        clock.passes(300)
        best = max(brute_force(each, 0.5, Weights(), clock.at) for each in tasks)
        assert attention.explain(attention.peek().id).total == pytest.approx(best, abs=1e-9)
