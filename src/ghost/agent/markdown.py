"""Text from outside (names, commands, reasons) as Markdown that shows it and does nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_PIPE = re.compile(r"(?<!\\)\|")
_ACTIVE = re.compile(r"([\\`*\[\]|!#])")


def text(value: str) -> str:
    """One line of prose: markup characters escaped, HTML inert, control and invisible characters gone."""
    line = _CONTROL.sub(" ", value).strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\1", line)


def code(value: str) -> str:
    """A code span."""
    line = _CONTROL.sub(" ", value).strip() or " "
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
