"""Makes text from packets and file names safe for display.

Names in a capture were chosen by their senders: they may hold terminal escapes, Markdown, HTML or instructions for a
reader. They stay readable and inert.
"""

from __future__ import annotations

import re

from ghost.text import visible

LONGEST_NAME = 100
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]|~#!"})
_LINK = re.compile(r"(?<=[a-z]:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Inside what GitHub and others make a link of without being asked: `http://` and `www.`."""
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def name(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name from a packet on one line, at most `longest` characters."""
    clean = visible(text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def markdown(text: str) -> str:
    """Return `text` as Markdown that shows it literally, also in a table cell; no name becomes a link."""
    return _LINK.sub(r"\\", visible(text).translate(_MARKDOWN).translate(_HTML))


def code(text: str) -> str:
    """Return `text` as a Markdown code span; a backtick becomes an apostrophe."""
    return "`" + visible(text).replace("`", "'") + "`"
