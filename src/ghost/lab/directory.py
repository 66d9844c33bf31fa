"""A lab on disk: world and clock in `world.json`, changes in `state.json`, stored blobs in `blobs/`.

The programs of a lab are concurrent processes; they find the directory in `GHOST_LAB_DIR`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghost.errors import LabError, RecordError
from ghost.lab.briefing import Briefing
from ghost.lab.edits import Edit, edited
from ghost.lab.tenant_conditions import TenantConditions
from ghost.lab.world import World
from ghost.lab.world_validation import world_from_dict
from ghost.policy import from_dict, to_dict
from ghost.records import private_dir, read_json, write_json

if TYPE_CHECKING:
    from ghost.lab.scenario import Scenario

VARIABLE = "GHOST_LAB_DIR"


@dataclass(frozen=True)
class LabClock:
    """The lab's clock: `speed` times real time, the same in all processes of the lab.

    `sleep(seconds)` waits for lab seconds.
    """

    started: float
    """When the lab was started, as a UNIX time."""
    speed: float

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.started, UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (time.time() - self.started) * self.speed

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self.speed)


@dataclass(frozen=True)
class LabDirectory:
    path: Path
    started_with: World
    """As the scenario has it."""
    clock: LabClock
    briefing: Briefing
    tenant: TenantConditions = field(default_factory=TenantConditions)
    _changed: dict[str, World] = field(default_factory=dict, compare=False, repr=False)

    @property
    def world(self) -> World:
        """Return the world as it is now: after the changes that were made through `az`."""
        edits = self.state().get("edits", [])
        if not edits and not self.started_with.fleet:
            return self.started_with
        known = json.dumps(edits)
        if known not in self._changed:
            made = edited(self.started_with, (from_dict(Edit, edit, "edit", LabError) for edit in edits))
            if made.fleet:
                made = self._with_fleet(made, known)
            self._changed.clear()
            self._changed[known] = made
        return self._changed[known]

    def _with_fleet(self, world: World, known: str) -> World:
        """Return a world with its fleet; the bodies of hundreds of machines are kept in a file beside the edits."""
        from ghost.lab.fleets import with_fleets
        from ghost.lab.tenant import Documents

        made, path = with_fleets(world), self.path / "documents.json"
        kept = read_json(path) if path.exists() else {}
        if kept.get("edits") == known:
            made.__dict__["documents"] = Documents.of_bodies(
                world.subscription.id, world.groups[0].name, kept["bodies"]
            )
        else:
            write_json(path, {"edits": known, "bodies": list(made.documents)})
        return made

    @classmethod
    def create(
        cls, path: Path, scenario: Scenario, clock: LabClock, state: Mapping[str, Any] | None = None
    ) -> LabDirectory:
        private_dir(path)
        content = {"clock": to_dict(clock), "briefing": to_dict(scenario.briefing), "world": scenario.world.to_dict()}
        content["tenant"] = to_dict(scenario.tenant)
        write_json(path / "world.json", content)
        write_json(path / "state.json", dict(state or {}))
        return cls(path, scenario.world, clock, scenario.briefing, scenario.tenant)

    @classmethod
    def open(cls, path: Path) -> LabDirectory:
        """Open a lab. Raises `LabError` if there is none, or its file is invalid."""
        try:
            content = read_json(path / "world.json")
        except (FileNotFoundError, RecordError) as error:
            raise LabError(f"there is no lab in {path} ({error}): start one first") from error
        return cls(
            path,
            world_from_dict(content["world"]),
            from_dict(LabClock, content["clock"], "clock", LabError),
            from_dict(Briefing, content["briefing"], "briefing", LabError),
            from_dict(TenantConditions, content.get("tenant", {}), "tenant", LabError),
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> LabDirectory:
        """Open the lab of this process. Raises `LabError` without `GHOST_LAB_DIR`."""
        if not environment.get(VARIABLE):
            raise LabError(f"{VARIABLE} is not set: this program runs only inside a lab")
        return cls.open(Path(environment[VARIABLE]))

    def state(self) -> dict[str, Any]:
        """Return the changing state; to modify it, see `changing`."""
        state: dict[str, Any] = read_json(self.path / "state.json")
        return state

    def changing(self) -> AbstractContextManager[dict[str, Any]]:
        """Lock the state for this process; it is written when the block ends without an error."""
        return changing_state(self.path)


@contextmanager
def changing_state(directory: Path) -> Iterator[dict[str, Any]]:
    """Lock the state of the lab in a directory for this process; it is written when the block ends without an error."""
    descriptor = os.open(directory / "state.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        state: dict[str, Any] = read_json(directory / "state.json")
        before = repr(state)
        yield state
        if repr(state) != before:
            write_json(directory / "state.json", state)
    finally:
        os.close(descriptor)
