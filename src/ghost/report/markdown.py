"""External text (names, commands, reasons) as inert Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ghost.text import one_line, visible

_PIPE = re.compile(r"(?<!\\)\|")
_INLINE = re.compile(r"([\\`*\[|<&~]|_(?!\w)|(?<!\w)_)")
"""What starts emphasis, code, links, cells, HTML or entities."""
_START = re.compile(r"^(\d{0,9})([#>+=.)-])")
"""What starts headings, quotes and lists, at the start of a line."""


def text(value: str, *, starts_line: bool = True) -> str:
    """Return one line of prose with Markdown and HTML escaped and control and invisible characters removed."""
    line = _INLINE.sub(r"\\\1", one_line(value, limit=None))
    return _START.sub(r"\1\\\2", line) if starts_line else line


def code(value: str) -> str:
    """Return a code span."""
    line = visible(value).strip() or " "
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join('---' for _ in header)}|"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: str) -> str:
    return _PIPE.sub(r"\\|", value)
