"""Directories after the system's in which programs are found, and whether others could change what lies there."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "GHOST_PROGRAM_DIRS"
_USUAL = ("/usr/local/bin", "/snap/bin", "/opt/homebrew/bin")


def further_directories(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The usual ones, then those that the user lists; a relative path is no place and left out."""
    listed = (*_USUAL, *environment.get(VARIABLE, "").split(os.pathsep))
    return tuple(dict.fromkeys(Path(os.path.normpath(path)) for path in listed if os.path.isabs(path)))  # noqa: PTH117


def changed_by_others(path: Path) -> Path | None:
    """The first place on the way to a file, links followed, that another user than root and this one could change.

    None where there is none. A place that cannot be looked at counts, and so does a sticky directory, in which others
    can make a missing file.
    """
    looked_at: set[Path] = set()
    to_follow = [path]
    while to_follow:
        target = to_follow.pop()
        for place in (target, *target.parents):
            if place in looked_at:
                continue
            looked_at.add(place)
            try:
                status = place.lstat()
                if stat.S_ISLNK(status.st_mode):
                    above = os.path.realpath(place.parent)
                    to_follow.append(Path(os.path.normpath(Path(above, place.readlink()))))
                elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    return place
            except (OSError, ValueError):
                return place
            if status.st_uid not in (0, os.geteuid()):
                return place
    real = Path(os.path.realpath(path))
    return None if real in looked_at else changed_by_others(real)
