"""Standard output and standard error for people, and whether one is there."""

from __future__ import annotations

import sys

from rich.console import Console as Rich


def is_interactive() -> bool:
    """Whether a person is at both ends: standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def to_stdout() -> Rich:
    """Words are wrapped for a person; a pipe gets lines as they are."""
    return Rich(highlight=False, soft_wrap=not sys.stdout.isatty())


def to_stderr() -> Rich:
    return Rich(highlight=False, soft_wrap=not sys.stderr.isatty(), stderr=True)
