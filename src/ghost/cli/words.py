"""Text of others on a terminal: control characters would move the cursor or hide a command, so they are shown."""

from __future__ import annotations

import unicodedata

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def plain(text: str) -> str:
    """`text` on one line, every control and invisible character as its escape (`\\x1b`, `\\u202e`)."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) in _INVISIBLE:
        return character.encode("unicode_escape").decode("ascii")
    return character


def plain_lines(text: str) -> str:
    """Like `plain`, with line feeds and tabs left as they are: for output of several lines."""
    return "".join(character if character in "\n\t" else _shown(character) for character in text)
