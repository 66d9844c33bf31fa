"""The root-cause report as Markdown, with all external text inert."""

from __future__ import annotations

from collections.abc import Iterable

from ghost.report.markdown import code, table, text
from ghost.report.rca_blocks import (
    Block,
    CapturePlots,
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


def as_markdown(content: Content) -> str:
    parts = [f"# {text(content.title)}", *_written(content.main), "---", "# Annex", *_written(content.annex)]
    return "\n\n".join(parts) + "\n"


def _written(blocks: Iterable[Block]) -> list[str]:
    return [part for block in blocks if (part := _block(block))]


def _block(block: Block) -> str:
    match block:
        case Heading(level, words):
            return f"{'#' * level} {text(words)}"
        case Paragraph(spans):
            return _spans(spans)
        case Items(rows, numbered):
            return "\n".join(f"{f'{n}.' if numbered else '-'} {_spans(row)}" for n, row in enumerate(rows, 1))
        case Command(words):
            return code(words)
        case Table(header, rows):
            return table(header, [[_spans(cell, starts_line=False) for cell in row] for row in rows])
        case Quote(lines):
            return "\n>\n".join(f"> {_spans(line)}" for line in lines)
        case PathPicture(_, in_words):
            return text(in_words)
        case CapturePlots():
            return ""


def _spans(spans: Spans, *, starts_line: bool = True) -> str:
    written: list[str] = []
    for span in spans:
        first = starts_line and not written
        match span:
            case Code(words):
                written.append(code(words))
            case Strong(words):
                written.append(f"**{text(words)}**" if words.strip() else "")
            case str(words):
                lead, tail = words[:1].isspace(), words[-1:].isspace()
                written.append(f"{' ' * lead}{text(words, starts_line=first)}{' ' * tail}")
    return "".join(written).strip()
