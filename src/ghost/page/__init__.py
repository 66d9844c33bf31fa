"""HTML reports that cannot be broken out of: escaped elements, one style, and the parts that reports share."""

from ghost.page.markup import Content, Markup, element, escaped, join
from ghost.page.page_parts import badge, document, facts, scrolling, section, style, table

__all__ = [
    "Content",
    "Markup",
    "badge",
    "document",
    "element",
    "escaped",
    "facts",
    "join",
    "scrolling",
    "section",
    "style",
    "table",
]
