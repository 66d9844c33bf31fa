"""The root-cause report as plain text for a ticket: what a colleague needs, without tables and annex."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ghost.report.rca_blocks import (
    Block,
    Code,
    Command,
    Content,
    Heading,
    Items,
    Paragraph,
    PathPicture,
    Quote,
    Spans,
    Strong,
    Table,
)
from ghost.text import one_line, visible

WIDTH = 100


def as_text(content: Content) -> str:
    return "\n".join([_line(content.title), *_lines(content.main)]).rstrip() + "\n"


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(_, words):
                yield f"\n{_line(words).upper()}"
            case Paragraph(spans):
                yield from _folded(_plain(spans), "")
            case Items(rows, numbered):
                for n, row in enumerate(rows, 1):
                    yield from _folded(_plain(row), f"{n}. " if numbered else "- ")
            case Command(words):
                yield f"    {visible(words)}"
            case Table(("Layer", *_), _):  # the line of the path says where it stops
                pass
            case Table(_, cells):
                for cell_row in cells:
                    yield from _folded("  ".join(filter(None, map(_plain, cell_row))), "- ")
            case Quote(lines):
                for line in lines:
                    yield from _folded(_plain(line), "  | ")
            case PathPicture(_, in_words):
                yield from _folded(_line(in_words), "")
            case _:
                pass


def _folded(words: str, first: str) -> list[str]:
    """Fold at spaces only: what is copied from a ticket stays whole."""
    indent = first if first.strip() == "|" else " " * len(first)
    fold = textwrap.TextWrapper(WIDTH, first, indent, break_long_words=False, break_on_hyphens=False)
    return fold.wrap(_line(words))


def _plain(spans: Spans) -> str:
    return "".join(span.text if isinstance(span, Code | Strong) else span for span in spans).strip()


def _line(words: str) -> str:
    return one_line(words, limit=None)
