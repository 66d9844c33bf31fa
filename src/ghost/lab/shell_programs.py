"""What puts a shell into a lab: arguments that replace the system's programs by the lab's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ghost.lab.launchers import RunningLab


class ShellPrograms(TypedDict, total=False):
    """Keyword arguments of `SafeExecShell` that replace the system's programs."""

    program_dirs: Sequence[Path]
    own_az: bool
    environment: Mapping[str, str]
    resolver: Callable[[str], list[str]]


def lab_programs(lab: RunningLab | None, *, own_az: bool = True) -> ShellPrograms:
    """Arguments that restrict a shell to the lab's programs; `own_az` keeps the user's az, which talks to the lab."""
    if lab is None:
        return {}
    return {
        "program_dirs": [lab.program_dir],
        "own_az": own_az,
        "environment": lab.environment,
        "resolver": lab.resolver,
    }
