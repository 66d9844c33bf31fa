"""A first look at a long text drops strings that it cannot hold, and never one that it does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.redaction.bigram_filter import present, sieve
from ghost.redaction.shapes import SHAPES

LETTERS = "ab:пé\ud800"


@settings(deadline=None, max_examples=60)
@given(st.text(LETTERS, max_size=40), st.lists(st.text(LETTERS[:-1], max_size=4), max_size=20))
def test_those_that_the_text_holds_are_found_however_long_it_is(piece: str, strings: list[str]) -> None:
    for text in (piece, piece + "x" * 40_000, "x" * 40_000 + piece):
        assert present(text, strings) == tuple(string for string in strings if string in text)


def test_a_long_text_is_not_searched_for_what_it_cannot_hold() -> None:
    may_hold = sieve("password = x\n" * 4_000)

    assert may_hold("password")
    assert not may_hold("secret")


def test_what_a_shape_probes_for_is_in_everything_that_it_finds() -> None:
    probed = [shape for shape in SHAPES if shape.probe is not None]

    assert probed
    for shape in probed:
        assert shape.probe is not None
        for text in shape.must:
            assert shape.pattern.search(text) is not None
            assert shape.probe.search(text) is not None
