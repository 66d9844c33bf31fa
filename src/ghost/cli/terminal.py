"""Standard output and standard error for people, and whether one is there."""

from __future__ import annotations

import sys

from rich.console import Console as Rich


def is_interactive() -> bool:
    """Whether standard input and standard output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def to_stdout() -> Rich:
    """Console on standard output: wraps text on a terminal, leaves lines unchanged in a pipe."""
    return Rich(highlight=False, soft_wrap=not sys.stdout.isatty())


def to_stderr() -> Rich:
    return Rich(highlight=False, soft_wrap=not sys.stderr.isatty(), stderr=True)


def line_width() -> int:
    """Columns that a line may take: those of the terminal, 100 in a pipe."""
    return to_stdout().width if sys.stdout.isatty() else 100
