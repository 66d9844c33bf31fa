"""HTML that cannot be broken out of: whatever is not markup already is escaped, and so are directions for a terminal
or a reader's eye (control, format and bidirectional characters)."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from ghost.text import visible

_VOID = frozenset({"br", "col", "hr", "img", "meta"})
_SVG_EMPTY = frozenset({"line", "path", "rect", "circle"})


class Markup(str):
    """Text that is HTML; made by `element` and `join` alone."""

    __slots__ = ()


Content: TypeAlias = "Markup | str | int | float | Iterable[Content] | None"


def element(tag: str, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """`<tag attributes>content</tag>`. An attribute's underscores are hyphens, a trailing one is dropped (`class_`);
    True stands alone, None and False are left out."""
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    if tag in _SVG_EMPTY:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{join(content)}</{tag}>")


def join(content: Content) -> Markup:
    """Content as markup, one after another."""
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(escaped(content))
    if isinstance(content, int | float):
        return Markup(escaped(str(content)))
    return Markup("".join(join(each) for each in content))


def escaped(text: str) -> str:
    """Text on any number of lines, safe between tags and in a quoted attribute."""
    return html.escape("\n".join(visible(line) for line in text.split("\n")), quote=True)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'
