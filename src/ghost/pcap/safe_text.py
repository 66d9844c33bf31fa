"""Text from packets and file names, made safe for where it is shown.

Names in a capture were chosen by whoever sent them: they may hold terminal escapes, Markdown, HTML or directions
for a reader. They stay readable and lose their power.
"""

from __future__ import annotations

import re

LONGEST_NAME = 100
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|~#!"})
_LINK = re.compile(r"(?<=[a-z]:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Inside what GitHub and others make a link of without being asked: `http://` and `www.`."""
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def printable(text: str) -> str:
    """`text` with control, format and odd space characters written as escapes (`\\x1b`)."""
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name from the wire, on one line and not longer than `longest`."""
    clean = printable(text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def markdown(text: str) -> str:
    """`text` as Markdown that shows exactly it, also inside a table cell; no name in it becomes a link."""
    return _LINK.sub(r"\\", printable(text).translate(_MARKDOWN).translate(_HTML))


def code(text: str) -> str:
    """`text` as a Markdown code span; a backtick in it becomes an apostrophe."""
    return "`" + printable(text).replace("`", "'") + "`"


def _escaped(character: str) -> str:
    point = ord(character)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
