"""External text (names, commands, reasons) as inert Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ghost.text import one_line, visible

_PIPE = re.compile(r"(?<!\\)\|")
_ACTIVE = re.compile(r"([\\`*\[|<&]|^[#>+-]|(?<=^\d)[.)]|(?<=^\d\d)[.)]|_(?!\w)|(?<!\w)_|~(?=~)|^~|^=)")
"""What starts emphasis, code, links, cells, HTML or entities; at the start of a line headings, quotes and lists."""


def text(value: str) -> str:
    """Return one line of prose with Markdown and HTML escaped and control and invisible characters removed."""
    line = one_line(value, limit=None)
    return _ACTIVE.sub(r"\\\1", line)


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
