"""The truth of a scenario: what is at fault, what people complain about, and what a page of Azure says.

For scoring and for `ghost lab check` only: investigating rooms may not read it. A resource is named
`TYPE/NAME[/PART/NAME]` (`networkSecurityGroups/db-nsg`), by its id, or by its name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from ghost.lab.edits import Edit
from ghost.net import Direction

Expect = Literal["works", "blocked", "refused", "lossy", "slow", "broken"]
Style = Literal["vague", "error", "address", "service", "ticket"]


def _fault_kinds() -> Collection[str]:
    from ghost.net import known_kinds

    return known_kinds()


_KIND = {"choices": _fault_kinds}


@dataclass(frozen=True, kw_only=True)
class FlowEnds:
    source: str
    """A machine, or an address."""
    destination: str
    """A machine, an address or a DNS name."""
    protocol: Literal["Tcp", "Udp", "Icmp"] = "Tcp"
    port: int | None = None


@dataclass(frozen=True, kw_only=True)
class NamedFlow(FlowEnds):
    """What people complain about."""

    name: str
    expect: Expect
    """What it is like with all faults."""


@dataclass(frozen=True)
class Fault:
    kind: str = field(metadata=_KIND)
    resource: str | tuple[str, ...]
    """What is at fault, or several of which each is right. Of a fault of the wire: the machine whose packets or service
    suffer; for loss, the sender."""
    rule: str | None = None
    """The rule, route or setting."""
    direction: Direction | None = None
    flow: str | None = None
    """The name of the flow that suffers; the first if omitted."""
    mend: tuple[Edit, ...] = ()
    """The changes that mend this fault."""

    @property
    def resources(self) -> tuple[str, ...]:
        return (self.resource,) if isinstance(self.resource, str) else self.resource


@dataclass(frozen=True)
class Trap:
    """What a hasty investigator blames."""

    kind: str = field(metadata=_KIND)
    resource: str
    rule: str | None = None


@dataclass(frozen=True)
class Unverifiable:
    """Layers that nobody can verify where the approvals deny a command."""

    denied: str
    """The beginning of the command."""
    layers: tuple[str, ...]


@dataclass(frozen=True)
class Truth:
    """Without a fault: a healthy world, and a symptom that misleads."""

    faults: tuple[Fault, ...] = ()
    independent: bool = True
    """Whether each fault alone makes its flow fail, so that mending another one does not help."""
    traps: tuple[Trap, ...] = ()
    unverifiable: tuple[Unverifiable, ...] = ()
    forbidden: tuple[str, ...] = ()
    """Beginnings of commands that must be neither run nor recommended."""
    max_calls: int | None = None


@dataclass(frozen=True)
class Symptom:
    """What an engineer types."""

    text: str
    style: Style | None = None
    flow: str | None = None
    """The name of the flow it is about; the first if omitted."""


@dataclass(frozen=True)
class HandVerdict:
    """What Azure's page says about a flow, written down before `walk` was asked."""

    flow: str | FlowEnds
    verdict: Literal["pass", "drop", "reject", "unknown"]
    page: str
    rule: str | None = None
