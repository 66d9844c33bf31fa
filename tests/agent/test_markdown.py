"""Text of others in a report is shown and does nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ghost.agent.markdown import code, table, text


@given(st.text(max_size=60))
def test_prose_stays_on_one_line_and_opens_no_markup(value):
    shown = text(value)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]|!]", shown)
    assert "<" not in shown
    assert ">" not in shown


@given(st.text(max_size=60))
def test_a_code_span_cannot_be_closed_from_inside(value):
    shown = code(value)
    fence = re.match(r"`+", shown).group()
    inner = shown[len(fence) : -len(fence)]
    assert shown.endswith(fence)
    assert fence not in re.findall(r"`+", inner)


@given(st.lists(st.text(max_size=20), min_size=2, max_size=2))
def test_a_row_keeps_its_number_of_cells(cells):
    rows = table(("a", "b"), [(text(cells[0]), code(cells[1]))]).splitlines()
    assert len(rows) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", rows[2].replace("\\\\", ""))) == 3


def test_invisible_and_control_characters_are_gone():
    assert text("a\u202eb\x1b[2Jc") == r"a b \[2Jc"
