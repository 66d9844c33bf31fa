"""What an investigation is asked for, and who runs it: a terminal, or a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ghost.brain import StatedEnds
from ghost.cli.brain_choice import Wish
from ghost.cli.session_opening import NOTHING_STATED

SYMPTOM_NEEDED = 'no symptom: say what fails, for example: ghost investigate "vm-a cannot reach vm-b on 443"'


@dataclass(frozen=True)
class Request:
    symptom: str | None
    lab: str | None
    resume: str | None
    wish: Wish
    max_turns: int | None
    private: bool
    as_json: bool
    """One document on standard output, at the end."""
    verbose: bool = False
    """Each command whole, with its reason."""
    html: bool = False
    """The report as a page, too."""
    as_events: bool = False
    """A line on standard output for each event, as it happens."""
    stated: StatedEnds = NOTHING_STATED
    fresh: bool = False
    """Memory is not asked."""
    read_only: bool = False
    """What would ask for an approval is refused."""
    approve_each: bool = False
    """A capture's commands ask one by one."""
    capture_options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of captures by name."""

    @property
    def for_programs(self) -> bool:
        return self.as_json or self.as_events


@dataclass(frozen=True)
class Served:
    """Of an investigation that a server runs: nobody is at a terminal, the dashboard answers."""

    tell: Callable[[str, dict[str, Any]], None]
    """Gets each event."""
    is_stopped: Callable[[], bool]
