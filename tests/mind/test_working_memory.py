"""Working memory: budgets hold whatever comes, the newest stay, and weights fade by half-lives."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.mind import Thought, WorkingMemory
from ghost.mind.working_memory import CUT, estimated_tokens

contents = st.one_of(
    st.text(max_size=40), st.text(min_size=100, max_size=400), st.text(alphabet="漢字🙂é", max_size=80)
)


def thought(number: int, content: str = "#plan look", importance: float = 0.5, ts: float | None = None) -> Thought:
    return Thought(id=f"thought:{number}", content=content, importance=importance, ts=number if ts is None else ts)


def roomy(**given: float) -> WorkingMemory:
    return WorkingMemory(
        **{"max_thoughts": 100, "max_chars": 9000, "max_tokens": 9000, "half_life_seconds": 900, **given}
    )


@given(
    texts=st.lists(contents, max_size=30),
    most=st.integers(1, 12),
    chars=st.integers(1, 300),
    tokens=st.integers(1, 90),
)
def test_every_budget_holds_after_any_sequence_and_the_newest_are_kept(texts, most, chars, tokens):
    memory = WorkingMemory(most, chars, tokens, 900)
    foretold: list[str] = []
    pushed: list[str] = []
    for number, text in enumerate(texts):
        foretold += [old.id for old in memory.pushed_out_by(thought(number, text))]
        pushed += [old.id for old in memory.add(thought(number, text))]
        kept = memory.view(1000)
        assert len(kept) <= most
        assert sum(len(each.content) for each in kept) == memory.chars <= chars
        assert sum(estimated_tokens(each.content) for each in kept) == memory.tokens <= tokens
        assert kept[-1].id == f"thought:{number}", "the newest is always there"
    kept_ids = [each.id for each in memory.view(1000)]
    assert pushed == foretold
    assert pushed + kept_ids == [f"thought:{number}" for number in range(len(texts))], "oldest out, in order"


@given(texts=st.lists(contents, min_size=1, max_size=20), chars=st.integers(1, 300), tokens=st.integers(1, 90))
def test_no_thought_is_pushed_out_while_there_is_room_for_it(texts, chars, tokens):
    memory = WorkingMemory(1000, chars, tokens, 900)
    for number, text in enumerate(texts):
        before = memory.view(1000)
        out = memory.add(thought(number, text))
        if out:  # with the last of those that went, a budget would have been over
            newest = memory.view(1)[0].content
            rest = [*before[len(out) - 1 :]]
            over_chars = sum(len(each.content) for each in rest) + len(newest) > chars
            over_tokens = sum(estimated_tokens(each.content) for each in rest) + estimated_tokens(newest) > tokens
            assert over_chars or over_tokens


@pytest.mark.parametrize("text", ["x" * 5000, "漢" * 5000, "a漢" * 2500])
def test_one_thought_over_the_whole_budget_is_cut_to_it(text):
    memory = WorkingMemory(10, 200, 60, 900)
    memory.add(thought(1, "#plan before"))
    memory.add(thought(2, text))
    (kept,) = memory.view(10)
    assert kept.id == "thought:2"
    assert kept.content.endswith(CUT)
    assert text.startswith(kept.content[:-1])
    assert len(kept.content) <= 200
    assert 55 <= estimated_tokens(kept.content) <= 60 or len(kept.content) == 200, "no more is cut than must be"


def test_a_weight_halves_with_each_half_life_and_never_grows_beyond_importance():
    memory = roomy()
    memory.add(thought(1, importance=0.8, ts=1000.0))
    for now, expected in ((1000, 0.8), (1900, 0.4), (2800, 0.2), (1450, 0.8 * 0.5**0.5), (0, 0.8)):
        ((_, weight),) = memory.weights(now)
        assert weight == pytest.approx(expected)
        assert memory.score_decay(now) == pytest.approx(expected)


def test_what_is_on_the_mind_is_the_sum_of_the_weights():
    memory = roomy()
    for number, importance in enumerate((0.2, 0.6, 1.0)):
        memory.add(thought(number, importance=importance, ts=0.0))
    assert memory.score_decay(900.0) == pytest.approx(0.9)
    assert roomy().score_decay(5.0) == 0.0


def test_a_view_is_the_newest_with_the_oldest_of_them_first():
    memory = roomy()
    for number in range(5):
        memory.add(thought(number))
    assert [each.id for each in memory.view(2)] == ["thought:3", "thought:4"]
    assert len(memory.view(50)) == 5
    assert memory.view(0) == memory.view(-3) == []


def test_what_the_store_kept_is_there_again_within_budget():
    memory = WorkingMemory(3, 9000, 9000, 900)
    memory.add(thought(99))
    memory.restore(thought(number) for number in range(6))
    assert [each.id for each in memory.view(10)] == ["thought:3", "thought:4", "thought:5"]


def test_a_budget_lowered_later_holds_after_truncating():
    memory = roomy()
    for number in range(10):
        memory.add(thought(number))
    memory.max_thoughts = 2
    memory.truncate_to_budget()
    assert [each.id for each in memory.view(10)] == ["thought:8", "thought:9"]


@pytest.mark.parametrize("wrong", [{"max_thoughts": 0}, {"max_chars": 0}, {"max_tokens": 0}, {"half_life_seconds": 0}])
def test_a_budget_without_room_is_refused(wrong):
    with pytest.raises(ValueError, match="room"):
        roomy(**wrong)


@given(text=st.text(max_size=60), more=st.text(max_size=20))
def test_the_estimate_of_tokens_never_shrinks_with_more_text_and_is_nothing_for_nothing(text, more):
    assert estimated_tokens(text) <= estimated_tokens(text + more) <= estimated_tokens(text) + len(more) + 1
    assert (estimated_tokens(text) == 0) == (text == "")


def test_threads_add_and_read_at_once_and_the_budget_holds():
    memory = WorkingMemory(50, 2000, 600, 900)
    wrong: list[str] = []

    def write(start: int) -> None:
        for number in range(400):
            memory.add(thought(start + number, f"#plan {number}"))

    def read() -> None:
        for _ in range(400):
            seen = memory.view(1000)
            if len(seen) > 50 or sum(len(each.content) for each in seen) > 2000:
                wrong.append("over budget")
            memory.weights(1.0)

    threads = [threading.Thread(target=write, args=(10_000 * n,)) for n in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert memory.chars == sum(len(each.content) for each in memory.view(1000))
