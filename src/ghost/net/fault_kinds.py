"""The kinds of fault, as data: one list for walks, scenarios, brains and reports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ghost.policy import load_policy


@dataclass(frozen=True)
class FaultKind:
    layer: str
    """Of the report's path coverage; `nsg` for both directions of a security group."""
    title: str
    mend: str


@cache
def known_kinds() -> dict[str, FaultKind]:
    """Return every kind by name."""
    kinds: dict[str, FaultKind] = load_policy(__file__, "fault_kinds.toml", dict[str, FaultKind])
    return kinds
