"""Edits of a scenario as its file states them; worlds do not take them yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ghost.errors import LabError
from ghost.lab.world import World


@dataclass(frozen=True)
class Edit:
    put: str | None = None
    patch: str | None = None
    delete: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    wire: dict[str, Any] = field(default_factory=dict)


def edited(world: World, edits: Sequence[Edit], place: str = "edits") -> World:
    if edits:
        raise LabError(f"{place}[0]: worlds take no edits yet")
    return world
