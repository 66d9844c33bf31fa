"""The root-cause report as one HTML file: it loads nothing, runs nothing, follows light or dark, and prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import ghost
from ghost.page import Content as Markups
from ghost.page import Markup, document, element, scrolling
from ghost.report.path_drawing import path_picture
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


def as_page(content: Content, plots: Callable[[str], Iterable[Markup]] = lambda _: ()) -> str:
    """Return the page. `plots`: the figures of a capture, by the path of its report."""
    main = [element("h1", content.title), *_written(content.main, plots)]
    annex = element("section", element("h1", "Annex"), list(_written(content.annex, plots)), class_="annex")
    return document(content.title, [*main, annex], f"Written by Ghost {ghost.__version__}.")


def _written(blocks: Iterable[Block], plots: Callable[[str], Iterable[Markup]]) -> Iterator[Markups]:
    for block in blocks:
        match block:
            case Heading(level, words):
                yield element(f"h{level}", words)
            case Paragraph(spans):
                yield element("p", _spans(spans))
            case Items(rows, numbered):
                yield element("ol" if numbered else "ul", [element("li", _spans(row)) for row in rows])
            case Command(words):
                yield element("pre", words)
            case Table(header, rows):
                yield _table(header, rows)
            case Quote(lines):
                yield element("blockquote", [element("p", _spans(line)) for line in lines])
            case PathPicture(path, in_words):
                yield element("figure", Markup(path_picture(path)), element("figcaption", in_words), class_="path")
            case CapturePlots(report_path):
                yield element("div", list(plots(report_path)), class_="grid2")


def _spans(spans: Spans) -> list[Markups]:
    made: list[Markups] = []
    for span in spans:
        match span:
            case Code(words):
                made.append(element("code", words))
            case Strong(words):
                made.append(element("strong", words))
            case words:
                made.append(words)
    return made


def _table(header: tuple[str, ...], rows: tuple[tuple[Spans, ...], ...]) -> Markup:
    head = element("tr", [element("th", name, scope="col") for name in header])
    body = [element("tr", [element("td", _spans(cell)) for cell in row]) for row in rows]
    whole = element("table", element("thead", head), element("tbody", body), class_=header[0].lower())
    return scrolling(header[0], whole)
