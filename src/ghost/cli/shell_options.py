"""What commands have in common that run something through the shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ghost.shell import explain
from ghost.text import visible

if TYPE_CHECKING:
    from ghost.lab import RunningLab


class ProgramsOfShell(TypedDict, total=False):
    """Which programs a shell runs, where they are not the system's."""

    program_dirs: Sequence[Path]
    own_az: bool
    environment: Mapping[str, str]
    resolver: Callable[[str], list[str]]


def programs_of(lab: RunningLab | None, *, own_az: bool = True) -> ProgramsOfShell:
    """All programs of a lab and nothing else, but for a person's own az that talks to it."""
    if lab is None:
        return {}
    return {
        "program_dirs": [lab.program_dir],
        "own_az": own_az,
        "environment": lab.environment,
        "resolver": lab.resolver,
    }


def why_not_run(command: str, error: str, roots: Sequence[Path]) -> str:
    """An error of the shell in words; where its rules refused, with what they say of the command."""
    words = error.replace("_", " ")
    if error not in {"forbidden_command", "unsupported_syntax", "command_too_long"}:
        return words
    return f"{words}: {visible(str(explain(command, roots)['explanation']))}"
