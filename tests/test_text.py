"""Text from outside is shown without power over the terminal, and nested values are changed text by text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ghost.hosts import is_loopback
from ghost.text import map_text, one_line, visible


@given(st.text())
def test_what_is_shown_is_printable_and_says_what_was_there(text):
    shown = visible(text)
    assert shown.isprintable()
    assert not text.isprintable() or shown == text


def test_escapes_bidirectional_marks_and_odd_spaces_are_written_out():
    assert visible("a\x1b[2Jb\u202ec\xa0d\ud800") == r"a\x1b[2Jb\u202ec\xa0d\ud800"
    assert visible("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"


@given(st.text(), st.integers(1, 50))
def test_one_line_is_printable_and_bounded(text, limit):
    line = one_line(text, limit)
    assert line.isprintable()
    assert len(line) <= limit
    assert "  " not in line


def test_every_text_of_nested_values_is_changed():
    value = {"a": ["b", ("c", 1, None, True)], "d": {"e": 2.5}}
    assert map_text(value, str.upper) == {"A": ["B", ["C", 1, None, True]], "D": {"E": 2.5}}
    assert map_text([["a"]], str.upper, depth=1) == ["['A']"]
    assert map_text(["a", "b"], str.upper, items=1) == ["A"]


def test_only_addresses_of_this_machine_and_localhost_are_loopback():
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "[::1]"):
        assert is_loopback(host), host
    for host in ("localhost.example", "localhost.", "10.0.0.1", "0.0.0.0", "[::]", "", "127.0.0.1.example"):
        assert not is_loopback(host), host
