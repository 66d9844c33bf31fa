"""The frame of every HTML report, and its parts: one file that loads nothing, runs nothing, and follows the reader's
light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import ghost
from ghost.page.markup import Content, Markup, element, join

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def document(title: str, main: Content, footer: str, *, header: Content = None) -> str:
    """A document with the style of all of Ghost's pages."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content=f"ghost {ghost.__version__}"),
        element("title", title),
        Markup(f"<style>{style()}</style>"),
    )
    body = element(
        "body",
        element("header", header) if header is not None else None,
        element("main", main),
        element("footer", element("p", footer)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


@cache
def style() -> str:
    """Return what is in the one `style` element of a page, for the hash that a Content-Security-Policy names."""
    return "\n" + (Path(__file__).parent / "page.css").read_text(encoding="utf-8")


def section(title: str, *content: Content) -> Markup | None:
    """A heading and what follows it; None where nothing does."""
    inside = join(content)
    return element("section", element("h2", title), inside) if inside else None


def facts(pairs: Iterable[tuple[str, str]], *, plain: bool = False) -> Markup:
    cells = [element("div", element("dt", name), element("dd", value)) for name, value in pairs]
    return element("dl", cells, class_="facts plain" if plain else "facts")


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[Content]],
    *,
    numbers: Iterable[int] = (),
    class_: str = "",
) -> Markup:
    """A captioned table that scrolls by itself where the page is narrow; `numbers` are columns aligned to the right."""
    right = set(numbers)
    lines = [
        element("tr", [element("td", cell, class_="n" if n in right else None) for n, cell in enumerate(row)])
        for row in rows
    ]
    first = element(
        "tr", [element("th", name, scope="col", class_="n" if n in right else None) for n, name in enumerate(head)]
    )
    return scrolling(
        caption,
        element("table", element("caption", caption), element("thead", first), element("tbody", lines), class_=class_),
    )


def scrolling(label: str, content: Content) -> Markup:
    return element("div", content, class_="scroll", role="region", tabindex=0, aria_label=label)


def badge(word: str, tone: str) -> Markup:
    return element("span", word, class_=f"badge {tone}")
