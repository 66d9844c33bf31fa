"""Text of others in a report is shown and does nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ghost.report.markdown import code, table, text
from ghost.text import one_line


@given(st.text(max_size=60))
def test_prose_stays_on_one_line_and_opens_no_markup(value):
    shown = text(value)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[|<&]", shown)


MARKUP = st.text(alphabet="ab19 \\`*_[]()<>|!#&;~=+-.:/\n", max_size=40)


@given(MARKUP | st.text(max_size=40))
def test_a_parser_of_markdown_reads_prose_back_as_it_was(value):
    """The oracle is markdown-it with HTML, tables and strikethrough; addresses that it would link stay off."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for line in (text(value), f"said {text(value)}"):
        tokens = parser.parse(line)
        assert [t.type for t in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
        inline = tokens[1].children if tokens else []
        assert {t.type for t in inline} <= {"text", "text_special"}
        assert "".join(t.content for t in inline) == line_of(value, line)


def line_of(value: str, line: str) -> str:
    plain = one_line(value, limit=None)
    return f"said {plain}".strip() if line.startswith("said ") else plain


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


def test_what_opens_nothing_is_left_as_it_is():
    assert text("Tcp 10.20.1.0/24 -> *:6000") == r"Tcp 10.20.1.0/24 -> \*:6000"
    assert text("a -> b > c; <b>") == r"a -> b > c; \<b>"
    assert text("> quoted") == r"\> quoted"


def test_invisible_and_control_characters_are_gone():
    assert text("a\u202eb\x1b[2Jc") == r"a b \[2Jc"
