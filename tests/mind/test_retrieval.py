"""Search by words and meaning together finds more of what answers a question than either alone, on the labelled set."""

from __future__ import annotations

import pytest

from ghost.providers.stub import StubEmbeddings
from tests.exhaustive import EXHAUSTIVE
from tests.mind.retrieval.labelled import DISTRACTORS, FROZEN, OPEN, SHA256, digests, made_notes, notes, questions
from tests.mind.retrieval.measuring import WAYS, filled, found_by, quality


def test_the_set_is_the_one_that_was_committed_before_the_first_search():
    assert digests() == SHA256


def test_every_question_has_one_to_four_notes_that_answer_it():
    written = notes()
    asked = questions(OPEN) + questions(FROZEN)
    assert (len(written), len(made_notes()), len(asked)) == (300, DISTRACTORS, 200)
    assert len({question.text for question in asked}) == len({question.id for question in asked}) == 200
    assert len(questions(OPEN)) == len(questions(FROZEN)) == 100
    for question in asked:
        assert 1 <= len(question.relevant) <= 4
        assert question.relevant <= written.keys()
    assert all(30 <= len(text.split()) <= 120 for text in written.values())


@pytest.mark.parametrize("dim", [128, 384] if EXHAUSTIVE else [384])
def test_both_together_find_more_than_either_alone(tmp_path, dim):
    """On all questions. What the frozen half alone shows is in docs/mind.md."""
    with filled(tmp_path, StubEmbeddings(dim)) as ltm:
        searches = found_by(ltm)
        found = {way: quality(searches[way], questions(OPEN) + questions(FROZEN)) for way in WAYS}
    for alone in ("keyword", "vector"):
        assert found["hybrid"].recall > found[alone].recall
        assert found["hybrid"].mrr > found[alone].mrr
