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
    seen_as: str = ""
    """Findings of a capture that may come from it, as words."""


@cache
def known_kinds() -> dict[str, FaultKind]:
    """Return every kind by name."""
    kinds: dict[str, FaultKind] = load_policy(__file__, "fault_kinds.toml", dict[str, FaultKind])
    return kinds


@cache
def kinds_seen_as(finding: str) -> tuple[str, ...]:
    """Return the kinds of fault that a capture may show as this kind of finding."""
    return tuple(name for name, kind in known_kinds().items() if finding in kind.seen_as.split())
